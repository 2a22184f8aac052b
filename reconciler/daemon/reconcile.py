"""The whole job on one screen: read git, look at the clusters, decide, write git.

Sequencing only. Everything that is decided is decided in `core`; everything outward goes through a port.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

import structlog

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits import events
from reconciler.core.commits.branch_loss import loss_problem, shared_problem
from reconciler.core.commits.commit_date import LONGEST_AHEAD
from reconciler.core.commits.templates import PassTemplates, render_templates
from reconciler.core.commits.trailers import naming_branch
from reconciler.core.commits.write import RenderedPlan, open_clusters, unanchored_clusters, write_commits
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.order import Order
from reconciler.core.decide.state.pass_input import EarlierFailures, LostClusters, PassInput, given_up, with_untried
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps import lost_cluster
from reconciler.core.decide.steps.idle import idle_terms
from reconciler.core.decide.steps.mass_deletion import find_mass_deletion
from reconciler.core.decide.unchanged import DecidedPass, decide_again
from reconciler.core.observe import demand, track_record
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.core.observe.gpu_use import questions as gpu_use_questions
from reconciler.core.observe.gpu_use import with_unused_gpus
from reconciler.core.observe.node_pool_differences import with_node_pool_differences
from reconciler.core.observe.rollouts import RolloutSigns
from reconciler.core.observe.template_differences import with_template_differences
from reconciler.core.observe.track_record import TrackRecord
from reconciler.core.observe.unknown_clusters import with_unknown_clusters
from reconciler.core.recording.pass_record import PassKind, PassRecord
from reconciler.daemon.applied_commits import AppliedCommits
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.clock_jump import LONGEST_READING, ClockReading, describe_jump, jump_between
from reconciler.daemon.committed_past import with_committed_past
from reconciler.daemon.cost.budgets import BudgetReader
from reconciler.daemon.deletion_confirmations import DeletionConfirmations
from reconciler.daemon.event_sinks import publish_events
from reconciler.daemon.phases import Measure, PassPhase, unmeasured
from reconciler.daemon.publish import earlier_receipts, find_losses, gather, publish
from reconciler.daemon.rollout_tracker import RolloutTracker
from reconciler.daemon.source import SourceReader, missing_branch
from reconciler.daemon.unproposed import take_off_unproposed
from reconciler.errors import Bug, Problem, Severity
from reconciler.model.bounds import TEMPLATE_ROUNDS
from reconciler.model.capacity import Observed
from reconciler.model.drafted_subsets import DraftedSubsets
from reconciler.model.events.event import MOST_PATHS, Event, Push
from reconciler.model.ids import CommitId, WorkloadId, WorkspaceName
from reconciler.model.plan import UNTRIED, Plan
from reconciler.model.policy import Desired
from reconciler.model.tree import Advance, Identity, SignatureFault, SourceTip, Tips, branch_of
from reconciler.ports import Charts, Clock, ClusterView, EventSink, GpuUseView, Recording, Repository
from reconciler.text.timestamps import format_time

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The world outside this process, by its ports, with the names of the author and of the two branches."""

    repository: Repository
    clusters: ClusterView
    charts: Charts
    clock: Clock
    author: Identity
    """The committer."""
    sinks: Sequence[EventSink] = ()
    """Every event goes to all of them."""
    source_branch: str = "main"
    output_branch: str = "placements"
    recording: Recording | None = None
    """Gets each pass of the daemon; None where none is recorded."""
    measure: Measure = unmeasured
    """Measures the phases of whole passes."""
    gpu_use: GpuUseView | None = None
    """Tells which GPUs are used; None where nobody does but observations."""
    uptime: Callable[[], timedelta] | None = None
    """Time by a clock that nobody sets, which shows jumps of `clock`; None where time is made up, as in the lab."""


