"""Whether a branch of the remote lacks a commit that it is known, or said, to have had.

What a mirror knows is certain: it saw the branch there. What an engine or a person names may be a commit of anything,
as of a branch for review or of another output branch. So it counts as the commit of the branch that it stands for
(`stand_in`), or not at all. Then both are judged by one ladder (`loss`):

| the branch | a commit of a mirror | one that an engine names | one that a person names |
|---|---|---|---|
| is gone | lost, unless it was a cluster's and held nothing of that | the same | the same |
| had a person's commit there, with nothing of the cluster | not lost | the same | the same |
| has the commit, or gives it up by a person's word | not lost | the same | the same |
| is too long to be searched | lost | not lost | lost |
| has commits of ours, and the commit follows none | not lost: nothing of ours was in it | not lost | refused |
| has other commits, and all of ours that the commit follows | lost | not lost: a person's, beside the branch | lost |
| anything else | lost | lost | lost |
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import datetime

from reconciler.adapters.git.mirror_commits import CommitsAboveOurs, MirrorCommits
from reconciler.core.commits.trailers import Trailer, is_for_cluster, is_written_for
from reconciler.errors import InvalidInput
from reconciler.model.branch_loss import BranchLoss, BranchLossKind
from reconciler.model.ids import CommitId, read_commit_id
from reconciler.model.tree import ROOT, LoggedCommit, branch_of

MOST_GIVEN_UP = 20
"""Commits that were given up and are obtained for what is before them; a branch that was written again names each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTip:
    """A commit that a branch of the remote is known, or said, to have had."""

    commit: CommitId
    at: datetime | None = None
    """Its committer time, None where the mirror does not hold the commit."""
    reported_by: str = ""
    """The cluster whose engine names it; empty for what a mirror knows and for what a person names."""


