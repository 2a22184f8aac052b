"""What pods of ours wait for a node, and since when, moves as much when a file says it as when the pods are watched."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.observe.observation_file import read
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import WorkloadId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Plan
from reconciler.text.timestamps import format_time
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, placement, seconds, short
from tests.builders.kube_objects import GPU, NO_GPU, node, pod
from tests.builders.plans import begun
from tests.builders.subsets import OWN, RENTED, kept, out, stands, wanted_before
from tests.steps.test_adaptive import adaptive


@dataclass(frozen=True, kw_only=True)
class There:
    """A placement on a cluster with one node: its pods with a node, those without and since when, and GPUs left."""

    placement: Placement
    bound: int
    waiting: tuple[tuple[int, datetime | None], ...] = ()
    left: int = 0

    def watched(self, at: datetime) -> ClusterObservation:
        """See the pods themselves, as a watch of the cluster brings them."""
        labels = {"overspill.dev/placement": self.placement.name}
        known = ClusterState(frozenset())
        known.apply(Resource.NODES, node("gpu-1", self.bound + self.left))
        pods = [pod(f"runs-{index}", "gpu-1", owner=None, labels=labels) for index in range(self.bound)]
        for number, (count, since) in enumerate(self.waiting):
            told = {} if since is None else {"waits": NO_GPU, "since": format_time(since)}
            pods += [pod(f"waits-{number}-{index}", owner=None, labels=labels, **told) for index in range(count)]
        for one in pods:
            known.apply(Resource.PODS, one)
        return known.observation(self.placement.cluster, at)

    def written(self, at: datetime) -> ClusterObservation:
        """Read the same from a file."""
        waiting = [
            {"pods": count} if since is None else {"pods": count, "since": format_time(since)}
            for count, since in self.waiting
        ]
        lacking = sum(count for count, since in self.waiting if since is not None)
        there = self.bound + sum(count for count, _ in self.waiting)
        told = f"{lacking} of {there} pods Unschedulable: insufficient {GPU}" if lacking else ""
        placed = {"name": self.placement.name, "bound": self.bound, "ready": self.bound, "message": told}
        labels = {"kubernetes.io/hostname": "gpu-1"}
        used = {GPU: str(self.bound), "cpu": f"{500 * self.bound}m", "pods": str(self.bound)}
        allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: str(self.bound + self.left)}
        document = {
            "apiVersion": "overspill.dev/v1alpha1",
            "kind": "Observation",
            "cluster": self.placement.cluster,
            "observedAt": format_time(at),
            "pools": [
                {
                    "name": "gpu",
                    "allocatable": allocatable,
                    "nodes": [{"name": "gpu-1", "labels": labels, "used": used}],
                }
            ],
            "placements": [{**placed, "waiting": waiting}],
        }
        (seen,) = read(json.dumps(document).encode(), "worker-2.json")
        return seen


WANTED = adaptive(replace(OWN, most=None), RENTED)
FROM = pytest.mark.parametrize("source", [There.watched, There.written], ids=["watched", "from a file"])
Source = Callable[[There, datetime], ClusterObservation]


def decided(
    there: There, source: Source, *others: Placement, missing: int = 4, at: datetime = NOW, **told: object
) -> Plan:
    """Decide at a moment, with eight GPUs free at worker-4."""
    elsewhere = free("worker-4", 8, at=at, bound={one.name: one.replicas for one in others})
    stand: Ledger = ledger(there.placement, *others, **told)
    seen = (short(missing, at=at), source(there, at), elsewhere)
    return decide(inputs(*seen, wanted=WANTED, there=stand, now=at, history=wanted_before(missing)))


@pytest.mark.parametrize(
    "waiting",
    [
        ((3, NOW - seconds(20)),),
        ((3, NOW - seconds(30)),),
        ((1, NOW - seconds(45)), (2, NOW - seconds(5))),
        ((1, NOW - seconds(45)), (2, None)),
        ((3, None),),
    ],
    ids=["not yet", "in time", "some since a moment", "some not looked at", "none looked at"],
)
def test_a_file_decides_what_the_pods_themselves_would(waiting: tuple[tuple[int, datetime | None], ...]) -> None:
    there = There(placement=stands("worker-2", 4, "own"), bound=1, waiting=waiting)
    watched, written = decided(there, There.watched), decided(there, There.written)
    assert written == watched
    assert bool(written.changes) == any(since is not None and NOW - since >= seconds(30) for _, since in waiting)


@FROM
def test_from_the_first_look_to_recovery_the_story_is_the_same(source: Source) -> None:
    own = stands("worker-2", 4, "own")
    since = NOW - seconds(20)
    early = decided(There(placement=own, bound=1, waiting=((3, since),)), source)
    assert (early.changes, early.wake_at) == ((), NOW + seconds(10))

    due = NOW + seconds(10)
    moved = decided(There(placement=own, bound=1, waiting=((3, since),)), source, at=due)
    assert (kept(moved), out(moved)) == ([("worker-2/own", 1)], {"worker-4/rented": 3})
    (shrunk,) = [one for one in moved.changes if one.action is Action.RESIZE]
    (replacement,) = begun(moved)
    assert isinstance(shrunk.restraint, Restraint)
    restraints: dict[WorkloadId, tuple[Restraint, ...]] = {VLLM: (shrunk.restraint,)}

    roomy = There(placement=shrunk.after, bound=1, left=6)
    later = due + seconds(60)
    held = decided(roomy, source, replacement, missing=6, at=later, restraints=restraints)
    assert kept(held) == [("worker-4/rented", 5)]

    recovered = due + seconds(301)
    taken = decided(roomy, source, replacement, missing=6, at=recovered, restraints=restraints)
    assert kept(taken) == [("worker-2/own", 3)]


@FROM
def test_pods_that_wait_take_the_next_room_however_old_their_placement_is(source: Source) -> None:
    old = placement("worker-2", 4, subset="own", created=NOW - seconds(3600), lasting=seconds(7200))
    there = There(placement=old, bound=1, waiting=((3, NOW - seconds(5)),), left=4)
    assert kept(decided(there, source, missing=6)) == [("worker-2/own", 5)]
