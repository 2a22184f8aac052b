"""*Now*: each workload with what it misses, where the rest runs until when, what it waits for, and what would help."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.decide.state.gate import describe_places
from reconciler.core.explain.request_state import state_of_request
from reconciler.core.explain.summary import spare_replicas, summarize
from reconciler.core.observe.demand import UnseenPrimary, unseen
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.snapshot import Snapshot
from reconciler.daemon.status import placement_status
from reconciler.errors import Bug
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, WorkloadId, WorkspaceName
from reconciler.model.ledger import PlacementGroup
from reconciler.model.placement import Phase, Placement, RestraintKind
from reconciler.model.plan import Suppressed
from reconciler.model.request import Asker, Provisioning, RequestRecord
from reconciler.text.wording import conjugate, count
from reconciler.web.paging import TablePage, page_of
from reconciler.web.viewer import Viewer

SIZE = 40
"""Workloads, and requests, of a page."""
_MOST_PLACEMENTS = 6
"""Placements of a workload that its row shows."""
_MOST_WAYS = 3
"""Ways out that its row shows; *Why* shows all."""


class Standing(StrEnum):
    """How a workload stands, the most urgent first."""

    WAITS = "waits"
    UNSEEN = "unseen"
    HELD = "held"
    BURSTS = "bursts"
    SERVED = "served"
    EXCLUDED = "does not burst"


_URGENCY = {standing: number for number, standing in enumerate(Standing)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFigures:
    """The figures of a workload, by which the table is sorted."""

    workload: WorkloadId
    standing: Standing
    wanted: int | None
    """None, as `running` and `missing`, where its primary is unseen."""
    running: int | None
    missing: int | None
    elsewhere: int
    waiting: int
    """Missing replicas that are placed nowhere."""
    spare: int

    @property
    def parts(self) -> tuple[tuple[str, float, float], ...]:
        """The replicas as parts of a line of 100: their name, where each begins, and how long it is."""
        counts = (("running", self.running or 0), ("elsewhere", self.elsewhere), ("waiting", self.waiting))
        total = max(sum(count for _, count in counts), self.wanted or 0, 1)
        parts, begin = [], 0.0
        for name, number in counts:
            length = round(100 * number / total, 2)
            if length:
                parts.append((name, round(begin, 2), length))
            begin += length
        return tuple(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementLine:
    """A placement in the row of its workload."""

    name: str
    where: str
    replicas: int
    bound: int | None
    """None where the cluster is unseen."""
    phase: Phase
    expires_at: datetime
    left: timedelta
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """What would change a refusal."""

    where: str
    remedy: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Why replicas wait."""

    reason: str
    message: str
    until: datetime | None
    ways_out: tuple[WayOut, ...]
    more: int
    """Further clusters that have a way out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldLine:
    """What a person, a failure or the maximum keeps a workload from."""

    cluster: str
    """Empty for every cluster."""
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalLine:
    """A burst that waits for a person's yes."""

    places: str
    reason: str
    until: datetime
    dollars_per_hour: float | None
    pull_request: str
    """The URL; empty without one."""
    foreign: str
    """What was taken off its branch; empty for nothing."""
    may_approve: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadLine:
    """A row of the table."""

    figures: WorkloadFigures
    primary: ClusterName
    policy: str
    summary: str
    placements: tuple[PlacementLine, ...]
    more_placements: int
    waits: tuple[Wait, ...]
    held: tuple[HoldLine, ...]
    proposal: ProposalLine | None
    may_edit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLine:
    """A request by name."""

    request: WorkloadId
    asker: Asker
    author: str
    clusters: tuple[str, ...]
    placements: tuple[Placement, ...]
    provisioning: Provisioning
    phase: Phase
    message: str
    ends_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """The figures above the table."""

    wanted: int
    running: int
    missing: int
    elsewhere: int
    waiting: int
    workloads: int
    unseen_workloads: int
    """Those whose primary is unseen, so that nobody knows what they miss."""
    unseen_clusters: int
    clusters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Now:
    """The view."""

    at: datetime
    wake_at: datetime | None
    totals: Totals
    workloads: TablePage[WorkloadLine]
    requests: TablePage[RequestLine]
    is_stopped: bool
    """Whether nothing is written."""
    problems: tuple[str, ...]
    """Problems of the fleet's files; for those who see all workspaces."""
    find: str
    workspace: str

    @property
    def headline(self) -> str:
        """The state in a sentence."""
        totals = self.totals
        if self.is_stopped:
            return "Nothing is written: no burst begins, ends or is renewed."
        if not totals.workloads:
            return "No workload may burst yet."
        if totals.unseen_workloads:
            if totals.unseen_workloads == 1:
                return "The home of 1 workload is not seen: it keeps what it has and gets nothing new."
            return f"The homes of {totals.unseen_workloads} workloads are not seen: they get nothing new meanwhile."
        if totals.waiting:
            waits = f"{count(totals.waiting, 'replica')} {conjugate(totals.waiting, 'waits')} for room"
            runs, begins = conjugate(totals.elsewhere, "runs"), conjugate(totals.elsewhere, "is")
            return f"{waits}, {totals.elsewhere} {runs} elsewhere or {begins} about to."
        if totals.elsewhere:
            return f"Everything has its room: {totals.elsewhere} elsewhere, {totals.running} at home."
        return "Everything runs at home. Nothing is lent."


