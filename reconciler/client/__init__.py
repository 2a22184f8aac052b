"""A daemon's HTTP interface as typed calls, for the command line and for programs of yours.

`Client` is all there is to call; what it returns are frozen values, what it raises are the errors of `errors`. It knows
of the daemon only what its OpenAPI says: nothing of ours is imported but the model and the errors, and nothing in here
reads the environment, prints or logs.
"""

from __future__ import annotations

from reconciler.client.calls import Client
from reconciler.client.refusals import Refused
from reconciler.client.results import (
    Allocation,
    Bearer,
    Gpr,
    GprStatus,
    GpuNode,
    Inventory,
    Page,
    PlacementItem,
    PlacementState,
    Receipt,
    Sight,
    WaitTime,
)
from reconciler.client.transport import Pace

__all__ = [
    "Allocation",
    "Bearer",
    "Client",
    "Gpr",
    "GprStatus",
    "GpuNode",
    "Inventory",
    "Pace",
    "Page",
    "PlacementItem",
    "PlacementState",
    "Receipt",
    "Refused",
    "Sight",
    "WaitTime",
]
