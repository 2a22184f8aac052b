"""A world in which each subset of a WorkloadSpread is a cluster of its name, pass after pass, an hour apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from reconciler.core.decide.assign.subset_quota import quotas
from reconciler.core.decide.decide import decide
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.placement import Placement, Restraint
from reconciler.model.policy import Desired
from tests.builders.inputs import NOW, VLLM, cluster, free, inputs, ledger, shape, short
from tests.builders.subsets import fleet, stands, wanted_before

ROOM = 100
HOUR = timedelta(hours=1)


@dataclass
class World:
    """What stands, pass after pass; `stuck` are the replicas in a subset that find no node there."""

    there: list[Placement] = field(default_factory=list)
    restraints: tuple[Restraint, ...] = ()
    stuck: Mapping[str, int] = field(default_factory=dict)

    def settle(self, wanted: Desired, total: int, *, missing: int | None = None) -> dict[str, int]:
        """Let passes follow each other until nothing changes, and say what each subset has in the end."""
        for _ in range(10):
            made = self._pass(wanted, total, total if missing is None else missing)
            if not made:
                break
        else:
            pytest.fail("it never settles")
        spread = wanted.policies[VLLM].spread
        return {
            one.name: sum(other.replicas for other in self.there if other.cluster == one.name) for one in spread.subsets
        }

    def missing(self, wanted: Desired, total: int) -> dict[str, int]:
        """Say what each subset lacks of its maximum, as Kruise's status does."""
        placed = sum(one.replicas for one in self.there)
        seen = inputs(short(total, running=0), wanted=wanted)
        lacks = {}
        for quota in quotas(seen, VLLM, placed)[:-1]:
            has = sum(one.replicas for one in self.there if one.subset == quota.subset.name)
            lacks[quota.subset.name] = -1 if quota.most is None else max(0, quota.most - has)
        return lacks

    def _pass(self, wanted: Desired, total: int, missing: int) -> bool:
        primary = short(missing, running=0)
        (workload,) = primary.workloads
        primary = replace(primary, workloads=(replace(workload, wanted=total),))
        seen = [self._seen(name) for name in wanted.clusters if name != "worker-1"]
        stands_now = ledger(*self.there, restraints={VLLM: self.restraints} if self.restraints else {})
        made = decide(inputs(primary, *seen, wanted=wanted, there=stands_now, history=wanted_before(missing)))
        for change in made.changes:
            changed = [each for each in (change.before, change.after) if each is not None]
            self.there = [one for one in self.there if one.path not in {each.path for each in changed}]
            self.there += changed[change.before is not None :]
            if change.before is not None:
                self._goes(change.before)
        return bool(made.changes)

    def _goes(self, placement: Placement) -> None:
        """Let what was taken away be what had found no node."""
        self.stuck = {name: pods for name, pods in self.stuck.items() if name != placement.subset}

    def _seen(self, name: ClusterName) -> ClusterObservation:
        here = [one for one in self.there if one.cluster == name]
        pending_pods = {
            one.name: PendingPods(replicas=self.stuck[one.subset], shape=shape(), since=NOW - HOUR)
            for one in here
            if self.stuck.get(one.subset)
        }
        bound = {one.name: one.replicas - self.stuck.get(one.subset, 0) for one in here}
        return free(name, ROOM, bound=bound, pending_pods=pending_pods)


def over(*given: Subset, **fields: object) -> Desired:
    """Make a fleet where each subset is a cluster of its name; `fields` are those of the spread."""
    clusters = (cluster("worker-1"), *(cluster(one.name) for one in given))
    made = fleet(*given, clusters=clusters)
    policy = made.policies[VLLM]
    spread = replace(policy.spread, **fields)
    return replace(made, policies={VLLM: replace(policy, spread=spread)})


def working_plan(counts: Mapping[str, int]) -> list[Placement]:
    return [
        replace(stands(name, replicas, name, created=NOW - HOUR, lasting=3 * HOUR), name=PlacementName(f"vllm-{name}"))
        for name, replicas in counts.items()
        if replicas
    ]