@dataclass(frozen=True, slots=True, kw_only=True)
class NowIndex:
    """What each page of one snapshot has in common: the figures in their order, and what is held back."""

    figures: tuple[WorkloadFigures, ...]
    suppressed: Mapping[WorkloadId, tuple[Suppressed, ...]]
    requests: tuple[RequestRecord, ...]
    """Those that are open first, by name."""

    @classmethod
    def of(cls, snapshot: Snapshot) -> NowIndex:
        """Look over a snapshot once; the cost is that of its workloads."""
        decision = snapshot.decision
        held: defaultdict[WorkloadId, list[Suppressed]] = defaultdict(list)
        for suppressed in decision.plan.suppressed:
            held[suppressed.workload].append(suppressed)
        placements = decision.inputs.ledger.placements
        known = {*decision.inputs.desired.templates, *placements.by_workload}
        figures: list[WorkloadFigures] = []
        for workload in known:
            if not workload.request:
                figures += _figures_or_bug(snapshot, workload, placements.of(workload), held.get(workload, ()))
        figures.sort(key=lambda row: (_URGENCY[row.standing], -row.waiting, -row.elsewhere, row.workload))
        requests = sorted(
            decision.inputs.ledger.requests.values(),
            key=lambda record: (record.ended is not None, record.workload),
        )
        return cls(
            figures=tuple(figures),
            suppressed={workload: tuple(entries) for workload, entries in held.items()},
            requests=tuple(requests),
        )


def _figures_or_bug(
    snapshot: Snapshot, workload: WorkloadId, placed: PlacementGroup, held: Sequence[Suppressed]
) -> Iterator[WorkloadFigures]:
    """Yield the figures of a workload; none, and a line in the log, where an unforeseen exception is in the way."""
    figures = attempt(Seam.STATUS, workload, partial(_figures, snapshot, workload, placed, held))
    if isinstance(figures, Bug):
        BUGS.note(figures)
    else:
        yield figures


def _figures(
    snapshot: Snapshot, workload: WorkloadId, placed: PlacementGroup, held: Sequence[Suppressed]
) -> WorkloadFigures:
    inputs = snapshot.decision.inputs
    demand = inputs.demands.get(workload)
    seen = demand if isinstance(demand, Demand) else None
    waiting = max(0, seen.missing - placed.replicas) if seen is not None else 0
    return WorkloadFigures(
        workload=workload,
        standing=_standing(demand, waiting, placed.replicas, held),
        wanted=seen.wanted if seen else None,
        running=seen.running if seen else None,
        missing=seen.needed if seen else None,
        elsewhere=placed.replicas,
        waiting=waiting,
        spare=spare_replicas(seen, placed.replicas) if seen else 0,
    )


