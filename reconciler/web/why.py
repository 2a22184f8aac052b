"""*Why*: one workload with every candidate, its scores and refusals, and one commit with the reasons that it gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reconciler.api.routes.explain import explain_workload
from reconciler.core.commits.history import reasons_in_body
from reconciler.core.commits.trailers import Trailer
from reconciler.model.demand import Demand
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Assessment, ReasonTraits
from reconciler.model.score import Score, weighted_mean
from reconciler.model.tree import LoggedCommit
from reconciler.text.wording import free_amounts
from reconciler.web.now import (
    HoldLine,
    PlacementLine,
    ProposalLine,
    Wait,
    held_back,
    placement_line,
    proposal_line,
    wait_of,
)
from reconciler.web.paging import TablePage, page_of
from reconciler.web.viewer import Viewer

_ALL = 20
SIZE = 50
"""Candidates of a page."""
_LEAST_ID = 7
"""Digits by which a commit may be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreBar:
    """The score that one scorer gives."""

    scorer: str
    weight: int
    value: float
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """A cluster as a candidate."""

    rank: int | None
    where: str
    fits: int
    placed: int
    limit: int | None
    free: str
    price: float | None
    verdict: str
    """Its refusal, or that it can take replicas."""
    reason: str
    """The reason of a refusal; empty for none."""
    remedy: str
    score: float | None
    scores: tuple[ScoreBar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandStep:
    """Replicas that have been missing since one moment."""

    replicas: int
    since: datetime
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyWorkload:
    """The decision on one workload."""

    workload: WorkloadId
    request: bool
    primary: str
    policy: str
    distribution: str
    wanted: int | None
    running: int | None
    missing: int | None
    waiting: tuple[DemandStep, ...]
    candidates: TablePage[CandidateRow]
    conclusion: tuple[str, ...]
    placements: tuple[PlacementLine, ...]
    waits: tuple[Wait, ...]
    held: tuple[HoldLine, ...]
    proposal: ProposalLine | None
    may_edit: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyCommit:
    """A commit of the output branch."""

    id: str
    at: datetime
    author: str
    subject: str
    reasons: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """Its trailers, by what they tell."""
    workload: str
    """The workload that it is of; empty where it names none."""
    placement: str
    related: tuple[tuple[str, datetime, str], ...]
    """The other commits of its placement, newest first: id, time and subject."""


def why_workload(viewer: Viewer, workspace: WorkspaceName, name: str, *, number: int = 1) -> WhyWorkload:
    """Explain a request of that name, else the workload, with a page of its candidates.

    Raises HttpError 404 where neither exists.
    """
    explanation = explain_workload(viewer.snapshot, workspace, TemplateName(name))
    demand = explanation.demand if isinstance(explanation.demand, Demand) else None
    placeable = all(held.reason.has(ReasonTraits.LEAVES_ROOM) for held in explanation.suppressed)
    return WhyWorkload(
        workload=explanation.workload,
        request=explanation.request is not None,
        primary=explanation.primary,
        policy=explanation.policy,
        distribution=explanation.distribution,
        wanted=demand.wanted if demand else None,
        running=demand.running if demand else None,
        missing=demand.needed if demand else None,
        waiting=tuple(_steps(viewer, demand)),
        candidates=page_of(
            explanation.assessments,
            number,
            SIZE,
            lambda assessment: _candidate(viewer, assessment, placeable=placeable),
        ),
        conclusion=tuple(map(viewer.say, explanation.conclusion)),
        placements=tuple(placement_line(viewer, placement) for placement in explanation.placements),
        waits=tuple(wait_of(viewer, held, _ALL) for held in explanation.suppressed),
        held=tuple(held_back(viewer, explanation.workload)),
        proposal=proposal_line(viewer, explanation.workload),
        may_edit=viewer.offers_edit(workspace),
    )


def _steps(viewer: Viewer, demand: Demand | None) -> Iterator[DemandStep]:
    for step in demand.waiting if demand else ():
        cause = " ".join(filter(None, (step.signal or "unschedulable", step.cause)))
        yield DemandStep(replicas=step.replicas, since=step.since, cause=viewer.say(cause))


def _candidate(viewer: Viewer, assessment: Assessment, *, placeable: bool) -> CandidateRow:
    refusal = assessment.refusal
    able = assessment.start or ("can take it" if placeable else "has room")
    return CandidateRow(
        rank=assessment.rank,
        where=assessment.where,
        fits=assessment.fits,
        placed=assessment.placed,
        limit=assessment.limit,
        free=", ".join(free_amounts(assessment.free, assessment.slices)),
        price=assessment.price_per_gpu_hour,
        verdict=viewer.say(refusal.message if refusal else able),
        reason=refusal.reason if refusal else "",
        remedy=viewer.say(refusal.remedy) if refusal else "",
        score=weighted_mean(assessment.scores) if assessment.scores else None,
        scores=tuple(map(_bar, assessment.scores)),
    )


def _bar(score: Score) -> ScoreBar:
    return ScoreBar(scorer=score.scorer, weight=score.weight, value=score.value, detail=score.detail)


FACTS: Mapping[Trailer, str] = {
    Trailer.ACTION: "What it does",
    Trailer.PLACEMENT: "Placement",
    Trailer.REQUEST: "Request",
    Trailer.PROPOSAL: "Proposal",
    Trailer.CLUSTER: "Cluster",
    Trailer.SUBSET: "Subset",
    Trailer.EXPIRES: "Ends at",
    Trailer.WHY: "Reason",
    Trailer.PHASE: "Phase at the end",
    Trailer.MOVED_FROM: "Moved from",
    Trailer.REPLACES: "Replaces",
    Trailer.FROM: "Made from",
    Trailer.SOURCE: "Decided on",
    Trailer.DIGEST: "Digest of its files",
}
NO_FACTS = frozenset(
    {Trailer.BRANCH, Trailer.CONFIRM, Trailer.DEMAND, Trailer.OUTPUT, Trailer.REQUEST_ID, Trailer.SUPERSEDES}
)
"""Trailers that programs read alone, or that the message says in words."""


def find_commit(commits: Sequence[LoggedCommit], text: str) -> LoggedCommit | None:
    """Find a commit by the beginning of its id; None where none, or several, begin so."""
    matches = [commit for commit in commits if len(text) >= _LEAST_ID and commit.id.startswith(text)]
    return matches[0] if len(matches) == 1 else None


def may_see_commit(viewer: Viewer, commit: LoggedCommit) -> bool:
    """Return whether a commit is of a workspace that a viewer may see; one that is of none is for who sees all."""
    names = (trailer.read(commit) for trailer in (Trailer.PLACEMENT, Trailer.REQUEST, Trailer.PROPOSAL))
    owner = next(filter(None, names), "").partition("/")[0]
    return viewer.sees_all or (owner != "" and viewer.may_see(WorkspaceName(owner)))


def why_commit(viewer: Viewer, commits: Sequence[LoggedCommit], commit: LoggedCommit) -> WhyCommit:
    """Tell a commit that the viewer may see, among those of the branch."""
    placement = Trailer.PLACEMENT.read(commit)
    related = [
        (str(other.id), other.at, viewer.say(other.subject))
        for other in commits
        if placement and other.id != commit.id and Trailer.PLACEMENT.read(other) == placement
    ]
    return WhyCommit(
        id=commit.id,
        at=commit.at,
        author=commit.author.name,
        subject=viewer.say(commit.subject),
        reasons=tuple(viewer.say(line) for line in reasons_in_body(commit.body).splitlines() if line),
        facts=tuple((words, viewer.say(value)) for trailer, words in FACTS.items() if (value := trailer.read(commit))),
        workload=workload_of(commit),
        placement=placement,
        related=tuple(related),
    )


def workload_of(commit: LoggedCommit) -> str:
    """Return the workload that a commit's subject names; empty for none."""
    before, bracket, rest = commit.subject.partition("(")
    name = rest.partition(")")[0]
    return name if bracket and before and name.count("/") == 1 and " " not in name else ""
