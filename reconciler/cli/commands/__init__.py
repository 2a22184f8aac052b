"""The declarations of commands: names, arguments, options and help; called by `register`.

Each function hands its values to the function of the same purpose in `actions`, which it imports when it runs.
"""
