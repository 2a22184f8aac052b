"""The changes that a WorkloadSpread subset makes to pods: selectors, tolerations, patches and ordinals.

Called by `fleet.spread` to know the pods of a subset, by `decide` to count them, and by `engines` to write them. How
many replicas a subset gets is for `decide.assign` to say.
"""
