"""What applies the output branch, and which files it wants: one `Engine` for each kind.

Called when a placement is rendered. Engines are pure: they turn a `Deployment` into the bytes of its files, and the
same deployment into the same bytes. Nothing in here knows a cluster, a commit or another placement.
"""

from __future__ import annotations

from reconciler.core.engines.argocd import ArgoCDEngine
from reconciler.core.engines.engine import Deployment, Engine, target_namespace
from reconciler.core.engines.flux import FluxEngine, anchor
from reconciler.core.engines.manifests import ManifestsEngine
from reconciler.model.policy import EngineName

__all__ = ["Deployment", "Engine", "anchor", "engine", "target_namespace"]

_ENGINES: dict[EngineName, Engine] = {
    EngineName.ARGOCD: ArgoCDEngine(),
    EngineName.FLUX: FluxEngine(),
    EngineName.MANIFESTS: ManifestsEngine(),
}


def engine(name: EngineName) -> Engine:
    """Return the engine of this name."""
    return _ENGINES[name]
