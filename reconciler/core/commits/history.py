"""Reads placements back from the output branch's log: their cluster, their beginning and end, and the reasons.

The trailers name the action and the placement, the body the reasons; `trailers` and `messages` wrote them.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from reconciler.bulkhead import NoteBug, Seam, attempt
from reconciler.core.commits.trailers import Trailer, action, is_made_by_another, is_own
from reconciler.core.signals.past_demand import Levels, followed_by, read_levels
from reconciler.errors import Bug, Problem, Severity
from reconciler.model.action import PLACEMENT_ENDS, Action
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import place_name
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.timestamps import parse_time
from reconciler.text.wording import count, join_names

_BEGINS = frozenset({Action.PLACE, Action.MOVE})
_GOES_ON = frozenset({Action.RESIZE, Action.EXTEND, Action.RESTORE})
_REVERTS = re.compile(r"This reverts commit [0-9a-f]+\.")
_TRAILER = re.compile(r"[A-Za-z0-9-]+: .*")
_WORKLOAD = re.compile(r"\(([^/()\s]+/[^/()\s]+)\):")

_MOST_ADDRESSES = 5
"""Committers that are named."""

MOVED = "moved"
"""Why a placement ended whose replicas went to another cluster; the move goes on under another id."""

DELETED = "deleted"
"""Why a placement ended that a person deleted from the branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstStep:
    """A commit of a placement."""

    commit: CommitId
    at: datetime
    action: Action
    subject: str
    reasons: str  # the text of the body without trailers, a sentence or two a line
    why: str = ""  # an `EndReason` where replicas went; empty where none did, and where a person deleted them


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstHistory:
    """A placement from its first commit to its end."""

    id: str
    workload: str
    cluster: ClusterName
    subset: str
    started_at: datetime | None  # None where the log begins later
    expires_at: datetime | None  # the end as last agreed
    steps: tuple[BurstStep, ...] = field(default=())
    ended_at: datetime | None = None
    why: str = ""  # an `EndReason`, MOVED or DELETED; empty while the placement stands
    put_back: bool = False  # whether a person brought it back after an end, as by a `git revert` of a Revert

    @property
    def where(self) -> str:
        """The cluster, and the subset that it is for."""
        return place_name(self.cluster, self.subset)

    @property
    def commits(self) -> tuple[CommitId, ...]:
        """Every commit of the placement, oldest first."""
        return tuple(step.commit for step in self.steps)


def own(commits: Iterable[LoggedCommit], committer: Identity) -> tuple[LoggedCommit, ...]:
    """Leave out commits of others, whatever their trailers say (docs/reference/commits.md)."""
    return tuple(commit for commit in commits if is_own(commit, committer))


def left_out(commits: Iterable[LoggedCommit], committer: Identity) -> Problem | None:
    """Warn of commits that `own` leaves out though they look like ours, by committer; None where there are none."""
    others = Counter(commit.committer.email for commit in commits if is_made_by_another(commit, committer))
    if not others:
        return None
    most = others.most_common(_MOST_ADDRESSES)
    listed = join_names(f"{count(number, 'commit')} of {email}" for email, number in most)
    former = shlex.quote(" ".join(email for email, _ in most))
    return Problem(
        path="",
        message=f"history and Notifications leave out {listed}, since our address is {committer.email}",
        hint=f"export OVERSPILL_COMMITTER_FORMER_EMAILS={former}  # where that was our address before; else nothing",
        severity=Severity.WARNING,
    )


def bursts(commits: Iterable[LoggedCommit], note_bug: NoteBug = lambda _: None) -> tuple[BurstHistory, ...]:
    """Group a log, newest commit first as git prints it, by placement; the placement that began last comes first.

    Commits without our trailers are passed over, and so is one that cannot be read: `note_bug` gets why. A
    placement that goes on under the same id after its end, as when a person reverts a revert, is one placement still;
    until its next commit only the branch tells that it stands (`as_they_stand`).
    """
    histories: list[BurstHistory] = []
    newest: dict[str, int] = {}  # the position in `histories` of the newest placement of an id
    for commit in reversed(list(commits)):
        read = attempt(Seam.COMMIT, commit.id, partial(_read_commit, commit, histories, newest))
        if isinstance(read, Bug):
            note_bug(read)
    return tuple(reversed(histories))


def as_they_stand(histories: Iterable[BurstHistory], ledger: Ledger, at: datetime) -> tuple[BurstHistory, ...]:
    """Correct the ends that people's commits have changed since our last one; the commits at the tip are of `at`.

    The placement that began last comes first, before and after.
    """
    standing = {placement.id: placement for placement in ledger.placements.values()}
    removed = {drift.placement.id for drift in ledger.drifted if drift.removed}

    def correct(burst: BurstHistory) -> BurstHistory:
        placement = standing.pop(burst.id, None)
        if placement is not None:
            back = burst.put_back or burst.ended_at is not None
            return replace(burst, expires_at=placement.expires_at, ended_at=None, why="", put_back=back)
        if burst.ended_at is None and burst.id in removed:
            return replace(burst, ended_at=at, why=DELETED)
        return burst

    return tuple(map(correct, histories))


