"""The whole job on one screen: read git, look at the clusters, decide, write git.

Sequencing only. Everything that is decided is decided in `core`; everything outward goes through a port.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta

from reconciler.core.commits import cluster_branches
from reconciler.core.commits import write as render
from reconciler.core.commits.fill import fill
from reconciler.core.commits.messages import line
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.order import Order
from reconciler.core.decide.state.pass_input import Lost, PassInput, given_up
from reconciler.core.decide.steps import lost_cluster
from reconciler.core.decide.steps.follow_requests import left
from reconciler.core.observe import demand
from reconciler.core.observe.rollouts import RolloutSigns
from reconciler.core.observe.unknown_clusters import with_strangers_told
from reconciler.daemon.acceptance import Acceptance
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.publish import Publication, gather, publish
from reconciler.daemon.received_orders import received
from reconciler.daemon.source import SourceReader, missing
from reconciler.errors import Problem
from reconciler.model.capacity import Observed
from reconciler.model.ids import CommitId
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired
from reconciler.model.push import MOST_PATHS, Push
from reconciler.model.tree import Advance, Identity, Tips, branch_of
from reconciler.ports import Charts, Clock, ClusterView, Outbox, Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside this process, by its ports, and the names of who commits and of the two branches."""

    repository: Repository
    clusters: ClusterView
    charts: Charts
    clock: Clock
    outbox: Outbox
    author: Identity
    source_branch: str = "main"
    output_branch: str = "placements"


@dataclass(slots=True)
class Memory:
    """What a process keeps between passes only to be faster, and how long it has watched demand, rollouts and clusters.

    Losing it costs time, one scale-down window, one rollout timeout and one workerLostTimeout, never a placement: the
    only memory that counts is git.
    """

    source: SourceReader
    branch: BranchReader
    enrolment: Enrolment = field(default_factory=lambda: Enrolment(Desired(commit=CommitId("")), {}))
    history: demand.History = field(default_factory=dict)
    lost: Lost = field(default_factory=dict)
    acceptance: Acceptance = field(default_factory=Acceptance)


