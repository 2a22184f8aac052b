"""What Prometheus scrapes of a daemon: the fleet as the newest pass saw it, and what this process has done.

Names and units follow https://prometheus.io/docs/practices/naming/. No label holds the name of a placement, a request,
a commit, a caller or a message: their number has no bound.
"""
