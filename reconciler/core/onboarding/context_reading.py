"""A context of a kubeconfig, and what its API server says of the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.policy import EngineName
from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeContext:
    """A context of a kubeconfig."""

    name: str
    server: str
    """Address and TLS server name of its API server, equal for contexts that lead to the same; empty without one."""
    current: bool = False
    """Whether kubectl uses it by itself."""
    host: str = ""
    """The host of its API server."""
    hidden: str = ""
    """Why it leads elsewhere than its file says, and the way out; empty where it leads there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSighting:
    """An engine whose objects an API server serves."""

    namespaces: tuple[str, ...] = ()
    """Namespaces of its Deployments, sorted; empty where none was seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReading:
    """What the API server of a context says, read with the login of the context."""

    context: KubeContext
    trouble: str = ""
    """Why nothing is known of the cluster; empty where the API server answers the login."""
    uid: str = ""
    """UID of the namespace kube-system, which stands for the cluster; empty where the login may not read it."""
    version: str = ""
    nodes: tuple[Json, ...] = ()
    unlisted: str = ""
    """Why the nodes are not known although the API server answers; empty where they are."""
    engines: Mapping[EngineName, EngineSighting] = field(default_factory=dict)
