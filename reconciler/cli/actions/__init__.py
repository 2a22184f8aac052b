"""The actions of commands: plain functions of values that call `app`, `daemon` and `core`, and print the answer.

Called by `commands`. Actions declare no argument and no option, decide nothing about the fleet, and end the process
only by an exception that `root` turns into an exit code.
"""
