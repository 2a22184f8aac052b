"""Candidates: the clusters that may take replicas, in order of their scores, filtered, and with what fits in each.

Called by `assign` and `steps` through CandidateFinder. `scorers` order the clusters of a policy, `filter` and its
neighbours refuse some with a reason, and FleetCapacity counts what fits and hands room out, each node once a pass.
Nothing here may change the plan or choose between two clusters that have room.
"""
