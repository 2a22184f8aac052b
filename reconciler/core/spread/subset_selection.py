"""Clusters and nodes that a WorkloadSpread subset selects, and the shape of its replicas.

A requirement whose key is a label of a Cluster, or on the field ``metadata.name``, selects clusters; any other selects
nodes, narrows the shape of a replica, and goes into its pod template. The order is OpenKruise's: first tolerations,
then the required term beside every existing term, then the patch, which wins
(docs/background/upstream/workloadspread.md, "Changes to a pod"). The effect of a patch is read off the patched template
where that is known (`fleet.spread.drafts`). A shape alone does not show what becomes of its requests, or of a label
that may come from its affinity: such a patch fits nowhere, with that reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.capacity.cluster_cache import ClusterCache
from reconciler.core.pods.gpu_parts import gpu_part_obstacle
from reconciler.core.pods.pod_shape import node_terms, tolerations
from reconciler.core.pods.strategic_merge import Unmergeable, merge
from reconciler.core.pods.taints import scheduling_toleration
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.requirements import Requirement, Requirements, all_met, equals
from reconciler.model.kubernetes.scheduling import Labels
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.policy import Cluster
from reconciler.model.workload import Json

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_UNSUPPORTED = (
    "hostNetwork",
    "nodeName",
    "overhead",
    "resourceClaims",
    "resources",
    "runtimeClassName",
    "topologySpreadConstraints",
)
"""Pod fields that decide where it fits, and that a shape cannot express."""
_MAX_KEY_SETS = 100
"""Sets of label keys in the cache of one cluster, as preferred terms name them."""
_NODE_LABELS = ClusterCache[dict[tuple[str, ...], Sequence[Mapping[str, str]]]](lambda _: {})
"""Distinct node labels of each cluster by their keys."""


def selects_cluster(subset: Subset, cluster: Cluster) -> bool:
    """Return whether a subset selects a cluster by its labels and its name."""
    term = subset.required
    if term is None:
        return True
    return not term.is_empty and term.given(cluster.labels, cluster.name) is not None


def allows_cluster(subset: Subset, cluster: Cluster) -> bool:
    """Return whether a subset allows replicas on every node of a cluster: a set that runs in groups is not narrowed."""
    closed = subset.most is not None and not subset.most.number
    return selects_cluster(subset, cluster) and not node_requirements(subset, cluster) and not closed


def node_requirements(subset: Subset, cluster: Cluster) -> tuple[Requirement, ...]:
    """List the requirements of a subset on the nodes of one of its clusters."""
    return () if subset.required is None else subset.required.undecided(cluster.labels)


def has_required_node(subset: Subset, cluster: Cluster, seen: ClusterObservation | None) -> bool:
    """Return whether a cluster has a node that the subset requires, ready or not, if it requires any."""
    requirements = node_requirements(subset, cluster)
    if not requirements or seen is None:
        return not requirements
    labelled = [{**pool.labels, **node.labels} for pool in seen.pools for node in pool.nodes]
    labelled += [{**node.labels} for node in seen.closed]
    return any(all_met(requirements, labels) for labels in labelled)


def holds_cluster(subset: Subset, cluster: Cluster, seen: ClusterObservation | None) -> bool:
    """Return whether replicas on a cluster may be of a subset, which selects it and has a node there."""
    return selects_cluster(subset, cluster) and has_required_node(subset, cluster, seen)


def preference_weight(subset: Subset, cluster: Cluster, seen: ClusterObservation | None) -> int:
    """Sum the weights of preferred terms that a cluster meets, with the labels of its best node over its own."""
    if not subset.preferred:
        return 0
    keys = tuple(sorted({label.key for preferred in subset.preferred for label in preferred.term.labels}))
    labelled = _node_labels(seen, keys) if seen is not None else ()
    return max(
        sum(
            preferred_term.weight
            for preferred_term in subset.preferred
            if preferred_term.term.are_met({**cluster.labels, **labels}, cluster.name)
        )
        for labels in (labelled or [{}])
    )


def _node_labels(seen: ClusterObservation, keys: tuple[str, ...]) -> Sequence[Mapping[str, str]]:
    """List the distinct values of these labels among the nodes of a cluster."""
    cache = _NODE_LABELS.of(seen)
    made = cache.get(keys)
    if made is None:
        if len(cache) >= _MAX_KEY_SETS:
            cache.clear()
        node_labels = {
            tuple((key, node.labels.get(key, pool.labels.get(key))) for key in keys)
            for pool in seen.pools
            for node in pool.nodes
        }
        made = cache[keys] = tuple({key: value for key, value in labels if value is not None} for labels in node_labels)
    return made


def selects_pods(spread: WorkloadSpread, labels: Mapping[str, str]) -> bool:
    """Return whether a spread's selector matches a pod's labels; without a selector every pod matches."""
    selector = (equals(key, value) for key, value in spread.selector.items())
    return all_met((*selector, *spread.selector_expressions), labels)


def with_subset_terms(shape: ReplicaShape, subset: Subset, cluster: Cluster) -> ReplicaShape:
    """Return a replica's shape with a subset's tolerations and node requirements, without its patch."""
    requirements = node_requirements(subset, cluster)
    terms = shape.node_terms
    if requirements:
        terms = tuple(term.also(requirements) for term in terms or (Requirements(),))
    heeded = tuple(filter(None, map(scheduling_toleration, subset.tolerations)))
    return replace(shape, node_terms=terms, tolerations=shape.tolerations + heeded)


def narrow_shape(shape: ReplicaShape, subset: Subset, cluster: Cluster, *, cause: str = "") -> ReplicaShape:
    """Return the shape of a replica of a subset on one of its clusters, as far as the shape alone shows it.

    `cause` says why the rendered pods of the subset do not show it, for the obstacle of what cannot be counted.
    """
    narrowed = with_subset_terms(shape, subset, cluster)
    if not subset.patch:
        return narrowed
    try:
        narrowed = _patch_labels(narrowed, subset.patch, subset.name)
        spec = subset.patch.get("spec")
        return _patch_spec(narrowed, spec, subset.name, cause) if spec else narrowed
    except (AttributeError, KeyError, TypeError, Unmergeable):
        return replace(narrowed, obstacle=f"the patch of subset {subset.name} is no part of a pod")


def _patch_labels(shape: ReplicaShape, patch: Mapping[str, Json], name: str) -> ReplicaShape:
    """Set the labels of a patch on the pods that rules match; labels that its own rules select are refused."""
    rules = shape.rules
    if "metadata" not in patch:
        return shape
    who = tuple(who._replace(labels=_labels(dict(who.labels), patch)) for who in shape.who)
    shape = replace(shape, who=who, obstacle=shape.obstacle or gpu_part_obstacle((), patch["metadata"]))
    if rules is None:
        return shape
    before = dict(rules.labels)
    after = dict(_labels(before, patch))
    asked = {requirement.key for rule in rules.all for requirement in rule.selector}
    changed = sorted(key for key in asked if before.get(key) != after.get(key))
    if changed:
        why = f"subset {name} patches metadata.labels.{changed[0]}, which rules about its pods go by"
        return replace(shape, obstacle=shape.obstacle or why)
    return replace(shape, rules=replace(rules, labels=tuple(sorted(after.items()))))


def _labels(before: Mapping[str, str], patch: Mapping[str, Json]) -> Labels:
    """Return a pod's labels after a patch."""
    pod = merge({"metadata": {"labels": {**before}}}, {"metadata": patch["metadata"]})
    return tuple(sorted(((pod.get("metadata") or {}).get("labels") or {}).items()))


