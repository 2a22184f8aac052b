"""Read the source branch: all kinds of files become the fleet in force, with every problem and warning in them.

Called by `daemon.source` and `overspill check`. A broken file keeps its last good version in force, and all other files
are read as usual. Nothing in here knows the state of a cluster, a placement or the time.
"""
