"""Which BurstPolicy governs which template: exactly one, the most specific."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.ids import WorkloadId
from reconciler.model.policy import BurstPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class GoverningPolicies:
    """The policy of each workload that has one, and the policies (by position) that would govern some just as well."""

    policies: Mapping[WorkloadId, BurstPolicy]
    rivals: Mapping[int, tuple[tuple[WorkloadId, BurstPolicy], ...]]


def govern(policies: Sequence[BurstPolicy], workloads: Iterable[WorkloadId]) -> GoverningPolicies:
    """Find each workload's policy: the one that names it, else the one that names its workspace, else the one for all.

    Of two of the same rank the earlier one governs; the later one is its rival, told with the workload and the winner.
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
    return GoverningPolicies(policies=governed, rivals={position: tuple(found) for position, found in rivals.items()})