@dataclass(slots=True)
class Memory:
    """The caches of a process between passes, and the times since when it has watched demand, rollouts and clusters.

    Losing it costs time, one scale-down window, one rollout timeout, one workerLostTimeout and the measured times to
    ready, never a placement: the only memory that counts is git. What was watched is lost as well when the clock jumps.
    """

    source: SourceReader
    branch: BranchReader
    enrolment: Enrolment = field(default_factory=lambda: Enrolment(Desired(commit=CommitId("")), {}))
    drafted: DraftedSubsets = field(default_factory=DraftedSubsets)
    """The pods of subsets that passes have rendered, for the next one."""
    measured: demand.Measured | None = None
    """The demands of the last pass, which hold on while their primaries show the same."""
    decided: DecidedPass | None = None
    """The last pass, whose plan holds on while nothing changes."""
    history: demand.DemandHistory = field(default_factory=dict)
    past: demand.PastDemand = field(default_factory=dict)
    lost: LostClusters = field(default_factory=dict)
    begun: Mapping[tuple[WorkloadId, str], datetime] = field(default_factory=dict)
    """When passes decided what waits for its charts, which are rendered in the background."""
    failures: EarlierFailures = field(default_factory=EarlierFailures)
    """What failed in the last pass of workspaces of which it left something untried, or waiting for its charts."""
    rollouts: RolloutTracker = field(default_factory=RolloutTracker)
    track_record: TrackRecord = field(default_factory=TrackRecord)
    budgets: BudgetReader = field(default_factory=BudgetReader)
    confirmations: DeletionConfirmations | None = None
    """What the source branch says to the mass deletions of before; None until the first pass."""
    applied: AppliedCommits = field(default_factory=AppliedCommits)
    """The commits that engines have applied and that have been found in the branches."""
    clock: ClockReading | None = None
    """The clocks as the last pass read them."""
    jumped_at: datetime | None = None
    """The time to which the clock jumped last: what was seen before it was seen by another clock."""

    def forget_watched(self, now: datetime) -> None:
        """Forget what was watched over a time, as after a start; the clock has jumped to `now`."""
        self.jumped_at = now
        self.measured, self.decided = None, None
        self.history, self.past, self.lost, self.begun = {}, {}, {}, {}
        self.rollouts, self.track_record = RolloutTracker(), TrackRecord()


