"""Overspill lends a GPU workload capacity in other clusters, through git and nothing else.

The packages below import one way only (import-linter enforces it)::

    cli > app > api > daemon | adapters > ports > core > model > errors
"""

__version__ = "0.1.0"
