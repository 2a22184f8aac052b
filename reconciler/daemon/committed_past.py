"""What a process that has just begun knows of the demand before it: what commits of the output branch tell."""

from __future__ import annotations

from datetime import datetime

from reconciler.core.commits.history import own, past_demand
from reconciler.core.observe.demand import PastDemand
from reconciler.core.signals.past_demand import Levels
from reconciler.daemon.bug_log import BUGS
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity
from reconciler.ports import Repository


def with_committed_past(
    past: PastDemand, desired: Desired, repository: Repository, *, tip: CommitId | None, author: Identity, now: datetime
) -> PastDemand:
    """Add the past of workloads whose signals look back and of which nothing is remembered; itself where none is.

    Raises Transient when the remote is needed for older history and is away.
    """
    new = {
        str(workload): workload
        for workload, policy in desired.policies.items()
        if policy.signals and workload not in past and any(signal.looks_back for signal in policy.signals)
        if desired.templates[workload].ref is not None
    }
    if not new:
        return past
    signals = [signal for workload in new.values() for signal in desired.policies[workload].signals]
    since = now - max(signal.looks_back for signal in signals)
    logged = () if tip is None else own(repository.log(tip, since=since), author)
    demands = past_demand(logged, new, BUGS.note)
    return {**past, **{workload: demands.get(name, _NOTHING) for name, workload in new.items()}}


_NOTHING: Levels = ()
