"""What the pods of a template leave to clusters, where who saw them on the primary has not said it."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.gpushape import gpus_of_pod
from reconciler.core.needs import pods_in
from reconciler.core.workloadkinds import Kinds
from reconciler.model.capacity import ReplicaShape, WorkloadObservation
from reconciler.model.prerequisites import Category
from reconciler.model.workload import WorkloadTemplate


def completed(
    seen: WorkloadObservation, template: WorkloadTemplate, kinds: Kinds, *, ranges: bool
) -> WorkloadObservation:
    """Add to a replica as it was seen what its template says of a RuntimeClass and of containers without requests.

    Only where replicas are missing, and where clusters may add anything for it: `ranges` tells that some have
    LimitRanges. What nobody can read stays unsaid.
    """
    shape = seen.shape
    if shape is None or shape.unstated is not None or not (seen.waiting or seen.asks or seen.wanted > seen.running):
        return seen
    named = any(one.category is Category.RUNTIME_CLASSES for one in template.prerequisites)
    if not named and not ranges:
        return seen
    return replace(seen, shape=_with_template(shape, template, kinds))


def _with_template(shape: ReplicaShape, template: WorkloadTemplate, kinds: Kinds) -> ReplicaShape:
    """Take what the pods leave that ask for most GPUs, as a replica does that is counted by one shape."""
    parts = pods_in(template.spec, kinds).parts
    found = max((part.shape for part in parts), key=gpus_of_pod, default=None)
    return shape if found is None else replace(shape, unstated=found.unstated)
