"""Pods of placements that their cluster does not let anybody create, by the words and rules that hold at home.

The objects of placements have the label of their placement, and are watched by it. A condition of theirs says why pods
are refused (ReplicaFailure of Deployments, ReplicaSets and Argo Rollouts), else an Event, or the ResourceQuota itself
(`quota_refusals`). The pods that exist are found by the same label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.observe.kubernetes.controllers import ControllerRecord, read_controller, replica_failure
from reconciler.core.observe.kubernetes.custom_workloads import CustomWorkloadRecord, read_spec
from reconciler.core.observe.kubernetes.node_rejections import RejectedOwner
from reconciler.core.observe.kubernetes.placement_pods import PlacementProgress, with_more_pending
from reconciler.core.observe.kubernetes.pod_failures import describe_refused
from reconciler.core.observe.kubernetes.pods import PodRecord, placement_of
from reconciler.core.observe.kubernetes.quota_refusals import QuotaRefusals
from reconciler.core.observe.kubernetes.resources import CONTROLLERS, WITH_REPLICA_FAILURE, CustomResource, Owner
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled
from reconciler.core.safety.commands import STEP_LABEL
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.watch import key_of
from reconciler.model.capacity import PendingPods, ReplicaShape
from reconciler.model.ids import PlacementName
from reconciler.model.workload import Json
from reconciler.text.timestamps import read_moment

_CONTROLLERS = {(each.kind, each.group): each for each in CONTROLLERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedMaker:
    """An object of a placement that makes pods, or makes objects that do."""

    placement: PlacementName
    owner: Owner
    wanted: int
    shape: ReplicaShape | None
    refused: Unscheduled | None
    """Why its pods may not be created, by its status."""
    says: bool
    """Whether its status always says so."""
    created_at: datetime | None
    one_by_one: bool
    """Whether it may not have tried to create its missing pods while one of the others is not ready."""
    runs_once: bool
    """Whether none is created in the place of a pod that has ended, and its status does not count these."""
    made: bool
    """Whether another object has made it, whose pods are its own: controllers hand labels on, as KServe those of an
    InferenceService to its Deployment, and KubeRay those of a RayJob to its RayCluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedPods:
    """Pods of a placement that its cluster refuses."""

    pods: int
    uncreated: int
    """Those that do not exist."""
    bound: int = 0
    """Those that have a node which has rejected others before them."""
    wanted: int
    """All pods of the placement."""
    wait: Unscheduled
    shape: ReplicaShape | None


def read_placed_maker(resource: CustomResource, raw: Json, kinds: Kinds) -> PlacedMaker | None:
    """Read an object; None for one of no placement, one that makes no pods now, and for those of a command or hook."""
    metadata = raw["metadata"]
    placement, labels = placement_of(metadata), metadata.get("labels") or {}
    hook = "helm.sh/hook" in (metadata.get("annotations") or {})
    if not placement or hook or STEP_LABEL in labels or "deletionTimestamp" in metadata:
        return None
    own = _CONTROLLERS.get((resource.kind, resource.group))
    record: ControllerRecord | CustomWorkloadRecord = (
        read_controller(own, raw) if own is not None else read_spec(resource, raw, kinds)
    )
    if record.suspended or record.multikueue or not record.wanted:
        return None
    kind, group = resource.owning
    namespace, _, name = key_of(raw).partition("/")
    created = metadata.get("creationTimestamp")
    return PlacedMaker(
        placement=placement,
        owner=Owner(kind, namespace, name, group),
        wanted=record.wanted,
        shape=record.shape,
        refused=replica_failure(raw.get("status") or {}) or _unmade(record),
        says=own in WITH_REPLICA_FAILURE,
        created_at=read_moment(created) if created else None,
        one_by_one=record.ordered if isinstance(record, ControllerRecord) else True,
        runs_once=isinstance(record, CustomWorkloadRecord) and record.runs_once,
        made=record.owner is not None,
    )


def _unmade(record: ControllerRecord | CustomWorkloadRecord) -> Unscheduled | None:
    """Return since when a scheduler keeps the controller of an object from creating any pod."""
    return record.unmade if isinstance(record, CustomWorkloadRecord) else None


