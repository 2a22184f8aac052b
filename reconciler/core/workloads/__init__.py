"""Kubernetes objects that make pods: the kinds of workloads, the pods that their objects make, and their replicas.

Called by every room above. Kinds are data: a new kind is an entry in `builtin_kinds` or a WorkloadKind file. Nothing in
here knows clusters, policies or placements.
"""
