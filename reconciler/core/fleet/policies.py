"""The policies in force, from BurstPolicies and EGS's bindings, and the policy that governs each template.

Exactly one policy governs a template: the most specific. Each object on a primary is counted by one template alone; a
second one would place its missing replicas twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.capacity.chart_gangs import undivided
from reconciler.core.fleet.auto_gpr import implicit_policy, warn_overridden_fields, warn_unlisted_templates
from reconciler.core.fleet.cluster_order import ordered_candidates
from reconciler.core.fleet.objects import NAME, DeclaredValue, FleetObjects, first_names, name_locations
from reconciler.core.fleet.template import TemplateDraft
from reconciler.core.fleet.warnings.budgets import warn_unpriced
from reconciler.core.fleet.warnings.engine_ignores import warn_engine_ignores
from reconciler.core.fleet.warnings.prerequisites import burst_clusters
from reconciler.core.fleet.warnings.unreachable import warn_unreachable
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.schema.egs.gpr_binding import BindingFile
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.errors import Severity
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import BurstPolicy, Desired, SetDivision, Workspace
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadRef, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import closest


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedObject:
    """The object of a template that another template counts already."""

    ref: WorkloadRef
    # The template that counts it already.
    by: WorkloadTemplate

    def __str__(self) -> str:
        """Write the object as the annotation does: ``Deployment/llm-demo/vllm``, or without its kind."""
        return "/".join(part for part in (self.ref.kind, self.ref.namespace, self.ref.name) if part)


def counted_before(
    templates: Iterable[WorkloadTemplate], workspaces: Mapping[WorkspaceName, Workspace]
) -> dict[WorkloadId, CountedObject]:
    """Return the templates whose object an earlier one, by path and line, counts already.

    A reference without a kind matches an object of any kind. A returned template counts nothing itself. A template of a
    workspace to which the object's namespace does not belong comes after all others: it takes an object from no tenant.
    """
    counting: dict[tuple[ClusterName, str, str], list[tuple[WorkloadRef, WorkloadTemplate]]] = {}
    counted: dict[WorkloadId, CountedObject] = {}
    for template in sorted(
        templates, key=lambda template: (_is_foreign(template, workspaces), template.path, template.line)
    ):
        ref = template.ref
        if ref is None:
            continue
        key = (workspaces[template.workspace].primary, ref.namespace, ref.name)
        rivals = counting.setdefault(key, [])
        first = next((other for workload_ref, other in rivals if workload_ref.may_be(ref)), None)
        if first is None:
            rivals.append((ref, template))
        else:
            counted[template.workload] = CountedObject(ref=ref, by=first)
    return counted


def _is_foreign(template: WorkloadTemplate, workspaces: Mapping[WorkspaceName, Workspace]) -> bool:
    """Return whether a template counts an object in a namespace that its workspace does not list."""
    namespaces = workspaces[template.workspace].namespaces
    return template.ref is not None and template.ref.namespace not in namespaces


@dataclass(frozen=True, slots=True, kw_only=True)
class GoverningPolicies:
    """The policy that governs each workload, and the policies that would govern some of them equally well."""

    policies: Mapping[WorkloadId, BurstPolicy]
    # By position of the policy: the workloads that it would govern equally well, with the policies that do.
    rivals: Mapping[int, tuple[tuple[WorkloadId, BurstPolicy], ...]]


def assign_policies(policies: Sequence[BurstPolicy], workloads: Iterable[WorkloadId]) -> GoverningPolicies:
    """Assign each workload its policy: one that names it, else its workspace, else one without selectors.

    Of two policies of the same rank the earlier one governs; the later one is its rival, reported with workload and
    winner.
    """
    by_template: dict[str, list[int]] = {}
    by_workspace: dict[str, list[int]] = {}
    for_all: list[int] = []
    for position, policy in enumerate(policies):
        if policy.templates:
            for template in dict.fromkeys(policy.templates):
                by_template.setdefault(template, []).append(position)
        elif policy.workspaces:
            for workspace in dict.fromkeys(policy.workspaces):
                by_workspace.setdefault(workspace, []).append(position)
        else:
            for_all.append(position)
    governed: dict[WorkloadId, BurstPolicy] = {}
    rivals: dict[int, list[tuple[WorkloadId, BurstPolicy]]] = {}
    for workload in workloads:
        named = [
            position
            for position in by_template.get(workload.name, ())
            if not policies[position].workspaces or workload.workspace in policies[position].workspaces
        ]
        ranked = named or by_workspace.get(workload.workspace) or for_all
        if ranked:
            governed[workload] = policies[ranked[0]]
            for position in ranked[1:]:
                rivals.setdefault(position, []).append((workload, policies[ranked[0]]))
    return GoverningPolicies(
        policies=governed, rivals={position: tuple(rival_policies) for position, rival_policies in rivals.items()}
    )


_MOST_COMPARED, _MOST_COMPARED_IN_ALL, _MOST_IDLE = 20, 500, 1_000
"""Unknown names of a policy, and of all policies, that are compared with those of templates, and so many of these."""
_GOVERNING = frozenset({"BurstPolicy", "GPRTemplateBinding"})

Templates = Mapping[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]]


def policies_in_force(work: FleetObjects, desired: Desired, templates: Templates) -> dict[WorkloadId, BurstPolicy]:
    """Return the policy that governs each template, and report unknown names in policies.

    A template without a BurstPolicy may be governed by the binding of its workspace (`implicit`).
    """
    placed_policies = list(work.named(BurstPolicyFile, "BurstPolicy").values())
    for placed in placed_policies:
        _report_unknown(work, placed, desired)
    governed = assign_policies([placed.value.value_of() for placed in placed_policies], templates)
    for position, rivals in governed.rivals.items():
        which = first_names([str(workload) for workload, _ in rivals])
        winner = rivals[0][1].name
        work.report(
            placed_policies[position],
            Finding(
                loc=NAME,
                message=f"{which} is governed by BurstPolicy {winner} just as well, and stays so",
                hint="name the template or its workspace in one of them alone",
            ),
        )
    policies = dict(governed.policies)
    for workload, (template, placed_template) in templates.items():
        policy = policies.get(workload)
        implicit = implicit_policy(template, placed_template.value, desired) if policy is None else None
        if implicit is not None:
            policies[workload] = implicit
            named = name_locations(("spec", "clusterNames"), placed_template.value.clusters)
            work.report_outside(placed_template, desired.workspaces[template.workspace], named, desired.clusters)
        elif policy is None and not work.excused.isdisjoint(_GOVERNING):
            continue  # the broken file may hold its policy
        limits = desired.limits.get(template.workspace)
        ungoverned = _describe_ungoverned(work, placed_template.value, template, desired)
        for find in (
            partial(_warn_governance, template, policy or implicit, limits, ungoverned),
            partial(warn_overridden_fields, placed_template.value, policy, implicit),
            partial(warn_unlisted_templates, template, desired),
        ):
            work.warn(placed_template, find)
        engines = partial(_warn_engines, template, policy or implicit, desired)
        work.warn(placed_template, engines, placed_template.value.spelling.of)
    _report_unknown_templates(work, placed_policies, desired, _without_policy(work, policies, templates))
    _keep_sets_whole(work, policies, placed_policies, desired, templates)
    for workload in _counted_twice(work, policies, desired, templates):
        del policies[workload]
    if "Cluster" not in work.excused:
        homes = _governed_workspaces(policies)
        for placed in placed_policies:
            policy = placed.value.value_of()
            workspace_names = homes.get(policy.name) or policy.workspaces or desired.workspaces
            workspaces = [desired.workspaces[name] for name in workspace_names if name in desired.workspaces]
            reached = (candidate for home in workspaces for candidate in burst_clusters(policy, home, desired))
            work.warn(placed, partial(warn_unreachable, policy, workspaces, desired.clusters))
            work.warn(placed, partial(warn_unpriced, policy.budget, reached))
    return policies


def _keep_sets_whole(
    work: FleetObjects,
    policies: dict[WorkloadId, BurstPolicy],
    placed_policies: Iterable[DeclaredValue[BurstPolicyFile]],
    desired: Desired,
    templates: Templates,
) -> None:
    """Report workloads whose groups depend on one another under a policy that divides sets; they go whole."""
    placed_by_name = {placed.value.metadata.name: placed for placed in placed_policies}
    for workload, policy in sorted(policies.items()):
        template, _ = templates[workload]
        why = undivided(template, desired.kinds) if policy.sets is SetDivision.BY_GROUP else ""
        if not why:
            continue
        policies[workload] = replace(policy, sets=SetDivision.WHOLE)
        message = f"{workload} goes whole: {why}"
        hint = "try sets: Whole, or name in spec.templates only sets whose groups serve by themselves"
        loc: Loc = ("spec", "distribution", "sets")
        work.report(placed_by_name[policy.name], Finding(loc=loc, message=message, hint=hint))


def _governed_workspaces(policies: Mapping[WorkloadId, BurstPolicy]) -> dict[str, list[WorkspaceName]]:
    """List the workspaces in which each policy governs a template, by name of the policy."""
    homes: dict[str, dict[WorkspaceName, None]] = {}
    for workload, policy in sorted(policies.items()):
        homes.setdefault(policy.name, {})[workload.workspace] = None
    return {name: [*workspaces] for name, workspaces in homes.items()}


def _without_policy(
    work: FleetObjects, policies: Mapping[WorkloadId, BurstPolicy], templates: Templates
) -> frozenset[TemplateName]:
    """Name the templates that want a policy and have none; none while a broken file may hold it."""
    if not work.excused.isdisjoint(_GOVERNING):
        return frozenset()
    return frozenset(
        workload.name
        for workload, (_, placed) in templates.items()
        if workload not in policies and placed.value.auto is not False
    )


def _report_unknown_templates(
    work: FleetObjects,
    policies: Iterable[DeclaredValue[BurstPolicyFile]],
    desired: Desired,
    idle: frozenset[TemplateName],
) -> None:
    """Report template names of policies that no file declares, and those that their workspaces do not have.

    A name is an error where it may cost a burst: one of the `idle` templates, which have no policy, is meant by it, or
    may be since the policy governs nothing. Otherwise it is left over from a template that its owners took away.
    """
    names = frozenset(draft.value.name for draft in work.all(TemplateDraft))
    homes: dict[str, set[WorkspaceName]] = {}
    for workload in desired.templates:
        homes.setdefault(workload.name, set()).add(workload.workspace)
    likely, left = sorted(idle)[:_MOST_IDLE], _MOST_COMPARED_IN_ALL
    for placed in policies:
        spec = placed.value.spec
        places = name_locations(("spec", "templates"), spec.templates)
        unknown = [(loc, name) for loc, name in places if name not in names and name not in work.excused]
        governs = len(unknown) < len(places)
        grave = [
            (loc, name)
            for loc, name in unknown[:_MOST_COMPARED]
            if idle and (not governs or closest(name, likely if left > 0 else ()))
        ]
        left -= min(len(unknown), _MOST_COMPARED) if idle and governs else 0
        others = [place for place in unknown if place not in grave]
        offered = names.difference(spec.templates) if others else names
        work.report_unknown(placed, "WorkloadTemplate", grave, names, usable=idle)
        work.report_unknown(placed, "WorkloadTemplate", others, names, Severity.WARNING, usable=offered)
        if spec.workspaces and desired.workspaces.keys() >= set(spec.workspaces):
            outside = [place for place in places if homes.get(place[1], {*spec.workspaces}).isdisjoint(spec.workspaces)]
            for loc, name in outside:
                message = f"WorkloadTemplate {name} is in none of spec.workspaces"
                hint = f"it is in {first_names(sorted(homes[name]))}"
                severity = Severity.ERROR if name in idle else Severity.WARNING
                work.report(placed, Finding(loc=loc, message=message, hint=hint, severity=severity))


def _report_unknown(work: FleetObjects, placed: DeclaredValue[BurstPolicyFile], desired: Desired) -> None:
    """Report workspaces and clusters in a policy that no file declares."""
    spec = placed.value.spec
    work.report_unknown(
        placed, "Workspace", name_locations(("spec", "workspaces"), spec.workspaces), desired.workspaces
    )
    candidates: list[tuple[Loc, str]] = [
        (("spec", "clusters", index, "name"), candidate.name)
        for index, candidate in enumerate(spec.clusters)
        if candidate.name is not None
    ]
    names_of_workspaces = spec.workspaces or desired.workspaces
    homes = [home for name, home in desired.workspaces.items() if name in names_of_workspaces]
    homes = homes or [*desired.workspaces.values()]
    usable = {name for home in homes for name in home.clusters if name != home.primary}
    work.report_unknown(placed, "Cluster", candidates, desired.clusters, usable=usable)
    if spec.approval is not None:
        approved = name_locations(("spec", "approval", "clusters"), spec.approval.clusters)
        work.report_unknown(placed, "Cluster", approved, desired.clusters, usable=usable)
    for index, candidate in enumerate(() if "Cluster" in work.excused else spec.clusters):
        labels = candidate.match_labels.items()
        if candidate.name is None and not any(
            labels <= cluster.labels.items() for cluster in desired.clusters.values()
        ):
            loc: Loc = ("spec", "clusters", index, "matchLabels")
            work.report(placed, Finding(loc=loc, message="no Cluster has these labels", severity=Severity.WARNING))


def _warn_governance(
    template: WorkloadTemplate,
    policy: BurstPolicy | None,
    limits: WorkspaceLimits | None,
    ungoverned: tuple[str, str],
) -> Iterable[Finding]:
    """Warn of a template without a policy, or with a duration above that of its policy or workspace.

    `ungoverned` says why it has none, and the way to one.
    """
    if policy is None:
        message, hint = ungoverned
        yield Finding(loc=NAME, message=message, hint=hint, severity=Severity.WARNING)
        return
    wanted = template.spec.burst_duration
    maxima = [(policy.max_duration, f"policy {policy.name}", "duration.max")] if policy.max_duration else []
    if limits is not None:
        maxima.append((limits.longest, f"the WorkspacePolicy of {limits.workspace}", "maxExitDurationPerGPR"))
    most, whose, setting = min(maxima, default=(wanted, "", ""))
    if wanted is not None and most is not None and wanted > most:
        yield Finding(
            loc=("spec", "burstDuration"),
            message=f"{format_duration(wanted)} is cut to {format_duration(most)} by {whose}",
            hint=f"try {format_duration(most)}, or a longer {setting}",
            severity=Severity.WARNING,
        )


def _describe_ungoverned(
    work: FleetObjects, draft: TemplateDraft, template: WorkloadTemplate, desired: Desired
) -> tuple[str, str]:
    """Say why neither a BurstPolicy nor a binding governs a template, and the way to one that does."""
    workspace, own = template.workspace, "name it in spec.templates of a BurstPolicy"
    bindings = [placed for placed in work.all(BindingFile) if placed.value.metadata.name == workspace]
    # 1. It says so itself.
    if draft.auto is False:
        return "its autoPlacement is false, so it does not burst", f"try autoPlacement: true, or {own}"
    # 2. The binding of its workspace is refused.
    if bindings and workspace not in desired.bindings:
        where = f"the GPRTemplateBinding in {bindings[0].path} is refused"
        return f"no BurstPolicy governs it and {where}, so it does not burst", f"mend the binding, or {own}"
    # 3. The binding gives no GPRs by itself, or names no cluster for it.
    if bindings:
        where = f"the GPRTemplateBinding in {bindings[0].path}"
        way_out = "list clusters" if desired.bindings[workspace].auto else "set enableAutoGPR: true"
        return "no BurstPolicy governs it, so it does not burst", f"{own}, or {way_out} in {where}"
    # 4. There is none.
    way_out = f"add one, {own.replace('a BurstPolicy', 'one')}, or add a GPRTemplateBinding with enableAutoGPR: true"
    return "no BurstPolicy governs it, so it does not burst", way_out


def _warn_engines(template: WorkloadTemplate, policy: BurstPolicy | None, desired: Desired) -> Iterable[Finding]:
    """Warn of content that no engine of the burst clusters takes; without a policy, those of requests."""
    workspace = desired.workspaces[template.workspace]
    candidates = ordered_candidates(policy, workspace, desired.clusters) if policy is not None else ()
    names = workspace.destinations if policy is None else tuple(candidate.cluster for candidate in candidates)
    return warn_engine_ignores(template.spec, workspace, names, desired)


def _counted_twice(
    work: FleetObjects, policies: Iterable[WorkloadId], desired: Desired, templates: Templates
) -> frozenset[WorkloadId]:
    """Report templates whose object another template bursts for already.

    They stay loaded, since people may still request their placement; only demand does not place them.
    """
    twice = counted_before((templates[workload][0] for workload in policies), desired.workspaces)
    for workload, counted in twice.items():
        template, placed = templates[workload]
        what = f"{shortened(str(counted))} on {desired.workspaces[template.workspace].primary}"
        where = f"template {counted.by.workload} in {counted.by.path}:{counted.by.line}"
        hint = f"try the annotation {WORKLOAD}, or another release name"
        work.report(placed, Finding(loc=NAME, message=f"{what} is already counted by {where}", hint=hint))
    return frozenset(twice)
