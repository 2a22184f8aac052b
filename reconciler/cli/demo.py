"""`demo`: a GPU shortage on this machine, from burst to return."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.demo import demo as play


def demo(out: Path) -> None:
    """Play the demo; a step that does not happen within its time is told, and makes the exit code 1."""
    if play(out):
        raise click.exceptions.Exit(1)
