"""Adapters of the ports: each speaks to one thing outside and turns what that raises into our own errors.

Only `app` puts them in place. Nothing is decided in here, and no adapter knows another.
"""
