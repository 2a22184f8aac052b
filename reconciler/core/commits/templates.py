"""Templates filled in for the placements of a plan, and checked as strictly as the files they come from.

Between this and `render` lies what takes a process: some engines want charts rendered by us.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.bulkhead import Seam, attempt
from reconciler.core.expressions import render
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.expressions.work import EvaluationBudget
from reconciler.core.fleet.burst_replicas import miscounted
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.fleet.sources.patches import spec_for
from reconciler.core.fleet.sources.rendering_basis import RenderingComparison
from reconciler.core.safety import rules
from reconciler.core.workloads.cluster_provides import refuse_lacking
from reconciler.errors import Bug, InvalidInput, Severity
from reconciler.model.action import Action
from reconciler.model.bounds import TEMPLATE_WORK
from reconciler.model.ids import WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.plan import UNTRIED, Change, Plan
from reconciler.model.policy import Cluster, Desired, Workspace
from reconciler.model.workload import DeploySpec, WorkloadTemplate
from reconciler.text.findings import dotted, told

_MOST_TOLD = 10
"""Problems of a template that is rendered, in the one sentence on why it is not placed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedTemplate:
    """The template of one change, rendered for its placement."""

    placement: Placement
    spec: DeploySpec | None = None
    """None where it cannot be rendered."""
    problem: str = ""
    """Why it cannot be rendered; empty where it can."""
    bug: Bug | None = None
    """The exception behind the problem, where nothing foresaw it."""


RenderedTemplates = Mapping[int, RenderedTemplate]
"""By the position of the change in its plan; changes that write nothing from a template are left out."""


@dataclass(slots=True, kw_only=True)
class PassTemplates:
    """The templates that one pass has filled in, and what they took.

    A pass is decided again where a placement cannot be written: what has not changed is not filled in again, and all
    templates of a workspace share one bound, however often that happens.
    """

    _desired: Desired | None = None
    """The fleet that they were filled in for last. The requests among its workloads change while a pass is decided."""
    _known: dict[str, RenderedTemplate] = field(default_factory=dict)
    """By the directory of the placement."""
    _spent: Counter[WorkspaceName] = field(default_factory=Counter)
    """Steps, as `work` counts them."""

    @property
    def good(self) -> frozenset[tuple[WorkloadId, str]]:
        """The workloads and places for which a template could be filled in."""
        filled_in = (known.placement for known in self._known.values() if known.spec is not None)
        return frozenset((placement.workload, placement.where) for placement in filled_in)

    def render(self, placement: Placement, desired: Desired) -> RenderedTemplate:
        """Fill in the template of a placement, unless its workspace has had its share of this pass."""
        workload = placement.workload
        self._follow(desired)
        known = self._known.get(placement.path)
        if known is not None and known.placement == placement:
            return known
        if self._spent[workload.workspace] >= TEMPLATE_WORK.most:
            return RenderedTemplate(placement=placement, problem=UNTRIED)
        budget = EvaluationBudget()
        rendered = attempt(Seam.TEMPLATE, workload, lambda: _fill(placement, desired, budget))
        self._spent[workload.workspace] += budget.spent + budget.compiled
        if isinstance(rendered, Bug):
            rendered = RenderedTemplate(placement=placement, problem=rendered.summary, bug=rendered)
        self._known[placement.path] = rendered
        return rendered

    def _follow(self, desired: Desired) -> None:
        """Keep what is filled in from the same in this fleet."""
        if self._desired is not None and desired is not self._desired:
            same = RenderingComparison(self._desired, desired).is_same
            self._known = {
                path: known
                for path, known in self._known.items()
                if same(known.placement.workload, known.placement.cluster)
            }
        self._desired = desired


def render_templates(plan: Plan, desired: Desired, templates: PassTemplates | None = None) -> RenderedTemplates:
    """Fill in the template of every placement that the plan writes, but for those that the pass has filled in."""
    of_pass = PassTemplates() if templates is None else templates
    return {position: of_pass.render(placement, desired) for position, placement in _rewritten_placements(plan.changes)}


def _rewritten_placements(changes: Sequence[Change]) -> Iterator[tuple[int, Placement]]:
    """Yield the placements whose files a plan writes anew, by position.

    A new expiry or deletion policy of a placement that the same plan ends later needs no files: its template may be
    gone with its request by then. A placement that the plan has rendered before is rendered again, for its new digest.
    """
    ended = ((position, change.ended) for position, change in enumerate(changes))
    over = {placement.path: position for position, placement in ended if placement is not None}
    anew: set[str] = set()
    for position, change in enumerate(changes):
        placement = change.rewritten
        if change.action is Action.EXTEND:
            if over.get(change.placement.path, -1) > position:
                continue
            if change.placement.path in anew:
                placement = change.placement
        if placement is not None:
            anew.add(placement.path)
            yield position, placement


def _fill(placement: Placement, desired: Desired, budget: EvaluationBudget) -> RenderedTemplate:
    template = desired.templates[placement.workload]
    cluster = desired.clusters.get(placement.cluster)
    if cluster is None:
        return RenderedTemplate(placement=placement, problem="no Cluster of this name is in the fleet repository")
    if template.unread:
        return RenderedTemplate(placement=placement, problem=template.unread)
    workspace = desired.workspaces[placement.workload.workspace]
    context = render.Context(
        replicas=placement.replicas, cluster=cluster, placement=placement, workspace=workspace, template=template
    )
    try:
        spec = render.render(spec_for(template, cluster, desired.kinds), context, budget)
    except InvalidInput as error:
        return RenderedTemplate(placement=placement, problem=str(error))
    findings = rules.check_safety(
        spec, workspace, kinds=desired.kinds, schemas=desired.schemas, rendered=True, placement=placement.name
    )
    wrong = [finding for finding in findings if finding.severity is Severity.ERROR]
    if wrong:
        where = f"{template.path}:{template.line}"
        problem = "; ".join(f"{where}: {dotted(finding.loc)}: {finding.message}" for finding in told(wrong, _MOST_TOLD))
        return RenderedTemplate(placement=placement, problem=problem)
    if not placement.workload.request and (
        wrong_number := miscounted(template, spec, placement.replicas, desired.kinds)
    ):
        return RenderedTemplate(placement=placement, problem=f"{template.path}:{template.line}: spec: {wrong_number}")
    lacks = _describe_lacking(template, spec, cluster, workspace, desired)
    return (
        RenderedTemplate(placement=placement, problem=lacks)
        if lacks
        else RenderedTemplate(placement=placement, spec=spec)
    )


def _describe_lacking(
    template: WorkloadTemplate, spec: DeploySpec, cluster: Cluster, workspace: Workspace, desired: Desired
) -> str:
    """Name the prerequisites that a cluster lacks, of those whose name an expression gives only now."""
    if not any(has_expression(prerequisite.name) for prerequisite in template.prerequisites):
        return ""
    refusal = refuse_lacking(cluster, prerequisites(spec, workspace, desired.kinds), None)
    return "" if refusal is None else f"{refusal.message} ({refusal.remedy})"