def reasons_in_body(body: str) -> str:
    """Return the reasons in a commit's body, without trailers and without the list of reverted commits."""
    paragraphs = [paragraph.strip("\n") for paragraph in body.replace("\r\n", "\n").split("\n\n") if paragraph.strip()]
    if paragraphs and all(_TRAILER.fullmatch(line) for line in paragraphs[-1].split("\n")):
        paragraphs.pop()
    lines = [line for paragraph in paragraphs for line in paragraph.split("\n") if not _REVERTS.fullmatch(line)]
    sentences: list[str] = []
    for line in lines:
        if sentences and not sentences[-1].endswith((".", ":")):
            sentences[-1] += f" {line}"  # the commit message was wrapped here
        else:
            sentences.append(line)
    return "\n".join(sentences)


def past_demand(
    commits: Iterable[LoggedCommit], workloads: Collection[str], note_bug: NoteBug = lambda _: None
) -> Mapping[str, Levels]:
    """Read back what was missing of some workloads, by name, from a log, newest commit first.

    What no commit tells is unknown. A commit that cannot be read is passed over.
    """
    past: dict[str, Levels] = {}
    for commit in reversed(list(commits)):
        workload = _WORKLOAD.search(commit.subject)
        if workload is None or workload[1] not in workloads or not Trailer.DEMAND.among(commit):
            continue
        levels = attempt(Seam.COMMIT, commit.id, partial(read_levels, Trailer.DEMAND.read(commit)))
        if isinstance(levels, Bug):
            note_bug(levels)
        else:
            past[workload[1]] = followed_by(past.get(workload[1], ()), levels, commit.at)
    return past


def _read_commit(commit: LoggedCommit, histories: list[BurstHistory], newest: dict[str, int]) -> None:
    """Add one commit to the histories."""
    done, placement = action(commit), Trailer.PLACEMENT.read(commit)
    if not placement or done is None or done not in _BEGINS | _GOES_ON | PLACEMENT_ENDS:
        return
    step = _step(commit, done)
    replaced = Trailer.REPLACES.read(commit)
    if replaced in newest:
        histories[newest[replaced]] = _end_history(histories[newest[replaced]], step, MOVED)
    burst = histories[newest[placement]] if placement in newest else None
    # 1. The placement begins, or the log begins with it; 2. it goes on or ends, where need be after it was put back.
    if burst is None or done is Action.PLACE:
        newest[placement] = len(histories)
        histories.append(_first(placement, commit, step))
    else:
        if burst.ended_at is not None:
            burst = replace(burst, ended_at=None, why="", put_back=True)
        histories[newest[placement]] = _continue(burst, commit, step)


def _step(commit: LoggedCommit, done: Action) -> BurstStep:
    return BurstStep(
        commit=commit.id,
        at=commit.at,
        action=done,
        subject=commit.subject,
        reasons=reasons_in_body(commit.body),
        why=Trailer.WHY.read(commit),
    )


def _first(name: str, commit: LoggedCommit, step: BurstStep) -> BurstHistory:
    """Begin with the first commit of a placement that the log holds, which may be its last."""
    workload = _WORKLOAD.search(commit.subject)
    burst = BurstHistory(
        id=name,
        workload=workload[1] if workload is not None else name,
        cluster=ClusterName(Trailer.CLUSTER.read(commit)),
        subset=Trailer.SUBSET.read(commit),
        started_at=commit.at if step.action in _BEGINS else None,
        expires_at=None,
    )
    return _continue(burst, commit, step)


def _continue(burst: BurstHistory, commit: LoggedCommit, step: BurstStep) -> BurstHistory:
    if step.action in PLACEMENT_ENDS:
        return _end_history(burst, step, DELETED if step.action is Action.HOLD else step.why)
    return replace(
        burst,
        cluster=ClusterName(Trailer.CLUSTER.read(commit, burst.cluster)),
        subset=Trailer.SUBSET.read(commit, "" if Trailer.CLUSTER.among(commit) else burst.subset),
        expires_at=_moment(Trailer.EXPIRES.read(commit)) or burst.expires_at,
        steps=(*burst.steps, step),
    )


def _end_history(burst: BurstHistory, step: BurstStep, why: str) -> BurstHistory:
    return replace(burst, steps=(*burst.steps, step), ended_at=step.at, why=why)


def _moment(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        return None
