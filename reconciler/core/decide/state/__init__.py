"""The state of a pass: its input, the requests enrolled as workloads, and the plan as the steps leave it so far.

Used by all of `decide`, and by the daemon, which makes a PassInput of what it reads. PassInput and Enrolment are
values; WorkingPlan alone changes, by `change` and `suppress`. Nothing here may decide anything.
"""
