"""The invariants: nothing is left, late or early, and all that stands is on the branch. Latencies are no part of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tests.e2e.long_run.faults import PlayedFault
from tests.e2e.long_run.journal import Burst, Deployed
from tests.e2e.long_run.watches import PlacedObject

EARLY = 2.0
"""Seconds that a window may seem too short: the daemon counts whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What is wrong in the end, a sentence each; a run without any has passed."""

    left: tuple[str, ...] = ()
    """Objects that a cluster has and had not before."""
    late: tuple[str, ...] = ()
    """Reverts that came late, or not at all."""
    early: tuple[str, ...] = ()
    """Reverts for which demand was not gone, or not for the whole window, as for a clock that jumps."""
    unexplained: tuple[str, ...] = ()
    """Differences between the branch and the clusters, when nothing moved any more."""
    broken: tuple[str, ...] = ()
    """What else went wrong: in the daemon, or in the run itself."""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.left or self.late or self.early or self.unexplained or self.broken)


def late_reverts(
    bursts: Iterable[Burst], faults: Sequence[PlayedFault], *, window: float, late: float, now: float
) -> tuple[str, ...]:
    """Name the reverts that took longer than the window and `late` seconds, the time of faults not counted."""
    told = []
    for burst in bursts:
        if burst.fallen is None:
            continue
        for cluster, committed in burst.committed.items():
            begins, ends = max(burst.fallen, committed), burst.reverted.get(cluster)
            took = (now if ends is None else ends) - begins
            counted = took - disturbed(faults, begins, begins + took)
            if counted > window + late:
                how = "not reverted within" if ends is None else "reverted after"
                told.append(f"{burst.workload} on {cluster}: {how} {took:.0f} s, {counted:.0f} s of them undisturbed")
    return tuple(told)


def early_reverts(bursts: Iterable[Burst], *, window: float) -> tuple[str, ...]:
    """Name the reverts that came while demand stood, or more than `EARLY` seconds before the window was over.

    Nothing moves a burst here while its demand stands: no fault lasts until a rollout or a cluster is given up.
    """
    early = []
    for burst in bursts:
        for cluster, reverted in burst.reverts:
            # 1. Demand stood.
            why = "while its demand stood"
            # 2. Demand was gone, for less than the window.
            if burst.falling is not None and reverted >= burst.falling:
                took = reverted - burst.falling
                if took >= window - EARLY:
                    continue
                why = f"after {took:.1f} s, in a window of {window:g} s"
            when = time.strftime("%H:%M:%S", time.gmtime(reverted))
            early.append(f"{burst.workload} on {cluster} at {when} UTC: reverted {why}")
    return tuple(early)


def disturbed(faults: Iterable[PlayedFault], begins: float, ends: float) -> float:
    """Return the seconds of a time in which a fault lasted."""
    return sum(max(0.0, min(fault.ended, ends) - max(fault.began, begins)) for fault in faults)


def differences(
    placements: Iterable[PlacedObject],
    objects: Mapping[str, Mapping[str, frozenset[str]]],
    deployments: Mapping[str, Mapping[str, Deployed]],
) -> tuple[str, ...]:
    """Compare the branch with the clusters, both ways.

    `objects` are those that bear a placement's name, by cluster and that name; `deployments` by cluster and workload.
    """
    told, known = list[str](), {cluster: set[str]() for cluster in objects}
    for each in placements:
        known.setdefault(each.cluster, set()).add(each.name)
        seen = deployments.get(each.cluster, {}).get(each.workload)
        if seen is None or each.name not in objects.get(each.cluster, {}):
            told.append(f"{each.cluster}: {each.name} is on the branch and has no object")
        elif seen.replicas != each.replicas:
            told.append(f"{each.cluster}: {each.name} has {seen.replicas} replicas, and {each.replicas} on the branch")
    for cluster, names in objects.items():
        for name in sorted(names.keys() - known[cluster]):
            told.append(f"{cluster}: {', '.join(sorted(names[name]))} of {name}, which is not on the branch")
    return tuple(told)