def _standing(demand: Demand | UnseenPrimary | None, waiting: int, placed: int, held: Sequence[Suppressed]) -> Standing:
    # 1. Replicas are placed nowhere.
    if waiting:
        return Standing.WAITS
    # 2. Nobody knows what it misses.
    if isinstance(demand, UnseenPrimary):
        return Standing.UNSEEN
    # 3. A change of what it has is not made.
    if held:
        return Standing.HELD
    # 4. All that is missing is elsewhere; 5. nothing is missing; 6. nothing is ever lent to it.
    if placed:
        return Standing.BURSTS
    return Standing.EXCLUDED if demand is None else Standing.SERVED


def now_view(
    viewer: Viewer, index: NowIndex, *, number: int = 1, requests: int = 1, find: str = "", workspace: str = ""
) -> Now:
    """Make the view: a page of workloads whose name has `find` in it, and a page of requests."""
    decision = viewer.snapshot.decision
    inputs = decision.inputs
    visible = [row for row in index.figures if viewer.may_see(row.workload.workspace)]
    shown = [row for row in visible if _is_meant(row.workload, find, workspace)]
    asked = [
        record
        for record in index.requests
        if viewer.may_see(record.workload.workspace) and _is_meant(record.workload, find, workspace)
    ]
    described = inputs.desired.clusters
    clusters = [name for name in viewer.clusters if described[name].slurm is None]
    return Now(
        at=inputs.now,
        wake_at=decision.plan.wake_at,
        totals=Totals(
            wanted=sum(row.wanted or 0 for row in visible),
            running=sum(row.running or 0 for row in visible),
            missing=sum(row.missing or 0 for row in visible),
            elsewhere=sum(row.elsewhere for row in visible),
            waiting=sum(row.waiting for row in visible),
            workloads=len(visible),
            unseen_workloads=sum(row.standing is Standing.UNSEEN for row in visible),
            unseen_clusters=sum(
                bool(unseen(inputs.desired.fleet, inputs.observed, name, inputs.now)) for name in clusters
            ),
            clusters=len(clusters),
        ),
        workloads=page_of(shown, number, SIZE, lambda row: _row(viewer, index, row)),
        requests=page_of(asked, requests, SIZE, lambda record: _request_row(viewer, index, record)),
        is_stopped=bool(viewer.losses),
        problems=tuple(map(str, decision.file_problems)) if viewer.sees_all else (),
        find=find,
        workspace=workspace,
    )


def _is_meant(workload: WorkloadId, find: str, workspace: str) -> bool:
    return find in str(workload) and workspace in ("", workload.workspace)


def _row(viewer: Viewer, index: NowIndex, figures: WorkloadFigures) -> WorkloadLine:
    inputs, workload = viewer.snapshot.decision.inputs, figures.workload
    placements = inputs.ledger.placements.of(workload).placements
    workspace, policy = inputs.desired.workspaces.get(workload.workspace), inputs.desired.policies.get(workload)
    held = index.suppressed.get(workload, ())
    return WorkloadLine(
        figures=figures,
        primary=workspace.primary if workspace else ClusterName(""),
        policy=policy.name if policy else "",
        summary=viewer.say(_summary_or_bug(viewer.snapshot, workload, placements)),
        placements=tuple(placement_line(viewer, placement) for placement in placements[:_MOST_PLACEMENTS]),
        more_placements=max(0, len(placements) - _MOST_PLACEMENTS),
        waits=tuple(wait_of(viewer, suppressed) for suppressed in held),
        held=tuple(held_back(viewer, workload)),
        proposal=proposal_line(viewer, workload),
        may_edit=viewer.offers_edit(workload.workspace),
    )


