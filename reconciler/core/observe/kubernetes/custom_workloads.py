"""Workload objects with controllers of their own: their replicas, gangs, and waits for admission by a scheduler."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.pod_requirements import pods_of_spec
from reconciler.core.observe.kubernetes.object_records import UNKNOWN_OBJECT, ObjectIdentity, object_identity
from reconciler.core.observe.kubernetes.pods import controller_of
from reconciler.core.observe.kubernetes.releases import release_of
from reconciler.core.observe.kubernetes.resources import CustomResource, Owner
from reconciler.core.observe.kubernetes.unscheduled import Unscheduled
from reconciler.core.workloads.builtin_kinds import INTERMEDIATE, Kinds, kind_of
from reconciler.core.workloads.containers import observed_containers
from reconciler.core.workloads.ends import asks_for_nothing
from reconciler.core.workloads.pods import (
    group_count,
    is_suspended,
    pod_template_sites,
    pods_of_group,
    stays_suspended,
    wanted_pods,
)
from reconciler.core.workloads.portable_object import is_managed_by_multikueue
from reconciler.model.capacity import ObservedGroup, ReplicaShape
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.units import Resources
from reconciler.model.workload import ContainerSummary, DeploySpec, Json, ManifestResource, Step, StepType
from reconciler.text.digits import whole_number
from reconciler.text.timestamps import read_moment

_VOLCANO = "batch.volcano.sh/Job"
HELD_BACK = "Volcano holds back its pods"


def read_admission_wait(resource: CustomResource, raw: Json) -> Unscheduled | None:
    """Return since when an object waits for admission, and so has no pods; None if it does not.

    Volcano's job controller makes no pods of a Job while its PodGroup is Pending, which lasts until the scheduler's
    `enqueue` finds room for its minimum. The phase of the Job itself is Pending then, and until its minimum runs; a Job
    that is aborted, terminated or completed has another.
    """
    metadata, state = raw["metadata"], (raw.get("status") or {}).get("state") or {}
    if resource.name != _VOLCANO or state.get("phase") != "Pending" or "deletionTimestamp" in metadata:
        return None
    since = state.get("lastTransitionTime") or metadata.get("creationTimestamp")
    return Unscheduled(since=read_moment(since), cause=HELD_BACK) if since else None


_NO_PODS = ReplicaShape(requests=Resources())
_OBJECT = "object"
_STEPS = (Step(name=_OBJECT, type=StepType.MANIFEST),)


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomWorkloadRecord:
    """The replicas of an object, and one of its gangs."""

    # None if nothing says how many, or only the objects that it makes do.
    wanted: int | None
    # None if its pods are in no gang. Gangs with exclusive domains, or with uncountable parts, are known by their pods.
    group: ObservedGroup | None
    # The needs of the pod with most GPUs; None if they cannot be counted.
    shape: ReplicaShape | None
    # Since when it waits for admission. It then misses all of its pods, if it has none.
    unmade: Unscheduled | None
    # Whether it makes no pods until it is resumed.
    suspended: bool = False
    containers: tuple[ContainerSummary, ...] = ()
    # The Helm release that made it, as ``namespace/name``; empty for none.
    release: str = ""
    # Whether MultiKueue manages it, so that no pod of it is made here.
    multikueue: bool = False
    identity: ObjectIdentity = UNKNOWN_OBJECT
    owner: Owner | None = None
    # The gangs that it asks for, each known by a label of its pods; 0 without such a label.
    gangs: int = 0
    # The gangs that it asks for, whether or not their pods have such a label; 0 if its pods are in none.
    together: int = 0
    # Whether the objects that it makes say how many pods it wants at present, and by what they are revisions. Those of
    # one that has ended, or is suspended, may be left of it.
    scaled_below: bool = False
    revisions: str = ""
    # The pods that it had before the next revision began to replace it; 0 while none does.
    replaced: int = 0
    # Whether its pods run once, so that none is made in the place of one that has ended.
    runs_once: bool = False
    # Since when, and why, its missing pods may not be created, and how many they are.
    refused: Unscheduled | None = None
    uncreated: int = 0

    @property
    def owners(self) -> tuple[Owner, ...]:
        """The owner of the object."""
        return () if self.owner is None else (self.owner,)


def read_spec(resource: CustomResource, raw: Json, kinds: Kinds) -> CustomWorkloadRecord:
    """Read an object as a template would hold it; its pods may be uncountable.

    What MultiKueue manages is read all the same, without pods.
    """
    kinds = INTERMEDIATE if resource.name in INTERMEDIATE else kinds
    version = next(iter(resource.versions), "")
    manifest = {"apiVersion": f"{resource.group}/{version}", **raw, "kind": resource.kind}
    pods = pods_of_spec(DeploySpec(manifests=(ManifestResource(name=_OBJECT, manifest=manifest),), steps=_STEPS), kinds)
    owner, kind = controller_of(raw["metadata"]), kind_of(manifest, kinds)
    counted = kind is not None and kind.counted
    groups = group_count(manifest, kind) if kind is not None and kind.together is not None else None
    named = kind is not None and kind.together is not None and bool(kind.together.label)
    ended = kind is not None and asks_for_nothing(kind, raw)
    idle = ended or (kind is not None and stays_suspended(manifest, kind))
    seen = CustomWorkloadRecord(
        wanted=wanted_pods(manifest, kind) if kind is not None and counted else None,
        group=None,
        shape=None,
        unmade=None,
        suspended=kind is not None and is_suspended(manifest, kind),
        release="" if owner is not None else release_of(raw["metadata"]),
        multikueue=is_managed_by_multikueue(manifest),
        identity=object_identity(raw["metadata"]),
        owner=owner,
        gangs=(groups or 0) if named else 0,
        together=groups or 0,
        scaled_below=kind is not None and kind.scaled_below and not idle,
        revisions=kind.revisions if kind is not None else "",
        replaced=_replaced_pods(manifest, kind, kinds) if kind is not None and kind.replaced else 0,
        runs_once=kind is not None and kind.once,
    )
    if ended or (pods.strange and seen.multikueue):
        return replace(seen, wanted=0)
    if pods.strange:
        return seen
    if not pods.parts:
        return replace(seen, wanted=0, shape=_NO_PODS) if counted else seen
    alone = replace(
        seen,
        wanted=sum(part.replicas for part in pods.parts),
        shape=max(pods.parts, key=lambda part: (gpus_of_pod(part.shape), part.replicas)).shape,
        unmade=read_admission_wait(resource, raw),
        containers=() if kind is None else observed_containers(manifest, kind),
    )
    if pods.shared and alone.shape is not None:  # a chart makes it, and its groups are not known by their manifest
        message = f"wants its pods in one domain of {pods.shared[0].key}, which is counted for manifests alone"
        return replace(alone, shape=replace(alone.shape, obstacle=message))
    gang = pods.gangs[0] if pods.gangs else None
    if gang is None or kind is None or kind.together is None or pods.domains:
        return alone
    if any(part.shape.obstacle or part.replicas % gang.groups for part in pods.parts):
        return alone
    return replace(
        alone,
        group=ObservedGroup(
            pods=tuple((part.shape, part.replicas // gang.groups) for part in pods.parts),
            size=gang.size,
            number=gang.groups if kind.together.counts else 0,
            least=-(-sum(part.start for part in pods.parts) // gang.groups),
        ),
    )


def _replaced_pods(manifest: Json, kind: WorkloadKind, kinds: Kinds) -> int:
    """Count the pods that an object had before what makes it began to replace it; 0 while it does not."""
    replicas = whole_number(str((manifest["metadata"].get("annotations") or {}).get(kind.replaced, "")))
    if not replicas:
        return 0
    return replicas * sum(pods_of_group(manifest, kind, place) or 0 for place in pod_template_sites(manifest, kinds))


def merge_group(seen: ObservedGroup | None, stated: ObservedGroup | None) -> ObservedGroup | None:
    """Return one gang: as its pods show it, if all exist, else as the object states it.

    A pod tells more than its template: it has the API server's defaults and tolerations. The minimum is stated by the
    object alone.
    """
    if seen is None or stated is None:
        return seen or stated
    if sum(number for _, number in seen.pods) < sum(number for _, number in stated.pods):
        return stated
    return replace(seen, least=stated.least)
