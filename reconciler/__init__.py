"""Overspill serves a GPU workload from other clusters when its own cluster is full, through git and nothing else.

The packages below import one way only (import-linter enforces it)::

    cli > app > api > daemon | adapters > ports > core > access > text > model > errors

docs/background/architecture.md has the picture, the rooms of the core, and where a new feature goes.
"""

__version__ = "0.1.0"
