"""What clusters add to the pods of a workload, and what they may lack of what it refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconciler.core.capacity.admission_defaults import with_admission_defaults
from reconciler.core.decide.assign.assessments import replica_shape
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.units import gang_of
from reconciler.core.workloads.cluster_provides import describe_undeclared
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.ids import WorkloadId
from reconciler.model.units import Resources
from reconciler.text.wording import amounts, join_names, sanitize


def cluster_additions(finder: CandidateFinder, workload: WorkloadId) -> Iterator[str]:
    """Describe the additions of a workload's clusters to its pods: to those of its gang, else to its own."""
    inputs, sentences = finder.inputs, dict[str, None]()
    desired, gang, shapes = inputs.desired, gang_of(finder.inputs, workload), list[ReplicaShape]()
    policy, shape = desired.policies.get(workload), replica_shape(inputs, workload)
    if policy is None:
        return
    if shape is not None:
        shapes = [shape]
    if gang is not None and not gang.unknown:
        shapes = [part.shape for part in gang.of(1).parts]
    for candidate in finder.order(workload):
        seen = inputs.observed.clusters.get(candidate.cluster)
        if seen is not None and candidate.cluster in desired.clusters:
            template = desired.templates[workload]
            written = (finder.shaped(template, policy, candidate, own) for own in shapes)
            sentences |= dict.fromkeys(describe_additions(seen, written))
    yield from sentences


def describe_additions(seen: ClusterObservation, shapes: Iterable[ReplicaShape]) -> Iterator[str]:
    """Describe the additions of a cluster to pods: to their requests, or to the labels of their nodes."""
    for shape in shapes:
        if shape.unstated is None:
            continue
        name = shape.unstated.runtime_class
        given = with_admission_defaults(replace(shape, unstated=shape.unstated._replace(runtime_class="")), seen)
        final = with_admission_defaults(shape, seen)
        more, by_class = _describe_increase(shape, given), _describe_increase(given, final)
        labels = sorted(final.node_selector.items() - shape.node_selector.items())
        if more:
            yield f"On {seen.cluster} LimitRanges give a pod {more} beyond what it requests, which counts."
        if by_class or labels:
            effects = [f"adds {by_class} to a pod, which counts"] if by_class else []
            where = join_names(sanitize(f"{key}={value}") for key, value in labels)
            effects += [f"sends it to nodes with {where}"] if where else []
            yield f"On {seen.cluster} RuntimeClass {sanitize(name)} {', and '.join(effects)}."


def _describe_increase(before: ReplicaShape, after: ReplicaShape) -> str:
    increase = after.requests.minus(before.requests).amounts
    return join_names(amounts(Resources(amounts={name: amount for name, amount in increase.items() if amount})))


def describe_prerequisites(finder: CandidateFinder, workload: WorkloadId) -> Iterator[str]:
    """Describe references of a workload that its clusters may lack."""
    desired, observed = finder.inputs.desired, finder.inputs.observed
    if workload not in desired.policies:
        return
    template, policy, sentences = desired.templates[workload], desired.policies[workload], dict[str, None]()
    for candidate in finder.order(workload):
        cluster = desired.clusters.get(candidate.cluster)
        if cluster is not None:
            places = [(cluster, observed.clusters.get(candidate.cluster))]
            sentences |= dict.fromkeys(describe_undeclared(places, finder.prerequisites(template, policy, candidate)))
    yield from sentences
