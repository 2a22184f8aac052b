"""Kubernetes objects: the kinds of workloads, the pods that their objects make, and the rules by which pods find nodes.

Called by every room above. Kinds are data: a new kind is an entry in `builtin_kinds` or a WorkloadKind file. Nothing in
here knows clusters, policies or placements.
"""
