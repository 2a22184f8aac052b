"""The engines that apply the output branch in clusters, one `Engine` each, and their register.

An engine is one package or module here with a class that has all members of `engine.Engine`: the files of a placement
and of a cluster, the objects and rights that an admin applies once, the webhook, and the objects that it reports by.
Its name is compared nowhere else: callers ask the register. A new engine needs its package, a name in
`model.policy.EngineName`, and one line in `_REGISTER`; settings of its own in the Fleet need a field in `schema.fleet`.

Called by the checks of the fleet (refusals), the ledger (paths of records), the writer of commits (files), the kube
adapter (reports), the notifier (webhooks) and `overspill bootstrap`. Everything in here is pure: the same values give
the same bytes. An engine knows no commit, no API server and no placement but the one that is given.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.engines.argocd import ArgoCDEngine
from reconciler.core.engines.deployment import Deployment, target_namespace
from reconciler.core.engines.engine import Engine
from reconciler.core.engines.flux import FluxEngine
from reconciler.core.engines.manifests import ManifestsEngine
from reconciler.core.engines.webhook import Webhook
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName

__all__ = [
    "BOOTSTRAPPED",
    "DIRECTORIES",
    "ENGINES",
    "PARTS",
    "RESERVED_PLACEMENT_NAMES",
    "WEBHOOKS",
    "Deployment",
    "Engine",
    "Webhook",
    "anchor_path",
    "engine",
    "placement_files",
    "target_namespace",
]

_REGISTER: tuple[Engine, ...] = (
    ArgoCDEngine(),
    FluxEngine(),
    ManifestsEngine(),
)

ENGINES: Mapping[EngineName, Engine] = {entry.name: entry for entry in _REGISTER}
"""Every engine by name."""

WEBHOOKS: Mapping[EngineName, Webhook] = {
    name: entry.webhook for name, entry in ENGINES.items() if entry.webhook is not None
}
"""The webhooks of those engines that can be told of a push."""

BOOTSTRAPPED = tuple(name for name, entry in ENGINES.items() if entry.bootstrap is not None)
"""The engines that `overspill bootstrap` prints objects for."""

PARTS = ("placement.yaml", *sorted(frozenset[str]().union(*(entry.parts for entry in _REGISTER))))
"""The files and directories of any engine in a placement's directory; all others are foreign."""

DIRECTORIES = tuple(sorted(entry.directory for entry in _REGISTER if entry.directory))
"""The directories of a cluster that engines keep for themselves, with a file ``<placement>.yaml`` of each placement."""

RESERVED_PLACEMENT_NAMES = frozenset({"placement", *DIRECTORIES})
"""Names that no placement may have: directories of engines, and names whose ``placement.yaml`` would lie in one."""


def engine(name: EngineName) -> Engine:
    """Return the engine of this name."""
    return ENGINES[name]


def placement_files(placement: Placement) -> tuple[str, ...]:
    """Return the paths of all files and directories that Overspill may write for a placement with its engine."""
    inside = tuple(f"{placement.path}/{part}" for part in PARTS)
    directory = engine(placement.engine).directory
    return (*inside, f"clusters/{placement.cluster}/{directory}/{placement.name}.yaml") if directory else inside


def anchor_path(cluster: str, directory: str) -> str:
    """Return the path of the file that keeps an engine's directory of a cluster alive."""
    return f"clusters/{cluster}/{directory}/_anchor.yaml"
