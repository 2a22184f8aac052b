"""The source branch: the files of all kinds as the fleet that is in force, with every problem and warning in them.

Called by `daemon.source` and `overspill check`. A file that is wrong keeps its last good version, and the other files
go on. Nothing in here knows the state of a cluster, a placement or the time.
"""
