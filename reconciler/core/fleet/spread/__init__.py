"""WorkloadSpread files in a fleet: rules and warnings, the workload that each spreads, and the pods of its subsets.

Called by `fleet.assemble`. The rules are those of OpenKruise's webhook, in its words and at its fields.
"""
