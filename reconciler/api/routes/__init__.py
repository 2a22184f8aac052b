"""The routes of the HTTP API, one module for each resource.

Each module builds a router from `Management` and `Callers`; `app` puts them together. A route reads the newest
snapshot or hands an order to the loop, and never reads or writes git itself.
"""
