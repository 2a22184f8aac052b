"""The records of the output branch, read and written, and the life of a placement from its start to its end.

Called by `daemon.branch` to read, and by `commits` to write. Equal values give equal bytes. Whoever has these files
knows what runs where, since when and until when; no other memory exists.
"""
