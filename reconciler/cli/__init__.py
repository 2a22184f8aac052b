"""The command line: parse, call, printing.

Nothing is decided in here and nothing outward is touched but the terminal: commands are plain functions of values, and
what they call is in `app`, `daemon` and `core`. `root` holds the group and the one error boundary.
"""

from __future__ import annotations

from reconciler.cli.root import main

__all__ = ["main"]
