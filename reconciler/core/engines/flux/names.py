"""Names of Flux's objects on which the files of placements and the objects of an admin have to agree."""

from __future__ import annotations

from datetime import timedelta

TOOLKIT = "toolkit.fluxcd.io"
"""The end of the names of Flux's API groups."""

SUBSTITUTE = f"kustomize.{TOOLKIT}/substitute"
"""The annotation by which an object's ``${...}`` is left as it is."""

SOURCE = "placements"
"""The GitRepository of the output branch."""

ROOT = "overspill-root"
"""The Kustomization that applies a cluster's ``flux/``, and its service account."""

APPLIER = "overspill-applier"
"""The service account that applies the stages and installs the charts."""


def flux_duration(duration: timedelta) -> str:
    """Write a duration as Flux reads it: in minutes or seconds, at least one second. Flux knows no days."""
    seconds = max(1, round(duration.total_seconds()))
    return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"
