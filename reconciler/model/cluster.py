"""What people declare of a cluster beside its observation: nodes that its autoscaler can add, and shared networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from reconciler.model.scheduling import Taint
from reconciler.model.units import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalableNodes:
    """Nodes of one kind that a cluster's autoscaler adds when pods wait: up to `most` of them, each after a `delay`.

    The nodes that exist of this kind are those that have all of its labels.
    """

    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Resources
    most: int
    delay: timedelta


class NetworkApi(StrEnum):
    """Whose ServiceExports make a Service known in other clusters."""

    MULTICLUSTER = "multicluster"
    KUBESLICE = "kubeslice"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNetworking:
    """That the Services of placements are exported to a network that clusters share, and how.

    `slice` is KubeSlice's name for that network, empty with any other API.
    """

    api: NetworkApi
    slice: str = ""
