"""Whether pods fit: their requirements against the nodes, devices and topology domains of one cluster.

Called by `decide` to count replicas on a candidate, and by `explain` for the words. Answers are lower bounds: a pod
that is counted fits in whatever order the scheduler takes the pods, and a requirement that cannot be counted fits
nowhere. Nothing in here knows policies, workspaces or placements, and nothing is decided.
"""
