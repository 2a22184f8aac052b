"""The pods of subsets that a pass has rendered in advance, out of a bound for each workspace.

A draft outlives the pass that renders it, and the fleet as far as it is rendered from the same there
(`fleet.sources.rendering_basis`). Drafts belong to one pass and one thread. The next pass takes over those of the pass
before, and so does whoever answers questions meanwhile, from drafts that are `closed`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from reconciler.core.expressions.render import reads_variable
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.core.fleet.sources.patches import PatchedTemplates, indexes_for
from reconciler.core.fleet.sources.rendering_basis import RenderingComparison
from reconciler.core.fleet.spread.pods import (
    SubsetObjects,
    describe_subset,
    patched_shape,
    render_subset,
    with_changed_objects,
    with_patch_references,
)
from reconciler.core.ledger.lifecycle import new_placement
from reconciler.core.spread.subset_selection import narrow_shape, node_requirements, with_subset_terms
from reconciler.model.bounds import SUBSET_WORK
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.policy import BurstPolicy, Cluster, Desired
from reconciler.model.units import Resources
from reconciler.model.workload import DeploySpec, WorkloadTemplate

_DRAFT_STEPS, _VALUE_STEPS = 3_000, 25
"""Microseconds that a draft takes beside its expressions, and for each unit that its manifests weigh: the subset is
injected twice, and each result is checked."""

_HALF = SUBSET_WORK.most // 2
"""The part of the bound out of which older drafts are replaced."""

_Patched: TypeAlias = tuple[WorkloadId, tuple[int, ...]]
"""A workload, and which of its template's patches are for a cluster."""

_Key: TypeAlias = tuple[_Patched, str, tuple[Requirement, ...], ClusterName | None]
"""Beside it a subset, what it requires of nodes, and the cluster if the template reads it: else all share a draft."""


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
    """The drafts of a workspace that a pass asks for, and those of them that it replaces."""

    due: frozenset[Hashable]
    # Those that were asked for before, the first first; of those that were due, only if they were asked for then.
    before: Mapping[_Key, None]
    asked: dict[_Key, None] = field(default_factory=dict)
    has_replaced: bool = False

    def following(self) -> Mapping[_Key, None]:
        """Return the drafts that take turns in the next pass."""
        # A preview asks for few, and takes no turn from the others.
        lapsed = self.due if self.has_replaced else frozenset[Hashable]()
        return {**{key: None for key in self.before if key not in lapsed}, **self.asked}


