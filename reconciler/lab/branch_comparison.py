"""Two source branches on the same recorded passes, side by side, as Markdown for a pull request and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconciler.core.recording.pass_record import PassKind, PassRecord
from reconciler.daemon.branch import BranchReader
from reconciler.errors import InvalidInput
from reconciler.lab.accounts import HOUR
from reconciler.lab.recorded_run import ENGINE_DELAY, TIME_TO_READY, RecordedRun, RunFigures, time_to_ready
from reconciler.model.units import format_duration
from reconciler.model.workload import Json
from reconciler.ports import Charts, Repository
from reconciler.text.markdown import code, escaped, table
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count

_MOST_COMMITS = 20
"""Commits of each branch that Markdown lists; renewals, which are many, are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchComparison:
    """The runs of two branches."""

    base: str
    head: str
    passes: int
    begin: datetime
    end: datetime
    ready_after: timedelta
    measured: bool
    """Whether `ready_after` comes from the recording."""
    before: RunFigures
    after: RunFigures

    def only(self, own: RunFigures, other: RunFigures) -> Sequence[tuple[datetime, str]]:
        """List the commits that only one of the runs made, oldest first."""
        return sorted((Counter(own.commits) - Counter(other.commits)).elements())

    def markdown(self) -> str:
        """Write the comparison for a pull request."""
        return "\n".join(self._lines()) + "\n"

    def to_json(self) -> Json:
        """Write all figures, and the commits that only one of the branches makes."""
        return {
            "passes": self.passes,
            "begin": format_time(self.begin),
            "end": format_time(self.end),
            "timeToReady": format_duration(self.ready_after),
            "branches": [
                {
                    "branch": name,
                    "unmet": round(own.unmet, 6),
                    "missingReplicaHours": round(own.missing_seconds / HOUR, 3),
                    "gpuHours": round(own.gpu_seconds / HOUR, 3),
                    "dollars": round(own.dollars, 2),
                    "commits": len(own.commits),
                    "commitsOfItAlone": [
                        {"at": format_time(at), "subject": subject} for at, subject in self.only(own, other)
                    ],
                }
                for name, own, other in (
                    (self.base, self.before, self.after),
                    (self.head, self.after, self.before),
                )
            ],
        }

    def _lines(self) -> Iterator[str]:
        yield f"### What {code(self.head)} would have changed"
        yield ""
        yield f"{self.passes} recorded passes from {format_time(self.begin)} to {format_time(self.end)}."
        yield ""
        before, after = self.before, self.after
        rows = (
            ("not served, % of the missing replica-hours", 100 * before.unmet, 100 * after.unmet, 2),
            ("missing replica-hours", before.missing_seconds / HOUR, after.missing_seconds / HOUR, 1),
            ("GPU-hours of bursts", before.gpu_seconds / HOUR, after.gpu_seconds / HOUR, 1),
            ("dollars, of clusters with a price", before.dollars, after.dollars, 2),
            ("commits", len(before.commits), len(after.commits), 0),
        )
        cells = []
        for title, old, new, digits in rows:
            change = round(new, digits) - round(old, digits)
            cells.append(
                (title, f"{old:.{digits}f}", f"{new:.{digits}f}", f"{change:+.{digits}f}" if change else "none")
            )
        yield table(("", code(self.base), code(self.head), "change"), cells)
        for name, own, other in ((self.head, after, before), (self.base, before, after)):
            yield from _commit_lines(name, self.only(own, other))
        yield ""
        source = (
            "as measured in the recording" if self.measured else "assumed: no placement became ready in the recording"
        )
        yield (
            "Demand, nodes and outages are as recorded. Both branches begin without placements; an engine takes"
            f" {format_duration(ENGINE_DELAY)}, a pod is ready {format_duration(self.ready_after)} after its commit"
            f" ({source}), and nothing fails."
        )


def _commit_lines(name: str, commits: Sequence[tuple[datetime, str]]) -> Iterator[str]:
    if commits:
        yield ""
        yield f"Commits of {code(name)} alone:"
        yield ""
        changes = [(at, subject) for at, subject in commits if not subject.startswith("extend(")]
        yield from (f"- {format_time(at)} {escaped(subject)}" for at, subject in changes[:_MOST_COMMITS])
        if len(changes) > _MOST_COMMITS:
            yield f"- and {len(changes) - _MOST_COMMITS} more"
        if len(commits) > len(changes):
            yield f"- and {count(len(commits) - len(changes), 'renewal')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchFiles:
    """A source branch with its files at its tip."""

    name: str
    files: Mapping[str, bytes]


def compare_branches(
    base: BranchFiles,
    head: BranchFiles,
    records: Sequence[PassRecord],
    *,
    repository: Repository,
    output: BranchReader,
    charts: Charts,
) -> BranchComparison:
    """Play two branches; `repository` holds the output commits of the recording.

    Raises InvalidInput where the files of a branch have errors, or no recorded pass has its commits in the repository.
    """
    commits = {record.output for record in records if record.output is not None}
    here = {commit for commit, _ in repository.held([(commit, "README.md") for commit in sorted(commits)])}
    whole = [
        record
        for record in records
        if record.kind is PassKind.WHOLE and (record.output is None or record.output in here)
    ]
    if not whole:
        raise InvalidInput(
            "comparing branches: this repository has the commits of no recorded pass (try another --repo)"
        )
    measured = time_to_ready(records)
    ready_after = measured or TIME_TO_READY
    before, after = (RecordedRun(branch.name, branch.files, charts, whole[0], ready_after) for branch in (base, head))
    for record, following in zip(whole, [*whole[1:], whole[-1]], strict=True):
        ledger = output.ledger(record.output)
        for run in (before, after):
            run.play(record, ledger, following.at)
    return BranchComparison(
        base=base.name,
        head=head.name,
        passes=len(whole),
        begin=whole[0].at,
        end=whole[-1].at,
        ready_after=ready_after,
        measured=measured is not None,
        before=before.figures,
        after=after.figures,
    )