@dataclass(frozen=True, slots=True, kw_only=True)
class PassDecision:
    """The input of one pass and its plan, before anything is written."""

    inputs: PassInput
    """The input, with the requests as the plan leaves them."""
    tips: Tips
    """The commits of both branches that the input was read at."""
    plan: Plan

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong with the files of both branches and the observations, and every bug that was met."""
        return (*map(loss_problem, self.tips.losses), *self.file_problems)

    @property
    def file_problems(self) -> tuple[Problem, ...]:
        """All of it but lost branches."""
        return (*self.refusal_problems, *self.inputs.problems, *self.bug_problems)

    @property
    def refusal_problems(self) -> tuple[Problem, ...]:
        """The branches of clusters that the remote refuses."""
        return tuple(refusal.problem for refusal in self.tips.refused)

    @property
    def shared_problems(self) -> tuple[Problem, ...]:
        """Problems that concern everybody, for people who may not see the others."""
        return shared_problem(self.tips.losses)

    @property
    def bug_problems(self) -> tuple[Problem, ...]:
        """Every bug that was met outside of files and observations."""
        unmeasured = (demand.bug for demand in self.inputs.demands.values() if isinstance(demand, UnseenPrimary))
        bugs = (
            *(bug for bug in unmeasured if bug is not None),
            *self.inputs.enrolment.bugs.values(),
            *self.inputs.rollouts.bugs,
            *self.plan.bugs,
        )
        return tuple(bug.problem(bug.item) for bug in dict.fromkeys(bugs))

    @classmethod
    def of(cls, inputs: PassInput, tips: Tips, plan: Plan) -> PassDecision:
        """Join a plan and the input that it was made from."""
        records = WorkingPlan.after(inputs, plan).requests_now()
        return cls(inputs=inputs.with_requests(records), tips=tips, plan=plan)

    def again(self, inputs: PassInput, decider: Callable[[PassInput], Plan]) -> PassDecision:
        """Decide the same pass again from a changed input; what it has rendered in advance stays."""
        inputs = replace(inputs, drafted=self.plan.drafted)
        return PassDecision.of(inputs, self.tips, decider(inputs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one pass: its decision, its files, and the ids of its commits (none if nothing changed)."""

    decision: PassDecision
    rendered: RenderedPlan
    commits: tuple[CommitId, ...]
    branches: tuple[Advance, ...] = ()  # of clusters: pushed along, or put right with nothing else to push
    events: tuple[Event, ...] = ()  # of the changes, or of branches that were put right
    earlier: Mapping[int, CommitId] = field(default_factory=dict)  # by order: the commit that received it long since
    pushes: int = 1  # that carried the commits
    failures: EarlierFailures | None = None  # given up by the next pass; None where this was no whole pass

    @property
    def plan(self) -> Plan:
        """The decided changes."""
        return self.decision.plan

    @property
    def wake_at(self) -> datetime | None:
        """The next moment at which the same inputs could decide otherwise."""
        return self.decision.plan.wake_at

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All that is wrong with the files of both branches and with the observations, and every bug that was met."""
        return (*self.decision.problems, *self.rendered.problems)

    @property
    def bugs(self) -> tuple[Bug, ...]:
        """Every exception that nothing foresaw; each cost one item, and not the pass."""
        return tuple(problem.bug for problem in self.problems if problem.bug is not None)


def observe_and_decide(
    world: World, memory: Memory, *, fetch: bool = True, orders: tuple[Order, ...] = ()
) -> PassDecision:
    """Read both branches and the clusters, and decide, orders of API callers included.

    Without `fetch` the branches are taken as last known.
    """
    with world.measure(PassPhase.FETCH) if fetch else nullcontext():
        tips = world.repository.fetch() if fetch else world.repository.tips()
    with world.measure(PassPhase.READ):
        inputs = read_input(world, memory, tips, orders)
    if memory.applied.compare(world.repository, inputs.observed, inputs.desired.fleet, world.output_branch):
        tips = world.repository.tips()
        inputs = read_input(world, memory, tips, orders, inputs.observed)
    tips = replace(tips, losses=find_losses(world.repository, inputs.desired))
    with world.measure(PassPhase.DECIDE):
        memory.decided = decide_again(inputs, memory.decided)
        memory.drafted = memory.decided.plan.drafted.next_pass()
    return PassDecision.of(inputs, tips, memory.decided.plan)


def look(world: World, source: SourceReader, commit: CommitId) -> tuple[Observed, Desired]:
    """Look at the clusters, and return the fleet that is made from what is seen there.

    Where an Application names another repository than before, that is looked at as well.
    """
    before = source.desired(commit)
    world.clusters.follow(before)
    observed = world.clusters.observe()
    desired = source.expanded(commit, observed)
    if desired.sources != before.sources:
        world.clusters.follow(desired)
        observed = world.clusters.observe()
        desired = source.expanded(commit, observed)
    return observed, desired


def _held_back(branch: str, tips: Tips, tip: SourceTip) -> Problem:
    """Report that the tip of the source branch is not in force by its own signature."""
    held, stands = tip.commit[:12], str(tips.source)[:12]
    match tip.why:
        case SignatureFault.UNSIGNED:
            message = f"no allowed signer has signed {held}: {stands} stays in force"
        case SignatureFault.OLDER:
            message = f"{held} is signed, but older than {stands} and no successor of it: {stands} stays in force"
        case SignatureFault.DELISTED:
            message = f"{held} stays in force, though no allowed signer has signed it (any more)"
        case SignatureFault.UNCHECKED:
            return Problem(path=f"branch {branch}", message=f"{stands} stays in force: {tip.said}")
    return Problem(
        path=f"branch {branch}",
        message=message,
        hint="put a signed commit on top, as with `git commit --allow-empty -S`, or list who has signed it in"
        " OVERSPILL_ALLOWED_SIGNERS_FILE",
    )


def _dated_ahead(branch: str, tips: Tips, now: datetime) -> tuple[Problem, ...]:
    """Report an output branch whose last commit bears a date that no clock shows yet."""
    if tips.output is None or tips.output_at is None or tips.output_at - now <= LONGEST_AHEAD:
        return ()
    dated = f"{tips.output[:12]} is dated {format_time(tips.output_at)}, which is not yet"
    message = f"{dated}: our commits do not follow that date"
    hint = "set the clock of the machine that made it, or of this one"
    return (Problem(path=f"branch {branch}", message=message, hint=hint, severity=Severity.WARNING),)


def read_input(
    world: World, memory: Memory, tips: Tips, orders: tuple[Order, ...], seen: Observed | None = None
) -> PassInput:
    """Read both branches as they stand at `tips`, and look at the clusters, unless they were `seen` a moment ago."""
    if tips.source is None:
        raise missing_branch(world.repository, world.source_branch)
    ledger = memory.branch.ledger(tips.output)
    fresh = seen is None
    if seen is None:
        observed, desired = look(world, memory.source, tips.source)
        seen = with_template_differences(with_unknown_clusters(observed, desired), desired)
        seen = with_node_pool_differences(seen, desired)
    else:
        desired = memory.source.expanded(tips.source, seen)
    if tips.held_back is not None:
        told = _held_back(world.source_branch, tips, tips.held_back)
        desired = replace(desired, problems=(*desired.problems, told))
    now = _read_clock(world, memory)
    if ahead := _dated_ahead(world.output_branch, tips, now):
        desired = replace(desired, problems=(*desired.problems, *ahead))
    history = memory.history
    author = world.author
    past = with_committed_past(memory.past, desired, world.repository, tip=tips.output, author=author, now=now)
    demands = demand.measure(desired, seen, history, now, past, before=memory.measured)
    memory.measured = demand.Measured(demands=demands, desired=desired, observed=seen, now=now)
    memory.history = demand.next_history(demands)
    if memory.jumped_at is not None:
        # An observation from before a jump ahead would make it look as if all the time since had been watched.
        later = {name: record for name, record in memory.history.items() if record[0].at >= memory.jumped_at}
        memory.measured = memory.measured if len(later) == len(memory.history) else None
        memory.history = later
    memory.past = demand.next_past(past, demands, now)
    memory.lost = lost_cluster.lost_since(memory.lost, desired, seen, now)
    memory.enrolment = memory.enrolment.updated(desired, ledger.requests)
    signs = RolloutSigns.of(ledger, seen, desired.fleet, now)
    rollouts = memory.rollouts.follow(world.repository, memory.branch, signs, now)
    memory.track_record = track_record.follow(memory.track_record, signs, rollouts, now)
    inputs = PassInput(
        desired=memory.enrolment.desired,
        ledger=ledger,
        observed=seen,
        demands=demands,
        now=now,
        history=history,
        past=past,
        reach=memory.enrolment.reach,
        drafted=memory.drafted,
        rollouts=rollouts,
        enrolment=memory.enrolment,
        orders=orders,
        lost=memory.lost,
        begun=memory.begun,
        obstacles=memory.branch.obstacles,
        track_record=memory.track_record,
        budgets=memory.budgets.budgets(world.repository, world.author, desired, tips, now),
    )
    if fresh and world.gpu_use is not None:
        found = attempt(Seam.SIGNAL, "prometheus", partial(_with_unused_gpus, inputs, world.gpu_use))
        if isinstance(found, Bug):
            found = replace(seen, problems=(*seen.problems, found.problem("prometheus")))
        inputs = replace(inputs, observed=found)
    memory.confirmations = memory.confirmations or DeletionConfirmations(world.repository)
    return with_mass_deletion(inputs, memory.confirmations)


def _read_clock(world: World, memory: Memory) -> datetime:
    """Read the time of a pass, and forget what was watched where the clock has jumped since the last one.

    The times on the branch have no part in it (docs/decisions/0033-the-time-of-a-pass.md).
    """
    began = world.uptime() if world.uptime is not None else timedelta()
    now = world.clock.now()
    if world.uptime is None or world.uptime() - began > LONGEST_READING:
        return now
    reading = ClockReading(at=now, uptime=began)
    jump = timedelta() if memory.clock is None else jump_between(memory.clock, reading)
    memory.clock = reading
    if jump:
        log.warning("the clock jumped; watching from the start", jump=describe_jump(jump))
        memory.forget_watched(now)
    return now


def _with_unused_gpus(inputs: PassInput, gpu_use: GpuUseView) -> Observed:
    """Ask for the use of the GPUs of placements that are to end when idle, and add what is known of it."""
    terms = idle_terms(inputs)
    max_age = inputs.desired.fleet.observation_max_age
    gpu_use.follow(gpu_use_questions(terms, inputs.observed, gpu_use.label), max_age)
    return with_unused_gpus(inputs.observed, terms, gpu_use.observe(), now=inputs.now, max_age=max_age)


def with_mass_deletion(inputs: PassInput, confirmations: DeletionConfirmations) -> PassInput:
    """Note a mass deletion that no commit of the source branch since then confirms."""
    deletion = find_mass_deletion(inputs)
    if deletion is None or confirmations.confirmed(inputs.desired, deletion):
        return inputs
    return replace(inputs, deletion=deletion)


def render_plan(world: World, decision: PassDecision, of_pass: PassTemplates | None = None) -> RenderedPlan:
    """Turn a plan into commits, as far as it can be written. Nothing leaves this process yet."""
    templates = render_templates(decision.plan, decision.inputs.desired, of_pass)
    inputs = gather(
        world.repository,
        world.charts,
        decision.plan,
        templates,
        decision.tips,
        author=world.author,
        unanchored=unanchored_clusters(decision.inputs),
        open_clusters=open_clusters(decision.inputs, decision.plan) if templates else frozenset(),
    )
    rendered = write_commits(decision.plan, templates, inputs, decision.inputs, world.author)
    branch = world.output_branch.removeprefix("refs/heads/")
    commits = (replace(commit, message=naming_branch(commit.message, branch)) for commit in rendered.commits)
    return replace(rendered, commits=tuple(commits))


def draft(
    world: World,
    decision: PassDecision,
    decider: Callable[[PassInput], Plan] = decide,
    failures: EarlierFailures | None = None,
) -> tuple[PassDecision, RenderedPlan]:
    """Render a plan, and decide anew without the clusters it cannot be rendered for: the next one may do.

    Each time shows the failures of those alone that got room. So a workspace whose templates fail one after another
    gets nothing new in this pass once they have had the pass decided again `TEMPLATE_ROUNDS` times. What is left then
    is tried in a later pass, which begins without the `failures` of those before. Charts that wait count as well: a
    workspace with many of them would have the pass decided again as often.

    What `plan` on the command line shows ends here.
    """
    templates, rounds = PassTemplates(), Counter[WorkspaceName]()
    if decision.plan.changes and failures is not None and (unwritable := failures.holding(decision.inputs)):
        decision = decision.again(replace(decision.inputs, unwritable=unwritable), decider)
    rendered = render_plan(world, decision, templates)
    while failing := {
        workload.workspace
        for workload, _ in rendered.unwritable.keys() - decision.inputs.unwritable.keys()
        if rounds[workload.workspace] < TEMPLATE_ROUNDS.most
    }:
        rounds.update(failing)
        unwritable = given_up(decision.inputs, rendered.unwritable)
        spent = {workspace for workspace in failing if rounds[workspace] >= TEMPLATE_ROUNDS.most}
        spent |= {workload.workspace for (workload, _), why in rendered.unwritable.items() if why == UNTRIED}
        inputs = with_untried(replace(decision.inputs, unwritable=unwritable), spent, templates.good)
        decision = decision.again(inputs, decider)
        bugs = rendered.bugs
        pending = rendered.pending
        rendered = render_plan(world, decision, templates)
        rendered = replace(rendered, bugs=(*bugs, *rendered.bugs), pending=pending | rendered.pending)
    return decision, rendered


def store_commits(world: World, decision: PassDecision, rendered: RenderedPlan) -> tuple[CommitId, ...]:
    """Write commits on top of the output tip, and return their ids. Nothing leaves this machine yet."""
    return tuple(world.repository.write(decision.tips.output, rendered.commits)) if rendered.commits else ()


def record(world: World, decision: PassDecision, ids: tuple[CommitId, ...], kind: PassKind) -> None:
    """Record a pass whose commits are stored and not yet pushed, if passes are recorded.

    A recording that fails costs itself, and no pass.
    """
    recording = world.recording
    if recording is None:
        return
    inputs, tips, plan = decision.inputs, decision.tips, decision.plan
    bug = attempt(Seam.RECORDING, inputs.now, lambda: recording.append(PassRecord.of(inputs, tips, plan, ids, kind)))
    if isinstance(bug, Bug):
        BUGS.note(bug)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingPush:
    """A pass whose push is under way."""

    outcome: Outcome
    """The outcome of the pass if the remote takes every branch."""
    end: Callable[[], Outcome]
    """Waits for the push, publishes its events, and returns the outcome, without the branches of clusters that the
    remote has refused. Raises Conflict when a branch has moved."""


def begin_push(
    world: World, memory: Memory, decision: PassDecision, rendered: RenderedPlan, ids: Sequence[CommitId]
) -> PendingPush:
    """Begin to push stored commits, if there are any. Raises Conflict when a branch is known to have moved."""
    earlier = earlier_receipts(world.repository, decision.tips, decision.plan.answers, world.author)
    began = time.monotonic()
    memory.branch.expect(rendered.records)
    memory.enrolment = decision.inputs.enrolment  # the next pass reads back the requests that this one has enrolled
    written = dict(zip(ids, rendered.commits, strict=True))
    published = publish(world.repository, decision.inputs, decision.tips, written, world.author)
    if published.commits:
        memory.branch.wrote(decision.tips.output, published.commits[-1], rendered.commits)
    outcome = Outcome(
        decision=decision,
        rendered=rendered,
        commits=published.commits,
        branches=published.branches,
        events=events.of_push(
            rendered.changes,
            published.commits,
            published.branches,
            decision.inputs.now,
            BUGS.note,
            titles=rendered.titles,
            unserved=events.unserved_times(decision.inputs) if published.commits else {},
        ),
        earlier=earlier,
    )

    def end() -> Outcome:
        moved = tuple(published.end())
        took = timedelta(seconds=time.monotonic() - began)
        pushes = tuple(
            replace(push, took=took) for push in _pushes(world, decision, rendered, published.commits, moved)
        )
        ended = _after_push(outcome, moved, world.repository.tips())
        if pushes:
            publish_events(world.sinks, ended.events, pushes)
        return ended

    return PendingPush(outcome=outcome, end=end)


def _after_push(outcome: Outcome, moved: tuple[Advance, ...], tips: Tips) -> Outcome:
    """Return the outcome of a push that has ended, with the branches of clusters that have `moved`."""
    decision = replace(outcome.decision, tips=replace(outcome.decision.tips, refused=tips.refused))
    if moved == outcome.branches:
        return replace(outcome, decision=decision)
    of_branches = () if outcome.commits else events.of_push((), (), moved, decision.inputs.now)
    return replace(
        outcome, decision=decision, branches=moved, events=outcome.events if outcome.commits else of_branches
    )


def _pushes(
    world: World,
    decision: PassDecision,
    rendered: RenderedPlan,
    commits: Sequence[CommitId],
    branches: Sequence[Advance],
) -> Iterator[Push]:
    """Yield a push for each branch that has moved. The paths of a cluster's branch are unknown."""
    repo_url = decision.inputs.desired.fleet.repo_url
    if commits:
        paths = frozenset(path for commit in rendered.commits for path in (*commit.removes, *commit.writes))
        yield Push(
            branch=world.output_branch,
            old=decision.tips.output,
            new=commits[-1],
            commits=len(commits),
            repo_url=repo_url,
            paths=paths if len(paths) <= MOST_PATHS else None,
        )
    for advance in branches:
        branch = branch_of(world.output_branch, advance.cluster)
        yield Push(branch=branch, old=advance.old, new=advance.new, commits=1, repo_url=repo_url, paths=None)