class SubsetDrafts:
    """The rendered subsets of the workloads of one fleet in one pass, each rendered once for equivalent clusters.

    Templates that read their placement, which has a name and times of its own, are rendered again in each pass. All
    drafts of a workspace share `SUBSET_WORK`. Beyond it, an older draft is taken, and where there is none, the pods are
    untried. Older drafts are replaced out of half of it, the oldest first, so that the others are made in time; one
    that takes more than that half is not replaced.
    """

    def __init__(
        self, desired: Desired, patched: PatchedTemplates, now: datetime, before: SubsetDrafts | None = None
    ) -> None:
        """Take over what is rendered from the same as `before`, and the turns; nothing of that one is changed.

        The objects of a cluster are those that `patched` has for it. Templates are rendered as of `now`.
        """
        self._desired = desired
        self._patched = patched
        self._now = now
        self._is_closed = False
        self._traits: dict[_Patched, _TemplateTraits] = {}
        self._made: dict[_Key, _SubsetDraft] = {}
        self._waiting: Mapping[WorkspaceName, Mapping[_Key, None]] = {}
        self._turns: dict[WorkspaceName, _Turn] = {}
        self._spent: Counter[WorkspaceName] = Counter()
        self.has_untried = False
        """Whether pods that were asked for are untried, so that a later pass may decide otherwise."""
        if before is not None:
            self._take_over(before)

    def _take_over(self, before: SubsetDrafts) -> None:
        turns = before._turns
        waiting = {**before._waiting, **{workspace: turn.following() for workspace, turn in turns.items()}}
        if before._desired is self._desired:
            self._traits, self._made, self._waiting = before._traits.copy(), before._made.copy(), waiting
            return
        same = RenderingComparison(before._desired, self._desired).is_same
        self._traits = {key: traits for key, traits in before._traits.items() if same(key[0])}
        self._made = {key: made for key, made in before._made.items() if same(key[0][0], key[-1])}
        self._waiting = {
            workspace: {key: None for key in keys if key in self._made} for workspace, keys in waiting.items()
        }

    def closed(self) -> SubsetDrafts:
        """Return the drafts as they are now, for other threads: nothing more is rendered, and nothing changes."""
        drafts = SubsetDrafts(self._desired, self._patched, self._now, self)
        drafts._is_closed = True
        return drafts

    def opened(self) -> SubsetDrafts:
        """Return drafts of one's own that begin with these, and with the bound of a pass."""
        return SubsetDrafts(self._desired, self._patched, self._now, self)

    def needed(
        self, template: WorkloadTemplate, policy: BurstPolicy, subset: Subset, cluster: Cluster
    ) -> tuple[Prerequisite, ...]:
        """Return the prerequisites of a subset on one of its clusters."""
        spread = policy.spread
        if not subset.patch or spread is None:
            return self._patched.prerequisites(template, cluster)
        draft = self._draft(template, policy, spread, subset, cluster)
        return self._without_pods(template, spread, subset, cluster) if draft is None else draft.objects.needed

    def is_untried(self, template: WorkloadTemplate, policy: BurstPolicy, subset: Subset, cluster: Cluster) -> bool:
        """Return whether a later pass renders a subset: its `shape` and what is `needed` are not final."""
        spread = policy.spread
        return bool(subset.patch) and spread is not None and not self._draft(template, policy, spread, subset, cluster)

    def shape(
        self, template: WorkloadTemplate, policy: BurstPolicy, subset: Subset, cluster: Cluster, *, seen: ReplicaShape
    ) -> ReplicaShape:
        """Return the shape of a replica of a subset on one of its clusters; `seen` is its shape on the primary."""
        spread = policy.spread
        if subset.patch and spread is not None:
            draft = self._draft(template, policy, spread, subset, cluster)
            if draft is not None and draft.objects.shapes is not None:
                narrowed, labels = with_subset_terms(seen, subset, cluster), "metadata" in subset.patch
                shape = patched_shape(seen, narrowed, draft.objects.shapes, labels=labels)
                if shape is not None:
                    return shape
        return narrow_shape(seen, subset, cluster)

    def _draft(
        self, template: WorkloadTemplate, policy: BurstPolicy, spread: WorkloadSpread, subset: Subset, cluster: Cluster
    ) -> _SubsetDraft | None:
        """Return the draft of a subset with a patch on one of its clusters; None if it is untried."""
        patched = template.workload, indexes_for(template, cluster)
        traits = self._traits.get(patched)
        if traits is None:
            if self._is_closed:
                return None
            traits = _TemplateTraits.of(self._patched.template(template, cluster).spec)
            self._traits[patched] = traits
        own = cluster.name if traits.reads_cluster or traits.reads_placement else None
        key = patched, subset.name, node_requirements(subset, cluster), own
        made = self._made.get(key)
        if self._is_closed:
            return made
        moment, workspace = self._now if traits.reads_placement else None, template.workspace
        spent = self._spent[workspace]
        is_due = moment is not None and self._is_due(workspace, key, moment)
        if made is not None and (made.moment == moment or spent >= _HALF or not is_due):
            return made
        if spent >= SUBSET_WORK.most:
            self.has_untried = True
            return None
        budget = EvaluationBudget()
        try:
            objects = self._render(template, policy, spread, subset, cluster, budget=budget)
        finally:
            steps = budget.spent + budget.compiled + traits.steps
            self._spent[workspace] += steps
        made = self._made[key] = _SubsetDraft(objects=objects, moment=moment, steps=steps)
        if is_due:
            self._turns[workspace].has_replaced = True
        return made

    def _is_due(self, workspace: WorkspaceName, key: _Key, moment: datetime) -> bool:
        """Note that a draft is asked for, and return whether it is among the oldest, which are replaced."""
        turn = self._turns.get(workspace)
        if turn is None:
            waiting, made = self._waiting.get(workspace, {}), self._made
            due, left = set[Hashable](), _HALF
            for each in sorted(filter(made.__contains__, waiting), key=lambda each: made[each].moment or moment):
                if left > 0 and made[each].steps <= _HALF:
                    due.add(each)
                    left -= made[each].steps
            turn = self._turns[workspace] = _Turn(due=frozenset(due), before=waiting)
        turn.asked[key] = None
        return key in turn.due

    def _render(
        self,
        template: WorkloadTemplate,
        policy: BurstPolicy,
        spread: WorkloadSpread,
        subset: Subset,
        cluster: Cluster,
        *,
        budget: EvaluationBudget,
    ) -> SubsetObjects:
        desired, patched = self._desired, self._patched.template(template, cluster)
        placement = new_placement(
            template,
            policy,
            desired,
            self._now,
            cluster=cluster.name,
            replicas=1,
            shape=ReplicaShape(requests=Resources()),
            subset=subset.name,
        )
        made = render_subset(desired, patched, placement, budget)
        if made is None:
            return SubsetObjects(needed=self._without_pods(template, spread, subset, cluster), shapes=None)
        workspace, called = desired.workspaces[template.workspace], describe_subset(subset)
        needed = with_changed_objects(patched, made.own, made.spec, called, workspace=workspace, kinds=desired.kinds)
        return SubsetObjects(needed=needed, shapes=made.shapes)

    def _without_pods(
        self, template: WorkloadTemplate, spread: WorkloadSpread, subset: Subset, cluster: Cluster
    ) -> tuple[Prerequisite, ...]:
        """Return the known prerequisites of a subset whose pods are unknown."""
        workspace, patched = self._desired.workspaces[template.workspace], self._patched.template(template, cluster)
        return with_patch_references(patched, subset, spread.namespace, workspace, self._desired.kinds)
