"""The pod sets of an object: pods that Kueue admits together, and that the topology annotations of their template bind.

Which pods are one set is stated here alone, as the reconcilers of kubernetes-sigs/kueue at ff69552 make them
(pkg/controller/jobs):

- The pods of one template are a set: all of an object, or of each group of a LeaderWorkerSet, since Kueue admits a set
  group by group. So a Job and a StatefulSet have one set, a JobSet has one for each replicated job, a training job one
  for each role, and a Ray cluster one for the head and one for each worker group.
- Pods of different roles that are made from the same template are one set, as the leader and the workers of a
  LeaderWorkerSet without a leaderTemplate.
- Each pod is a set of its own where Kueue admits pods one by one: those of a Deployment, and of a kind that Kueue has
  no integration for.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.pods.pod_references import as_mapping
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import PodTemplateSite, TemplatePods, group_count
from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class KueuePodSet:
    """Pods that are admitted together. An object with several groups has such a set in each."""

    parts: tuple[tuple[int, int], ...]
    """The position of each template among those of the object, with the pods of one set that it makes."""
    annotations: Mapping[str, Json]
    """The annotations of their pod template."""

    @property
    def size(self) -> int:
        """The pods of one set."""
        return sum(number for _, number in self.parts)


def kueue_pod_sets(manifest: Mapping[str, Json], kinds: Kinds, pods: Sequence[TemplatePods]) -> tuple[KueuePodSet, ...]:
    """Return the pod sets of one group of an object, in the order of its templates; none where pods are single ones.

    `pods` are all pods of the object, as `workloads.pods.read_pods` reads them.
    """
    kind = kind_of(manifest, kinds)
    if kind is None or kind.one_by_one or kind.unqueued:
        return ()
    groups = max(1, group_count(manifest, kind) or 1)
    parts: dict[Hashable, list[tuple[int, int]]] = {}
    for position, made in enumerate(pods):
        if made.replicas:
            parts.setdefault(made.place.loc or position, []).append((position, made.replicas // groups))
    return tuple(
        KueuePodSet(parts=tuple(made_of), annotations=template_annotations(pods[made_of[0][0]].place, manifest))
        for made_of in parts.values()
    )


def template_annotations(place: PodTemplateSite, manifest: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the annotations of a pod template, or those beside a pod spec that stands without metadata."""
    spec_path = tuple(map(str, place.loc))
    beside = spec_path[-1:] in (("spec",), ("podSpec",))
    return object_annotations(as_mapping(at(manifest, spec_path[:-1] if beside else spec_path)))


def object_annotations(value: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the annotations of an object, or of a template of one."""
    return as_mapping(at(value, ("metadata", "annotations"))) or as_mapping(value.get("annotations"))
