"""Commits of ours that engines have applied: a branch that lacks one of them has been lost.

It is how a daemon on an empty disk, which knows no tip, sees that the remote has lost what it had. One that knows tips
needs nobody's word: a cluster may be hostile, and would stop all others by a commit that never was. So each cluster is
heard once by a process, in the first hour on an empty disk. A report counts only where the engine's object names our
repository and our branch: other fleets have objects in the same clusters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconciler.core.engines.webhook import web_page
from reconciler.model.bounds import APPLIED_COMMITS
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
    """Looks for the commits that engines have applied in the branches; each is looked for once."""

    def __init__(self) -> None:
        """Begin with none that has been found."""
        self._heard: set[ClusterName] = set()
        """Clusters all of whose commits have been found, or given up by a person."""
        self._found: set[tuple[str, CommitId]] = set()
        self._done: tuple[Mapping[str, EngineReport], str] | None = None
        """The reports of which all have been found, and the address of our repository then."""

    def compare(self, repository: Repository, observed: Observed, fleet: Fleet, output_branch: str) -> bool:
        """Look for what is reported now; return whether that has moved the tip of the output branch.

        The repository knows of the loss afterwards, if there is one. Raises what `Repository.look_for` raises.
        """
        tips = repository.tips()
        if (
            repository.has_memory
            or tips.losses
            or (self._done is not None and self._done[0] is observed.reports and self._done[1] == fleet.repo_url)
        ):
            return False
        told = [each for each in applied(observed, fleet, output_branch) if each.cluster not in self._heard]
        reported = {(each.branch, each.commit): each for each in told}
        self._found &= reported.keys()
        if tips.output is not None:
            self._found |= {(output_branch, tips.output)} & reported.keys()
        waiting = sorted(reported.keys() - self._found)[: APPLIED_COMMITS.most]
        for key in waiting:
            each = reported[key]
            if not repository.look_for(each.commit, branch=each.branch, reported_by=each.cluster):
                break
            self._found.add(key)
        if reported.keys() <= self._found:
            self._heard |= {each.cluster for each in told}
            self._done = (observed.reports, fleet.repo_url)
        return repository.tips().output != tips.output


def applied(observed: Observed, fleet: Fleet, output_branch: str) -> Iterator[AppliedCommit]:
    """Yield the commits of our branches that engines have applied, by reports on this fleet's repository alone."""
    ours = _address(fleet.repo_url)
    for report in observed.reports.values():
        source = report.source
        if source is None or _COMMIT.fullmatch(report.revision) is None:
            continue
        if source.repo_url and _address(source.repo_url) != ours:
            continue
        if source.branch in (output_branch, branch_of(output_branch, report.cluster)):
            yield AppliedCommit(source.branch, CommitId(report.revision), report.cluster)


def _address(url: str) -> str:
    """Write the address of a repository as it is compared: hosts serve one by https and ssh, and fold its letters."""
    page = urlsplit(web_page(url.rstrip("/")))
    return f"{page.hostname}{page.path}".casefold() if page.hostname else url.rstrip("/").removesuffix(".git")