class BranchJudge:
    """Judges one branch by one commit; `output` is the full name of the output branch."""

    def __init__(self, commits: MirrorCommits, *, output: str) -> None:
        """Judge nothing yet."""
        self._commits = commits
        self._output = output

    def stand_in(self, commit: CommitId, branch: str) -> CommitId:
        """Return the commit of a branch, by its full name, that a named one stands for: itself, or an earlier one.

        Raises InvalidInput where it is of another branch and stands for none, and Transient where the remote does not
        answer.
        """
        return self._stand_in(commit, branch, may_be_of_cluster=branch == self._output)

    def _stand_in(self, commit: CommitId, branch: str, *, may_be_of_cluster: bool) -> CommitId:
        # 1. Nobody holds it: it may have been of the branch.
        if not self._commits.obtain(commit):
            return commit
        # 2. It is no commit.
        if (kind := self._commits.kind(commit)) != "commit":
            raise self._foreign(commit, branch, f"it is a {kind}")
        recent = self._commits.recent(commit)
        # 3. Nobody shows what is before it: only an approval says that it is of a branch for review.
        if recent.is_cut:
            if _is_proposed(recent):
                raise self._foreign(commit, branch, "it is of a branch for review")
            return commit
        own = recent.own
        # 4. Overspill has written none of the branch that it is of.
        if own is None:
            raise self._foreign(commit, branch, "Overspill has written neither it nor one shortly before it")
        # 5. It is of another branch of ours. That of a cluster names the commit of the output branch.
        if not is_written_for(own, _short(branch), is_output=branch == self._output):
            if not may_be_of_cluster or not self._is_of_cluster(own):
                named = Trailer.BRANCH.read(own) or ("a cluster" if is_for_cluster(own) else _short(self._output))
                raise self._foreign(commit, branch, f"it is of branch {named}")
            return self._stand_in(self._of_output(commit, own), branch, may_be_of_cluster=False)
        # 6. It is of a branch for review, which began at our commit, or a merge of one, which is to be made again.
        if _is_proposed(recent) or self._commits.adds_approvals(own.id, commit):
            return own.id
        # 7. It is ours, or a person's on top.
        return commit

    def loss(
        self, branch: str, known: KnownTip, tip: CommitId | None, *, is_known: bool, is_output: bool
    ) -> BranchLoss | None:
        """Return the loss of a branch that does not have a commit; None where it has, or needs not.

        `tip` is where the branch stands, and `is_known` whether a mirror has seen the branch at the commit. Raises
        Transient where the remote does not answer.
        """
        commit, at = known.commit, known.at
        if self._commits.obtain(commit):
            at = self._commits.time(commit) or at

        def lost(kind: BranchLossKind, unknown: int = 0) -> BranchLoss:
            return BranchLoss(
                branch=_short(branch),
                kind=kind,
                known=commit,
                known_at=at,
                tip=tip,
                tip_at=self._commits.time(tip) if tip else None,
                unknown=unknown,
                reported_by=known.reported_by,
                is_known=is_known,
                is_output=is_output,
            )

        lacks_files = self._commits.holds(commit) and not is_output and not self._has_files_of(branch, commit)
        # 1. The branch is gone. A person may remove that of a cluster once nothing is left on it.
        if tip is None:
            return None if lacks_files else lost(BranchLossKind.GONE)
        # 2. It was a person's, by a name that a cluster may have: whose it is, its owner may move.
        if lacks_files and not self._is_of(branch, commit):
            return None
        # 3. The branch has the commit, or nobody can search so far for what is an engine's word alone.
        contained = self._commits.contains(branch, tip, commit, at=at)
        if contained or (contained is None and not is_known and known.reported_by):
            return None
        # 4. A person has given it up.
        if self._is_given_up(commit, tip, at):
            return None
        # 5. Nobody holds it.
        if not self._commits.holds(commit):
            return lost(BranchLossKind.REPLACED)
        # 6. The branch stands before it.
        if self._is_rewound(commit, tip):
            return lost(BranchLossKind.REWOUND)
        shared = self._commits.share_history(commit, tip)
        # 7. No commit of ours is lost: the branch was somebody else's there, as by a push of the source branch.
        if is_known and self._commits.is_foreign(commit) and self._commits.recent(tip).own is not None:
            return None
        # 8. No commit of ours is lost: an engine names people's, beside the branch.
        if shared and not is_known and known.reported_by and self._commits.has_own_of(commit, branch, tip):
            return None
        kind = BranchLossKind.DIVERGED if shared else BranchLossKind.REPLACED
        return lost(kind, self._commits.missing_from(commit, tip))

    def _has_files_of(self, branch: str, commit: CommitId) -> bool:
        """Return whether a commit of a cluster's branch has files of that cluster."""
        return self._commits.has_files(commit, f"{ROOT}/{branch.rpartition('/')[2]}")

    def _is_of(self, branch: str, commit: CommitId) -> bool:
        """Return whether Overspill has written a commit, or one shortly before it, for the branch of a cluster."""
        own = self._commits.recent(commit).own
        return own is not None and is_written_for(own, _short(branch), is_output=False)

    def _is_rewound(self, commit: CommitId, tip: CommitId) -> bool:
        """Return whether a branch stands before a commit, and fetch the history of that, if that has to be seen."""
        if self._commits.is_before(tip, commit):
            return True
        if self._commits.share_history(commit, tip) or not self._commits.is_cut(commit):
            return False
        # The history of the commit may be too short in the mirror: the remote may still have more of it.
        self._commits.fetch_history(commit)
        return self._commits.is_before(tip, commit)

    def _is_given_up(self, commit: CommitId, tip: CommitId, at: datetime | None) -> bool:
        """Return whether commits give one up by a person's word, itself or what came after it.

        What they give up may have given up earlier losses itself, and is obtained where the mirror lacks it: a person's
        word about another loss, as in a copy of the repository, settles nothing here.
        """
        asked, looked_at = [tip], set[CommitId]()
        while asked:
            given_up = [each for each in self._commits.superseded(asked.pop(0), commit) if each not in looked_at]
            if commit in given_up:
                return True
            for each in given_up[: MOST_GIVEN_UP - len(looked_at)]:
                looked_at.add(each)
                if self._commits.obtain(each):
                    if self._commits.contains(each, each, commit, at=at):
                        return True
                    asked.append(each)
        return False

    def _is_of_cluster(self, own: LoggedCommit) -> bool:
        """Return whether a commit of ours is of a branch of a cluster that stands beside the output branch."""
        named = Trailer.BRANCH.read(own)
        return is_for_cluster(own) and (not named or named.startswith(branch_of(_short(self._output), "")))

    def _of_output(self, commit: CommitId, own: LoggedCommit) -> CommitId:
        """Return the commit of the output branch that one of a cluster's branch stands for."""
        with contextlib.suppress(ValueError):
            return read_commit_id(Trailer.OUTPUT.read(own))
        why = "it is of a cluster's branch, and names no commit of the output branch"
        raise self._foreign(commit, self._output, why)

    def _foreign(self, commit: CommitId, branch: str, why: str) -> InvalidInput:
        return InvalidInput(
            f"commit {commit[:12]} does not belong to branch {_short(branch)}: {why} (name the last commit of that"
            " branch, as the engine of a cluster shows it)"
        )


def _short(branch: str) -> str:
    return branch.removeprefix("refs/heads/")


def _is_proposed(recent: CommitsAboveOurs) -> bool:
    """Return whether people's commits on top of ours include that of a proposal."""
    return any(Trailer.PROPOSAL.among(each) for each in recent.above)
