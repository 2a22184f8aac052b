"""The kubeconfig of a command that a person types, where no flag and no setting names one."""

from __future__ import annotations

import os
from pathlib import Path


def usual_kubeconfig() -> Path:
    """Return the first file of KUBECONFIG that is there, or kubectl's ~/.kube/config; files are not merged."""
    home = Path("~/.kube/config").expanduser()
    named = [Path(name).expanduser() for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    return next((path for path in named if path.is_file()), named[0] if named else home)
