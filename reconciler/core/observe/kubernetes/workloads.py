"""Wanted, running and pending replicas of workloads, from pods and the objects that own them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

from reconciler.core.observe.kubernetes.controllers import ControllerRecord
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord, merge_group
from reconciler.core.observe.kubernetes.kueue import QueuedRecord, blocked_by_queue
from reconciler.core.observe.kubernetes.node_rejections import RejectedOwner
from reconciler.core.observe.kubernetes.pod_groups import group_of, group_seen
from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.core.observe.kubernetes.replica_asks import AskRecord
from reconciler.core.observe.kubernetes.resources import Owner
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled, WaitingReplicas, split_by_room
from reconciler.core.observe.kubernetes.wanted_pods import ObjectRecord, ObjectTree, Part
from reconciler.core.observe.kubernetes.workload_asks import WorkloadAsks
from reconciler.core.pods.resource_claims import NO_CLAIMS, TemplateRecord, with_claims
from reconciler.core.workloads.builtin_kinds import WATCHED
from reconciler.model.capacity import ReplicaShape, WorkloadObservation
from reconciler.model.workload import WorkloadRef

_ORDER = tuple(kind.kind for kind in WATCHED)


@dataclass(frozen=True, kw_only=True)
class Members:
    """Pods and workload objects, their owners, and the asks for more replicas."""

    pods: Mapping[str, PodRecord]
    by_owner: Mapping[Owner, Iterable[str]]
    controllers: Mapping[Owner, ControllerRecord]
    asks: Mapping[Owner, Iterable[AskRecord]]
    # The claim templates, as ``namespace/name``.
    templates: Mapping[str, TemplateRecord]
    # Whether the node of a name takes pods.
    is_open: Callable[[str], bool]
    # Whether an object is not there any more, as far as anybody knows.
    is_gone: Callable[[Owner], bool]
    # The records of objects with controllers of their own.
    specs: Mapping[Owner, CustomWorkloadRecord] = field(default_factory=dict)
    # Kueue's words on objects that run, or begin, without a pod here.
    starts: Mapping[Owner, str] = field(default_factory=dict)
    # Kueue's words on objects that have quota, and wait for admission checks.
    reservations: Mapping[Owner, str] = field(default_factory=dict)
    # What gated pods wait for that is no lack of quota by Kueue's words, by their `admission_key`.
    unadmitted: Mapping[str, Unscheduled] = field(default_factory=dict)
    # Since when nodes have rejected pods, by their owners.
    rejected: Mapping[RejectedOwner, Unscheduled] = field(default_factory=dict)
    # Kueue's words on gated pods that run on another cluster, by their `admission_key`.
    dispatched: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def objects(self) -> Mapping[Owner, ObjectRecord]:
        """All objects that make pods, or make objects that do."""
        return {**self.controllers, **self.specs}

    @cached_property
    def tree(self) -> ObjectTree:
        """The objects with what they make."""
        return ObjectTree(self.objects, self.pods, self.by_owner, is_open=self.is_open, is_gone=self.is_gone)

    @cached_property
    def heard(self) -> WorkloadAsks:
        """The asks by the objects that they reach."""
        return WorkloadAsks(self.objects, self.tree, self.asks)


def observe_workloads(refs: Iterable[WorkloadRef], members: Members) -> Iterator[WorkloadObservation]:
    """Observe the followed objects, and those of followed releases, sorted; one without pods and asks is left out.

    What an object wants, and which of its pods count, is for `wanted_pods` to say. An object that waits for admission
    and has no pods misses them all. One that is being deleted misses none.
    """
    named: dict[tuple[str, str], list[WorkloadRef]] = {}
    releases: set[str] = set()
    for ref in refs:
        named.setdefault((ref.namespace, ref.name), []).append(ref)
        releases |= {f"{ref.namespace}/{ref.name}"} if ref.release else set()
    if not named:
        return
    tree = members.tree
    everyone = {*members.controllers, *members.by_owner, *tree.owned, *members.starts}
    everyone.update(members.heard.targets)
    everyone.update(owner for owner, record in members.specs.items() if record.unmade or record.refused)
    released = _releases_by_owner(members, releases) if releases else {}
    called = {owner for owner in everyone if (owner.namespace, owner.name) in named}
    owners = sorted({*called, *released}, key=_rank)
    for root in owners:
        own = members.controllers.get(root)
        # The maker of a set's leaders has the set's name, and is not meant by it.
        part = own is not None and own.owner in own.belongs and own.owner in owners
        alike = named.get((root.namespace, root.name), [])
        if root in released or any(root.meant_by(ref) and not (part and not ref.kind) for ref in alike):
            seen = replace(_observe(root, members, owners), release=released.get(root, ""))
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
    here |= {owner for owner, record in members.specs.items() if owner.namespace in missing and not record.owners}
    return tuple(owner.ref for owner in sorted(here, key=_rank))


def _releases_by_owner(members: Members, releases: Container[str]) -> dict[Owner, str]:
    """Return the objects of these releases with their release, but not what they make themselves."""
    released = {
        owner: record.release
        for owner, record in members.controllers.items()
        if record.release in releases and record.owner is None
    }
    released.update((owner, record.release) for owner, record in members.specs.items() if record.release in releases)
    return released


def _rank(owner: Owner) -> tuple[str, str, int, str, str]:
    """Sort Kubernetes' own kinds before others, and before those of other groups with the same kind."""
    place = _ORDER.index(owner.kind) if owner.kind in _ORDER else len(_ORDER)
    return (owner.namespace, owner.name, place, owner.kind, owner.group)