def _patch_spec(shape: ReplicaShape, spec: Json, name: str, cause: str) -> ReplicaShape:
    """Apply the node settings of a patch; lists without a merge key are replaced whole, as in Kubernetes."""
    unread = next(iter((*_unsupported_fields(spec), *_conflicting_labels(spec, shape))), "")
    if unread:
        obstacle = f"subset {name} patches {unread}, which cannot be counted here{cause and f': {cause}'}"
        return replace(shape, obstacle=shape.obstacle or obstacle)
    own = {"spec": {"nodeSelector": dict(shape.node_selector)}}
    selector = merge(own, {"spec": {"nodeSelector": spec.get("nodeSelector") or {}}})["spec"]["nodeSelector"]
    kept = tuple(tolerations(spec)) if "tolerations" in spec else shape.tolerations
    required = _node_affinity(spec).get(_REQUIRED)
    terms = node_terms(required) if required else None
    return replace(
        shape,
        node_selector=dict(sorted(selector.items())),
        node_terms=shape.node_terms if terms is None else terms,
        tolerations=kept,
    )


def _unsupported_fields(spec: Mapping[str, Json]) -> Iterator[str]:
    """Name the patched fields that decide where a replica fits and cannot be evaluated here."""
    yield from (f"spec.{field}" for field in _UNSUPPORTED if field in spec)
    if any(str(key).startswith("$") for key in spec):
        yield "spec by a directive"
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            called = f"{field} {container.get('name', '')}"
            if "resources" in container:
                yield f"the resources of {called}"
            if "restartPolicy" in container:
                yield f"the restartPolicy of {called}"
            if any("hostPort" in port for port in container.get("ports") or ()):
                yield f"the host ports of {called}"
    affinity = spec.get("affinity") or {}
    yield from (f"spec.affinity.{field}" for field in ("podAffinity", "podAntiAffinity") if field in affinity)
    for field in ("nodeSelector", "tolerations", "affinity"):
        if _has_directive(spec.get(field)):
            yield f"spec.{field} by a directive"


def _conflicting_labels(spec: Mapping[str, Json], shape: ReplicaShape) -> Iterator[str]:
    """Name the labels that a patch sets to other values than the shape, which may have them from affinity."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if shape.node_selector.get(key, value) != value:
            yield f"spec.nodeSelector.{key}"


def _has_directive(value: Json) -> bool:
    """Return whether a strategic merge patch contains a merge directive."""
    if isinstance(value, Mapping):
        return any(str(key).startswith("$") or _has_directive(item) for key, item in value.items())
    return isinstance(value, list) and any(_has_directive(item) for item in value)


def _node_affinity(spec: Mapping[str, Json]) -> Mapping[str, Json]:
    return (spec.get("affinity") or {}).get("nodeAffinity") or {}
