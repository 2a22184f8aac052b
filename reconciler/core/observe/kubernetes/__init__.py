"""A cluster by its API server: raw objects in, the numbers for decisions out.

`ClusterState` takes every change of a node, a pod or a workload object and keeps a few hundred bytes of each; an
observation can be made at any time. Objects are JSON that the API server has validated: an absent field has its
default, and no field is checked again. Called by the adapter that watches; nothing in here calls the API server.
"""