def refused_pods(
    makers: Iterable[PlacedMaker],
    refusals: QuotaRefusals,
    pods: Mapping[PlacementName, Collection[PodRecord]],
    ended: Mapping[Owner, Collection[str]],
    rejected: Mapping[RejectedOwner, Unscheduled],
) -> dict[PlacementName, RefusedPods]:
    """Return the refused pods of each placement that has any: at most as many as it wants and does not have.

    `pods` are those of placements that have not finished, `ended` others by their owner. Pods that are being deleted
    leave their quota to their successors. Where nodes have `rejected` pods of a placement, those that no kubelet has
    taken are refused too.
    """
    by_placement: dict[PlacementName, list[PlacedMaker]] = {}
    for maker in makers:
        by_placement.setdefault(maker.placement, []).append(maker)
    refused: dict[PlacementName, RefusedPods] = {}
    for name in sorted({*by_placement, *(key for key in rejected if not isinstance(key, Owner))}):
        objects = by_placement.get(name, [])
        whole = [each for each in objects if not each.made] or objects
        own, wanted = pods.get(name, ()), sum(each.wanted for each in whole)
        missing = wanted - len(own) - sum(len(ended.get(each.owner, ())) for each in whole if each.runs_once)
        waits = list(_waits(objects, refusals, own)) if missing > 0 else []
        if waits:
            first, wait = min(waits, key=lambda entry: (not entry[1].lacks_room, entry[1].since, entry[0].owner))
            number = min(missing, sum(each.wanted for each, _ in waits))
            refused[name] = RefusedPods(pods=number, uncreated=number, wanted=wanted, wait=wait, shape=first.shape)
        elif (wait_of_node := _rejection(name, objects, rejected)) is not None:
            untaken = [pod for pod in own if not (pod.taken or pod.leaving or pod.wait or pod.nominated or pod.gated)]
            number, bound = max(0, missing) + len(untaken), sum(bool(pod.node) for pod in untaken)
            if number:
                refused[name] = RefusedPods(
                    pods=number,
                    uncreated=max(0, missing),
                    bound=bound,
                    wanted=max(wanted, len(own)),
                    wait=wait_of_node,
                    shape=objects[0].shape if objects else None,
                )
    return refused


def _rejection(
    name: PlacementName, objects: Iterable[PlacedMaker], rejected: Mapping[RejectedOwner, Unscheduled]
) -> Unscheduled | None:
    """Return why nodes reject pods of a placement: of those with its label, or of an object that has it instead."""
    keys: list[RejectedOwner] = [name, *(each.owner for each in objects)]
    return next((rejected[key] for key in keys if key in rejected), None)


def with_refused_pods(progress: PlacementProgress, refused: Mapping[PlacementName, RefusedPods]) -> PlacementProgress:
    """Add the pods that may not be created to the progress of placements: those that lack room wait for it."""
    if not refused:
        return progress
    reasons, pending = dict(progress.waiting_reasons), dict(progress.pending_pods)
    words: dict[PlacementName, str] = {}
    for name, each in refused.items():
        words[name] = describe_refused(each.wait)
        told = f"{each.pods} of {each.wanted} pods {words[name]}"
        reasons[name] = "; ".join(part for part in (reasons.get(name), told) if part)
        if each.wait.lacks_room and each.shape is not None and (name in pending or each.uncreated or each.bound):
            pending[name] = with_more_pending(pending.get(name), _pending(each))
    return replace(
        progress,
        refused=words,
        rejected={name: each.bound for name, each in refused.items() if each.bound},
        waiting_reasons=dict(sorted(reasons.items())),
        pending_pods=dict(sorted(pending.items())),
    )


def _waits(
    makers: Iterable[PlacedMaker], refusals: QuotaRefusals, pods: Iterable[PodRecord]
) -> Iterator[tuple[PlacedMaker, Unscheduled]]:
    """Yield why pods of these objects of one placement are refused; `pods` are those that it has."""
    ready = all(pod.ready for pod in pods)
    for maker in makers:
        wait = _wait(maker, refusals, ready=ready)
        if wait is not None:
            yield maker, wait


def _wait(maker: PlacedMaker, refusals: QuotaRefusals, *, ready: bool) -> Unscheduled | None:
    """Return why pods of an object are refused: by its own condition, or by an Event or a quota."""
    if maker.refused is not None or maker.says:
        return maker.refused
    if maker.one_by_one and not ready and not refusals.has_event(maker.owner):
        return None
    wait = refusals.of(maker.owner, maker.shape)
    if wait is None or maker.created_at is None:
        return wait
    return replace(wait, since=max(wait.since, maker.created_at))


def _pending(refused: RefusedPods) -> PendingPods:
    """Return refused pods that no other counts among those without a node."""
    return PendingPods(
        replicas=refused.uncreated + refused.bound,
        uncreated=refused.uncreated,
        shape=refused.shape,
        since=refused.wait.since,
    )
