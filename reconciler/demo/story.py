"""The script of the demo: demand on the clusters, and the placements that Overspill is expected to make."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

WORKLOAD = "llm/vllm"
PRIMARY = "worker-1"
OTHERS = ("worker-2", "worker-3")

_SCALE_UP, _SCALE_DOWN, _BURST, _LONGEST, _COOL_DOWN = 3, 4, 20, 40, 30
_SLACK = 30
"""Seconds of a step beyond its windows, for busy machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The demo's windows in whole seconds, which is as fine as Overspill reckons."""

    scale_up: int
    scale_down: int
    burst: int
    longest: int
    cool_down: int

    @property
    def edits(self) -> Mapping[str, Mapping[str, str]]:
        """Return the changes to the layout that shorten its windows: fields and values by file."""
        return {
            "policies/serving.yaml": {
                "spec.scaleUp.window": f"{self.scale_up}s",
                "spec.scaleDown.window": f"{self.scale_down}s",
                "spec.headroom": "0",
                "spec.coolDown": f"{self.cool_down}s",
                "spec.duration.default": f"{self.burst}s",
                "spec.duration.max": f"{self.longest}s",
            },
            "templates/vllm.yaml": {"spec.burstDuration": f"{self.burst}s"},
            "templates/vllm-helm.yaml": {"spec.burstDuration": f"{self.burst}s"},
        }


def timing(tempo: float) -> Timing:
    """Scale the windows: half the tempo is half the time. The cool-down outlasts the last acts at every tempo."""
    return Timing(
        scale_up=max(1, round(_SCALE_UP * tempo)),
        scale_down=max(1, round(_SCALE_DOWN * tempo)),
        burst=max(1, round(_BURST * tempo)),
        longest=max(2, round(_LONGEST * tempo)),
        cool_down=_COOL_DOWN,
    )


PLAYGROUND: Mapping[str, Mapping[str, str]] = {
    "policies/serving.yaml": {"spec.coolDown": "5s", "spec.duration.max": "10m"},
}
"""The changes with which the world goes on after the story: bursts last as long as they are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """A step of the demo: the missing replicas of the workload, and the placement that Overspill makes of them."""

    title: str
    says: str
    missing: int
    """Replicas of the workload without a node in its own cluster."""
    placed: Mapping[str, int] = field(default_factory=dict)
    """Replicas with a node that the output branch leads to, by cluster."""
    within: int
    """Seconds after which the step has failed."""
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
            title="5. Needed for longer",
            says=f"4 replicas are still missing. A burst lasts {timing.burst}s (burstDuration), and as long again while"
            " it is needed (renew: WhileNeeded).",
            missing=4,
            placed={first: 4},
            within=timing.burst + _SLACK,
            expected_line=f"extend({WORKLOAD})",
            status=True,
        ),
        Act(
            title="6. The time is up",
            says=f"4 replicas are still missing, but {timing.longest}s are the most that a burst may last in one place"
            f" (duration.max): {first} rests, and {second} has room.",
            missing=4,
            placed={second: 4},
            within=timing.longest + _SLACK,
        ),
        Act(
            title="7. The demand goes",
            says="all replicas have a node at home again.",
            missing=0,
            within=timing.scale_down + _SLACK,
        ),
    )
