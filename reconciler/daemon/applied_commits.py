"""Commits of ours that engines have applied: a branch that lacks one of them has been lost.

It is how a daemon on an empty disk, which knows no tip, sees that the remote has lost what it had. One that knows tips
needs nobody's word: a cluster may be hostile, and would stop all others by a commit that never was. So clusters are
heard in the first hour on an empty disk alone, and each one until a commit by which it has stopped this process is
given up: nobody can restore one that never was. A cluster whose commits are found or restored is still heard, as it may
name an older one first while its objects are being listed. A report counts only where the engine's object names our
repository and our branch: other fleets have objects in the same clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconciler.core.engines.webhook import web_page
from reconciler.model.bounds import APPLIED_COMMITS
from reconciler.model.branch_loss import BranchLoss, ReportedCommit
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.policy import Fleet
from reconciler.model.rollout import EngineReport
from reconciler.model.tree import branch_of
from reconciler.ports import Repository

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class AppliedCommit:
    """A commit that the engine of a cluster has applied, and the short name of its branch."""

    branch: str
    commit: CommitId
    cluster: ClusterName


class AppliedCommits:
    """Searches the branches for the commits that engines have applied; for each of them once."""

    def __init__(self) -> None:
        """Begin with none that has been found."""
        self._stopped_by: AppliedCommit | None = None
        """The commit that stopped writes last, while nobody has settled that."""
        self._ignored: set[ClusterName] = set()
        """Clusters that stopped writes by a commit that a person has given up."""
        self._found: set[tuple[str, CommitId]] = set()
        self._done: tuple[Mapping[str, EngineReport], str] | None = None
        """The reports of which all have been found, and the address of our repository then."""

    def compare(self, repository: Repository, observed: Observed, fleet: Fleet, output_branch: str) -> bool:
        """Look for what is reported now; return whether that has moved the tip of the output branch.

        The repository knows of the loss afterwards, if there is one. Raises what `Repository.look_for` raises.
        """
        tips = repository.tips()
        self._stopped_by = _reported(tips.losses) or self._stopped_by
        if (
            repository.has_memory
            or tips.losses
            or (self._done is not None and self._done[0] is observed.reports and self._done[1] == fleet.repo_url)
        ):
            return False
        if self._stopped_by is not None:
            # First and by itself: the cluster may name other commits by now.
            searched = _search(repository, self._stopped_by)
            if searched is ReportedCommit.LOST:
                return repository.tips().output != tips.output
            if searched is ReportedCommit.GIVEN_UP:
                self._ignored.add(self._stopped_by.cluster)
            self._stopped_by = None
        heard = (each for each in applied(observed, fleet, output_branch) if each.cluster not in self._ignored)
        reported = {(each.branch, each.commit): each for each in heard}
        self._found &= reported.keys()
        if tips.output is not None:
            self._found |= {(output_branch, tips.output)} & reported.keys()
        waiting = sorted(reported.keys() - self._found)[: APPLIED_COMMITS.most]
        for key in waiting:
            if _search(repository, reported[key]) is ReportedCommit.LOST:
                self._stopped_by = _reported(repository.tips().losses)
                break
            self._found.add(key)
        if reported.keys() <= self._found:
            self._done = (observed.reports, fleet.repo_url)
        return repository.tips().output != tips.output


def _reported(losses: Iterable[BranchLoss]) -> AppliedCommit | None:
    """Return the first lost commit that an engine has reported, also to a process before this one."""
    told = (loss for loss in losses if loss.reported_by)
    return next((AppliedCommit(loss.branch, loss.known, ClusterName(loss.reported_by)) for loss in told), None)


def _search(repository: Repository, applied_commit: AppliedCommit) -> ReportedCommit:
    return repository.look_for(applied_commit.commit, branch=applied_commit.branch, reported_by=applied_commit.cluster)


def applied(observed: Observed, fleet: Fleet, output_branch: str) -> Iterator[AppliedCommit]:
    """Yield the commits of our branches that engines have applied, by reports on this fleet's repository alone.

    Branches of clusters count where the fleet keeps them.
    """
    ours = _address(fleet.repo_url)
    for report in observed.reports.values():
        source = report.source
        if source is None or _COMMIT.fullmatch(report.revision) is None:
            continue
        if source.repo_url and _address(source.repo_url) != ours:
            continue
        if source.branch == output_branch or (
            fleet.branch_per_cluster and source.branch == branch_of(output_branch, report.cluster)
        ):
            yield AppliedCommit(source.branch, CommitId(report.revision), report.cluster)


def _address(url: str) -> str:
    """Write the address of a repository as it is compared: hosts serve one by https and ssh, and fold its letters."""
    page = urlsplit(web_page(url.rstrip("/")))
    return f"{page.hostname}{page.path}".casefold() if page.hostname else url.rstrip("/").removesuffix(".git")
