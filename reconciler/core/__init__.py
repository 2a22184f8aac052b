"""Pure functions from values to values: reading, deciding, rendering, explaining.

Called by `daemon`, `api` and `cli`. Nothing in here reads a clock, an environment variable, a file or a socket, starts
a process, draws a random number or logs: time and bytes are arguments, and everything worth telling is returned.
"""
