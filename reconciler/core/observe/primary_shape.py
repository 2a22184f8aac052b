"""What the pods of a template leave to clusters, told apart from what the primary has made of it.

Who saw them on the primary may not have said it, and the RuntimeClass there has had its part in what was seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.pod_needs import pods_in
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.capacity import ReplicaShape, WorkloadObservation
from reconciler.model.prerequisites import Category
from reconciler.model.scheduling import RuntimeClass
from reconciler.model.workload import WorkloadTemplate


def completed(
    seen: WorkloadObservation,
    template: WorkloadTemplate,
    kinds: Kinds,
    *,
    ranges: bool,
    classes: Mapping[str, RuntimeClass] | None = None,
) -> WorkloadObservation:
    """Add to a replica as it was seen what its template says of a RuntimeClass and of containers without requests.

    Only where replicas are missing, and where clusters may add anything for it: `ranges` tells that some have
    LimitRanges. What nobody can read stays unsaid. What the primary's own RuntimeClass, one of `classes`, has added is
    taken off, for it is no other cluster's.
    """
    shape = seen.shape
    if shape is None or not (seen.waiting or seen.asks or seen.wanted > seen.running):
        return seen
    if shape.unstated is None:
        named = any(one.category is Category.RUNTIME_CLASSES for one in template.prerequisites)
        if not named and not ranges:
            return seen
        shape = _with_template(shape, template, kinds)
    name = shape.unstated.runtime_class if shape.unstated is not None else ""
    found = (classes or {}).get(name)
    if found is not None and (found.node_selector or found.tolerations):
        shape = _without(shape, name, found, template, kinds)
    return seen if shape is seen.shape else replace(seen, shape=shape)


def _with_template(shape: ReplicaShape, template: WorkloadTemplate, kinds: Kinds) -> ReplicaShape:
    """Take what the pods leave that ask for most GPUs, as a replica does that is counted by one shape."""
    parts = pods_in(template.spec, kinds).parts
    found = max((part.shape for part in parts), key=gpus_of_pod, default=None)
    return shape if found is None else replace(shape, unstated=found.unstated)


def _without(
    shape: ReplicaShape, name: str, added: RuntimeClass, template: WorkloadTemplate, kinds: Kinds
) -> ReplicaShape:
    """Take off what a RuntimeClass has added, as far as no pods of the template that name it say it themselves."""
    parts = [part.shape for part in pods_in(template.spec, kinds).parts]
    own = [one for one in parts if one.unstated is not None and one.unstated.runtime_class == name]
    if not own:
        return shape
    labels = added.node_selector.items() - {item for one in own for item in one.node_selector.items()}
    said = {toleration for one in own for toleration in one.tolerations}
    return replace(
        shape,
        node_selector={key: value for key, value in shape.node_selector.items() if (key, value) not in labels},
        tolerations=tuple(one for one in shape.tolerations if one in said or one not in added.tolerations),
    )
