"""Wanted, running and pending replicas of workloads, from pods and the objects that own them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord, merge_group
from reconciler.core.observe.kubernetes.kueue import QueuedRecord
from reconciler.core.observe.kubernetes.pod_groups import group_of, group_seen
from reconciler.core.observe.kubernetes.pods import PodRecord, Unscheduled
from reconciler.core.observe.kubernetes.replica_asks import AskRecord
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.core.pods.resource_claims import NO_CLAIMS, TemplateRecord, with_claims
from reconciler.core.workloads.builtin_kinds import WATCHED
from reconciler.model.capacity import MissingReplicas, ReplicaShape, WorkloadObservation
from reconciler.model.workload import WorkloadRef

_ORDER = tuple(kind.kind for kind in WATCHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """Pods and workload objects, their owners, and the asks for more replicas."""

    pods: Mapping[str, PodRecord]
    by_owner: Mapping[Owner, Iterable[str]]
    controllers: Mapping[Owner, ControllerRecord]
    asks: Mapping[Owner, Iterable[AskRecord]]
    # The claim templates, as ``namespace/name``.
    templates: Mapping[str, TemplateRecord]
    # The records of objects with controllers of their own, by the kind and group of an `Owner`, then by name.
    specs: Mapping[tuple[str, str], Mapping[str, CustomWorkloadRecord]] = field(default_factory=dict)
    # Kueue's words on objects that run, or begin, without a pod here.
    starts: Mapping[Owner, str] = field(default_factory=dict)
    # Kueue's words on objects that have quota, and wait for admission checks.
    reservations: Mapping[Owner, str] = field(default_factory=dict)
    # Kueue's words on gated pods that run on another cluster, by their `admission_key`.
    dispatched: Mapping[str, str] = field(default_factory=dict)


def observe_workloads(refs: Iterable[WorkloadRef], members: Members) -> Iterator[WorkloadObservation]:
    """Observe the followed objects, and those of followed releases, sorted; one without pods and asks is left out.

    An object with a controller of its own is known by its pods and the objects that own or mark them: it wants its
    existing pods, and those that their makers have yet to create; or the replicas that it states itself, if it is
    watched and the number is larger. An object that waits for admission and has no pods misses them all.
    """
    named: dict[tuple[str, str], list[WorkloadRef]] = {}
    releases: set[str] = set()
    for ref in refs:
        named.setdefault((ref.namespace, ref.name), []).append(ref)
        releases |= {f"{ref.namespace}/{ref.name}"} if ref.release else set()
    if not named:
        return
    owned: dict[Owner, list[Owner]] = {}
    for owner_of_pods, record in members.controllers.items():
        for owner in record.owners:
            owned.setdefault(owner, []).append(owner_of_pods)
    everyone = {*members.controllers, *members.by_owner, *owned, *members.asks, *members.starts}
    everyone.update(_awaiting_admission(members))
    released = _releases_by_owner(members, releases) if releases else {}
    called = {owner for owner in everyone if (owner.namespace, owner.name) in named}
    owners = sorted({*called, *released}, key=_rank)
    for root in owners:
        own = members.controllers.get(root)
        # The maker of a set's leaders has the set's name, and is not meant by it.
        part = own is not None and own.owner in own.belongs and own.owner in owners
        alike = named.get((root.namespace, root.name), [])
        if root in released or any(root.meant_by(ref) and not (part and not ref.kind) for ref in alike):
            seen = replace(_observe(root, members, owned), release=released.get(root, ""))
            yield replace(seen, ref=root.ref) if any(ref.group for ref in alike) else seen


def other_objects(
    refs: Iterable[WorkloadRef], observed: Iterable[WorkloadObservation], members: Members
) -> tuple[WorkloadRef, ...]:
    """List the objects that nothing owns in the namespaces of followed ones that were not observed, sorted.

    A watched object without pods is not observed, and is among these.
    """
    seen = tuple(observed)
    names_seen = {(workload.ref.namespace, workload.ref.name) for workload in seen}
    releases = {workload.release for workload in seen}
    missing = {
        ref.namespace
        for ref in refs
        if (ref.namespace, ref.name) not in names_seen and f"{ref.namespace}/{ref.name}" not in releases
    }
    if not missing:
        return ()
    here = {owner for owner, record in members.controllers.items() if owner.namespace in missing and not record.owners}
    for (kind, group), records in members.specs.items():
        keys = (key.split("/", 1) for key in records)
        here |= {Owner(kind, namespace, name, group) for namespace, name in keys if namespace in missing}
    return tuple(owner.ref for owner in sorted(here, key=_rank))


def _releases_by_owner(members: Members, releases: Container[str]) -> dict[Owner, str]:
    """Return the objects of these releases with their release, but not what they make themselves."""
    released = {
        owner: record.release
        for owner, record in members.controllers.items()
        if record.release in releases and record.owner is None
    }
    for (kind, group), records in members.specs.items():
        for key, record in records.items():
            if record.release in releases:
                namespace, _, name = key.partition("/")
                released[Owner(kind, namespace, name, group)] = record.release
    return released


def _awaiting_admission(members: Members) -> Iterator[Owner]:
    """Return the objects that wait for admission, and may have no pods by which to find them."""
    for (kind, group), records in members.specs.items():
        for key, record in records.items():
            if record.unmade is not None:
                namespace, _, name = key.partition("/")
                yield Owner(kind, namespace, name, group)


def _rank(owner: Owner) -> tuple[str, str, int, str, str]:
    """Sort Kubernetes' own kinds before others, and before those of other groups with the same kind."""
    place = _ORDER.index(owner.kind) if owner.kind in _ORDER else len(_ORDER)
    return (owner.namespace, owner.name, place, owner.kind, owner.group)