def _summary_or_bug(snapshot: Snapshot, workload: WorkloadId, placements: Sequence[Placement]) -> str:
    summary = attempt(Seam.STATUS, workload, partial(_summary, snapshot, workload, placements))
    if isinstance(summary, Bug):
        BUGS.note(summary)
        return summary.summary
    return summary


def _summary(snapshot: Snapshot, workload: WorkloadId, placements: Sequence[Placement]) -> str:
    inputs = snapshot.decision.inputs
    demand = inputs.demands.get(workload)
    if isinstance(demand, Demand):
        return summarize(demand, inputs, placements, snapshot.decision.plan)
    if isinstance(demand, UnseenPrimary):
        return demand.message
    if workload not in inputs.desired.templates:
        return "Its template is in no file any more; what it has ends with its time."
    return "It does not burst: no policy covers it, or nothing says which object is counted."


def placement_line(viewer: Viewer, placement: Placement) -> PlacementLine:
    """Tell how one placement stands."""
    status = placement_status(viewer.snapshot.decision, placement)
    return PlacementLine(
        name=placement.name,
        where=placement.where,
        replicas=placement.replicas,
        bound=status.bound,
        phase=status.phase,
        expires_at=placement.expires_at,
        left=status.left,
        message=viewer.say(status.message),
    )


def wait_of(viewer: Viewer, suppressed: Suppressed, most: int = _MOST_WAYS) -> Wait:
    """Tell why replicas wait, and what would change that."""
    ways = [
        WayOut(where=refusal.where, remedy=viewer.say(refusal.remedy), because=viewer.say(refusal.message))
        for refusal in suppressed.refusals
        if refusal.remedy
    ]
    return Wait(
        reason=suppressed.reason,
        message=viewer.say(suppressed.message),
        until=suppressed.until,
        ways_out=tuple(ways[:most]),
        more=max(0, len(ways) - most),
    )


def proposal_line(viewer: Viewer, workload: WorkloadId) -> ProposalLine | None:
    """Tell what is proposed for a workload; None where nothing is."""
    proposal = viewer.snapshot.decision.inputs.ledger.proposals.get(workload)
    if proposal is None:
        return None
    return ProposalLine(
        places=viewer.say(describe_places(proposal.placements)),
        reason=viewer.say(proposal.reason),
        until=proposal.until,
        dollars_per_hour=proposal.dollars_per_hour,
        pull_request=proposal.pull_request,
        foreign=viewer.say(proposal.foreign),
        may_approve=viewer.offers_approval(workload.workspace),
    )


def held_back(viewer: Viewer, workload: WorkloadId) -> Iterator[HoldLine]:
    """Yield what holds a workload back now."""
    inputs = viewer.snapshot.decision.inputs
    for restraint in inputs.ledger.restraints.get(workload, ()):
        if restraint.until > inputs.now and restraint.kind is not RestraintKind.TURN:
            yield HoldLine(cluster=restraint.cluster or "", until=restraint.until, reason=viewer.say(restraint.reason))


def _request_row(viewer: Viewer, index: NowIndex, record: RequestRecord) -> RequestLine:
    state = state_of_request(record, viewer.snapshot.decision.inputs, index.suppressed.get(record.workload, ()))
    return RequestLine(
        request=record.workload,
        asker=record.asker,
        author=record.author,
        clusters=record.request.clusters,
        placements=state.placements,
        provisioning=state.provisioning,
        phase=state.phase,
        message=viewer.say(state.message),
        ends_at=state.ends_at,
    )


def workspaces_of(viewer: Viewer, index: NowIndex) -> tuple[WorkspaceName, ...]:
    """List the workspaces that have workloads or requests that a viewer may see, for the choice of one."""
    workloads = {row.workload.workspace for row in index.figures} | {
        record.workload.workspace for record in index.requests
    }
    return tuple(sorted(filter(viewer.may_see, workloads)))
