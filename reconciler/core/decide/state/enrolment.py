"""Open requests as workloads of their own, so that everything that is done for workloads is done for them, too.

Each gets a template that deploys what was asked for, and a policy by which it may go to its clusters, the primary
included. What follows from a request is computed when it is enrolled, and kept while its record is the same: ten
thousand requests cost an idle pass nothing, and a pass that changes one request computes that one alone, also when it
is read back from git.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.capacity.gangs import GangWorkload
from reconciler.core.capacity.pod_requirements import (
    UNKNOWN_REMEDY,
    ManifestPods,
    PodRequirements,
    pods_of_request,
    request_likeness,
    request_requirements,
)
from reconciler.core.capacity.units import PlacementUnit, gang_of_request, unit_of_request
from reconciler.core.engines import engine
from reconciler.core.engines.deployment import target_namespace
from reconciler.core.fleet.admission import DEFAULT_DURATION
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.ledger.request_record import digest_of, request_path
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import Bug
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Placements
from reconciler.model.policy import BurstPolicy, ClusterPreference, Desired, EngineName, Workspace
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.sorted_map import SortedMap
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadTemplate


def request_duration(request: Request, limits: WorkspaceLimits | None) -> timedelta:
    """Say how long a request lasts from its first placement on."""
    asked = request.spec.burst_duration or request.terms.exit_duration
    return asked or (DEFAULT_DURATION if limits is None else limits.longest)


def request_end(record: RequestRecord, desired: Desired) -> datetime | None:
    """Tell when a request that has begun will be over; None for one that has not."""
    if record.began_at is None:
        return None
    return record.began_at + request_duration(record.request, desired.limits.get(record.request.workspace))


def observed_clusters(
    request: Request, desired: Desired, before: tuple[ClusterName, ...] = ()
) -> tuple[ClusterName, ...]:
    """List the clusters that a request is kept to although it names none; `before` are those of its record.

    EGS writes them as its observedClusterNames, and goes to others only where enableRedistribute is on.
    """
    if request.redistributes or request.clusters:
        return ()
    return before or tuple(sorted(desired.workspaces[request.workspace].destinations))


def reservation_clusters(request: Request, desired: Desired) -> tuple[ClusterName, ...]:
    """List the clusters where a reservation may be, in order: those that it names, else all of its workspace by name.

    None where its workspace is gone.
    """
    workspace = desired.workspaces.get(request.workspace)
    return request.clusters or (tuple(sorted({*workspace.everywhere})) if workspace is not None else ())


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolledRequest:
    """A request as a workload: its template and policy, made from its record, its workspace and its limits."""

    record: RequestRecord
    workspace: Workspace
    limits: WorkspaceLimits | None
    place: tuple[str, int]
    """The file and line where people read the request."""
    template: WorkloadTemplate
    policy: BurstPolicy
    declared: Kinds
    """Kinds of workloads that the fleet repository declares."""
    pods: ManifestPods
    """The pods of its manifests."""
    needs: PodRequirements
    """The requirements of one placement, on any cluster."""
    gang: GangWorkload
    """Its pods, which start together."""
    unit: PlacementUnit
    """What of it is placed together: all of its pods."""

    @property
    def workload(self) -> WorkloadId:
        """The id of the request."""
        return self.record.workload

    def kind(self, engines: tuple[EngineName, ...], *, helm: bool) -> Hashable:
        """Return a value that is equal for requests that each cluster with one of these engines answers alike.

        They name the same clusters in the same workspace, have equal requirements, and engines refuse them alike.
        """
        request = self.record.request
        refused = tuple(engine(name).refusals(request.spec, self.workspace, helm=helm) for name in engines)
        named = tuple(candidate.name for candidate in self.policy.candidates)
        needed = request_likeness(request, self.pods), self.template.prerequisites
        return request.workspace, named, needed, refused


class Enrolment:
    """The fleet of `base` with the open requests of `records` as workloads, and the differences of the two."""

    def __init__(
        self, base: Desired, records: Mapping[WorkloadId, RequestRecord], before: Enrolment | None = None
    ) -> None:
        """Enrol the open requests; unchanged entries are taken from `before`."""
        self.base = base
        self.records = records
        self.bugs: dict[WorkloadId, Bug] = {}
        """Requests that cannot be enrolled, since an exception that nothing foresaw gets in the way: they stay as they
        are."""
        if before is not None and before.base is base:
            self._follow(before, _changed_requests(before.records, records))
        else:
            self._begin({} if before is None else before.entries)

    def _begin(self, before: Mapping[WorkloadId, EnrolledRequest]) -> None:
        """Enrol all open requests; `before` are the entries of another fleet."""
        entries = {workload: self._entry(record, before.get(workload)) for workload, record in self.records.items()}
        self.entries = {workload: entry for workload, entry in entries.items() if entry is not None}
        self.reservations = tuple(sorted(filter(self._reserves, self.records)))
        self.desired = self._fleet(self.base, self.entries)
        self.reach = ClusterOrder(self.desired)
        self._differing = frozenset(filter(self._differs, {**self.base.requests, **self.records}))
        self._keys = dict[str, tuple[WorkloadId, ...]]()
        for record in self.records.values():
            self._file(None, record)

    def _follow(self, before: Enrolment, changed: Collection[WorkloadId]) -> None:
        """Enrol the requests that differ from an earlier enrolment in the same fleet, and keep its cached answers."""
        self.entries = before.entries.copy()
        self.bugs = {workload: bug for workload, bug in before.bugs.items() if workload not in changed}
        for workload in changed:
            record = self.records.get(workload)
            enrolled = self.entries.pop(workload, None)
            entry = None if record is None else self._entry(record, enrolled)
            if entry is not None:
                self.entries[workload] = entry
        self.reservations = before.reservations
        if any(map(self._reserves, changed)) or not set(changed).isdisjoint(before.reservations):
            self.reservations = tuple(sorted(filter(self._reserves, {*before.reservations, *changed})))
        self.desired = self._fleet(before.desired, {workload: self.entries.get(workload) for workload in changed})
        self.reach = before.reach.with_requests(self.desired, changed)
        self._differing = before._differing.difference(changed).union(filter(self._differs, changed))
        self._keys = before._keys.copy()
        for workload in changed:
            self._file(before.records.get(workload), self.records.get(workload))

    def _fleet(self, fleet: Desired, entries: Mapping[WorkloadId, EnrolledRequest | None]) -> Desired:
        """Put requests among the workloads of a fleet, and take out those without an entry."""
        if not entries:
            return fleet
        if not self.entries:
            return self.base
        templates, policies = dict(fleet.templates), dict(fleet.policies)
        for workload, entry in entries.items():
            if entry is None:
                templates.pop(workload, None)
                policies.pop(workload, None)
            else:
                templates[workload], policies[workload] = entry.template, entry.policy
        return replace(fleet, templates=templates, policies=policies)

    def _entry(self, record: RequestRecord, before: EnrolledRequest | None) -> EnrolledRequest | None:
        """Enrol an open request that deploys something in a workspace that there is."""
        workload, base = record.workload, self.base
        if record.ended is not None or record.request.reserves or workload.workspace not in base.workspaces:
            return None
        workspace, limits = base.workspaces[workload.workspace], base.limits.get(workload.workspace)
        asked = base.requests.get(workload)
        place = (asked.path, asked.line) if asked is not None else (request_path(workload), 0)
        same = (
            before is not None
            and before.record == record
            and before.workspace == workspace
            and before.limits == limits
            and before.place == place
            and before.declared == base.kinds
        )
        if same:
            return before
        entry = attempt(Seam.ENROLMENT, workload, partial(_entry, record, workspace, limits, place, base.kinds))
        if isinstance(entry, Bug):
            self.bugs[workload] = entry
            return None
        return entry

    def updated(self, base: Desired, records: Mapping[WorkloadId, RequestRecord]) -> Enrolment:
        """Return the enrolment of a fleet and its records: the same object while both are the same objects."""
        return self if base is self.base and records is self.records else Enrolment(base, records, self)

    def with_reach(self, reach: ClusterOrder) -> Enrolment:
        """Return the same enrolment with another table of the same orders."""
        other = copy(self)
        other.reach = reach
        return other

    def changed_requests(self) -> tuple[WorkloadId, ...]:
        """List the requests whose file and record differ, by name."""
        return tuple(sorted(self._differing))

    def unplaced_requests(self, placements: Placements) -> tuple[WorkloadId, ...]:
        """List the open requests with missing placements, by name."""
        of = placements.of
        return tuple(sorted(each for each in self.entries if self.missing_placements(each, len(of(each).placements))))

    def missing_placements(self, workload: WorkloadId, placed: int) -> int:
        """Count the missing placements of an open request that has so many."""
        entry = self.entries.get(workload)
        if entry is None:
            return 0
        wanted, avoids = entry.record.request.placements, entry.record.avoids
        if wanted is None:
            named = self.reach.named(workload)
            wanted = len(named.difference(avoids) if avoids else named)
        return max(0, wanted - placed)

    def with_idempotency_key(self, key: str) -> tuple[WorkloadId, ...]:
        """List the requests that calls with this idempotency key have made."""
        return self._keys.get(key, ())

    def _file(self, before: RequestRecord | None, record: RequestRecord | None) -> None:
        """File a request under its idempotency key, and no longer under the one that it had."""
        keys = self._keys
        if before is not None and before.key:
            others = tuple(workload for workload in keys.pop(before.key) if workload != before.workload)
            if others:
                keys[before.key] = others
        if record is not None and record.key:
            keys[record.key] = (*keys.get(record.key, ()), record.workload)

    def _reserves(self, workload: WorkloadId) -> bool:
        record = self.records.get(workload)
        return record is not None and record.request.reserves and record.ended is None

    def _differs(self, workload: WorkloadId) -> bool:
        asked, record = self.base.requests.get(workload), self.records.get(workload)
        if asked is None:
            return record is not None and record.asker is Asker.FILE
        return record is None or record.asker is not Asker.FILE or record.asked != digest_of(asked)


def _changed_requests(
    before: Mapping[WorkloadId, RequestRecord], after: Mapping[WorkloadId, RequestRecord]
) -> Collection[WorkloadId]:
    """List the requests that have another record, or none any more."""
    if isinstance(before, SortedMap) and isinstance(after, SortedMap):
        touched = after.touched_since(before)
        if touched is not None:
            return touched
    gone = [workload for workload in before if workload not in after]
    return [*gone, *(workload for workload, record in after.items() if before.get(workload) is not record)]


def _entry(
    record: RequestRecord, workspace: Workspace, limits: WorkspaceLimits | None, place: tuple[str, int], declared: Kinds
) -> EnrolledRequest:
    request, (path, line) = record.request, place
    template = WorkloadTemplate(
        name=request.name,
        workspace=request.workspace,
        namespace=request.namespace,
        spec=request.spec,
        ref=None,
        request=True,
        path=path,
        line=line,
        prerequisites=prerequisites(request.spec, workspace, declared),
    )
    policy = BurstPolicy(
        name=f"request/{request.name}",
        candidates=tuple(ClusterPreference(name=name) for name in request.clusters or record.observed),
        priority=request.terms.priority,
        cool_down=timedelta(),
        hold=timedelta(),
        default_duration=request_duration(request, limits),
        to_primary=True,
    )
    pods = pods_of_request(request, declared, target_namespace(request.spec, workspace))
    needs = request_requirements(request, pods=pods)
    gang = gang_of_request(request, pods, needs, workspace)
    return EnrolledRequest(
        record=record,
        workspace=workspace,
        limits=limits,
        place=place,
        template=template,
        policy=policy,
        declared=declared,
        pods=pods,
        needs=needs,
        gang=gang,
        unit=unit_of_request(gang),
    )


def notes(request: Request, desired: Desired, unknown: str) -> tuple[str, ...]:
    """List the defaults that are assumed for unset fields of a request; `unknown` names unknown requirements."""
    limits, workspace = desired.limits.get(request.workspace), desired.workspaces.get(request.workspace)
    lenient = workspace is not None and workspace.allow_unknown_needs
    end = request.spec.burst_duration or request.terms.exit_duration
    outcome = "so they count as nothing" if lenient else f"so nothing of it is placed ({UNKNOWN_REMEDY})"
    words = [f"{unknown}, {outcome}"] if unknown else []
    words += (
        []
        if end
        else [f"it does not say for how long: it ends after {format_duration(request_duration(request, limits))}"]
    )
    return tuple(words)