@dataclass(frozen=True, slots=True, kw_only=True)
class View(PassInput):
    """What one pass saw and decided, before anything is written."""

    tips: Tips
    plan: Plan

    @classmethod
    def of(cls, inputs: PassInput, tips: Tips, plan: Plan) -> View:
        """Put a plan beside the situation that it was made from, with the requests as the plan leaves them."""
        inputs = inputs.enrolling(left(inputs.ledger.requests, plan))
        parts = {field.name: getattr(inputs, field.name) for field in fields(PassInput)}
        return cls(**parts, tips=tips, plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one pass came to: what it saw, what it wrote, and the commits that carry it (none if nothing changed).

    `branches` are those of clusters that were pushed along, or were put right with nothing else to push. `earlier` are
    the commits that have received long since what an order of this number asks for once more. `pushes` is how many
    carried the commits.
    """

    view: View
    rendered: render.Rendered
    commits: tuple[CommitId, ...]
    branches: tuple[Advance, ...] = ()
    earlier: Mapping[int, CommitId] = field(default_factory=dict)
    pushes: int = 1

    @property
    def plan(self) -> Plan:
        """What was decided."""
        return self.view.plan

    @property
    def lines(self) -> tuple[str, ...]:
        """One line for each change that was pushed, or one for branches that were put right."""
        if self.branches and not self.commits:
            return (cluster_branches.line(self.branches),)
        return tuple(line(change) for change in self.rendered.changes)

    @property
    def wake_at(self) -> datetime | None:
        """The next moment at which the same inputs could decide otherwise."""
        return self.view.plan.wake_at

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong with the files of both branches and with the observations."""
        return (*self.view.desired.problems, *self.view.ledger.problems, *self.view.observed.problems)


def look(world: World, memory: Memory, *, fetch: bool = True, orders: tuple[Order, ...] = ()) -> View:
    """Read both branches and the clusters, and decide, what callers order included.

    Without `fetch` the branches are taken as last known.
    """
    tips = world.repository.fetch() if fetch else world.repository.tips()
    inputs = situation_at(world, memory, tips, orders)
    return View.of(inputs, tips, decide(inputs))


def situation_at(
    world: World, memory: Memory, tips: Tips, orders: tuple[Order, ...], seen: Observed | None = None
) -> PassInput:
    """Read both branches as they stand at `tips`, and look at the clusters, unless they were `seen` a moment ago."""
    if tips.source is None:
        raise missing(world.repository, world.source_branch)
    desired = memory.source.desired(tips.source)
    ledger = memory.branch.ledger(tips.output)
    if seen is None:
        world.clusters.follow(desired)
        seen = with_strangers_told(world.clusters.observe(), desired)
    now = world.clock.now()
    demands = demand.measure(desired, seen, memory.history, now)
    memory.history = demand.remembered(demands)
    memory.lost = lost_cluster.missed(memory.lost, desired, seen, now)
    memory.enrolment = memory.enrolment.following(desired, ledger.requests)
    signs = RolloutSigns.of(ledger, seen, desired.fleet, now)
    return PassInput(
        desired=memory.enrolment.desired,
        ledger=ledger,
        observed=seen,
        demands=demands,
        now=now,
        reach=memory.enrolment.reach,
        rollouts=memory.acceptance.follow(world.repository, memory.branch, signs, now),
        enrolment=memory.enrolment,
        orders=orders,
        lost=memory.lost,
    )


def write(world: World, view: View) -> render.Rendered:
    """Turn a plan into commits, as far as it can be written. Nothing leaves this process yet."""
    sheets = fill(view.plan, view.desired)
    material = gather(world.repository, world.charts, view.plan, sheets, view.tips)
    return render.commits(view.plan, sheets, material, view, world.author)


def draft(world: World, view: View, decided: Callable[[PassInput], Plan] = decide) -> tuple[View, render.Rendered]:
    """Write a plan, and decide anew without the places it cannot be written for: the next cluster may do.

    What `plan` on the command line shows ends here.
    """
    rendered = write(world, view)
    while rendered.unwritable.keys() - view.unwritable.keys():
        view = replace(view, unwritable=given_up(view, rendered.unwritable))
        view = View.of(view, view.tips, decided(view))
        rendered = write(world, view)
    return view, rendered


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A pass whose push is under way: what it comes to once `end` has returned.

    `end` waits for the push and tells of it. It raises Conflict when a branch has moved.
    """

    outcome: Outcome
    end: Callable[[], None]


def put_down(world: World, view: View, rendered: render.Rendered) -> tuple[CommitId, ...]:
    """Write commits on top of the output tip, and return their ids. Nothing leaves this machine yet."""
    return tuple(world.repository.write(view.tips.output, rendered.commits)) if rendered.commits else ()


def send(world: World, view: View, rendered: render.Rendered, ids: Sequence[CommitId]) -> Sending:
    """Begin to push what was put down, if there is anything. Raises Conflict when a branch is known to have moved."""
    began = time.monotonic()
    written = dict(zip(ids, rendered.commits, strict=True))
    published = publish(world.repository, view, view.tips, written, world.author)

    def end() -> None:
        published.end()
        took = timedelta(seconds=time.monotonic() - began)
        for push in _pushes(world, view, rendered, published):
            world.outbox.pushed(replace(push, took=took))

    outcome = Outcome(view=view, rendered=rendered, commits=published.commits, branches=published.branches)
    return Sending(outcome=outcome, end=end)


def _pushes(world: World, view: View, rendered: render.Rendered, published: Publication) -> Iterator[Push]:
    """Say of each branch that has moved where it went. What a cluster's branch caught up with is not known by path."""
    repo_url = view.desired.fleet.repo_url
    if published.commits:
        paths = frozenset(path for commit in rendered.commits for path in (*commit.removes, *commit.writes))
        yield Push(
            branch=world.output_branch,
            old=view.tips.output,
            new=published.commits[-1],
            commits=len(published.commits),
            repo_url=repo_url,
            paths=paths if len(paths) <= MOST_PATHS else None,
        )
    for advance in published.branches:
        branch = branch_of(world.output_branch, advance.cluster)
        yield Push(branch=branch, old=advance.old, new=advance.new, commits=1, repo_url=repo_url, paths=None)


def reconcile_once(world: World, memory: Memory, *, fetch: bool = True, orders: tuple[Order, ...] = ()) -> Outcome:
    """Run one pass. Raises Conflict when the output branch moved meanwhile: run it again, with fetch."""
    view, rendered = draft(world, look(world, memory, fetch=fetch, orders=orders))
    sending = begun(world, memory, view, rendered, put_down(world, view, rendered))
    sending.end()
    return sending.outcome


def begun(world: World, memory: Memory, view: View, rendered: render.Rendered, ids: Sequence[CommitId]) -> Sending:
    """Begin to push what was drafted and put down, with all that its orders are to be told."""
    earlier = received(world.repository, view.tips, view.plan.answers)
    memory.branch.expect(rendered.records)
    sending = send(world, view, rendered, ids)
    if sending.outcome.commits:
        memory.branch.wrote(view.tips.output, sending.outcome.commits[-1], rendered.commits)
    return replace(sending, outcome=replace(sending.outcome, earlier=earlier))
