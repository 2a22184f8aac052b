"""The shape of a replica as another cluster would make it, from its pods on the primary and from its template.

An observation of the primary may lack what the template leaves to clusters (requests, RuntimeClass overhead), and has
what the primary's own RuntimeClass added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import is_

from reconciler.core.capacity.included_admission import brings_bounds
from reconciler.core.capacity.pod_requirements import largest_shape, pods_of_spec
from reconciler.core.engines.deployment import target_namespace
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.model.capacity import ReplicaShape, WorkloadObservation
from reconciler.model.cluster import Category
from reconciler.model.kubernetes.admission import PodAdmission
from reconciler.model.kubernetes.scheduling import RuntimeClass
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeploySpec, WorkloadTemplate


def with_primary_shape(
    seen: WorkloadObservation,
    template: WorkloadTemplate,
    kinds: Kinds,
    *,
    ranges: bool,
    workspace: Workspace,
    classes: Mapping[str, RuntimeClass] | None = None,
    bounded: bool = False,
) -> WorkloadObservation:
    """Complete the shape of a replica where replicas are missing.

    The template's RuntimeClass and containers without requests are added where clusters may add anything for them:
    `ranges` tells that some cluster has LimitRanges. Node selectors and tolerations of the primary's own RuntimeClass,
    one of `classes`, are taken off, for other clusters add their own. Where some cluster is `bounded` by quotas or
    LimitRanges, or the template brings some, the shape gets what those look at as the template has it, where that is
    known: it is the template that is deployed.
    """
    shape = seen.shape
    # 1. No replica is missing, so that the shape is not needed.
    if shape is None or not (seen.waiting or seen.asks or seen.wanted > seen.running):
        return seen
    # 2. The observation lacks the values that the template leaves to clusters.
    admission = template_admission(template, workspace, kinds)
    brings = brings_bounds(admission)
    if shape.unstated is None:
        named = any(prerequisite.category is Category.RUNTIME_CLASSES for prerequisite in template.prerequisites)
        shape = _with_template(shape, template, kinds) if named or ranges or brings else shape
    # 3. The primary's RuntimeClass has added to the pods that were seen.
    name = shape.unstated.runtime_class if shape.unstated is not None else ""
    runtime_class = (classes or {}).get(name)
    if runtime_class is not None and (runtime_class.node_selector or runtime_class.tolerations):
        shape = _without(shape, name, runtime_class, template, kinds)
    # 4. Quotas or LimitRanges of some cluster, or those that come along, may refuse the pods.
    if admission and (bounded or brings):
        shape = replace(shape, admission=admission)
    return seen if shape is seen.shape else replace(seen, shape=shape)


_KNOWN: dict[int, tuple[tuple[DeploySpec, Workspace, Kinds], tuple[PodAdmission, ...]]] = {}
"""The answers of `template_admission` with what they are from, by the identity of the spec. Losing them costs time."""
_MOST_KNOWN = 16_384


def template_admission(template: WorkloadTemplate, workspace: Workspace, kinds: Kinds) -> tuple[PodAdmission, ...]:
    """Return what quotas and LimitRanges look at in the pods that stand for a replica; empty where it is unknown."""
    basis, known = (template.spec, workspace, kinds), _KNOWN.get(id(template.spec))
    if known is not None and all(map(is_, known[0], basis)):
        return known[1]
    largest = largest_shape(template.spec, kinds, target_namespace(template.spec, workspace))
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    answer = () if largest is None else largest.admission
    _KNOWN[id(template.spec)] = basis, answer
    return answer


def _with_template(shape: ReplicaShape, template: WorkloadTemplate, kinds: Kinds) -> ReplicaShape:
    """Add what the template leaves to clusters."""
    largest = largest_shape(template.spec, kinds)
    return shape if largest is None else replace(shape, unstated=largest.unstated)


def _without(
    shape: ReplicaShape, name: str, added: RuntimeClass, template: WorkloadTemplate, kinds: Kinds
) -> ReplicaShape:
    """Take off what a RuntimeClass has added, unless pods of the template that name it ask for it themselves."""
    parts = [part.shape for part in pods_of_spec(template.spec, kinds).parts]
    named = [part for part in parts if part.unstated is not None and part.unstated.runtime_class == name]
    if not named:
        return shape
    labels = added.node_selector.items() - {item for part in named for item in part.node_selector.items()}
    own = {toleration for part in named for toleration in part.tolerations}
    return replace(
        shape,
        node_selector={key: value for key, value in shape.node_selector.items() if (key, value) not in labels},
        tolerations=tuple(
            toleration for toleration in shape.tolerations if toleration in own or toleration not in added.tolerations
        ),
    )
