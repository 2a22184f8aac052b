"""A pod by its own spec: requests, references, labels, and the rules by which the scheduler finds it a node.

Called by every room above. Input is JSON of users or of API servers, read as kube-scheduler and the admission plugins
read it. Nothing in here knows kinds of workloads, clusters or placements.
"""
