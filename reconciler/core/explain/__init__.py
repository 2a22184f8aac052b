"""Read-only answers: why a workload or a request is where it is, GPRs, wait times and the inventory of GPUs.

Called by `api`, `cli` and `daemon.status`. Answers come from the functions that decide, so that no explanation differs
from a decision; nothing in here changes a plan or writes a file.
"""
