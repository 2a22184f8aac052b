"""The script of the demo: demand on the clusters, and the placements that Overspill is expected to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.model.plan import Reason

WORKLOAD = "llm/vllm"
PRIMARY = "worker-1"
OTHERS = ("worker-2", "worker-3")

_SCALE_UP, _SCALE_DOWN, _BURST, _COOL_DOWN = 3, 4, 27, 60
_SLACK = 30
"""Seconds of a step beyond its windows, for busy machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The demo's windows in whole seconds, which is as fine as Overspill reckons."""

    scale_up: int
    scale_down: int
    burst: int
    cool_down: int

    @property
    def edits(self) -> Mapping[str, Mapping[str, str]]:
        """Return the changes to the layout that shorten its windows: fields and values by file."""
        return {
            "policies/serving.yaml": {
                "spec.scaleUp.window": f"{self.scale_up}s",
                "spec.scaleDown.window": f"{self.scale_down}s",
                "spec.coolDown": f"{self.cool_down}s",
            },
            "templates/vllm.yaml": {"spec.burstDuration": f"{self.burst}s"},
        }


def timing(tempo: float) -> Timing:
    """Scale the windows: half the tempo is half the time. The cool-down outlasts the demo at every tempo."""
    return Timing(
        scale_up=max(1, round(_SCALE_UP * tempo)),
        scale_down=max(1, round(_SCALE_DOWN * tempo)),
        burst=max(1, round(_BURST * tempo)),
        cool_down=_COOL_DOWN,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One step of the demo: the missing replicas of the workload, and the placement that Overspill makes of them."""

    title: str
    says: str
    missing: int
    """Replicas of the workload without a node in its own cluster."""
    placed: Mapping[str, int] = field(default_factory=dict)
    """Replicas with a node that the output branch leads to, by cluster."""
    within: int
    """Seconds after which the step has failed."""
    lasting: int = 0
    """Seconds for which `placed` must not change."""
    expected_line: str = ""
    """Words that the daemon must have logged by then."""
    status: bool = False


def acts(timing: Timing) -> tuple[Act, ...]:
    """Write the script."""
    first, second = OTHERS
    return (
        Act(
            title="1. A calm morning",
            says=f"{PRIMARY} is full, and all that should run runs. Overspill has nothing to do but begin its branch.",
            missing=0,
            within=_SLACK,
        ),
        Act(
            title="2. A shortage",
            says=f"the autoscaler asks for 3 replicas more; no node of {PRIMARY} has a GPU for them.",
            missing=3,
            placed={first: 3},
            within=timing.scale_up + _SLACK,
        ),
        Act(
            title="3. More of it",
            says=f"3 replicas more. {first} has room for one of them.",
            missing=6,
            placed={first: 4, second: 2},
            within=timing.scale_up + _SLACK,
        ),
        Act(
            title="4. The demand falls",
            says="2 replicas fewer are wanted. What came last goes first.",
            missing=4,
            placed={first: 4},
            within=timing.scale_down + _SLACK,
        ),
        Act(
            title="5. The time is up",
            says=f"4 replicas are still missing, but a burst lasts {timing.burst}s (burstDuration), and no longer.",
            missing=4,
            within=timing.burst + _SLACK,
            status=True,
        ),
        Act(
            title="6. Cooling down",
            says="4 replicas are still missing. If they were placed anew at once, the expiry would mean nothing.",
            missing=4,
            within=_SLACK,
            lasting=3,
            expected_line=f"reason={Reason.COOLING_DOWN}",
        ),
    )
