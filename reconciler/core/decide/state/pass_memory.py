"""What a pass keeps for the next one: what follows from files alone, and the clusters that had no room.

Nothing else lives from pass to pass in `core.decide`, and nothing of it in the input, which stays as it is. Whoever
decides one pass after the other owns one (`unchanged`) and hands it to `decide`; without one a decision is made from
its input alone, and is the same. Within a pass, `CandidateFinder` shares answers among equal bursts; here are only
those answers that cost as much again in a pass in which one cluster has changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import count
from operator import is_

from reconciler.core.decide.state.enrolment import EnrolledRequest
from reconciler.core.decide.state.object_usage import DeployedObjects
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.plan import Refusal
from reconciler.model.policy import Desired, EngineName, Workspace
from reconciler.model.workload import WorkloadTemplate

_MOST_KINDS = 1000
"""Kinds of bursts whose refusals are kept of a cluster."""


class PassMemory:
    """The orders of clusters of one fleet, and refusals of clusters without room.

    A refusal is kept while all that it was counted from are the very same objects. For one decision at a time, and for
    passes over one fleet: another one begins it again.
    """

    def __init__(self) -> None:
        """Begin without any."""
        self._fleet: Desired | None = None
        self._desired: Desired | None = None
        self._reach: ClusterOrder | None = None
        self._requests: dict[WorkloadId, tuple[tuple[object, ...], Hashable]] = {}
        self._objects: dict[WorkloadId, tuple[tuple[WorkloadTemplate, Workspace], DeployedObjects]] = {}
        self._full: dict[ClusterName, tuple[tuple[object, ...], dict[Hashable, Refusal]]] = {}
        self._numbers: dict[Hashable, int] = {}
        self._next = count()

    def begin(self, fleet: Desired) -> None:
        """Begin a pass over a fleet, without its requests. What was kept of another fleet is dropped."""
        if fleet is not self._fleet:
            self._fleet, self._reach, self._full = fleet, None, {}
            self._numbers, self._requests, self._objects = {}, {}, {}

    def own(self, inputs: PassInput) -> PassInput:
        """Return an input for one pass, whose orders are worked out in this memory and not in what is given."""
        inputs = inputs.with_requests(inputs.requests)
        self.begin(inputs.fleet)
        if self._reach is None or self._desired is None:
            self._reach = ClusterOrder(inputs.desired)
        elif inputs.desired is not self._desired:
            before, after = self._desired.templates, inputs.desired.templates
            changed = [name for name in {**before, **after} if before.get(name) is not after.get(name)]
            self._reach = self._reach.with_requests(inputs.desired, changed)
            self._requests = {name: kept for name, kept in self._requests.items() if name in after}
            self._objects = {name: kept for name, kept in self._objects.items() if name in after}
        self._desired = inputs.desired
        return replace(inputs, reach=self._reach, enrolment=inputs.enrolment.with_reach(self._reach))

    def request_kind(self, entry: EnrolledRequest, engines: tuple[EngineName, ...], *, helm: bool) -> Hashable:
        """Return the kind of a request (`EnrolledRequest.kind`), made once for one entry, engines and `helm`."""
        basis = entry, engines, helm
        kept = self._requests.get(entry.workload)
        if kept is None or kept[0][0] is not entry or kept[0][1:] != basis[1:]:
            kept = self._requests[entry.workload] = basis, entry.kind(engines, helm=helm)
        return kept[1]

    def deployed_objects(self, template: WorkloadTemplate, workspace: Workspace) -> DeployedObjects:
        """Return the objects of a placement of a template, listed once for one template and workspace."""
        kept = self._objects.get(template.workload)
        if kept is None or kept[0][0] is not template or kept[0][1] is not workspace:
            made = DeployedObjects(template.spec, workspace)
            kept = self._objects[template.workload] = (template, workspace), made
        return kept[1]

    def number(self, kind: Hashable) -> int:
        """Return a number for a part of what decides how clusters answer a burst, which is quicker to compare."""
        number = self._numbers.get(kind)
        if number is None:
            number = self._numbers[kind] = next(self._next)
        return number

    def refusal(self, kind: Hashable, cluster: ClusterName, basis: tuple[object, ...]) -> Refusal | None:
        """Return why a cluster had no room for bursts of a kind, if its room is counted from the same `basis` now."""
        refusals = self._of(cluster, basis)
        return None if refusals is None else refusals.get(kind)

    def keep(self, kind: Hashable, refusal: Refusal, basis: tuple[object, ...]) -> None:
        """Keep that a cluster, whose room is counted from `basis`, has no room for bursts of a kind."""
        refusals = self._of(refusal.cluster, basis)
        if refusals is None or len(refusals) >= _MOST_KINDS:
            refusals = {}
            self._full[refusal.cluster] = basis, refusals
        refusals[kind] = refusal

    def _of(self, cluster: ClusterName, basis: tuple[object, ...]) -> dict[Hashable, Refusal] | None:
        kept = self._full.get(cluster)
        return kept[1] if kept is not None and all(map(is_, kept[0], basis)) else None  # the key
