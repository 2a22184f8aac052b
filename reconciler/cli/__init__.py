"""The command line: parse, call, print.

The package decides nothing and touches nothing outside but the terminal. `root` holds the group of all commands and
the one error boundary, `register` lists the commands, `commands` declares them, `actions` carries them out, and
`completion` offers names to a shell.

Slow modules are not imported at the top of `root`, `register`, `options`, `connection`, `completion` and `commands`.
Help and completion import these modules alone; everything else is imported by the function that needs it.
tests/cli/test_cli_imports.py holds it.
"""

from __future__ import annotations

from reconciler.cli.root import main

__all__ = ["main"]
