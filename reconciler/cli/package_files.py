"""Files that come with the package: the recommended layout, the ready-made policies, and pipelines of git hosts."""

from __future__ import annotations

from pathlib import Path

import reconciler


def layout() -> Path:
    """Return the layout of a fleet repository."""
    return _packaged("repo-layout")


def ready_made_policies() -> Path:
    """Return the directory of the ready-made policies."""
    return _packaged("policies")


def workflow(host: str) -> bytes:
    """Read the pipeline of a git host, ``github`` or ``gitlab``, or the configuration of ``pre-commit``."""
    return (Path(__file__).parent / "ci" / f"{host}.yaml").read_bytes()


def _packaged(name: str) -> Path:
    """Return a directory inside the installed package, or beside it in a checkout of this project."""
    package = Path(reconciler.__file__).parent
    return package / name if (package / name).is_dir() else package.parent / name
