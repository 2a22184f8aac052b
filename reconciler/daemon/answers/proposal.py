"""The fleet of a branch as it would be once the branch is merged into the source branch.

The files come from the fleet repository itself, and nobody uploads any. Only what the branch changes is read anew, so
that a branch that is behind takes nothing back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from reconciler.core.fleet.read_file import is_read
from reconciler.daemon.source import SourceReader
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import CommitId, WorkspaceName
from reconciler.model.policy import Desired
from reconciler.model.tree import Commit, FileChange, Identity, Proposal
from reconciler.model.workload import HelmConfig, Json, WorkloadRef
from reconciler.ports import Charts, Repository
from reconciler.text.wording import join_names

MOST_FILES = 500
"""Files that a branch may change, of those that are read."""
MOST_BYTES = 16 << 20
_NAMED = 3


class ProposalRepository(Repository, Protocol):
    """A repository that fetches other branches than its own, and is closed in the end."""

    def propose(self, branch: str) -> Proposal:
        """Fetch a branch, and find where it left the source branch. Raises InvalidInput where there is none."""
        ...

    def close(self) -> None:
        """Remove the mirror."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedFleet:
    """The fleet of a branch."""

    desired: Desired
    """At the commit of the branch."""
    merged: CommitId
    """A commit in the mirror alone, of the branch's changes on top of the source branch."""


def read_proposal(
    repository: ProposalRepository,
    source: SourceReader,
    branch: str,
    *,
    author: Identity,
    now: datetime,
    seen: Observed,
) -> ProposedFleet:
    """Read the fleet of a branch, with templates that are made from what is `seen` on clusters.

    Raises InvalidInput where the branch does not exist, changes too much, or changes a file that the source branch has
    changed as well.
    """
    onto = repository.tips().source
    if onto is None:
        raise InvalidInput("the source branch does not exist")
    proposal = repository.propose(branch)
    changed = to_merge(
        branch, repository.changes(proposal.base, onto), repository.changes(proposal.base, proposal.commit)
    )
    source.desired(onto)  # what both have in common is parsed once, for all branches
    if not changed:
        return ProposedFleet(desired=replace(source.expanded(onto, seen), commit=proposal.commit), merged=onto)
    commit = Commit(
        message=f"merge({branch})\n",
        author=author,
        at=now,
        removes=tuple(change.path for change in changed if change.new is None),
        writes=_contents(repository, branch, proposal, changed),
    )
    (merged,) = repository.write(onto, [commit])
    return ProposedFleet(desired=replace(source.beside().expanded(merged, seen), commit=proposal.commit), merged=merged)


def to_merge(branch: str, ours: Sequence[FileChange], theirs: Sequence[FileChange]) -> tuple[FileChange, ...]:
    """Return the changes of a branch that the source branch lacks, of files that are read.

    Both lists are differences from where the branch left. Raises InvalidInput for a file that both change otherwise.
    """
    since = {change.path: change.new for change in ours}
    changed = tuple(
        change
        for change in theirs
        if is_read(change.path) and (change.path not in since or since[change.path] != change.new)
    )
    both = sorted(change.path for change in changed if change.path in since)
    if both:
        names = join_names([*both[:_NAMED], *([f"{len(both) - _NAMED} more"] if len(both) > _NAMED else [])])
        raise InvalidInput(f"branch {branch!r} and the source branch both change {names} (try merging that into it)")
    if len(changed) > MOST_FILES:
        raise InvalidInput(f"branch {branch!r} changes {len(changed)} files, over {MOST_FILES} (try smaller parts)")
    return changed


def unobserved(desired: Desired, base: Desired, observed: Observed) -> tuple[Problem, ...]:
    """Warn of the templates of a branch whose workloads nobody observes before they are on the source branch."""
    return tuple(
        Problem(
            path=template.path,
            line=template.line,
            message=f"{workload} is observed once it is on the source branch: until then nothing is missing of it here",
            severity=Severity.WARNING,
        )
        for workload, template in desired.templates.items()
        if template.ref is not None
        and workload not in base.templates
        and not _is_seen(template.ref, observed.clusters.get(desired.workspaces[workload.workspace].primary))
    )


def _is_seen(ref: WorkloadRef, observation: ClusterObservation | None) -> bool:
    """Return whether a primary reports a workload all the same, or cannot be seen, which is told elsewhere."""
    return observation is None or any(seen.ref.may_be(ref) for seen in observation.workloads)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedCharts:
    """Charts of the repositories that the source branch names: a branch sends the daemon nowhere else."""

    charts: Charts
    repositories: frozenset[str]

    @classmethod
    def of(cls, charts: Charts, reviewed: Desired) -> ReviewedCharts:
        """Admit the repositories of all templates of a fleet."""
        specs = (template.spec for template in reviewed.templates.values())
        return cls(charts=charts, repositories=frozenset(chart.repo_url for spec in specs for chart in spec.helm))

    def available(self) -> bool:
        """Return whether charts can be rendered here at all."""
        return self.charts.available()

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[Mapping[str, Json], ...]:
        """Render one chart. Raises InvalidInput for one of another repository."""
        if chart.repo_url not in self.repositories:
            raise InvalidInput(
                f"chart {chart.name!r}: its repository is not on the source branch yet, so the daemon does not ask it"
            )
        return self.charts.template(chart, hooks=hooks, workspace=workspace)


def _contents(
    repository: Repository, branch: str, proposal: Proposal, changed: Sequence[FileChange]
) -> dict[str, bytes]:
    """Read the files that a branch writes."""
    written = {change.path: change.new for change in changed if change.new is not None}
    if not written:
        return {}
    entries = repository.entries(proposal.commit, under=sorted(written), sizes=True)
    if sum(entry.size for entry in entries) > MOST_BYTES:
        raise InvalidInput(f"branch {branch!r} changes over {MOST_BYTES >> 20} MiB of files (try smaller parts)")
    contents = repository.read(written.values())
    return {path: contents[blob] for path, blob in written.items()}
