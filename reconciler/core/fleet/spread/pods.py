"""The pods of a subset as they will be written, and their prerequisites.

Only the patched pod shows the effect of a patch: a patch may null a label in the node selector, but not a label that
required node affinity asks for. So the template is rendered, the subset is injected as for the commit, and the result
is read like any other pod.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from reconciler.core.capacity.admission_defaults import without_admission_defaults
from reconciler.core.capacity.pod_requirements import MALFORMED, pod_shape
from reconciler.core.engines.deployment import made_manifests, target_namespace
from reconciler.core.expressions import dialect, render
from reconciler.core.expressions.render import expression_strings
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.core.fleet.prerequisites import namespace_of, prerequisites
from reconciler.core.pods.pod_references import as_mapping, metadata_references, pod_references
from reconciler.core.spread.inject import inject_subset, placement_injection, selected_templates, target_indexes
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.included_objects import included_objects
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import read_pods
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.drafted_subsets import PatchShapes
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired, Workspace
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadTemplate
from reconciler.text.wording import sanitize


def with_changed_objects(
    template: WorkloadTemplate, own: DeploySpec, patched: DeploySpec, name: str, *, workspace: Workspace, kinds: Kinds
) -> tuple[Prerequisite, ...]:
    """Return the template's prerequisites, with those of its `own` objects replaced by those of the `patched` ones.

    `name` is named as the cause of new ones.
    """
    before = {_key(prerequisite): prerequisite for prerequisite in prerequisites(own, workspace, kinds)}
    after = {_key(prerequisite): prerequisite for prerequisite in prerequisites(patched, workspace, kinds)}
    kept = [
        prerequisite
        for prerequisite in template.prerequisites
        if _key(prerequisite) not in before or _key(prerequisite) in after
    ]
    new = [
        replace(prerequisite, by=f"{prerequisite.by} in {name}")
        for key, prerequisite in after.items()
        if key not in before
    ]
    return (*kept, *new)


def with_patch_references(
    template: WorkloadTemplate, subset: Subset, namespace: str, workspace: Workspace, kinds: Kinds
) -> tuple[Prerequisite, ...]:
    """Return the template's prerequisites and the references of a patch, if the pods themselves are unknown."""
    target = target_namespace(template.spec, workspace)
    present = {_key(prerequisite) for prerequisite in template.prerequisites}
    for manifest in made_manifests(template.spec, kinds, kept=True):
        present.update(included_objects(manifest, namespace_of(manifest, target)))
    named = (
        *pod_references(as_mapping(subset.patch.get("spec"))),
        *metadata_references(as_mapping(subset.patch.get("metadata"))),
    )
    references = dict.fromkeys(
        (category, f"{namespace}/{name}" if own and "/" not in name else name) for category, name, own in named
    )
    new = (
        Prerequisite(category=reference[0], name=reference[1], by=describe_subset(subset))
        for reference in references
        if reference not in present
    )
    return (*template.prerequisites, *new)


def _key(prerequisite: Prerequisite) -> tuple[Category, str]:
    return prerequisite.category, prerequisite.name


def describe_subset(subset: Subset) -> str:
    """Name a subset as the cause of a prerequisite."""
    return f"subset {sanitize(subset.name)}"


