"""The kubeconfig of a command that a person types, where no flag and no setting names one."""

from __future__ import annotations

import os
from pathlib import Path


def usual_kubeconfig() -> Path:
    """Return what KUBECONFIG names, which may be several files with a colon between them, or ~/.kube/config."""
    named = os.environ.get("KUBECONFIG", "").strip(os.pathsep)
    return Path(named).expanduser() if named else Path("~/.kube/config").expanduser()
