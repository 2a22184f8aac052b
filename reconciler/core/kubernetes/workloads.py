"""From pods and the objects that own them to the replicas that a workload wants, has, and waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.core.kubernetes.claims import NO_CLAIMS, TemplateRecord, with_claims
from reconciler.core.kubernetes.controllers import ControllerRecord
from reconciler.core.kubernetes.pods import Held, PodRecord
from reconciler.core.kubernetes.resources import Owner
from reconciler.model.capacity import Ask, Waiting, WorkloadObservation
from reconciler.model.workload import WorkloadRef

_ORDER = ("Deployment", "StatefulSet", "ReplicaSet", "Job")


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """What is known of pods and workload objects, whose the pods are, and who asks for more of which object.

    `templates` are those of claims, as ``namespace/name``.
    """

    pods: Mapping[str, PodRecord]
    by_owner: Mapping[Owner, Iterable[str]]
    controllers: Mapping[Owner, ControllerRecord]
    asks: Mapping[Owner, tuple[Ask, ...]] = field(default_factory=dict)
    templates: Mapping[str, TemplateRecord] = field(default_factory=dict)


def observe_workloads(refs: Iterable[WorkloadRef], members: Members) -> Iterator[WorkloadObservation]:
    """Report the objects that were followed, sorted; one that is not there, owns no pod and misses none is left out.

    An object of a kind that is not watched is known by its pods alone, and wants as many as there are.
    """
    refs = tuple(refs)
    if not refs:
        return
    owned: dict[Owner, list[Owner]] = {}
    for owner, record in members.controllers.items():
        if record.owner is not None:
            owned.setdefault(record.owner, []).append(owner)
    names = {(ref.namespace, ref.name) for ref in refs}
    everyone = {*members.controllers, *members.by_owner, *owned, *members.asks}
    found = sorted((one for one in everyone if (one.namespace, one.name) in names), key=_rank)
    for root in found:
        if any(_meant(ref, root) for ref in refs):
            keys = sorted(_pods_below(root, owned, members.by_owner))
            pods = [members.pods[key] for key in keys]
            pods = [pod for pod in pods if not pod.leaving]
            seen = _observe(root, members.controllers.get(root), pods, members.templates)
            yield replace(seen, asks=members.asks.get(root, ()))


def _rank(owner: Owner) -> tuple[str, str, int, str]:
    place = _ORDER.index(owner.kind) if owner.kind in _ORDER else len(_ORDER)
    return (owner.namespace, owner.name, place, owner.kind)


def _meant(ref: WorkloadRef, owner: Owner) -> bool:
    return (ref.namespace, ref.name) == (owner.namespace, owner.name) and ref.kind in ("", owner.kind)


def _pods_below(root: Owner, owned: Mapping[Owner, list[Owner]], by_owner: Mapping[Owner, Iterable[str]]) -> set[str]:
    """Gather the pods of an object and of all that it owns, as a Deployment owns its ReplicaSets."""
    keys: set[str] = set()
    seen: set[Owner] = set()
    open_ = [root]
    while open_:
        owner = open_.pop()
        if owner not in seen:
            seen.add(owner)
            keys.update(by_owner.get(owner, ()))
            open_ += owned.get(owner, ())
    return keys


def _observe(
    root: Owner, record: ControllerRecord | None, pods: list[PodRecord], templates: Mapping[str, TemplateRecord]
) -> WorkloadObservation:
    wanted = len(pods) if record is None else record.wanted
    held = [pod.held for pod in pods if pod.held is not None]
    # A pod tells more than the template it is made from: it has the API server's defaults and tolerations.
    shapes = [(pod.shape, pod.claims) for pod in pods if pod.shape is not None]
    shape, claims = shapes[0] if shapes else (record.shape, record.claims) if record is not None else (None, NO_CLAIMS)
    if record is not None:
        held += _never_made(record, held, wanted - len(pods))
    waiting = Counter((one.since, one.cause) for one in held)
    return WorkloadObservation(
        ref=WorkloadRef(namespace=root.namespace, name=root.name, kind=root.kind),
        wanted=wanted,
        running=sum(1 for pod in pods if pod.runs),
        waiting=tuple(Waiting(replicas=n, since=since, cause=cause) for (since, cause), n in sorted(waiting.items())),
        shape=None if shape is None else with_claims(shape, claims, root.namespace, templates),
    )


def _never_made(record: ControllerRecord, held: list[Held], missing: int) -> list[Held]:
    """Tell what holds back replicas that have no pod yet: a refusal, or a pod before them that has no node."""
    if missing <= 0:
        return []
    if record.refused is not None:
        return [record.refused] * missing
    if record.ordered and held:
        return [min(held, key=lambda one: one.since)] * missing
    return []
