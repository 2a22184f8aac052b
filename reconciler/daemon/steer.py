"""Passes on order of a person or a schedule: revert, release, extend, sweep and rebalance.

Each makes its own plan and publishes it as any pass does, or only shows it. All but the last need no observations.
`revert`, `release` and `extend` take policies from the source branch where it is readable; `sweep` reads the output
branch alone, since no file may be a reason to leave a burst running.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from reconciler.core.commits.write import RenderedPlan
from reconciler.core.decide.decide import sweep
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.daemon.loop import CONFLICT_TRIES, conflict_pause, unsettled
from reconciler.daemon.publish import find_losses
from reconciler.daemon.reconcile import (
    Memory,
    Outcome,
    PassDecision,
    World,
    begin_push,
    draft,
    read_input,
    render_plan,
    store_commits,
)
from reconciler.errors import Conflict, InvalidInput
from reconciler.model.action import Action
from reconciler.model.approval import ProposalEnd
from reconciler.model.capacity import Observed
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import CommitId
from reconciler.model.plan import Plan, unwritten_remedy
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity, Tips

T = TypeVar("T")
_ASKED = frozenset({Action.EXTEND, Action.PLACE, Action.RESIZE, Action.AMEND, Action.CLOSE, Action.APPROVE})
"""Actions that an order of a person decides on, beside the ends that the person asks for."""
_NOTHING = RenderedPlan(commits=(), changes=(), suppressed=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDraft:
    """The commits of a person's order with their authors; nothing has left this process yet."""

    decision: PassDecision
    rendered: RenderedPlan


def survey(world: World, memory: Memory) -> PassDecision:
    """Read both branches without looking at any cluster; the plan is empty."""
    tips = world.repository.fetch()
    return _empty_decision(world, memory, tips, _read_desired(memory, tips))


def _empty_decision(world: World, memory: Memory, tips: Tips, desired: Desired) -> PassDecision:
    ledger = memory.branch.ledger(tips.output)
    tips = replace(tips, losses=find_losses(world.repository, desired))
    memory.enrolment = memory.enrolment.updated(desired, ledger.requests)
    now = world.clock.now()
    inputs = PassInput(
        desired=memory.enrolment.desired,
        reach=memory.enrolment.reach,
        enrolment=memory.enrolment,
        ledger=ledger,
        observed=Observed(),
        demands={},
        now=now,
    )
    return PassDecision(inputs=inputs, tips=tips, plan=Plan())


def draft_from_git(
    world: World, memory: Memory, decide: Callable[[PassInput], Plan], *, person: Identity | None = None
) -> CommitDraft:
    """Write the plan of `decide` for the current branches.

    Changes that `person` ordered carry the person's name, all others ours.
    """
    return _draft(world, survey(world, memory), decide, person)


def draft_from_clusters(
    world: World, memory: Memory, decide: Callable[[PassInput], Plan], *, person: Identity
) -> CommitDraft:
    """Write the plan of `decide` for the current branches and observations.

    Where a placement cannot be written, the plan is decided anew without that cluster; raises InvalidInput where that
    does not help.
    """
    tips = world.repository.fetch()
    inputs = read_input(world, memory, tips, ())
    decision, rendered = draft(world, PassDecision.of(inputs, tips, decide(inputs)), decide)
    if rendered.unwritable:
        problems = (f"{workload} on {cluster}: {why}" for (workload, cluster), why in rendered.unwritable.items())
        remedies = dict.fromkeys(map(unwritten_remedy, rendered.unwritable.values()))
        remedy = "try again" if rendered.pending else "; ".join(remedies)
        raise InvalidInput(f"writing {'; '.join(problems)} ({remedy})")
    if not decision.plan.changes:
        rendered = _NOTHING
    return CommitDraft(decision=decision, rendered=sign(rendered, person))


def carry_out(world: World, memory: Memory, draft: CommitDraft) -> Outcome:
    """Push a draft, all of it at once. Raises Conflict when the output branch moved meanwhile: draft it again."""
    ids = store_commits(world, draft.decision, draft.rendered)
    push = begin_push(world, memory, draft.decision, draft.rendered, ids)
    return push.end()


def draft_sweep(world: World, memory: Memory) -> CommitDraft:
    """Write the ends of what has lapsed, from the output branch alone: no file of the source branch is read.

    Branches of clusters follow where there are any. A workload's cool-down is that of a policy without one of its own.
    """
    tips = world.repository.fetch()
    nothing = Desired(commit=tips.source or CommitId(""), incomplete=True)
    return _draft(world, _empty_decision(world, memory, tips, nothing), sweep, None)


def _draft(
    world: World, seen: PassDecision, decide: Callable[[PassInput], Plan], person: Identity | None
) -> CommitDraft:
    decision = PassDecision.of(seen.inputs, seen.tips, decide(seen.inputs))
    rendered = render_plan(world, decision) if decision.plan.changes else _NOTHING
    return CommitDraft(decision=decision, rendered=rendered if person is None else sign(rendered, person))


def retry_conflicts(attempt: Callable[[], T], *, random: Callable[[], float]) -> T:
    """Run an attempt until the branch no longer moves under it; Transient when that does not come to an end."""
    last = Conflict()
    for tries in range(1, CONFLICT_TRIES + 1):
        try:
            return attempt()
        except Conflict as conflict:
            last = conflict
            time.sleep(conflict_pause(tries, luck=random()))
    raise unsettled(last)


def _read_desired(memory: Memory, tips: Tips) -> Desired:
    """Read the source branch as far as that goes."""
    if tips.source is None:
        return Desired(commit=CommitId(""), incomplete=True)
    try:
        return memory.source.desired(tips.source)
    except InvalidInput as error:
        return Desired(commit=tips.source, problems=error.problems, incomplete=True)


def sign(rendered: RenderedPlan, person: Identity) -> RenderedPlan:
    """Put a person's name on the commits that the person ordered."""
    # A commit that begins the branch stands before those of the changes.
    first = len(rendered.commits) - len(rendered.changes)
    asked = [
        change.action in _ASKED or change.why in (ProposalEnd.REFUSED, EndReason.REQUESTED)
        for change in rendered.changes
    ]
    commits = tuple(
        replace(commit, author=person) if index >= first and asked[index - first] else commit
        for index, commit in enumerate(rendered.commits)
    )
    return replace(rendered, commits=commits)
