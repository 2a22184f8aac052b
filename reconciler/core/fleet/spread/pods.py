"""The pods of a subset as they will be written, and their prerequisites.

Only the patched pod shows the effect of a patch: a patch may null a label in the node selector, but not a label that
required node affinity asks for. So the template is rendered, the subset is injected as for the commit, and the result
is read like any other pod.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reconciler.core.capacity.admission_defaults import without_admission_defaults
from reconciler.core.capacity.pod_requirements import MALFORMED, pod_shape
from reconciler.core.engines.deployment import made_manifests, target_namespace
from reconciler.core.expressions import dialect, render
from reconciler.core.expressions.render import expression_strings, reads_variable
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.core.fleet.prerequisites import namespace_of, prerequisites
from reconciler.core.fleet.sources.patches import PatchedTemplates, indexes_for
from reconciler.core.ledger.lifecycle import new_placement
from reconciler.core.pods.pod_references import as_mapping, metadata_references, pod_references
from reconciler.core.spread.inject import inject_subset, placement_injection, selected_templates, target_indexes
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.spread.subset_selection import narrow_shape, node_requirements, with_subset_terms
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.included_objects import included_objects
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import read_pods
from reconciler.errors import InvalidInput
from reconciler.model.bounds import SUBSET_WORK
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Category, Prerequisite
from reconciler.model.ids import WorkloadId, WorkspaceName
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.placement import Placement
from reconciler.model.policy import BurstPolicy, Cluster, Desired, Workspace
from reconciler.model.units import Resources
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
)
"""Fields of a shape that change together; a subset changes neither the size of a group nor its spread over nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchShapes:
    """The shape of a template's pods in three states of injection."""

    # As the template states it.
    own: ReplicaShape
    # With all that the subset injects but its patch.
    injected: ReplicaShape
    # With the patch as well.
    patched: ReplicaShape


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedSubset:
    """The objects of a placement of a subset, without those of charts."""

    # The objects without the subset, and with it.
    own: DeploySpec
    spec: DeploySpec
    # None if templates differ, or one reads the number of replicas: shapes are then unknown in advance.
    shapes: PatchShapes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsetObjects:
    """The prerequisites and shapes of the objects of a subset."""

    # The objects that a cluster must have first.
    needed: tuple[Prerequisite, ...]
    # None where they are unknown.
    shapes: PatchShapes | None
    # Whether a later pass renders them, since the bound of their workspace is used up.
    untried: bool = False


_DRAFT_STEPS, _VALUE_STEPS = 3_000, 25
"""Microseconds that a draft takes beside its expressions, and for each unit that its manifests weigh: the subset is
injected twice, and each result is checked."""

