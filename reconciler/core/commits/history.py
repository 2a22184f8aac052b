"""From the output branch's log back to placements: what ran where, from when to when, and why.

The trailers say what happened to which placement, the body's text why; `core.trailers` and `core.messages` wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.placement import where
from reconciler.model.tree import LoggedCommit
from reconciler.text.timestamps import parse_time

_BEGINS = frozenset({"Place", "Move"})
_GOES_ON = frozenset({"Resize", "Extend", "Restore"})
_ENDS = frozenset({"Revert", "Hold"})
_REVERTS = re.compile(r"This reverts commit [0-9a-f]+\.")
_TRAILER = re.compile(r"[A-Za-z0-9-]+: .*")
_WORKLOAD = re.compile(r"\(([^/()\s]+/[^/()\s]+)\):")

MOVED = "moved"
"""Why a placement ended whose replicas went to another cluster; the move goes on under another id."""

DELETED = "deleted"
"""Why a placement ended that a person deleted from the branch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstStep:
    """One commit of a placement. `reasons` is the body's text without trailers, one line a sentence or two."""

    commit: CommitId
    at: datetime
    action: str
    subject: str
    reasons: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BurstHistory:
    """One placement from its first commit to its end.

    `started_at` is None when the log that was read begins later. `why` is one of `model.plan.Why`, or ``moved`` or
    ``deleted``, and empty while the placement stands. `expires_at` is the end as last agreed.
    """

    id: str
    workload: str
    cluster: ClusterName
    subset: str
    started_at: datetime | None
    expires_at: datetime | None
    steps: tuple[BurstStep, ...] = field(default=())
    ended_at: datetime | None = None
    why: str = ""

    @property
    def where(self) -> str:
        """The cluster, and the subset that it is for."""
        return where(self.cluster, self.subset)

    @property
    def commits(self) -> tuple[CommitId, ...]:
        """Every commit of the placement, oldest first."""
        return tuple(step.commit for step in self.steps)


def bursts(commits: Iterable[LoggedCommit]) -> tuple[BurstHistory, ...]:
    """Group a log, newest commit first as git prints it, by placement; the placement that began last comes first.

    Commits without our trailers are passed over. A placement that comes back under the same id after its end, as when a
    person reverts a revert, begins anew with its next commit.
    """
    told: list[BurstHistory] = []
    at: dict[str, int] = {}
    for commit in reversed(list(commits)):
        action = commit.trailers.get("Overspill-Action", "")
        name = commit.trailers.get("Overspill-Placement", "")
        if not name or action not in _BEGINS | _GOES_ON | _ENDS:
            continue
        step = _step(commit, action)
        replaced = commit.trailers.get("Overspill-Replaces")
        if replaced in at:
            told[at[replaced]] = _ended(told[at[replaced]], step, MOVED)
        known = told[at[name]] if name in at else None
        if known is None or (known.ended_at is not None and action not in _ENDS) or action == "Place":
            at[name] = len(told)
            told.append(_begun(name, commit, step))
        else:
            told[at[name]] = _continued(known, commit, step)
    return tuple(reversed(told))


def reasons(body: str) -> str:
    """Return what a commit's body says to people: no trailers, and no list of the commits that it reverts."""
    paragraphs = [paragraph.strip("\n") for paragraph in body.replace("\r\n", "\n").split("\n\n") if paragraph.strip()]
    if paragraphs and all(_TRAILER.fullmatch(line) for line in paragraphs[-1].split("\n")):
        paragraphs.pop()
    lines = [line for paragraph in paragraphs for line in paragraph.split("\n") if not _REVERTS.fullmatch(line)]
    return "\n".join(lines)


def _step(commit: LoggedCommit, action: str) -> BurstStep:
    return BurstStep(
        commit=commit.id, at=commit.at, action=action, subject=commit.subject, reasons=reasons(commit.body)
    )


def _begun(name: str, commit: LoggedCommit, step: BurstStep) -> BurstHistory:
    """Begin with the first commit of a placement that the log holds, which may be its last."""
    workload = _WORKLOAD.search(commit.subject)
    burst = BurstHistory(
        id=name,
        workload=workload[1] if workload is not None else name,
        cluster=ClusterName(commit.trailers.get("Overspill-Cluster", "")),
        subset=commit.trailers.get("Overspill-Subset", ""),
        started_at=commit.at if step.action in _BEGINS else None,
        expires_at=None,
    )
    return _continued(burst, commit, step)


def _continued(burst: BurstHistory, commit: LoggedCommit, step: BurstStep) -> BurstHistory:
    if step.action in _ENDS:
        why = DELETED if step.action == "Hold" else commit.trailers.get("Overspill-Why", "")
        return _ended(burst, step, why)
    return replace(
        burst,
        cluster=ClusterName(commit.trailers.get("Overspill-Cluster", burst.cluster)),
        subset=commit.trailers.get("Overspill-Subset", "" if "Overspill-Cluster" in commit.trailers else burst.subset),
        expires_at=_moment(commit.trailers.get("Overspill-Expires", "")) or burst.expires_at,
        steps=(*burst.steps, step),
    )


def _ended(burst: BurstHistory, step: BurstStep, why: str) -> BurstHistory:
    return replace(burst, steps=(*burst.steps, step), ended_at=step.at, why=why)


def _moment(text: str) -> datetime | None:
    try:
        return parse_time(text)
    except ValueError:
        return None
