"""The pods on a primary that wait for something else than room: what they wait for, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.capacity import BlockedReplicas
from reconciler.model.demand import Demand
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, conjugate, count, sentence


def describe_blocked(demand: Demand) -> Iterator[str]:
    """Describe each group of pods that no burst would help, in a sentence."""
    for blocked in demand.blocked:
        out = f"; {as_clause(blocked.way_out)}" if blocked.way_out else ""
        yield sentence(
            f"{_pods(blocked)} on {demand.primary} {conjugate(blocked.replicas, 'has')} waited since"
            f" {format_time(blocked.since)}, and no burst would help ({blocked.reason}): {_cause(blocked)}{out}"
        )


def blocked_clauses(demand: Demand) -> Iterator[str]:
    """Describe each group of pods that no burst would help, in a clause."""
    for blocked in demand.blocked:
        yield f"{_pods(blocked)} there {conjugate(blocked.replicas, 'waits')} without lacking room ({_cause(blocked)})"


def _pods(blocked: BlockedReplicas) -> str:
    return count(blocked.replicas, "pod")


def _cause(blocked: BlockedReplicas) -> str:
    return as_clause(blocked.cause) or str(blocked.reason)
