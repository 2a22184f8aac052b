"""Flux: one Kustomization a stage of a placement, in each cluster that placements go to.

Callers use `engine`, through the register of `core.engines` alone. `stages` writes the objects of a
placement and the Kustomizations that apply them, `charts` the HelmReleases among them, `bootstrap` the accounts, the
source and the Receiver that an admin applies in one cluster, and `reports` reads what both kinds say of a placement.
`names` holds the names that they share.
"""

from __future__ import annotations

from reconciler.core.engines.flux.engine import FluxEngine

__all__ = ["FluxEngine"]
