"""Passes that a person or a schedule asks for: revert, extend and sweep, and rebalance.

They read both branches, make a plan of their own and publish it as any pass does, or only show it. The first three need
no sight of the clusters, and the source branch gives policies where it can; a broken or missing one is no reason to
leave a burst running.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TypeVar

from reconciler.core.commits.write import RenderedPlan
from reconciler.core.decide.decide import sweep
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.daemon.loop import CONFLICT_TRIES, conflict_pause
from reconciler.daemon.reconcile import (
    Memory,
    Outcome,
    View,
    World,
    begin_push,
    draft,
    read_input,
    render_plan,
    store_commits,
)
from reconciler.errors import Conflict, InvalidInput, OverspillError, Transient
from reconciler.model.capacity import Observed
from reconciler.model.ids import CommitId
from reconciler.model.plan import Amend, Close, Extend, Place, Plan, Resize, Revert, Why
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity, Tips

T = TypeVar("T")
_NOTHING = RenderedPlan(commits=(), changes=(), suppressed=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDraft:
    """What would be committed, and in whose names; nothing has left this process yet."""

    view: View
    rendered: RenderedPlan


def survey(world: World, memory: Memory) -> View:
    """Read both branches without looking at any cluster; the plan is empty."""
    tips = world.repository.fetch()
    return _view(world, memory, tips, _desired(memory, tips))


def _view(world: World, memory: Memory, tips: Tips, desired: Desired) -> View:
    ledger = memory.branch.ledger(tips.output)
    memory.enrolment = memory.enrolment.following(desired, ledger.requests)
    return View(
        desired=memory.enrolment.desired,
        reach=memory.enrolment.reach,
        enrolment=memory.enrolment,
        ledger=ledger,
        observed=Observed(),
        demands={},
        now=world.clock.now(),
        tips=tips,
        plan=Plan(),
    )


def draft_from_git(
    world: World, memory: Memory, decide: Callable[[PassInput], Plan], *, person: Identity | None = None
) -> CommitDraft:
    """Write what `decide` makes of both branches as they stand.

    What was asked for is in the name of `person`, everything else as ever.
    """
    return _draft(world, survey(world, memory), decide, person)


def draft_from_clusters(
    world: World, memory: Memory, decide: Callable[[PassInput], Plan], *, person: Identity
) -> CommitDraft:
    """Write what `decide` makes of both branches and of the clusters as they are seen.

    Where a part of it cannot be written, it is decided anew without that cluster; raises InvalidInput where that does
    not help.
    """
    tips = world.repository.fetch()
    inputs = read_input(world, memory, tips, ())
    view, rendered = draft(world, View.of(inputs, tips, decide(inputs)), decide)
    if rendered.unwritable:
        problems = (f"{workload} on {cluster}: {why}" for (workload, cluster), why in rendered.unwritable.items())
        raise InvalidInput(f"writing {'; '.join(problems)} (mend the template)")
    if not view.plan.changes:
        rendered = _NOTHING
    return CommitDraft(view=view, rendered=_sign(rendered, person))


def carry_out(world: World, memory: Memory, draft: CommitDraft) -> Outcome:
    """Push a draft, all of it at once. Raises Conflict when the output branch moved meanwhile: draft it again."""
    ids = store_commits(world, draft.view, draft.rendered)
    push = begin_push(world, memory, draft.view, draft.rendered, ids)
    push.end()
    return push.outcome


def sweep_on_failure(world: World, memory: Memory, attempt: Callable[[], T]) -> T:
    """Make an attempt at a pass, and if it fails for a reason of our own, end at least what has lapsed.

    Whatever is wrong with a file, an observation, an order or this program, a burst that is over does not wait for it:
    its end is in git, and needs nothing else. The failure itself is raised all the same.
    """
    try:
        return attempt()
    except (Conflict, Transient):
        raise
    except Exception:
        with suppress(OverspillError):
            tips = world.repository.fetch()
            nothing = Desired(commit=tips.source or CommitId(""), incomplete=True)
            carry_out(world, memory, _draft(world, _view(world, memory, tips, nothing), sweep, None))
        raise


def _draft(world: World, seen: View, decide: Callable[[PassInput], Plan], person: Identity | None) -> CommitDraft:
    view = View.of(seen, seen.tips, decide(seen))
    rendered = render_plan(world, view) if view.plan.changes else _NOTHING
    return CommitDraft(view=view, rendered=rendered if person is None else _sign(rendered, person))


def retry_conflicts(attempt: Callable[[], T], *, random: Callable[[], float]) -> T:
    """Run an attempt until the branch no longer moves under it; Transient when that does not come to an end."""
    for tries in range(1, CONFLICT_TRIES + 1):
        try:
            return attempt()
        except Conflict:
            time.sleep(conflict_pause(tries, luck=random()))
    raise Transient(f"pushing: the output branch moved {CONFLICT_TRIES} times in a row under us")


def _desired(memory: Memory, tips: Tips) -> Desired:
    """Read the source branch as far as that goes."""
    if tips.source is None:
        return Desired(commit=CommitId(""), incomplete=True)
    try:
        return memory.source.desired(tips.source)
    except InvalidInput as error:
        return Desired(commit=tips.source, problems=error.problems, incomplete=True)


def _sign(rendered: RenderedPlan, person: Identity) -> RenderedPlan:
    """Put a person's name on the commits of what the person asked for."""
    # A commit that begins the branch stands before those of the changes.
    first = len(rendered.commits) - len(rendered.changes)
    asked = [
        isinstance(change, Extend | Place | Resize | Amend | Close)
        or (isinstance(change, Revert) and change.why is Why.REQUESTED)
        for change in rendered.changes
    ]
    commits = tuple(
        replace(commit, author=person) if index >= first and asked[index - first] else commit
        for index, commit in enumerate(rendered.commits)
    )
    return replace(rendered, commits=commits)
