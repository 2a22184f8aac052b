"""What stands in a fleet beside its workloads, and what has changed of it: lost clusters, and budgets that run out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.notification.notices import live_notice
from reconciler.model.budget import BudgetOwner, BudgetState
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.policy import Desired
from reconciler.text.timestamps import format_time


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetCondition:
    """Something that stands."""

    kind: EventKind
    line: str
    workspaces: tuple[WorkspaceName, ...]
    """Whom it concerns."""
    clusters: tuple[ClusterName, ...] = ()
    over: EventKind | None = None
    """The event of its end; None where nobody is told of that."""
    over_line: str = ""


FleetConditions: TypeAlias = Mapping[tuple[str, ...], FleetCondition]
"""By what they are about."""


def conditions(inputs: PassInput) -> FleetConditions:
    """Return what stands."""
    desired = inputs.desired
    standing: dict[tuple[str, ...], FleetCondition] = {}
    for name in inputs.lost:
        concerned = (owner for owner, workspace in desired.workspaces.items() if name in workspace.clusters)
        standing["cluster", name] = FleetCondition(
            kind=EventKind.CLUSTER_LOST,
            line=f"cluster {name} is not seen, or not well: it gets nothing new",
            workspaces=tuple(sorted(concerned)),
            clusters=(name,),
            over=EventKind.CLUSTER_BACK,
            over_line=f"cluster {name} is seen and well again",
        )
    for owner, states in inputs.budgets.by_owner.items():
        if any(state.is_used_up or state.is_nearly_used_up for state in states):  # else all workloads are for nothing
            standing |= _budgets(states, _concerned(desired, owner))
    return standing


def _concerned(desired: Desired, owner: BudgetOwner) -> tuple[WorkspaceName, ...]:
    """Return the workspaces that a budget concerns."""
    if owner.workspace is not None:
        return (owner.workspace,)
    return tuple(sorted({workload.workspace for workload, it in desired.policies.items() if it.name == owner.name}))


def changes(before: FleetConditions, now: FleetConditions, at: datetime) -> Iterator[Notice]:
    """Yield a notice of everything that has begun or ended to stand."""
    for key, condition in before.items():
        if key not in now and condition.over is not None:
            yield _notice(condition, condition.over, condition.over_line, at)
    for key, condition in now.items():
        if key not in before:
            yield _notice(condition, condition.kind, condition.line, at)


def _budgets(
    states: tuple[BudgetState, ...], workspaces: tuple[WorkspaceName, ...]
) -> dict[tuple[str, ...], FleetCondition]:
    standing: dict[tuple[str, ...], FleetCondition] = {}
    for state in states:
        about = f"the budget of {state.owner} for {state.period}, {state.limit:.2f} $,"
        if state.is_used_up:
            kind, line = EventKind.BUDGET_SPENT, f"{about} is used up until {format_time(state.ends_at)}"
        elif state.is_nearly_used_up:
            kind, line = EventKind.BUDGET_NEARLY_SPENT, f"{about} is nearly used up: {state.spent:.2f} $ are spent"
        else:
            continue
        key = ("budget", str(state.owner), state.field, state.period, kind)
        standing[key] = FleetCondition(kind=kind, line=line, workspaces=workspaces)
    return standing


def _notice(condition: FleetCondition, kind: EventKind, line: str, at: datetime) -> Notice:
    event = Event(kind=kind, at=at, line=line, clusters=condition.clusters)
    return live_notice(event, condition.workspaces)
