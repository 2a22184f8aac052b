"""A network that clusters share, to which placements may export their Services."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
