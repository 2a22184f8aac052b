"""The pods of subsets that a pass renders in advance, out of a bound for each workspace.

A draft outlives the pass that renders it, and the fleet as far as it is rendered from the same there
(`fleet.sources.rendering_basis`). Each decision begins with the drafts of its input and hands on those that it leaves,
as a value (`model.drafted_subsets`).
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.expressions.render import reads_variable
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.core.fleet.sources.patches import PatchedTemplates, indexes_for
from reconciler.core.fleet.sources.rendering_basis import RenderingComparison
from reconciler.core.fleet.spread.pods import (
    describe_subset,
    patched_shape,
    render_subset,
    with_changed_objects,
    with_patch_references,
)
from reconciler.core.ledger.lifecycle import new_placement
from reconciler.core.spread.subset_selection import narrow_shape, node_requirements, with_subset_terms
from reconciler.errors import Bug
from reconciler.model.bounds import SUBSET_WORK
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.drafted_subsets import DraftedSubsets, DraftKey, SubsetDraft, SubsetObjects, TemplateTraits
from reconciler.model.ids import WorkspaceName
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.policy import BurstPolicy, Cluster, Desired
from reconciler.model.units import Resources
from reconciler.model.workload import DeploySpec, WorkloadTemplate

_DRAFT_STEPS, _VALUE_STEPS = 3_000, 25
"""Microseconds that a draft takes beside its expressions, and for each unit that its manifests weigh: the subset is
injected twice, and each result is checked."""

_DIFFERS = "pods on the primary cluster differ from the template"

_HALF = SUBSET_WORK.most // 2
"""The part of the bound out of which older drafts are replaced."""


class SubsetDrafts:
    """The rendered subsets of the workloads of one fleet in one decision, each rendered once for equivalent clusters.

    Templates that read their placement, which has a name and times of its own, are rendered again in each pass. All
    drafts of a workspace share `SUBSET_WORK`. Beyond it, an older draft is taken, and where there is none, the pods are
    untried. Older drafts are replaced out of half of it, the oldest first, so that the others are made in time; one
    that takes more than that half is not replaced.
    """

    def __init__(self, drafted: DraftedSubsets, desired: Desired, patched: PatchedTemplates, now: datetime) -> None:
        """Begin with what of `drafted` is rendered from the same in a fleet, and with what its pass has spent.

        What nothing foresaw costs these drafts alone: all of them are rendered again. The objects of a cluster are
        those that `patched` has for it. Templates are rendered as of `now`.
        """
        self._desired = desired
        self._patched = patched
        self._now = now
        kept = attempt(Seam.DRAFTS, "all", partial(_kept, drafted, desired))
        self.bugs = (kept,) if isinstance(kept, Bug) else ()
        if isinstance(kept, Bug):
            kept = DraftedSubsets(spent=drafted.spent)
        self._traits = dict(kept.traits)
        self._made = dict(kept.drafts)
        self._waiting = kept.waiting
        self._due = dict(kept.due)
        self._asked = {workspace: dict(asked) for workspace, asked in kept.asked.items()}
        self._replaced = {*kept.replaced}
        self._spent = Counter(kept.spent)
        self._has_untried = kept.has_untried

    def drafted(self) -> DraftedSubsets:
        """Return all drafts that there are now, as a value."""
        return DraftedSubsets(
            desired=self._desired,
            traits=dict(self._traits),
            drafts=dict(self._made),
            waiting=self._waiting,
            due=dict(self._due),
            asked={workspace: dict(asked) for workspace, asked in self._asked.items()},
            replaced=frozenset(self._replaced),
            spent=dict(self._spent),
            has_untried=self._has_untried,
        )

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
                return narrow_shape(seen, subset, cluster, cause=_DIFFERS) if shape is None else shape
        return narrow_shape(seen, subset, cluster)

    def _draft(
        self, template: WorkloadTemplate, policy: BurstPolicy, spread: WorkloadSpread, subset: Subset, cluster: Cluster
    ) -> SubsetDraft | None:
        """Return the draft of a subset with a patch on one of its clusters; None if it is untried."""
        patched = template.workload, indexes_for(template, cluster)
        traits = self._traits.get(patched)
        if traits is None:
            traits = self._traits[patched] = _traits_of(self._patched.template(template, cluster).spec)
        own = cluster.name if traits.reads_cluster or traits.reads_placement else None
        key = patched, subset.name, node_requirements(subset, cluster), own
        made = self._made.get(key)
        moment, workspace = self._now if traits.reads_placement else None, template.workspace
        spent = self._spent[workspace]
        is_due = moment is not None and self._is_due(workspace, key, moment)
        if made is not None and (made.moment == moment or spent >= _HALF or not is_due):
            return made
        if spent >= SUBSET_WORK.most:
            self._has_untried = True
            return None
        budget = EvaluationBudget()
        try:
            objects = self._render(template, policy, spread, subset, cluster, budget=budget)
        finally:
            steps = budget.spent + budget.compiled + traits.steps
            self._spent[workspace] += steps
        made = self._made[key] = SubsetDraft(objects=objects, moment=moment, steps=steps)
        if is_due:
            self._replaced.add(workspace)
        return made

    def _is_due(self, workspace: WorkspaceName, key: DraftKey, moment: datetime) -> bool:
        """Note that a draft is asked for, and return whether it is among the oldest, which are replaced."""
        if workspace not in self._due:
            due, left, made = set[DraftKey](), _HALF, self._made
            waiting = filter(made.__contains__, self._waiting.get(workspace, {}))
            for each in sorted(waiting, key=lambda each: made[each].moment or moment):
                if left > 0 and made[each].steps <= _HALF:
                    due.add(each)
                    left -= made[each].steps
            self._due[workspace], self._asked[workspace] = due, {}
        self._asked[workspace][key] = None
        return key in self._due[workspace]

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


def _traits_of(spec: DeploySpec) -> TemplateTraits:
    weight = EvaluationBudget(sys.maxsize)
    weight.weigh([resource.manifest for resource in spec.manifests])
    return TemplateTraits(
        reads_cluster=reads_variable(spec, "cluster"),
        reads_placement=reads_variable(spec, "placement"),
        steps=_DRAFT_STEPS + _VALUE_STEPS * weight.spent,
    )


def _kept(drafted: DraftedSubsets, desired: Desired) -> DraftedSubsets:
    """Return what is rendered from the same in a fleet."""
    if drafted.desired is desired or drafted.desired is None:
        return drafted
    same = RenderingComparison(drafted.desired, desired).is_same
    drafts = {key: made for key, made in drafted.drafts.items() if same(key[0][0], key[-1])}
    return replace(
        drafted,
        desired=desired,
        traits={key: traits for key, traits in drafted.traits.items() if same(key[0])},
        drafts=drafts,
        waiting={
            workspace: {key: None for key in keys if key in drafts} for workspace, keys in drafted.waiting.items()
        },
    )