def _pods_below(root: Owner, members: Members, owned: Mapping[Owner, list[Owner]]) -> list[PodRecord]:
    """Return the pods of an object and of all that it owns, such as ReplicaSets, terminating ones included."""
    keys: set[str] = set()
    seen: set[Owner] = set()
    open_ = [root]
    while open_:
        owner = open_.pop()
        if owner not in seen:
            seen.add(owner)
            keys.update(members.by_owner.get(owner, ()))
            open_ += owned.get(owner, ())
    return [members.pods[key] for key in sorted(keys)]


def _pods_that_stay(pods: Iterable[PodRecord]) -> list[PodRecord]:
    return [pod for pod in pods if not pod.leaving]


def _observe(root: Owner, members: Members, owned: Mapping[Owner, list[Owner]]) -> WorkloadObservation:
    everyone = _pods_below(root, members, owned)
    pods = _pods_that_stay(everyone)
    ready = sum(1 for pod in pods if pod.ready)
    record = members.controllers.get(root)
    makers = [(record, pods)] if record is not None else _makers(root, members, owned)
    wanted = record.wanted if record else len(pods) + sum(max(0, maker.wanted - len(own)) for maker, own in makers)
    spec = members.specs.get((root.kind, root.group), {}).get(f"{root.namespace}/{root.name}")
    wanted = max(wanted, spec.wanted) if spec is not None else wanted
    waiting_here = [pod for pod in pods if pod.admission not in members.dispatched]
    waiting = Counter(
        (pod.held.since, pod.held.cause, group_of(root, pod.groups)) for pod in waiting_here if pod.held is not None
    )
    for maker, own in makers:
        unscheduled, missing = _uncreated_replicas(maker, own)
        if unscheduled is not None:
            waiting[unscheduled.since, unscheduled.cause, group_of(root, maker.groups)] += missing
    shape = _shape(root, pods, [maker for maker, _ in makers], members)
    if spec is not None and spec.unmade is not None and not pods:
        waiting[spec.unmade.since, spec.unmade.cause, ""] += wanted
        shape = shape or spec.shape
    asking = members.asks.get(root, ())
    started = members.starts.get(root, "") or next(
        (words for pod in pods if (words := members.dispatched.get(pod.admission))), ""
    )
    return WorkloadObservation(
        ref=WorkloadRef(namespace=root.namespace, name=root.name, kind=root.kind, group=root.group),
        wanted=wanted,
        running=sum(1 for pod in pods if pod.runs),
        waiting=tuple(
            MissingReplicas(replicas=n, since=since, cause=cause, group=group)
            for (since, cause, group), n in sorted(waiting.items())
            if n
        ),
        shape=shape,
        asks=tuple(ask for ask in (ask_record.ask(len(pods), ready) for ask_record in asking) if ask is not None),
        group=merge_group(
            group_seen(root, pods, makers, partial(with_claims, namespace=root.namespace, templates=members.templates)),
            spec.group if spec is not None else None,
        ),
        containers=record.containers if record is not None else spec.containers if spec is not None else (),
        held=not started and _is_held(everyone, record, spec, asking),
        started=started,
        claimed="" if started else members.reservations.get(root, "") or _claim(record or spec),
    )


