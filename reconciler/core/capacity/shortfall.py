"""Why no replica, or fewer than are wanted, fit on a cluster."""

from __future__ import annotations

from dataclasses import dataclass

ADD_NODES = "free or add nodes there"
OTHER_PODS = "change the rules of its pods, or which pods run there that these are about"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """Why no replica of a shape fits on a cluster, or fewer than are wanted, with numbers, and the remedy."""

    message: str
    remedy: str = ADD_NODES
