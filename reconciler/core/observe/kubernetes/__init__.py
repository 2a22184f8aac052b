"""A cluster as its API server tells of it: raw objects in, the numbers that deciding needs out.

`ClusterState` is told of every change of a node, a pod or a workload object and keeps a few hundred bytes of each; an
observation is made from that at any time. Objects are the JSON of the API server, which has validated them: what it
leaves out has its default, and no field is checked again. Called by the adapter that watches; nothing in here asks
anybody for anything.
"""
