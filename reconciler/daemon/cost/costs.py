"""Reads what placements cost from the two branches, and follows it at the cost of their changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile

from reconciler.core.commits.trailers import Trailer, action, is_own
from reconciler.core.cost.meter import CostMeter
from reconciler.core.ledger.read import ROOTS, is_record, read_record
from reconciler.daemon.cost.prices import PriceFiles, PriceReader
from reconciler.model.action import Action
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.placement import Placement
from reconciler.model.tree import BranchSection, Identity, LoggedChanges, LoggedCommit, Tips
from reconciler.ports import Repository

_AT_ONCE = 512
_RECORD = "/placement.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """What has been read, up to a tip of the output branch."""

    tip: CommitId
    meter: CostMeter
    """Never changed once it is here."""
    written_at: datetime
    """When the last of our own commits was made."""
    source: CommitId | None
    """The source commit that the last of them was decided on; None before the first that names one."""
    prices: PriceFiles | None
    """The Cluster files of that commit; None where it is not in the history of its branch any more."""


class CostReader:
    """The meter at any tips; it depends on the tips and on its beginning alone, not on the tips before.

    What a placement has comes from its record at each commit of the output branch, so that an edit or a deletion by
    hand counts, too. Prices are those of the Cluster files at the source commits that our commits were decided on. A
    new price holds from the moment at which it was committed, but not before the last decision without it, nor after
    the first with it: clocks of others may be wrong.
    """

    def __init__(self, repository: Repository, author: Identity, *, by_workload: bool = True) -> None:
        """Read nothing yet; `author` is the committer of our own commits."""
        self._repository = repository
        self._author = author
        self._by_workload = by_workload
        self._prices = PriceReader(repository)
        self._read: _Read | None = None
        self._latest: tuple[Tips, CostMeter] | None = None

    def meter(self, tips: Tips, since: datetime, now: datetime) -> CostMeter:
        """Return a meter that has counted since a moment, and knows of all commits until now.

        The same tips and beginning give the same object. Its amounts are asked for a moment that is no earlier.
        """
        if self._latest is not None and self._latest[0] == tips and self._latest[1].since == since:
            return self._latest[1]
        before = self._read if self._read is not None and self._read.meter.since == since else None
        self._read = self._follow(before, tips, since, now)
        if self._read is None:
            return CostMeter(since, by_workload=self._by_workload)
        meter, is_final = self._with_latest_prices(self._read, tips, now)
        if self._read.tip == tips.output and is_final:
            self._latest = tips, meter
        return meter

    def _with_latest_prices(self, read: _Read, tips: Tips, now: datetime) -> tuple[CostMeter, bool]:
        """Go on with the prices of the source branch's tip, on which nothing has been decided yet.

        The second value says whether they are the same at every later moment: none of them is from the future.
        """
        if tips.source is None or tips.source == read.source:
            return read.meter, True
        meter = read.meter.copy()
        _, is_final = self._price(meter, read.prices, tips.source, tips, (read.written_at, now))
        return meter, is_final

    def _follow(self, before: _Read | None, tips: Tips, since: datetime, now: datetime) -> _Read | None:
        """Read the commits that have come since; None where there are none at all."""
        if tips.output is None:
            return None
        base = None if before is None else before.tip
        if base == tips.output:
            return before
        section = self._repository.section(tips.output, since=since, base=base, under=ROOTS[:1])
        if before is not None and (section.base is None or section.base.id != base):
            before = None  # the branch was rewritten
            section = self._repository.section(tips.output, since=since, under=ROOTS[:1])
        commits = self._until(section.commits, now)
        if before is None:
            before = self._begin(section, commits, tips, since)
        return before if before is None or not commits else self._with_commits(before, commits, tips)

    def _until(self, commits: Sequence[LoggedChanges], now: datetime) -> Sequence[LoggedChanges]:
        """Leave out what was committed later: what follows our last commit until then, from our next one on.

        Commits of people before our last one count, whatever their date.
        """
        ours = [number for number, change in enumerate(commits) if self._is_own(change) and change.commit.at <= now]
        first = ours[-1] + 1 if ours else 0
        rest = [*takewhile(lambda change: not self._is_own(change), commits[first:])]
        while rest and rest[-1].commit.at > now:
            rest.pop()
        return [*commits[:first], *rest]

    def _begin(
        self, section: BranchSection, commits: Sequence[LoggedChanges], tips: Tips, since: datetime
    ) -> _Read | None:
        """Read what stood at the beginning, with the prices of the first source commit that is named."""
        logged = [*([section.base] if section.base is not None else []), *(change.commit for change in commits)]
        if not logged:
            return None
        meter = CostMeter(since, by_workload=self._by_workload)
        source = next((CommitId(named) for commit in logged if (named := self._source(commit))), None)
        prices = None if source is None or tips.source is None else self._prices.at(source, tips.source)
        meter.price({} if prices is None else prices.clusters, since)
        if section.base is not None:
            entries = self._repository.entries(section.base.id, under=ROOTS[:1])
            blobs = {entry.path: entry.blob for entry in entries if _is_placement(entry.path)}
            for path, placement in self._placements(blobs.items()).items():
                meter.place(path[0], placement, since)
        return _Read(tip=logged[0].id, meter=meter, written_at=since, source=source, prices=prices)

    def _with_commits(self, before: _Read, commits: Sequence[LoggedChanges], tips: Tips) -> _Read:
        """Count on over further commits, in their order."""
        meter, written_at = before.meter.copy(), before.written_at
        source, prices = before.source, before.prices
        placements = self._placements(
            (file.path, file.new)
            for change in commits
            if action(change.commit) is not Action.EXTEND or not self._is_own(change)  # another end changes no cost
            for file in change.files
            if file.new is not None and _is_placement(file.path)
        )
        for change, latest in zip(commits, self._latest_moments(commits), strict=True):
            at = max(min(change.commit.at, latest), written_at)
            if self._is_own(change):
                decided_on = CommitId(self._source(change.commit))
                if decided_on and decided_on != source:
                    prices, _ = self._price(meter, prices, decided_on, tips, (written_at, at))
                    source = decided_on
                written_at = at
            for file in change.files:
                placement = None if file.new is None else placements.get((file.path, file.new))
                if _is_placement(file.path) and (file.new is None or placement is not None):
                    meter.place(file.path, placement, at)
        return _Read(tip=commits[-1].commit.id, meter=meter, written_at=written_at, source=source, prices=prices)

    def _latest_moments(self, commits: Sequence[LoggedChanges]) -> Sequence[datetime]:
        """Return the latest moment at which each commit can have been made: that of our next one."""
        moments, latest = list[datetime](), datetime.max.replace(tzinfo=UTC)
        for change in reversed(commits):
            latest = min(latest, change.commit.at) if self._is_own(change) else latest
            moments.append(latest)
        return moments[::-1]

    def _price(
        self,
        meter: CostMeter,
        before: PriceFiles | None,
        source: CommitId,
        tips: Tips,
        between: tuple[datetime, datetime],
    ) -> tuple[PriceFiles | None, bool]:
        """Go on with the prices of each commit up to a source commit, within a time; without any where it is gone.

        The second value says whether all of these commits were made before the end of that time.
        """
        earliest, latest = between
        files, is_over = None, True
        for committed_at, files in () if tips.source is None else self._prices.follow(before, source, tips.source):
            earliest = min(max(committed_at, earliest), latest)
            meter.price(files.clusters, earliest)
            is_over = is_over and committed_at <= latest
        if files is None:
            meter.price({}, latest)
        return files, is_over

    def _placements(self, files: Iterable[tuple[str, BlobId]]) -> dict[tuple[str, BlobId], Placement]:
        """Read the records of placements that can be read."""
        wanted = list(dict.fromkeys(files))
        placements: dict[tuple[str, BlobId], Placement] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            contents = self._repository.read({blob for _, blob in batch})
            for path, blob in batch:
                record = read_record(contents[blob], path)
                if isinstance(record, Placement):
                    placements[path, blob] = record
        return placements

    def _source(self, commit: LoggedCommit) -> str:
        return Trailer.SOURCE.read(commit) if is_own(commit, self._author) else ""

    def _is_own(self, change: LoggedChanges) -> bool:
        return is_own(change.commit, self._author)


def _is_placement(path: str) -> bool:
    return path.endswith(_RECORD) and is_record(path)
