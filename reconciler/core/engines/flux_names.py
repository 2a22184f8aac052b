"""What the files of placements and what an admin applies have to agree on: names of Flux's objects."""

from __future__ import annotations

from datetime import timedelta

TOOLKIT = "toolkit.fluxcd.io"
"""What the API groups of Flux end in."""

SUBSTITUTE = f"kustomize.{TOOLKIT}/substitute"
"""The annotation by which an object's ``${...}`` is left as it is."""

SOURCE = "placements"
"""The GitRepository of the output branch."""

ROOT = "overspill-root"
"""The Kustomization that applies a cluster's ``flux/``, and its service account."""

APPLIER = "overspill-applier"
"""The service account that applies the stages and installs the charts."""


def lasting(duration: timedelta) -> str:
    """Write a duration as Flux reads it: in minutes or seconds, at least one. Flux knows no days."""
    seconds = max(1, round(duration.total_seconds()))
    return f"{seconds}s" if seconds % 60 else f"{seconds // 60}m"
