"""The WorkloadSpread that governs each template.

A spread governs the templates that burst for its target: in every workspace that may use its namespace, or in the
workspace that its annotation names. The spread becomes part of the policy in force there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from reconciler.core.capacity.chart_gangs import is_declared_gang
from reconciler.core.fleet.file import AbsentSpread
from reconciler.core.fleet.kruise_whitelist import CONFIGURATION
from reconciler.core.fleet.objects import DeclaredValue, FleetObjects, foreign_namespace
from reconciler.core.fleet.policies import Templates
from reconciler.core.fleet.spread import warnings
from reconciler.core.fleet.spread.rules import WORKSPACE, KruiseRule, spread_of
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.schema.policy import BurstPolicyFile
from reconciler.core.schema.workloadspread import TargetFile, WorkloadSpreadFile
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, SPREAD, Kinds
from reconciler.errors import Severity
from reconciler.model.ids import WorkloadId, WorkspaceName
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.policy import BurstPolicy, Desired, Workspace
from reconciler.model.workload import WorkloadRef, WorkloadTemplate
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import suggested

_TARGET: Loc = ("spec", "targetRef")
_ANNOTATION: Loc = ("metadata", "annotations", WORKSPACE)
_STALLED = "a WorkloadSpread of it is broken, and has never been valid, so its subsets are unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class _DeclaredSpread:
    """A spread and its file."""

    value: WorkloadSpread
    placed: DeclaredValue[WorkloadSpreadFile]
    # The workspace that its annotation names; empty for any.
    workspace: str
    # The workspaces that its path may hold objects of.
    open_to: frozenset[WorkspaceName]

    @property
    def target(self) -> AbsentSpread:
        """The workload that it governs, in case it is not in force."""
        return AbsentSpread(namespace=self.value.namespace, name=self.value.target.name, path=self.placed.path)

    @property
    def where(self) -> str:
        """The path and line of the spread."""
        return f"{self.value.path}:{self.value.line}"

    def overlaps(self, other: _DeclaredSpread) -> bool:
        """Return whether both spreads may hold in one workspace."""
        if self.open_to.isdisjoint(other.open_to):
            return False
        return not self.workspace or not other.workspace or self.workspace == other.workspace

    def governs(self, template: WorkloadTemplate, ref: WorkloadRef, workspace: Workspace) -> bool:
        """Return whether the spread governs a template whose workload reference is `ref`."""
        target = self.value.target
        deployed = warnings.deployed_target(template, target)
        return (
            (ref.namespace, ref.name) == (target.namespace, target.name)
            and ref.kind in ("", target.kind)
            and ref.group in ("", self.value.group)
            and self.workspace in ("", workspace.name)
            and workspace.name in self.open_to
            and _may_touch(workspace, target.namespace)
            and (deployed is None or group_kind(deployed).partition("/")[0] == self.value.group)
        )


def spread_policies(work: FleetObjects, desired: Desired, templates: Templates) -> dict[WorkloadId, BurstPolicy]:
    """Return the policies in force, each with the spread that governs its template, and report problems of spreads.

    Of two spreads for one template the first governs, by path and line. A policy whose distribution is more than
    a strategy has no spread, and neither has a gang, since all of it is on one cluster: the subsets only bound their
    clusters. Nothing new is placed for a workload that a spread may target which is not in force.
    """
    policies = dict(desired.policies)
    spreads = _in_force(work, desired)
    at: dict[tuple[str, str], list[int]] = {}
    for position, spread in enumerate(spreads):
        at.setdefault((spread.value.namespace, spread.value.target.name), []).append(position)
    governed: dict[int, list[WorkloadTemplate]] = {position: [] for position in range(len(spreads))}
    for workload, (template, _) in templates.items():
        ref, workspace = template.ref, desired.workspaces[template.workspace]
        if ref is None:
            continue
        named = [
            spread_index
            for spread_index in at.get((ref.namespace, ref.name), ())
            if spreads[spread_index].governs(template, ref, workspace)
        ]
        for position in named[1:]:
            first = spreads[named[0]]
            message = f"{workload} is governed by WorkloadSpread {first.value.name} in {first.where}, and stays so"
            hint = f"say of which kind it is: {WORKLOAD}: <Kind>/{ref.namespace}/{ref.name}"
            finding = Finding(loc=_TARGET, message=message, hint=hint, severity=Severity.WARNING)
            work.report(spreads[position].placed, finding)
        for position in named:
            governed[position].append(template)
        policy = policies.get(workload)
        if policy is None:
            continue
        alone = not template.runs_once and not is_declared_gang(
            template.spec, template.ref, template.group_size, desired.kinds
        )
        if named and policy.distribution.is_strategy_alone and alone:
            policies[workload] = replace(policy, spread=spreads[named[0]].value)
        elif named:
            policies[workload] = replace(policy, bounds=spreads[named[0]].value)
        elif work.is_stalled(ref, workspace.name):
            policies[workload] = replace(policy, stalled=_STALLED)
    written = frozenset(placed.value.metadata.name for placed in work.all(BurstPolicyFile))
    burst_targets = warnings.BurstTargets(
        template.ref for template, _ in templates.values() if template.ref is not None
    )
    for position, spread in enumerate(spreads):
        find = partial(
            _warnings, work, spread, governed[position], desired=desired, burst_targets=burst_targets, written=written
        )
        work.warn(spread.placed, find)
    return policies


def _warnings(
    work: FleetObjects,
    spread: _DeclaredSpread,
    governed: list[WorkloadTemplate],
    *,
    desired: Desired,
    burst_targets: warnings.BurstTargets,
    written: frozenset[str],
) -> Iterator[Finding]:
    """Yield the fields of a spread without effect; consequences of broken files are none of them."""
    lost = spread.workspace and spread.workspace not in desired.workspaces
    if not governed:
        if not lost and work.excused.isdisjoint({"WorkloadTemplate", "Workspace"}):
            yield burst_targets.unmatched(spread.value, spread.placed.value)
        return
    governed = [template for template in governed if not template.unread]
    if not governed:
        return  # no object of them is known
    policies = {
        policy.name: policy for template in governed if (policy := desired.policies.get(template.workload)) is not None
    }
    yield from warnings.warn_policies(policies.values(), written)
    yield from warnings.warn_gangs(governed, desired.kinds)
    yield from warnings.warn_unmatched_selector(spread.value, governed, desired.kinds)
    if "Cluster" not in work.excused:
        homes = [desired.workspaces[name] for name in dict.fromkeys(template.workspace for template in governed)]
        yield from warnings.warn_empty_subsets(spread.value, spread.placed.value, homes, desired.clusters)
        yield from warnings.warn_misspelt_labels(spread.value, spread.placed.value, homes, desired.clusters)
        yield from warnings.warn_shared_ordinals(spread.value, homes, desired.clusters)
    yield from warnings.check_patches(spread.value, governed, desired)
    if work.excused.isdisjoint({"Cluster", "Fleet", "WorkloadKind", CONFIGURATION}):
        yield from warnings.warn_refused_clusters(spread.value, governed, desired)


def _in_force(work: FleetObjects, desired: Desired) -> list[_DeclaredSpread]:
    """Return the spreads that other files do not exclude, by path and line."""
    declared_spreads: list[_DeclaredSpread] = []
    names: dict[tuple[str, str], list[_DeclaredSpread]] = {}
    targets: dict[tuple[str, str, str], list[_DeclaredSpread]] = {}
    for placed in work.all(WorkloadSpreadFile):
        file, target = placed.value, placed.value.spec.target_ref
        if target is None:
            continue  # its file is broken, and takes no part
        spread = _DeclaredSpread(
            value=spread_of(file, target, path=placed.path, line=placed.declared.line),
            placed=placed,
            workspace=file.metadata.annotations.get(WORKSPACE, ""),
            open_to=frozenset(
                name for name in desired.workspaces if work.paths.refuse_workspace(placed.path, name) is None
            ),
        )
        named = WorkspaceName(spread.workspace)
        if named in desired.workspaces and (refusal := work.paths.refuse_workspace(placed.path, named)) is not None:
            work.reject(placed, replace(refusal, loc=_ANNOTATION))
            continue
        if not _permits(work, target, desired.kinds):
            work.reject(placed, Finding(loc=_TARGET, message=KruiseRule.NOT_PERMITTED, hint=_target_hint(target)))
            work.absent_spreads.append(spread.target)
            continue
        alike = names.setdefault((file.namespace, file.metadata.name), [])
        other = next((declared_spread for declared_spread in alike if declared_spread.overlaps(spread)), None)
        what = f"WorkloadSpread {file.namespace}/{file.metadata.name}"
        if not work.is_unique(placed, None if other is None else other.placed, what):
            work.absent_spreads.append(spread.target)
            continue
        rivals = targets.setdefault((file.namespace, target.group_kind, target.name), [])
        other = next((rival for rival in rivals if rival.overlaps(spread)), None)
        if other is not None:
            hint = f"that is in {other.where}; put both into one"
            conflict = Finding(loc=_TARGET, message=KruiseRule.CONFLICT.format(other.value.name), hint=hint)
            work.reject_second(placed, other.placed, conflict)
            work.absent_spreads.append(spread.target)
            continue
        for spreads in (alike, rivals, declared_spreads):
            spreads.append(spread)
        _check_workspace(work, spread, desired)
    return declared_spreads


def _permits(work: FleetObjects, target: TargetFile, declared: Kinds) -> bool:
    """Return whether replicas of a kind can be spread: Kruise's own, known, and declared kinds.

    If a broken file may declare the kind, it is permitted.
    """
    kind = BUILT_IN.get(target.group_kind)
    return (
        target.kind in SPREAD
        or target.group_kind in declared
        or (kind is not None and kind.counted and bool(kind.replicas))
        or not work.excused.isdisjoint({"WorkloadKind", CONFIGURATION})
    )


def _target_hint(target: TargetFile) -> str:
    """Suggest the kind that was probably meant, or a way to declare this one."""
    kind = next((kind for kind in BUILT_IN.values() if kind.kind == target.kind and kind.replicas), None)
    if kind is not None and kind.group != target.group:
        return f"try apiVersion: {'/'.join(part for part in (kind.group, *kind.versions[:1]) if part)}"
    if kind is None and (likely := suggested(target.kind, _kinds_of_group(target.group))):
        return f"try kind: {likely}"
    return f"add a WorkloadKind for {shortened(target.group_kind)}, or put it on Kruise's whitelist"


def _kinds_of_group(group: str) -> list[str]:
    """List the kinds of a group whose replicas can be spread."""
    return [kind.kind for kind in BUILT_IN.values() if kind.group == group and kind.replicas]


def _check_workspace(work: FleetObjects, spread: _DeclaredSpread, desired: Desired) -> None:
    """Report an unknown workspace, or one that may not use the namespace."""
    if not spread.workspace:
        return
    work.report_unknown(spread.placed, "Workspace", [(_ANNOTATION, spread.workspace)], desired.workspaces)
    if spread.workspace not in desired.workspaces:
        work.absent_spreads.append(spread.target)
    workspace = next(
        (workspace for workspace in desired.workspaces.values() if workspace.name == spread.workspace), None
    )
    if workspace is not None and not _may_touch(workspace, spread.value.namespace):
        work.report(spread.placed, foreign_namespace(_ANNOTATION, spread.value.namespace, workspace))


def _may_touch(workspace: Workspace, namespace: str) -> bool:
    return not workspace.namespaces or namespace in workspace.namespaces
