"""A fleet repository that has lost half of its workloads or clusters, or more, at once: nothing ends until confirmed.

A force-push of the wrong branch or a wrong merge would otherwise end every burst of the fleet within one pass. What
counts are the two branches as they stand: workloads with placements whose files are gone, beside those whose files are
there; and clusters alike, with those that a workspace names. Expiries go on.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core.decide.state.pass_input import MassDeletion, PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import missing_file, outside_policy, revert
from reconciler.core.decide.steps.follow_requests import forget
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan, Reason, Suppressed
from reconciler.model.request import Asker
from reconciler.model.tree import Identity
from reconciler.text.timestamps import format_time

_FEWEST_REQUESTS = 2
"""Requests that go at once before it may be an accident: deleting one file is how a person ends one request."""

_FEWEST_CLUSTERS = 2
"""Clusters that go at once before it may be an accident, while any is left."""


def find_mass_deletion(inputs: PassInput) -> MassDeletion | None:
    """Find out whether half of the bursting workloads, of the requests, or of the clusters have lost their files.

    None while a file cannot be read: nothing ends for its absence then in any case.
    """
    if inputs.desired.incomplete:
        return None
    lost: list[WorkloadId] = []
    left = 0
    for gone, present, fewest in (
        (_lost_bursts(inputs), len(inputs.fleet.policies), 1),
        (_lost_requests(inputs), len(inputs.desired.requests), _FEWEST_REQUESTS),
    ):
        if len(gone) >= max(present, fewest):
            lost, left = [*lost, *gone], left + present
    clusters = _lost_clusters(inputs)
    if not (lost or clusters):
        return None
    clusters_left = len(inputs.desired.clusters)
    return MassDeletion(workloads=tuple(sorted(lost)), left=left, clusters=clusters, clusters_left=clusters_left)


def hold_deleted(inputs: PassInput, working_plan: WorkingPlan) -> None:
    """Note the placements that stay because a mass deletion is not confirmed."""
    if inputs.deletion is None:
        return
    for workload in inputs.deletion.workloads:
        _hold(working_plan, workload, working_plan.of(workload), _describe_missing_template(inputs, workload))
    held = {*inputs.deletion.workloads}
    for cluster in inputs.deletion.clusters:
        on_cluster = working_plan.on(cluster)
        for workload in sorted({placement.workload for placement in on_cluster} - held):
            placements = [placement for placement in on_cluster if placement.workload == workload]
            _hold(working_plan, workload, placements, _describe_missing_cluster(cluster))


def _hold(working_plan: WorkingPlan, workload: WorkloadId, placements: Sequence[Placement], absent: str) -> None:
    """Note that placements of a workload stay; `absent` says what is gone."""
    last = max((placement.expires_at for placement in placements), default=None)
    until = "" if last is None else f" until it expires at {format_time(last)}"
    working_plan.suppress(
        Suppressed(
            workload=workload,
            reason=Reason.DELETION_UNCONFIRMED,
            message=f"{absent}, with half of all or more; it stays{until}, or until somebody"
            " confirms the deletion (`overspill confirm`)",
            replicas=sum(placement.replicas for placement in placements),
        )
    )


def end_deleted(inputs: PassInput, *, by: Identity) -> Plan:
    """End what a mass deletion would have ended, because a person confirms it; an empty plan where there is none."""
    deletion = find_mass_deletion(inputs)
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)
    if deletion is None:
        return Plan()
    for workload in deletion.workloads:
        detail = f"{_describe_missing_template(inputs, workload)}; confirmed by {by.name}"
        record = working_plan.requests.get(workload)
        if record is not None:
            forget(inputs, working_plan, record, detail, author=by)
        for placement in working_plan.of(workload):
            revert(inputs, working_plan, placement, EndReason.POLICY, detail, author=by)
    for cluster in deletion.clusters:
        detail = f"{_describe_missing_cluster(cluster)}; confirmed by {by.name}"
        for placement in working_plan.on(cluster):
            revert(inputs, working_plan, placement, EndReason.POLICY, detail, author=by)
    return Plan(changes=working_plan.plan().changes)


def _lost_bursts(inputs: PassInput) -> list[WorkloadId]:
    """List the bursting workloads without a template or policy."""
    workloads = outside_policy(inputs, WorkingPlan(inputs))
    return [workload for workload in workloads if not workload.request and missing_file(inputs.desired, workload)]


def _lost_requests(inputs: PassInput) -> list[WorkloadId]:
    """List the recorded requests whose files are gone."""
    records = inputs.ledger.requests
    return [
        workload
        for workload in inputs.enrolment.changed_requests()
        if workload in records and records[workload].asker is Asker.FILE and workload not in inputs.desired.requests
    ]


def _lost_clusters(inputs: PassInput) -> tuple[ClusterName, ...]:
    """List the clusters that no file describes, where they are half of all or more and have placements."""
    described = inputs.desired.clusters
    with_placements = inputs.ledger.placements.clusters() - described.keys()
    named = {name for workspace in inputs.desired.workspaces.values() for name in workspace.clusters}
    lost = with_placements | (named - described.keys())
    if not with_placements or len(lost) < len(described) or (described and len(lost) < _FEWEST_CLUSTERS):
        return ()
    return tuple(sorted(lost))


def _describe_missing_cluster(cluster: ClusterName) -> str:
    return f"no file describes Cluster {cluster} any more"


def _describe_missing_template(inputs: PassInput, workload: WorkloadId) -> str:
    """Say which file of a workload is gone: what the ledger records has one of its own."""
    if workload in inputs.ledger.requests:
        return "its file is gone from the fleet repository"
    return missing_file(inputs.desired, workload)