_MOMENTS = 10_000
"""Most counts of work that are kept: a pass needs those of its own moment, and a preview may look at another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _TemplateTraits:
    """What is known of a template before it is rendered."""

    reads_cluster: bool
    reads_placement: bool
    # What a draft takes beside its expressions.
    steps: int

    @classmethod
    def of(cls, spec: DeploySpec) -> _TemplateTraits:
        weight = EvaluationBudget(sys.maxsize)
        weight.weigh([resource.manifest for resource in spec.manifests])
        return cls(
            reads_cluster=reads_variable(spec, "cluster"),
            reads_placement=reads_variable(spec, "placement"),
            steps=_DRAFT_STEPS + _VALUE_STEPS * weight.spent,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubsetDraft:
    """A rendered subset."""

    objects: SubsetObjects
    # None where it is the same at every moment.
    moment: datetime | None
    # What it has taken of the bound of its workspace.
    steps: int


@dataclass(slots=True, kw_only=True)
class _Turn:
    """The drafts of a workspace that are asked for at one moment, and those of them that are replaced."""

    moment: datetime
    due: frozenset[Hashable]
    # Those that were asked for before, the first first; of those that were due, only if they were asked for then.
    before: dict[Hashable, None]
    asked: dict[Hashable, None] = field(default_factory=dict)
    has_replaced: bool = False

    def following(self) -> dict[Hashable, None]:
        """Return the drafts that take turns at the next moment."""
        # A preview asks for few, and takes no turn from the others.
        lapsed = self.due if self.has_replaced else frozenset[Hashable]()
        return {**{key: None for key in self.before if key not in lapsed}, **self.asked}


class SubsetDrafts:
    """The rendered subsets of the workloads of one fleet, each rendered once for equivalent clusters.

    Templates that read their placement, which has a name and times of its own, are rendered again for each moment.
    All drafts of a workspace share `SUBSET_WORK` at one moment. Beyond it, an older draft is taken, and where there is
    none, the pods are untried. Older drafts are replaced out of half of it, the oldest first, so that the others are
    made in time; one that takes more than that half is not replaced.
    """

    def __init__(self, desired: Desired, patched: PatchedTemplates) -> None:
        """Start without rendered subsets; the objects of a cluster are those that `patched` has for it."""
        self._desired = desired
        self._patched = patched
        self._traits: dict[tuple[WorkloadId, tuple[int, ...]], _TemplateTraits] = {}
        self._made: dict[tuple[Hashable, ...], _SubsetDraft] = {}
        self._unknown: dict[tuple[WorkloadId, tuple[int, ...], str], SubsetObjects] = {}
        self._spent: Counter[tuple[WorkspaceName, datetime]] = Counter()
        self._turns: dict[WorkspaceName, _Turn] = {}

    def follow(self, before: SubsetDrafts) -> None:
        """Take over the drafts of workloads that are rendered from the same as in an earlier fleet, and their turns.

        Each source commit makes a fleet: without this, what comes last in a workspace would never be rendered where
        commits come faster than it takes to render all of it.
        """
        now, then = self._desired, before._desired
        if (now.clusters, now.workspaces, now.kinds) != (then.clusters, then.workspaces, then.kinds):
            return
        same = {
            workload
            for workload, template in now.templates.items()
            if template == then.templates.get(workload) and now.policies.get(workload) == then.policies.get(workload)
        }
        self._made = {key: made for key, made in before._made.items() if key[0] in same}
        self._spent, self._turns = before._spent, before._turns

    def needed(
        self, template: WorkloadTemplate, policy: BurstPolicy, subset: Subset, cluster: Cluster, *, now: datetime
    ) -> tuple[Prerequisite, ...]:
        """Return the prerequisites of a subset on one of its clusters."""
        made = self._of(template, policy, subset, cluster, now)
        return self._patched.prerequisites(template, cluster) if made is None else made.needed

    def is_untried(
        self, template: WorkloadTemplate, policy: BurstPolicy, subset: Subset, cluster: Cluster, *, now: datetime
    ) -> bool:
        """Return whether a later moment renders a subset: its `shape` and what is `needed` are not final."""
        made = self._of(template, policy, subset, cluster, now)
        return made is not None and made.untried

    def allow_more(self) -> None:
        """Give all workspaces their bound again, as at a next moment."""
        self._spent.clear()

    def shape(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        subset: Subset,
        cluster: Cluster,
        seen: ReplicaShape,
        *,
        now: datetime,
    ) -> ReplicaShape:
        """Return the shape of a replica of a subset on one of its clusters; `seen` is its shape on the primary."""
        made = self._of(template, policy, subset, cluster, now)
        if made is not None and made.shapes is not None:
            labels = "metadata" in subset.patch
            shape = patched_shape(seen, with_subset_terms(seen, subset, cluster), made.shapes, labels=labels)
            if shape is not None:
                return shape
        return narrow_shape(seen, subset, cluster)

    def _of(
        self, template: WorkloadTemplate, policy: BurstPolicy, subset: Subset, cluster: Cluster, now: datetime
    ) -> SubsetObjects | None:
        """Return the objects of a subset on one of its clusters; None if the subset has no patch."""
        workload, spread = template.workload, policy.spread
        if not subset.patch or spread is None:
            return None
        patches = indexes_for(template, cluster)
        traits = self._traits.get((workload, patches))
        if traits is None:
            traits = _TemplateTraits.of(self._patched.template(template, cluster).spec)
            self._traits[workload, patches] = traits
        own = cluster.name if traits.reads_cluster or traits.reads_placement else ""
        moment = now if traits.reads_placement else None
        key = workload, patches, subset.name, node_requirements(subset, cluster), own
        made = self._made.get(key)
        spent, half = self._spent_at(template, now), SUBSET_WORK.most // 2
        is_due = moment is not None and self._is_due(template.workspace, key, moment)
        if made is not None and (made.moment == moment or spent >= half or not is_due):
            return made.objects
        if spent >= SUBSET_WORK.most:
            return replace(self._without_pods(template, spread, subset, cluster), untried=True)
        placement = new_placement(
            template,
            policy,
            self._desired,
            now,
            cluster=cluster.name,
            replicas=1,
            shape=ReplicaShape(requests=Resources()),
            subset=subset.name,
        )
        budget = EvaluationBudget()
        try:
            objects = self._draft(template, spread, subset, placement, budget)
        finally:
            steps = budget.spent + budget.compiled + traits.steps
            self._spend(template, now, steps)
        self._made[key] = _SubsetDraft(objects=objects, moment=moment, steps=steps)
        if is_due:
            self._turns[template.workspace].has_replaced = True
        return objects

    def _is_due(self, workspace: WorkspaceName, key: Hashable, moment: datetime) -> bool:
        """Note that a draft is asked for at a moment, and return whether it is among the oldest, which are replaced."""
        turn = self._turns.get(workspace)
        if turn is None or turn.moment != moment:
            waiting = {} if turn is None else turn.following()
            due, half, made = set[Hashable](), SUBSET_WORK.most // 2, self._made
            left = half
            for each in sorted(
                (each for each in waiting if each in made), key=lambda each: made[each].moment or moment
            ):
                if left > 0 and made[each].steps <= half:
                    due.add(each)
                    left -= made[each].steps
            turn = self._turns[workspace] = _Turn(moment=moment, due=frozenset(due), before=waiting)
        turn.asked[key] = None
        return key in turn.due

    def _spent_at(self, template: WorkloadTemplate, now: datetime) -> int:
        """Return the steps that the drafts of the workspace of a template have taken at a moment."""
        return self._spent[template.workspace, now]

    def _spend(self, template: WorkloadTemplate, now: datetime, steps: int) -> None:
        if len(self._spent) >= _MOMENTS:
            self._spent = Counter({count: spent for count, spent in tuple(self._spent.items()) if count[1] == now})
        self._spent[template.workspace, now] += steps

    def _draft(
        self,
        template: WorkloadTemplate,
        spread: WorkloadSpread,
        subset: Subset,
        placement: Placement,
        budget: EvaluationBudget,
    ) -> SubsetObjects:
        cluster = self._desired.clusters[placement.cluster]
        patched = self._patched.template(template, cluster)
        made = render_subset(self._desired, patched, placement, budget)
        if made is None:
            return self._without_pods(template, spread, subset, cluster)
        workspace, kinds = self._desired.workspaces[template.workspace], self._desired.kinds
        needed = with_changed_objects(
            patched, made.own, made.spec, describe_subset(subset), workspace=workspace, kinds=kinds
        )
        return SubsetObjects(needed=needed, shapes=made.shapes)

    def _without_pods(
        self, template: WorkloadTemplate, spread: WorkloadSpread, subset: Subset, cluster: Cluster
    ) -> SubsetObjects:
        """Return what is known of a subset whose pods are unknown."""
        key = template.workload, indexes_for(template, cluster), subset.name
        if key not in self._unknown:
            workspace = self._desired.workspaces[template.workspace]
            patched = self._patched.template(template, cluster)
            needed = with_patch_references(patched, subset, spread.namespace, workspace, self._desired.kinds)
            self._unknown[key] = SubsetObjects(needed=needed, shapes=None)
        return self._unknown[key]


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