_SHAPE_PARTS = (
    ("requests",),
    ("node_selector", "node_terms"),
    ("tolerations",),
    ("devices",),
    ("rules",),
    ("obstacle",),
    ("who",),
    ("unstated",),
    ("admission",),
)
"""Fields of a shape that change together; a subset changes neither the size of a group nor its spread over nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedSubset:
    """The objects of a placement of a subset, without those of charts."""

    # The objects without the subset, and with it.
    own: DeploySpec
    spec: DeploySpec
    # None if templates differ, or one reads the number of replicas: shapes are then unknown in advance.
    shapes: PatchShapes | None = None


def render_subset(
    desired: Desired, template: WorkloadTemplate, placement: Placement, budget: EvaluationBudget
) -> RenderedSubset | None:
    """Render the objects of a placement of a subset, without charts; the template is as it is for the cluster.

    None if a chart creates the target of the spread, or if the template cannot be rendered.
    """
    workspace = desired.workspaces[placement.workload.workspace]
    context = render.Context(
        replicas=placement.replicas,
        cluster=desired.clusters[placement.cluster],
        placement=placement,
        workspace=workspace,
        template=template,
    )
    steps = tuple(step for step in template.spec.steps if step.type is not StepType.HELM)
    named = {step.name for step in steps if step.type is StepType.MANIFEST}
    manifests = tuple(manifest for manifest in template.spec.manifests if manifest.name in named)
    try:
        asked = placement_injection(desired, placement)
        own_spec = render.render(replace(template.spec, helm=(), manifests=manifests, steps=steps), context, budget)
    except InvalidInput:
        return None
    objects = [manifest.manifest for manifest in own_spec.manifests]
    alone = len(manifests) == len(template.spec.steps)
    if asked is None or not _targets_complete(objects, asked.spread, alone=alone):
        return None
    chosen = target_indexes(objects, asked.spread)
    plain = replace(asked.subset, patch={})
    bare = replace(asked, spread=replace(asked.spread, subsets=(plain,)), subset=plain)
    try:
        for_subset = _inject(objects, chosen, asked, workspace, desired.kinds)
        unpatched = _inject(objects, chosen, bare, workspace, desired.kinds)
    except InvalidInput:
        return None
    parts = zip(own_spec.manifests, for_subset, strict=True)
    spec = replace(own_spec, manifests=tuple(replace(resource, manifest=manifest) for resource, manifest in parts))
    roles = {index: selected_templates(objects[index], asked.spread, desired.kinds) for index in chosen}
    if any(
        _reads(manifests[index].manifest, pod_path, "replicas")
        for index, pod_paths in roles.items()
        for pod_path in pod_paths
    ):
        return RenderedSubset(own=own_spec, spec=spec)
    namespace = target_namespace(spec, workspace)
    own, before, after = (
        _shape(resource, roles, desired.kinds, namespace) for resource in (objects, unpatched, for_subset)
    )
    if own is None or before is None or after is None:
        return RenderedSubset(own=own_spec, spec=spec)
    return RenderedSubset(own=own_spec, spec=spec, shapes=PatchShapes(own=own, injected=before, patched=after))


def patched_shape(
    seen: ReplicaShape, narrowed: ReplicaShape, shapes: PatchShapes, *, labels: bool = False
) -> ReplicaShape | None:
    """Return the shape of a replica that a subset's patch changes; None if it cannot be determined.

    `seen` is the replica on the primary, `narrowed` the same with all that the subset injects but its patch. Parts that
    the primary shows as the template states them become what is written. Other parts stay as seen, if the patch leaves
    them alone. A patch that changes `labels` may change the pods that pod rules select.
    """
    changes: dict[str, Any] = {}
    bare = without_admission_defaults(seen)
    stated = bare if (bare.requests, bare.unstated) == (shapes.own.requests, shapes.own.unstated) else seen
    for part in _SHAPE_PARTS:
        shown, own, before, after = (
            tuple(getattr(shape, field) for field in part)
            for shape in (stated, shapes.own, shapes.injected, shapes.patched)
        )
        if part == ("who",) and not seen.who:
            continue
        if part == ("unstated",) and seen.unstated is None:
            shown = own  # only the template states it
        if part == ("admission",):
            shown = own  # what is deployed counts, not what the primary made of it
        if shown == own:
            changes |= zip(part, after, strict=True)
        elif before != after or (labels and part == ("rules",) and seen.rules is not None):
            return None
    return replace(narrowed, **changes)


def _targets_complete(objects: Sequence[Json], spread: WorkloadSpread, *, alone: bool) -> bool:
    """Return whether no chart or command can create the target: only manifests exist, or they contain it."""
    chosen = target_indexes(objects, spread)
    return bool(chosen) and (alone or all(_name(objects[index]) == spread.target.name for index in chosen))


def _name(manifest: Json) -> Json:
    return at(manifest, ("metadata", "name"))


def _inject(
    objects: Sequence[Json], chosen: Collection[int], asked: Injection, workspace: Workspace, kinds: Kinds
) -> list[Json]:
    """Inject the subset into the chosen objects. Raises InvalidInput as `injected` does."""
    return [
        inject_subset(manifest, asked, workspace, kinds) if index in chosen else manifest
        for index, manifest in enumerate(objects)
    ]


def _reads(manifest: Json, field_path: Path, name: str) -> bool:
    """Return whether an expression below a path reads a name of the context."""
    return any(
        name in dialect.read_expression(text).names for _, text in expression_strings((), at(manifest, field_path))
    )


def _shape(
    objects: Sequence[Json], roles: Mapping[int, tuple[Path, ...]], kinds: Kinds, namespace: str
) -> ReplicaShape | None:
    """Return the common shape of the pods of some templates; None if they differ, or one cannot be read."""
    shapes: dict[Hashable, ReplicaShape] = {}
    try:
        others = tuple(_with_namespace(pods_made, namespace) for pods_made in objects)
        for index, pod_paths in roles.items():
            for pods_made in read_pods(others[index], kinds, others):
                if tuple(map(str, pods_made.place.loc[:-1])) in pod_paths:
                    shape = pod_shape(pods_made, others[index], others)
                    shapes[shape.likeness, shape.who] = shape
    except MALFORMED:
        return None
    return next(iter(shapes.values())) if len(shapes) == 1 else None


def _with_namespace(manifest: Json, namespace: str) -> Json:
    """Add the target namespace to an object without one."""
    metadata = at(manifest, ("metadata",)) or {}
    return {**manifest, "metadata": {"namespace": namespace, **metadata}}
