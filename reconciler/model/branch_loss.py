"""A branch of the remote that lacks commits that it is known to have had."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciler.model.ids import CommitId


class BranchLossKind(StrEnum):
    """How what the remote has now relates to what is known."""

    GONE = "gone"
    """The remote has no such branch."""
    REWOUND = "rewound"
    """The branch stands at an earlier commit of its own history."""
    DIVERGED = "diverged"
    """The branch has commits that are not known, on an earlier commit of its own history."""
    REPLACED = "replaced"
    """The branch shares no commit with what is known."""


class ReportedCommit(StrEnum):
    """What becomes of a commit that an engine has applied, once a branch has been searched for it."""

    HELD = "held"
    """The branch has it."""
    GIVEN_UP = "given up"
    """The branch goes on without it by a person's word, or it lies before the history that is searched."""
    LOST = "lost"
    """The branch lacks it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchLoss:
    """A branch that lacks its last known commit."""

    branch: str
    """The short name of the branch."""
    kind: BranchLossKind
    known: CommitId
    """The last known commit, which the branch lacks."""
    known_at: datetime | None
    """Its committer time; None where the commit is known by its id alone."""
    tip: CommitId | None
    """Where the branch stands now; None where it is gone."""
    tip_at: datetime | None
    earlier: tuple[CommitId, ...] = ()
    """Other commits that the branch is known, or said, to have had and lacks; `known` follows them."""
    unknown: int = 0
    """Commits of the branch that the known one does not follow."""
    reported_by: str = ""
    """The cluster whose engine has applied `known`; empty where no engine names it."""
    is_known: bool = True
    """Whether a mirror has seen the branch at `known`. If not, that is the word of an engine or a person alone."""
    is_output: bool = True
    """Whether it is the output branch, and not that of a cluster."""
