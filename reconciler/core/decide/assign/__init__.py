"""Assignment: which candidates get how many of a workload's missing replicas, and which placements lose a surplus.

Called by the steps that place, move, rebalance and scale down. Takes candidates with their room from `candidates` and
returns them with `replicas` and `because`. Nothing here may change the plan; gangs alone hand out their room here.
"""
