"""Frozen values that every other package speaks in.

No clock, file, process, socket, randomness or logging in here, and nothing that needs one. Bytes become these values
in `core`; once a value of this package exists, its fields are valid and are not checked again.
"""
