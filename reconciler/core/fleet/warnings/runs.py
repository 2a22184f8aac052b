"""Warns of runs that their burst's time may cut off: what is cut off begins from its start, and only by a person."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.ledger.lifecycle import longest_duration, placement_duration, renewal
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.single_run import longest_run
from reconciler.errors import Severity
from reconciler.model.gpr import WorkspaceLimits
from reconciler.model.policy import BurstPolicy, Renewal
from reconciler.model.units import format_duration
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.findings import Finding


def warn_short_time(
    template: WorkloadTemplate, policy: BurstPolicy | None, limits: WorkspaceLimits | None, kinds: Kinds
) -> Iterator[Finding]:
    """Warn of what runs once where its deadline is later than the end of its burst, or nothing bounds either.

    A bound that a person wrote for renewed bursts is taken to suit what has no deadline.
    """
    if policy is None or not template.runs_once:
        return
    renewed = renewal(template, policy) is Renewal.WHILE_NEEDED
    lasts = longest_duration(policy, limits) if renewed else placement_duration(template, policy, limits)
    longest = longest_run(template.spec, kinds)
    if lasts is None or (renewed if longest is None else longest <= lasts):
        return
    may = "it runs once, and may take any time" if longest is None else f"it may run for {format_duration(longest)}"
    ends = f"{'ends' if renewed else 'is not renewed and ends'} after {format_duration(lasts)} by policy {policy.name}"
    hint = f"leave duration.renew out of policy {policy.name}, or give it a longer burstDuration"
    if renewed:
        hint = f"raise duration.max of policy {policy.name}, or maxExitDurationPerGPR of its WorkspacePolicy"
    yield Finding(
        loc=("spec",) if template.spec.burst_duration is None else ("spec", "burstDuration"),
        message=f"{may}, and its burst {ends}: a run that is cut off is held until `overspill release` begins it again"
        " from its start",
        hint=hint,
        severity=Severity.WARNING,
    )
