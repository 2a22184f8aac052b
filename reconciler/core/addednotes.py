"""What `explain` says of pods to which clusters add something when they are made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.core.admitted import admitted
from reconciler.core.growth import CandidateFinder
from reconciler.core.wholes import GangWorkload
from reconciler.core.wording import amounts, listed, plain
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.ids import WorkloadId
from reconciler.model.units import Resources


def additions(
    finder: CandidateFinder, workload: WorkloadId, shape: ReplicaShape | None, whole: GangWorkload | None
) -> Iterator[str]:
    """Say what the clusters of a workload add to its pods: to a replica of this shape, or to all that goes `whole`."""
    desired, told = finder.inputs.desired, dict[str, None]()
    template, policy = desired.templates[workload], desired.policies.get(workload)
    shapes = [shape] if shape is not None else []
    if whole is not None and not whole.unknown:
        shapes = [part.shape for part in whole.of(1).parts]
    for candidate in finder.order(workload) if policy is not None else ():
        seen = finder.inputs.observed.clusters.get(candidate.cluster)
        if policy is not None and seen is not None and candidate.cluster in desired.clusters:
            told |= dict.fromkeys(added(seen, (finder.shaped(template, policy, candidate, one) for one in shapes)))
    yield from told


def added(seen: ClusterObservation, shapes: Iterable[ReplicaShape]) -> Iterator[str]:
    """Say what a cluster adds to pods: to what they request, or to the labels that their nodes must have."""
    for shape in shapes:
        if shape.unstated is None:
            continue
        name = shape.unstated.runtime_class
        given = admitted(replace(shape, unstated=shape.unstated._replace(runtime_class="")), seen)
        there = admitted(shape, seen)
        more, by_class = _more(shape, given), _more(given, there)
        labels = sorted(there.node_selector.items() - shape.node_selector.items())
        if more:
            yield f"On {seen.cluster} LimitRanges give a pod {more} beyond what it requests, which counts."
        if by_class or labels:
            said = [f"adds {by_class} to a pod, which counts"] if by_class else []
            where = listed(plain(f"{key}={value}") for key, value in labels)
            said += [f"sends it to nodes with {where}"] if where else []
            yield f"On {seen.cluster} RuntimeClass {plain(name)} {', and '.join(said)}."


def _more(before: ReplicaShape, after: ReplicaShape) -> str:
    found = after.requests.minus(before.requests).amounts
    return listed(amounts(Resources(amounts={name: amount for name, amount in found.items() if amount})))
