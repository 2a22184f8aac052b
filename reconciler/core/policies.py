"""The policies in force: those that files write, and those that EGS's bindings come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.counting import counted_before
from reconciler.core.draft import WORKLOAD, TemplateDraft
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.gathered import NAME, DeclaredValue, FleetObjects, few, places
from reconciler.core.governing import govern
from reconciler.core.implicit import implied, unbound, unheard
from reconciler.core.outofreach import warn_unreachable as out_of_reach
from reconciler.core.reach import order
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.untaken import untaken
from reconciler.errors import Severity
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadTemplate

_GOVERNING = frozenset({"BurstPolicy", "GPRTemplateBinding"})

Templates = Mapping[WorkloadId, tuple[WorkloadTemplate, DeclaredValue[TemplateDraft]]]


def policies_in_force(work: FleetObjects, desired: Desired, templates: Templates) -> dict[WorkloadId, BurstPolicy]:
    """Find the policy that governs each template, and what policies name that is not there.

    Where no BurstPolicy governs a template, the binding of its workspace may (`implicit`).
    """
    placed_policies = list(work.named(BurstPolicyFile, "BurstPolicy").values())
    names = frozenset(placed.value.name for placed in work.all(TemplateDraft))
    for placed in placed_policies:
        _tell_unknown(work, placed, desired, names)
    governed = govern([placed.value.value_of() for placed in placed_policies], templates)
    for position, rivals in governed.rivals.items():
        which = few([str(workload) for workload, _ in rivals])
        winner = rivals[0][1].name
        work.tell(
            placed_policies[position],
            Finding(
                loc=NAME,
                message=f"{which} is governed by BurstPolicy {winner} just as well, and stays so",
                hint="name the template or its workspace in one of them alone",
            ),
        )
    found = dict(governed.policies)
    for workload, (template, placed_template) in templates.items():
        policy = found.get(workload)
        implicit = implied(template, placed_template.value, desired) if policy is None else None
        if implicit is not None:
            found[workload] = implicit
            named = places(("spec", "clusterNames"), placed_template.value.clusters)
            work.tell_unknown(placed_template, "Cluster", named, desired.workspaces[template.workspace].clusters)
        elif policy is None and not work.excused.isdisjoint(_GOVERNING):
            continue  # what is broken may well be what governs it
        for finding in (
            *_governed(template, policy or implicit, desired.limits.get(template.workspace)),
            *unheard(placed_template.value, policy, implicit),
            *unbound(template, desired),
        ):
            work.tell(placed_template, finding)
        for finding in _untaken(template, policy or implicit, desired):
            work.tell(placed_template, placed_template.value.spelling.of(finding))
    for workload in _counted_twice(work, found, desired, templates):
        del found[workload]
    if "Cluster" not in work.excused:
        homes = _homes(found)
        for placed in placed_policies:
            policy = placed.value.value_of()
            there = homes.get(policy.name) or policy.workspaces or desired.workspaces
            workspaces = [desired.workspaces[name] for name in there if name in desired.workspaces]
            for finding in out_of_reach(policy, workspaces, desired.clusters):
                work.tell(placed, finding)
    return found


def _homes(found: Mapping[WorkloadId, BurstPolicy]) -> dict[str, list[WorkspaceName]]:
    """List the workspaces in which each policy governs something, by its name."""
    homes: dict[str, dict[WorkspaceName, None]] = {}
    for workload, policy in sorted(found.items()):
        homes.setdefault(policy.name, {})[workload.workspace] = None
    return {name: [*there] for name, there in homes.items()}


def _tell_unknown(
    work: FleetObjects, placed: DeclaredValue[BurstPolicyFile], desired: Desired, names: frozenset[TemplateName]
) -> None:
    """Report what a policy names that no file describes; `names` are those of the templates."""
    spec = placed.value.spec
    work.tell_unknown(placed, "Workspace", places(("spec", "workspaces"), spec.workspaces), desired.workspaces)
    work.tell_unknown(
        placed, "WorkloadTemplate", places(("spec", "templates"), spec.templates), names, Severity.WARNING
    )
    candidates: list[tuple[Loc, str]] = [
        (("spec", "clusters", index, "name"), candidate.name)
        for index, candidate in enumerate(spec.clusters)
        if candidate.name is not None
    ]
    work.tell_unknown(placed, "Cluster", candidates, desired.clusters)
    for index, candidate in enumerate(() if "Cluster" in work.excused else spec.clusters):
        labels = candidate.match_labels.items()
        if candidate.name is None and not any(
            labels <= cluster.labels.items() for cluster in desired.clusters.values()
        ):
            loc: Loc = ("spec", "clusters", index, "matchLabels")
            work.tell(placed, Finding(loc=loc, message="no Cluster has these labels", severity=Severity.WARNING))


def _governed(
    template: WorkloadTemplate, policy: BurstPolicy | None, limits: WorkspaceLimits | None
) -> Iterable[Finding]:
    """Warn of a template that no policy governs, or whose duration its policy cuts, or that of its workspace."""
    if policy is None:
        yield Finding(
            loc=NAME,
            message="no BurstPolicy governs it, so it does not burst",
            hint="add one, or name it in spec.templates of one",
            severity=Severity.WARNING,
        )
        return
    wanted = template.spec.burst_duration
    maxima = [(policy.max_duration, f"policy {policy.name}", "duration.max")] if policy.max_duration else []
    if limits is not None:
        maxima.append((limits.longest, f"the WorkspacePolicy of {limits.workspace}", "maxExitDurationPerGPR"))
    most, whose, said = min(maxima, default=(wanted, "", ""))
    if wanted is not None and most is not None and wanted > most:
        yield Finding(
            loc=("spec", "burstDuration"),
            message=f"{format_duration(wanted)} is cut to {format_duration(most)} by {whose}",
            hint=f"try {format_duration(most)}, or a longer {said}",
            severity=Severity.WARNING,
        )


def _untaken(template: WorkloadTemplate, policy: BurstPolicy | None, desired: Desired) -> Iterable[Finding]:
    """Warn of what no engine takes of a template, where it may burst to, or be asked for while nothing bursts it."""
    workspace = desired.workspaces[template.workspace]
    candidates = order(policy, workspace, desired.clusters) if policy is not None else ()
    names = workspace.destinations if policy is None else tuple(candidate.cluster for candidate in candidates)
    return untaken(template.spec, workspace, names, desired.clusters)


def _counted_twice(
    work: FleetObjects, policies: Iterable[WorkloadId], desired: Desired, templates: Templates
) -> frozenset[WorkloadId]:
    """Report the templates that would burst for an object for which another one does so already.

    They stay loaded, since a person may still ask for their placement; only demand must not place them.
    """
    found = counted_before((templates[workload][0] for workload in policies), desired.workspaces)
    for workload, counted in found.items():
        template, placed = templates[workload]
        what = f"{shortened(str(counted))} on {desired.workspaces[template.workspace].primary}"
        where = f"template {counted.by.workload} in {counted.by.path}:{counted.by.line}"
        hint = f"try the annotation {WORKLOAD}, or another release name"
        work.tell(placed, Finding(loc=NAME, message=f"{what} is already counted by {where}", hint=hint))
    return frozenset(found)
