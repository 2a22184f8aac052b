"""The files of a kubeconfig: one, or several with a colon between them, as KUBECONFIG names them."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.errors import InvalidInput


def kubeconfig_files(kubeconfig: Path) -> tuple[Path, ...]:
    """Return the files of a kubeconfig that are there; kubectl leaves out those that are not."""
    if kubeconfig.is_file():
        return (kubeconfig,)
    parts = (Path(part).expanduser() for part in str(kubeconfig).split(os.pathsep) if part)
    return tuple(dict.fromkeys(part for part in parts if part.is_file()))


def existing_kubeconfig(kubeconfig: Path) -> Path:
    """Return a kubeconfig of which at least one file is there. Raises InvalidInput for any other."""
    if not kubeconfig_files(kubeconfig):
        raise InvalidInput(f"reading the kubeconfig: {kubeconfig} is not a file (try another --kubeconfig)")
    return kubeconfig
