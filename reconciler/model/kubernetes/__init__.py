"""Values of Kubernetes and OpenKruise that files and API servers state: scheduling rules, kinds, schemas, subsets.

The rules of the package above hold here too. Nothing in here knows clusters, policies or placements.
"""
