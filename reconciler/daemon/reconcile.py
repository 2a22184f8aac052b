"""The whole job on one screen: read git, look at the clusters, decide, write git.

Sequencing only. Everything that is decided is decided in `core`; everything outward goes through a port.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta

from reconciler.core.commits import events
from reconciler.core.commits.templates import render_templates
from reconciler.core.commits.write import RenderedPlan, write_commits
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.order import Order
from reconciler.core.decide.state.pass_input import LostClusters, PassInput, given_up
from reconciler.core.decide.steps import lost_cluster
from reconciler.core.decide.steps.follow_requests import requests_after
from reconciler.core.observe import demand
from reconciler.core.observe.rollouts import RolloutSigns
from reconciler.core.observe.unknown_clusters import with_unknown_clusters
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.publish import Publication, earlier_receipts, gather, publish
from reconciler.daemon.rollout_tracker import RolloutTracker
from reconciler.daemon.source import SourceReader, missing_branch
from reconciler.errors import Problem
from reconciler.model.capacity import Observed
from reconciler.model.event import MOST_PATHS, Event, Push
from reconciler.model.ids import CommitId
from reconciler.model.plan import Plan
from reconciler.model.policy import Desired
from reconciler.model.tree import Advance, Identity, Tips, branch_of
from reconciler.ports import Charts, Clock, ClusterView, EventSink, Repository


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Everything outside this process, by its ports, with the names of the author and of the two branches."""

    repository: Repository
    clusters: ClusterView
    charts: Charts
    clock: Clock
    author: Identity
    """Who commits."""
    sinks: Sequence[EventSink] = ()
    """Every event goes to all of them."""
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
    history: demand.DemandHistory = field(default_factory=dict)
    lost: LostClusters = field(default_factory=dict)
    rollouts: RolloutTracker = field(default_factory=RolloutTracker)


@dataclass(frozen=True, slots=True, kw_only=True)
class View(PassInput):
    """What one pass saw and decided, before anything is written."""

    tips: Tips
    plan: Plan

    @classmethod
    def of(cls, inputs: PassInput, tips: Tips, plan: Plan) -> View:
        """Put a plan beside the input that it was made from, with the requests as the plan leaves them."""
        inputs = inputs.enrolling(requests_after(inputs.ledger.requests, plan))
        parts = {field.name: getattr(inputs, field.name) for field in fields(PassInput)}
        return cls(**parts, tips=tips, plan=plan)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one pass: what it saw, what it wrote, and the commits that carry it (none if nothing changed)."""

    view: View
    rendered: RenderedPlan
    commits: tuple[CommitId, ...]
    branches: tuple[Advance, ...] = ()  # of clusters: pushed along, or put right with nothing else to push
    events: tuple[Event, ...] = ()  # of the changes, or of branches that were put right
    earlier: Mapping[int, CommitId] = field(default_factory=dict)  # by order: the commit that received it long since
    pushes: int = 1  # that carried the commits

    @property
    def plan(self) -> Plan:
        """What was decided."""
        return self.view.plan

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
    inputs = read_input(world, memory, tips, orders)
    return View.of(inputs, tips, decide(inputs))


def read_input(
    world: World, memory: Memory, tips: Tips, orders: tuple[Order, ...], seen: Observed | None = None
) -> PassInput:
    """Read both branches as they stand at `tips`, and look at the clusters, unless they were `seen` a moment ago."""
    if tips.source is None:
        raise missing_branch(world.repository, world.source_branch)
    desired = memory.source.desired(tips.source)
    ledger = memory.branch.ledger(tips.output)
    if seen is None:
        world.clusters.follow(desired)
        seen = with_unknown_clusters(world.clusters.observe(), desired)
    now = world.clock.now()
    demands = demand.measure(desired, seen, memory.history, now)
    memory.history = demand.remembered(demands)
    memory.lost = lost_cluster.lost_since(memory.lost, desired, seen, now)
    memory.enrolment = memory.enrolment.following(desired, ledger.requests)
    signs = RolloutSigns.of(ledger, seen, desired.fleet, now)
    return PassInput(
        desired=memory.enrolment.desired,
        ledger=ledger,
        observed=seen,
        demands=demands,
        now=now,
        reach=memory.enrolment.reach,
        rollouts=memory.rollouts.follow(world.repository, memory.branch, signs, now),
        enrolment=memory.enrolment,
        orders=orders,
        lost=memory.lost,
    )


def render_plan(world: World, view: View) -> RenderedPlan:
    """Turn a plan into commits, as far as it can be written. Nothing leaves this process yet."""
    templates = render_templates(view.plan, view.desired)
    inputs = gather(world.repository, world.charts, view.plan, templates, view.tips)
    return write_commits(view.plan, templates, inputs, view, world.author)


def draft(world: World, view: View, decider: Callable[[PassInput], Plan] = decide) -> tuple[View, RenderedPlan]:
    """Render a plan, and decide anew without the clusters it cannot be rendered for: the next one may do.

    What `plan` on the command line shows ends here.
    """
    rendered = render_plan(world, view)
    while rendered.unwritable.keys() - view.unwritable.keys():
        view = replace(view, unwritable=given_up(view, rendered.unwritable))
        view = View.of(view, view.tips, decider(view))
        rendered = render_plan(world, view)
    return view, rendered


def store_commits(world: World, view: View, rendered: RenderedPlan) -> tuple[CommitId, ...]:
    """Write commits on top of the output tip, and return their ids. Nothing leaves this machine yet."""
    return tuple(world.repository.write(view.tips.output, rendered.commits)) if rendered.commits else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPush:
    """A pass whose push is under way."""

    outcome: Outcome
    """The outcome of the pass once `end` has returned."""
    end: Callable[[], None]
    """Waits for the push and publishes its events. Raises Conflict when a branch has moved."""


def begin_push(
    world: World, memory: Memory, view: View, rendered: RenderedPlan, ids: Sequence[CommitId]
) -> PendingPush:
    """Begin to push stored commits, if there are any. Raises Conflict when a branch is known to have moved."""
    earlier = earlier_receipts(world.repository, view.tips, view.plan.answers)
    began = time.monotonic()
    memory.branch.expect(rendered.records)
    written = dict(zip(ids, rendered.commits, strict=True))
    published = publish(world.repository, view, view.tips, written, world.author)
    if published.commits:
        memory.branch.wrote(view.tips.output, published.commits[-1], rendered.commits)
    outcome = Outcome(
        view=view,
        rendered=rendered,
        commits=published.commits,
        branches=published.branches,
        events=events.of_push(rendered.changes, published.commits, published.branches, view.now),
        earlier=earlier,
    )

    def end() -> None:
        published.end()
        took = timedelta(seconds=time.monotonic() - began)
        pushes = tuple(replace(push, took=took) for push in _pushes(world, view, rendered, published))
        if pushes:
            for sink in world.sinks:
                sink.publish(outcome.events, pushes)

    return PendingPush(outcome=outcome, end=end)


def _pushes(world: World, view: View, rendered: RenderedPlan, published: Publication) -> Iterator[Push]:
    """Tell of each branch where it moves. What a cluster's branch caught up with is not known by path."""
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
    push = begin_push(world, memory, view, rendered, store_commits(world, view, rendered))
    push.end()
    return push.outcome
