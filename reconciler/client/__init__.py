"""A daemon's HTTP interface as typed calls, for the command line and for your programs.

`Client` has all calls; they return frozen values and raise the errors of `errors`. The client follows the daemon's
OpenAPI alone: it imports only the model and the errors, and neither reads the environment nor prints or logs.
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
    PastPlacements,
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
    "PastPlacements",
    "PlacementItem",
    "PlacementState",
    "Receipt",
    "Refused",
    "Sight",
    "WaitTime",
]
