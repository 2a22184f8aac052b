"""Answers that take git or a whole decision: history, plans and dry runs.

Called by the API beside the passes of a daemon, and by the commands of the same names. Nothing is pushed, no cluster is
followed, and nothing that a pass keeps from one to the next is changed.
"""
