"""What the objects of a placement are rendered from, by which rendered objects and failures are kept between fleets.

Each source commit makes a fleet. A commit that leaves this as it is leaves what was rendered, and what failed: else
commits of anybody that come faster than passes keep what comes last in a workspace from ever having its turn. All that
outlives a fleet goes by this module: pods of subsets (`fleet.spread.drafts`), failures (`pass_input.EarlierFailures`)
and the templates that a pass has filled in (`commits.templates`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from operator import attrgetter
from typing import Any

from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.workload_spread import WorkloadSpread
from reconciler.model.policy import BurstPolicy, Cluster, Desired, Fleet, Workspace
from reconciler.model.workload import WorkloadTemplate

LEFT_OUT: Mapping[type, frozenset[str]] = {
    Fleet: frozenset({"observation_max_age", "worker_lost_timeout", "ignore", "paths", "source_repositories"}),
    Cluster: frozenset(
        {
            "taints",
            "availability",
            "price_per_gpu_hour",
            "prices",
            "spot",
            "connection",
            "time_to_ready",
            "autoscaling",
        }
    ),
    Workspace: frozenset(
        {"clusters", "paths", "allow_unknown_needs", "requests_on_primary", "weight", "quota", "budget"}
    ),
    # Where a template stands is in messages alone, and its version in records.
    WorkloadTemplate: frozenset(
        {"path", "line", "blob", "made_from", "namespaces", "labels", "gpr_templates", "workload"}
    ),
    WorkloadSpread: frozenset({"path", "line", "reschedule", "recovery"}),
}
"""The fields that rendering reads nothing of: others count, also those that are new."""

BASIS: Mapping[type, tuple[str, ...]] = {
    **{
        kind: tuple(field.name for field in fields(kind) if field.name not in left_out)
        for kind, left_out in LEFT_OUT.items()
    },
    # The others say when and where a workload bursts.
    BurstPolicy: ("default_duration", "max_duration"),
}
"""The fields that rendering reads, by kind; of a policy its spread as well."""

_READ: Mapping[type, Callable[[Any], object]] = {kind: attrgetter(*names) for kind, names in BASIS.items()}


class RenderingComparison:
    """Compares what two fleets render placements from. Each part is compared once, when it is first asked for."""

    def __init__(self, before: Desired, after: Desired) -> None:
        """Compare what all placements share."""
        self._before, self._after = before, after
        self._is_same_fleet = (
            _is_same(before.fleet, after.fleet) and before.kinds == after.kinds and before.schemas == after.schemas
        )
        self._workspaces: dict[WorkspaceName, bool] = {}
        self._clusters: dict[ClusterName, bool] = {}
        self._workloads: dict[WorkloadId, bool] = {}

    def is_same(self, workload: WorkloadId, cluster: ClusterName | None = None) -> bool:
        """Return whether placements of a workload on a cluster are rendered from the same in both fleets.

        Without a cluster, whether those are that read nothing of theirs. False for what one of the fleets lacks.
        """
        return (
            self._is_same_fleet
            and self._is_same_workspace(workload.workspace)
            and self._is_same_workload(workload)
            and (cluster is None or self._is_same_cluster(cluster))
        )

    def _is_same_workspace(self, name: WorkspaceName) -> bool:
        if name not in self._workspaces:
            self._workspaces[name] = _is_same(self._before.workspaces.get(name), self._after.workspaces.get(name)) and (
                _longest(self._before, name) == _longest(self._after, name)
            )
        return self._workspaces[name]

    def _is_same_cluster(self, name: ClusterName) -> bool:
        if name not in self._clusters:
            self._clusters[name] = _is_same(self._before.clusters.get(name), self._after.clusters.get(name))
        return self._clusters[name]

    def _is_same_workload(self, workload: WorkloadId) -> bool:
        if workload not in self._workloads:
            before, after = self._before.policies.get(workload), self._after.policies.get(workload)
            self._workloads[workload] = _is_same(
                self._before.templates.get(workload), self._after.templates.get(workload)
            ) and _is_same_policy(before, after)
        return self._workloads[workload]


def _is_same_policy(before: BurstPolicy | None, after: BurstPolicy | None) -> bool:
    if before is after:
        return True
    if not _is_same(before, after) or before is None or after is None:
        return False
    return before.spread is after.spread or _is_same(before.spread, after.spread)


def _is_same(before: object, after: object) -> bool:
    """Return whether two values have equal fields in `BASIS`; False where there is one alone, or none."""
    if before is None or after is None:
        return False
    read = _READ[type(before)]
    return before is after or bool(read(before) == read(after))


def _longest(desired: Desired, workspace: WorkspaceName) -> object:
    """Return how long placements of a workspace may last, which bounds the end that templates may read."""
    limits = desired.limits.get(workspace)
    return None if limits is None else limits.longest
