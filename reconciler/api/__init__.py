"""HTTP in: observations, push hints, health, and who may call what.

Called by `app`, which serves it in a thread beside the loop. Nothing in here decides, reads git or writes it: a request
leaves an observation where the next pass finds it, or wakes the loop.
"""
