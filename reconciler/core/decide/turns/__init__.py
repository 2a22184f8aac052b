"""The turns of workloads that wait for room: in which order they are taken, and what share of the room each has.

Called by the steps that place, renew and preempt, and by `core.explain`, which plays the queue forward. A turn has its
workload, the time since when it waits, and a function that takes room; `fair_share` weighs what each workload has of
what it needs, `claims` tells who has more right to the room of a burst that is renewed, and `grow` tries the nodes that
autoscalers may add. No turn may decide a change by itself: its function comes from the step that made it.
"""
