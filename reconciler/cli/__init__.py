"""The command line: parse, call, print.

Nothing is decided in here and nothing outside is touched but the terminal. `root` holds the group of all commands and
the one error boundary, `register` lists the commands, `commands` declares them, `actions` carries them out, and
`completion` offers names to a shell.

What may not happen in `root`, `register`, `options`, `connection`, `completion` and `commands`: an import at the top of
a module that takes long. Help and completion import these modules alone; everything else is imported by the function
that needs it. tests/cli/test_cli_imports.py holds it.
"""

from __future__ import annotations

from reconciler.cli.root import main

__all__ = ["main"]