def _claim(record: ControllerRecord | CustomWorkloadRecord | None) -> str:
    """Say of an object that MultiKueue manages that it will go where MultiKueue sends it; empty of any other."""
    return "MultiKueue sends it to a cluster of its own choice" if record is not None and record.multikueue else ""


def _is_held(
    pods: Sequence[PodRecord],
    record: ControllerRecord | None,
    spec: CustomWorkloadRecord | None,
    asking: Iterable[AskRecord],
) -> bool:
    """Return whether no pod of an object can get a node before its owner, Kueue or Volcano lets it; `pods` are all."""
    # 1. A pod has a node, also while it terminates, or may get one from the scheduler.
    if any(pod.node or not (pod.gated or pod.leaving) for pod in pods):
        return False
    # 2. Every pod is gated.
    if _pods_that_stay(pods):
        return True
    # 3. It has no pods: it is suspended, or waits for Volcano.
    if (record is not None and record.suspended) or (spec is not None and (spec.suspended or spec.unmade is not None)):
        return True
    # 4. It has no pods, and its Workload waits for quota.
    return any(isinstance(ask_record, QueuedRecord) for ask_record in asking)


def _shape(
    root: Owner, pods: Iterable[PodRecord], makers: Iterable[ControllerRecord], members: Members
) -> ReplicaShape | None:
    """Return the shape of one replica, from the first source that has one.

    A pod tells more than its template: it has the API server's defaults and tolerations.
    """
    shapes = [(pod.shape, pod.claims) for pod in sorted(pods, key=lambda pod: pod.held is None)]
    shapes += [(maker.shape, maker.claims) for maker in makers]
    shapes += [(ask_record.shape, NO_CLAIMS) for ask_record in members.asks.get(root, ())]
    for shape, claims in shapes:
        if shape is not None:
            return with_claims(shape, claims, root.namespace, members.templates)
    return None


def _makers(
    root: Owner, members: Members, owned: Mapping[Owner, list[Owner]]
) -> list[tuple[ControllerRecord, list[PodRecord]]]:
    """Return the objects that create the pods of an unwatched kind, as a Rollout's ReplicaSets do.

    Of a Deployment and its ReplicaSet, whose pods have the same marks, it is the Deployment.
    """
    own = owned.get(root, ())
    makers = [owner for owner in sorted(own) if members.controllers[owner].owner not in own]
    return [(members.controllers[maker], _pods_that_stay(_pods_below(maker, members, owned))) for maker in makers]


def _held(pods: Iterable[PodRecord]) -> list[Unscheduled]:
    return [pod.held for pod in pods if pod.held is not None]


def _uncreated_replicas(record: ControllerRecord, pods: list[PodRecord]) -> tuple[Unscheduled | None, int]:
    """Return why replicas without a pod are held back, and how many: a refusal, or an earlier ordered pod unplaced."""
    held, missing = _held(pods), record.wanted - len(pods)
    if missing > 0 and record.refused is not None:
        return record.refused, missing
    if missing > 0 and record.ordered and held:
        return min(held, key=lambda unscheduled: unscheduled.since), missing
    return None, 0
