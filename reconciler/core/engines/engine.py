"""The interface of an engine: files, bootstrap, webhook, and the objects that it reports by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from reconciler.core.engines.deployment import Deployment
from reconciler.core.engines.logins import LoginSource
from reconciler.core.engines.reports import EngineResource, ReportSource
from reconciler.core.engines.webhook import Webhook
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import Connection, Desired, EngineName, Fleet, Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """A file that keeps an engine's directory of a cluster alive while no placement has a file in it."""

    content: bytes
    reason: str
    """Why the engine needs the directory: a sentence of the commit that writes the file."""


class Bootstrap(Protocol):
    """The objects that an admin applies once, so that an engine follows the output branch with the least rights."""

    per_cluster: bool
    """Whether the objects are those of one cluster, because the engine runs in each."""
    verification: str
    """Comments on how the engine checks OpenPGP signatures of commits, for a branch that has them."""
    conditions: Mapping[str, tuple[str, str]]
    """By the kind of those objects that report on themselves: the condition, and its status where all is well."""
    secrets: Mapping[str, tuple[str, ...]]
    """The Secrets that an admin makes beside the objects: by name, the keys that they hold."""

    def install(self, fleet: Fleet, *, context: str) -> str:
        """Write the command line that installs the engine in the cluster of a context; empty for the current one."""
        ...

    def text(self, desired: Desired, cluster: ClusterName | None, *, output_branch: str) -> str:
        """Write the objects as YAML with comments for the admin; `cluster` is given exactly if `per_cluster`.

        Raises InvalidInput when the fleet lacks what they need.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlPlane:
    """The one cluster from which an engine deploys to all others."""

    connection: Connection | None
    """How its API server is reached; None where the Fleet does not say, and its objects are not watched."""
    reports: ReportSource
    """The objects there that report on placements."""
    logins: LoginSource | None = None
    """The objects there by which clusters of a `Connection.argocd` are logged in to; None without any."""
    names_sources: bool = False
    """Whether its objects, those of its reports, say what templates may be made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """By what an engine is known in a cluster that it runs in."""

    resource: EngineResource
    """A resource that the API server serves there."""
    selector: str
    """The label of the engine's Deployments, which may be in any namespace."""
    image: str
    """The last part of the name of its own image, whose tag is its version; empty where only a label tells it."""
    minimum: tuple[int, int]
    """The oldest version that does what `files` and `bootstrap` count on."""


class Engine(Protocol):
    """A kind of engine; its methods are pure, and the same arguments give the same bytes."""

    name: EngineName
    """The name in ``spec.engine`` of a Cluster and of the Fleet, and in placement.yaml."""
    title: str
    """The name in messages: ``Argo CD``."""

    # 1. The files of a placement.

    parts: frozenset[str]
    """The files and directories that the engine may write in a placement's directory, beside placement.yaml."""
    directory: str
    """The directory of a cluster that holds one file of each placement, its marker; empty where there is none."""
    hooks: bool
    """Whether the engine runs Helm's hooks, so that charts rendered for it keep them."""
    heeds: frozenset[str]
    """The fields of a chart that the engine acts on, of those that not every engine does."""
    keeps: bool
    """Whether what others live in (`safety.lifetime`) outlives a chart that the engine installs itself."""

    def charts_mode(self, spec: DeploySpec) -> Literal["engine", "rendered"]:
        """Return whether the engine installs the charts of a spec itself."""
        ...

    def to_render(self, spec: DeploySpec) -> tuple[HelmConfig, ...]:
        """List the charts that Overspill has to render for this engine, each once, in the order of the steps."""
        ...

    def refusals(self, spec: DeploySpec, workspace: Workspace, *, helm: bool) -> tuple[str, ...]:
        """Say why this engine cannot take a spec, a sentence each; `helm` says whether charts can be rendered."""
        ...

    def patches(self, injection: Injection, workspace: Workspace, kinds: Kinds) -> list[Json]:
        """Write the changes of a subset to the pods of charts that the engine installs, as patches that it takes.

        Raises InvalidInput with the changes that no patch can express, or that the rules of the workspace refuse.
        """
        ...

    def files(self, deployment: Deployment) -> Mapping[str, bytes]:
        """Write the files of a placement, by path below its cluster's directory, but for placement.yaml and the marker.

        Raises InvalidInput when a chart makes what `validate` refuses, or two steps make the same object.
        """
        ...

    def marker_path(self, placement: Placement) -> str:
        """Return the path of a placement's marker below its cluster's directory."""
        ...

    def marker(self, deployment: Deployment) -> bytes:
        """Write the file that shows in a cluster which version of a placement it has: it holds the digest."""
        ...

    def anchor(self, cluster: ClusterName) -> Anchor | None:
        """Write the file that keeps the engine's `directory` of a cluster alive; None where nothing has to."""
        ...

    # 2. The objects that an admin applies once, and the webhook.

    bootstrap: Bootstrap | None
    """The objects that `overspill bootstrap` prints; None where an engine needs none."""
    webhook: Webhook | None
    """How the engine is told of a push (`--notify`); None where it cannot be told."""

    installation: Installation | None
    """By what it is known in a cluster; None for an engine that runs in none."""

    # 3. The reports on placements.

    def cluster_reports(self, fleet: Fleet, cluster: ClusterName) -> ReportSource | None:
        """Return the reporting objects in a cluster that the engine deploys to; None where it keeps none there."""
        ...

    def control_plane(self, fleet: Fleet) -> ControlPlane | None:
        """Return the cluster from which the engine deploys to all; None for an engine that runs in each, or nowhere."""
        ...