def reconcile_once(world: World, memory: Memory, *, fetch: bool = True, orders: tuple[Order, ...] = ()) -> Outcome:
    """Run one pass. Raises Conflict when the output branch moved meanwhile: run it again, with fetch."""
    decision = observe_and_decide(world, memory, fetch=fetch, orders=orders)
    ledger, tips, now = decision.inputs.ledger, decision.tips, decision.inputs.now
    discarded = take_off_unproposed(world.repository, ledger, tips, world.author, now)
    if discarded:
        publish_events(world.sinks, discarded, ())
        decision = observe_and_decide(world, memory, fetch=False, orders=orders)
    with world.measure(PassPhase.WRITE) if decision.plan.changes else nullcontext():
        decision, rendered = draft(world, decision, failures=memory.failures)
        memory.drafted = decision.plan.drafted.next_pass()
        failures = EarlierFailures.after(decision.inputs, rendered.unwritable, rendered.pending)
        begun = {place: decision.inputs.begun.get(place, decision.inputs.now) for place in rendered.pending}
        memory.begun = {**memory.begun, **begun}
        ids = store_commits(world, decision, rendered)
    record(world, decision, ids, PassKind.WHOLE)
    with world.measure(PassPhase.PUSH) if ids else nullcontext():
        push = begin_push(world, memory, decision, rendered, ids)
        outcome = push.end()
    # What is pushed has had its turn. After a push that is not taken, the next pass has to come as far once more.
    memory.failures, memory.begun = failures, begun
    return replace(outcome, failures=failures)
