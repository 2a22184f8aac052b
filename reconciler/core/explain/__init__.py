"""Read-only answers: the state of workloads and requests with reasons, GPRs, wait times, the inventory of GPUs.

Called by `api`, `cli` and `daemon.status`. The plan keeps what a pass found of a workload's clusters where `decide` is
asked to, so that no explanation differs from a decision; nothing in here changes a plan or writes a file.
"""
