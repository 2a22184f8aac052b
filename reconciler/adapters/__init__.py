"""Adapters of the ports: each talks to one outside system and turns its errors into ours.

Only `app` wires them. Nothing is decided in here, and no adapter imports another.
"""
