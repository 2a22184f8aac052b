"""The actions of commands: plain functions of values that call `app`, `daemon` and `core`, and print the answer.

Called by `commands`. What may not happen in here: a declaration of an argument or an option, a decision about the
fleet, a process exit other than by an exception that `root` turns into an exit code.
"""
