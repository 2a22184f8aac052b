"""The exit codes of the command line, and how a command that goes on leaves with that of a bug."""

from __future__ import annotations

REFUSED, BUG, INTERRUPTED = 1, 3, 130  # and 2 for usage, which is click's own

WOULD_CHANGE = 2
"""The exit code of `plan --detailed-exitcode` where something would change, as terraform has it."""

MET_A_BUG = "reconciler.bug"
"""Key in a command's context once a bug has cost one of its items something, and nothing else."""
