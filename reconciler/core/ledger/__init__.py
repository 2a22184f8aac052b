"""The records of the output branch: reading, writing, and the lifecycle of placements.

Called by `daemon.branch` to read, and by `commits` to write. Equal values give equal bytes. These files hold the
complete state: each placement with its start and its end. There is no other memory.
"""