def _observe(named: Owner, members: Members, followed: Container[Owner]) -> WorkloadObservation:
    tree = members.tree
    root = tree.serving(named)
    parts = tree.parts(root)
    pods = [pod for part in parts for pod in part.pods]
    makers = [maker for part in parts for maker in part.makers]
    record, spec = members.controllers.get(root), members.specs.get(root)
    known: ControllerRecord | CustomWorkloadRecord | None = record or spec
    wanted = sum(part.wanted for part in parts)
    waits = [wait for part in parts for wait in _waiting(root, part, members)]
    shape = _shape(root, pods, [maker for maker, _ in makers], members)
    if spec is not None and spec.unmade is not None and not tree.pods_below(root):
        waits.append(WaitingReplicas(replicas=wanted, wait=spec.unmade))
        shape = shape or spec.shape
    if any(part.refused is not None for part in parts) and spec is not None:
        shape = shape or spec.shape
    asking = {} if tree.is_leaving(root) else members.heard.of(root, followed)
    waiting, blocked = split_by_room((*waits, *_blocked_by_queues(asking, members)))
    started = members.starts.get(root, "") or next(
        (words for pod in pods if (words := members.dispatched.get(pod.admission))), ""
    )
    return WorkloadObservation(
        ref=WorkloadRef(namespace=named.namespace, name=named.name, kind=named.kind, group=named.group),
        wanted=wanted,
        running=sum(pod.runs and _rejection(pod, members) is None for pod in pods),
        waiting=waiting,
        blocked=blocked,
        shape=shape,
        asks=tuple(members.heard.replicas(root, asking)),
        group=merge_group(
            group_seen(root, pods, makers, partial(with_claims, namespace=root.namespace, templates=members.templates)),
            spec.group if spec is not None else None,
        ),
        containers=known.containers if known is not None else (),
        held=not started and _is_held(tree.pods_below(root), record, spec, chain.from_iterable(asking.values())),
        started=started,
        claimed="" if started else members.reservations.get(root, "") or _claim(known),
    )


def _waiting(root: Owner, part: Part, members: Members) -> Iterator[WaitingReplicas]:
    """Yield the pods of a part that wait, and those that its makers may not create, each with its gang.

    Of a gated pod, Kueue's words on its Workload go before the gate. As many as leave their room to a successor are
    missing from when they should have left.
    """
    waiting = Counter[tuple[Unscheduled, str]](
        (wait, group_of(root, pod.groups))
        for pod in part.pods
        if pod.admission not in members.dispatched
        if (wait := members.unadmitted.get(pod.admission) or pod.wait or _rejection(pod, members)) is not None
    )
    left = part.wanted - len(part.pods)
    for maker, own in part.makers:
        unscheduled, missing = _uncreated_replicas(maker, own)
        if unscheduled is not None:
            uncreated = min(left, missing)
            waiting[unscheduled, group_of(root, maker.groups)] += uncreated
            left -= uncreated
    if part.refused is not None and left > 0:
        waiting[part.refused, ""] += min(left, part.uncreated)
    for drained in part.draining if waiting else ():
        lacking = [
            key for key, number in waiting.items() if number > 0 and key[0].lacks_room and key[0].since < drained
        ]
        if lacking:
            first = min(lacking, key=lambda key: (key[0].since, key[0].cause, key[1]))
            waiting[first] -= 1
            waiting[replace(first[0], since=drained), first[1]] += 1
    for (wait, group), number in waiting.items():
        yield WaitingReplicas(replicas=number, wait=wait, group=group)


def _rejection(pod: PodRecord, members: Members) -> Unscheduled | None:
    """Return why a node may reject a pod as well that no kubelet has taken yet: it has rejected those before it."""
    if pod.taken or pod.nominated or pod.gated or pod.leaving or not members.rejected:
        return None
    return next((wait for owner in pod.owners if (wait := members.rejected.get(owner)) is not None), None)


def _blocked_by_queues(asking: Mapping[Owner, Iterable[AskRecord]], members: Members) -> Iterator[WaitingReplicas]:
    """Yield the pods that Kueue does not let their objects make for another reason than a lack of quota."""
    for target, records in asking.items():
        pods = len(members.tree.staying_below(target))
        yield from (each for record in records if (each := blocked_by_queue(record, pods)) is not None)


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
    if any(not pod.leaving for pod in pods):
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


def _uncreated_replicas(record: ControllerRecord, pods: list[PodRecord]) -> tuple[Unscheduled | None, int]:
    """Return why replicas without a pod are held back, and how many: a refusal, or an earlier ordered pod unplaced."""
    waits, missing = [pod.wait for pod in pods if pod.wait is not None], record.wanted - len(pods)
    if missing > 0 and record.refused is not None:
        return record.refused, missing
    if missing > 0 and record.ordered and waits:
        return min(waits, key=lambda unscheduled: (not unscheduled.lacks_room, unscheduled.since)), missing
    return None, 0
