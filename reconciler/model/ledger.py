"""The output branch as values: placements, restraints, requests, and manual changes.

`Placements` finds placements by directory, workload, cluster or expiry. It is read-only, and its order depends on its
content alone. A changed copy costs as much as its change, so that a branch with 33,000 placements can be followed
commit by commit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import TypeVar

from reconciler.errors import Problem
from reconciler.model.approval import Approval, BurstProposal
from reconciler.model.ids import BlobId, ClusterName, CommitId, WorkloadId
from reconciler.model.placement import Placement, Restraint
from reconciler.model.request import RequestRecord
from reconciler.model.sorted_map import SortedMap

K = TypeVar("K")

_FEW = 64
"""Changes up to which inserting each is cheaper than sorting all placements."""


class PlacementGroup:
    """Placements sorted by directory, with sums. Each pass makes thousands of them."""

    __slots__ = ("_counts", "_paths", "placements", "replicas")

    def __init__(self, placements: Iterable[Placement] = ()) -> None:
        """Sort the placements and sum them up."""
        by_path = sorted(((placement.path, placement) for placement in placements), key=itemgetter(0))
        self._set(tuple(path for path, _ in by_path), tuple(placement for _, placement in by_path))

    @classmethod
    def of_sorted(cls, by_path: Mapping[str, Placement]) -> PlacementGroup:
        """Return the group of placements that are sorted by their directories, which are their keys."""
        group = object.__new__(cls)
        group._set(tuple(by_path), tuple(by_path.values()))
        return group

    def _set(self, paths: tuple[str, ...], placements: tuple[Placement, ...]) -> None:
        self._paths, self.placements = paths, placements
        counts: dict[ClusterName, int] = {}
        for placement in placements:
            counts[placement.cluster] = counts.get(placement.cluster, 0) + placement.replicas
        self._counts: Mapping[ClusterName, int] = counts
        self.replicas = sum(counts.values())

    @property
    def clusters(self) -> AbstractSet[ClusterName]:
        """The clusters of the placements."""
        return self._counts.keys()

    @property
    def most(self) -> int:
        """The replicas on the cluster with the most."""
        return max(self._counts.values(), default=0)

    def on(self, cluster: ClusterName) -> tuple[Placement, ...]:
        """Return the placements on a cluster, by directory."""
        if cluster not in self._counts:
            return ()
        return tuple(placement for placement in self.placements if placement.cluster == cluster)

    def with_(self, placement: Placement) -> PlacementGroup:
        """Return a group with one more placement, replacing one of the same directory."""
        path, cluster = placement.path, placement.cluster
        place = bisect_left(self._paths, path)
        if place < len(self._paths) and self._paths[place] == path:
            return self.without(placement).with_(placement)
        group = object.__new__(PlacementGroup)
        group.placements = (*self.placements[:place], placement, *self.placements[place:])
        group._paths = (*self._paths[:place], path, *self._paths[place:])
        group._counts = {**self._counts, cluster: self._counts.get(cluster, 0) + placement.replicas}
        group.replicas = self.replicas + placement.replicas
        return group

    def with_all(self, arrivals: Sequence[Placement]) -> PlacementGroup:
        """Return a group with more placements, each replacing one of the same directory."""
        if len(arrivals) == 1:
            return self.with_(arrivals[0])
        by_path = dict(zip(self._paths, self.placements, strict=True))
        by_path |= {placement.path: placement for placement in arrivals}
        return PlacementGroup.of_sorted(dict(sorted(by_path.items())))

    def without(self, placement: Placement) -> PlacementGroup:
        """Return the group without the placement of this directory."""
        path = placement.path
        place = bisect_left(self._paths, path)
        if place == len(self._paths) or self._paths[place] != path:
            return self
        gone = self.placements[place]
        group = object.__new__(PlacementGroup)
        group.placements = (*self.placements[:place], *self.placements[place + 1 :])
        group._paths = (*self._paths[:place], *self._paths[place + 1 :])
        counts = {**self._counts, gone.cluster: self._counts[gone.cluster] - gone.replicas}
        if all(placement.cluster != gone.cluster for placement in group.placements):
            del counts[gone.cluster]
        group._counts = counts
        group.replicas = self.replicas - gone.replicas
        return group


NOTHING = PlacementGroup()


class Placements(Mapping[str, Placement]):
    """Placements by directory (``clusters/worker-2/vllm-7f3a90c1``), with indexes by workload, cluster and expiry."""

    __slots__ = ("_before", "_by_cluster", "_by_path", "_by_workload", "_expiries", "_mark", "_touched", "_workloads")

    def __init__(self, placements: Mapping[str, Placement] | None = None) -> None:
        """Take a copy of `placements`, keyed by their directories."""
        self._by_path: SortedMap[str, Placement] = SortedMap(placements)
        workloads: dict[WorkloadId, dict[str, Placement]] = {}
        clusters: dict[ClusterName, dict[str, Placement]] = {}
        for path, placement in self._by_path.items():
            workloads.setdefault(placement.workload, {})[path] = placement
            clusters.setdefault(placement.cluster, {})[path] = placement
        self._workloads: tuple[WorkloadId, ...] = tuple(sorted(workloads))
        self._by_workload = {workload: PlacementGroup.of_sorted(there) for workload, there in workloads.items()}
        self._by_cluster = {cluster: PlacementGroup.of_sorted(there) for cluster, there in clusters.items()}
        self._expiries: list[tuple[datetime, str]] = sorted(
            (placement.expires_at, path) for path, placement in self._by_path.items()
        )
        self._mark = object()
        self._before: object = None
        self._touched: Collection[WorkloadId] = ()

    def changed(self, put: Mapping[str, Placement], drop: Iterable[str] = ()) -> Placements:
        """Return a copy with the placements of `put`, without the directories of `drop` that are not in `put`."""
        gone = [path for path in drop if path in self._by_path and path not in put]
        old = [self._by_path[path] for path in (*gone, *(path for path in put if path in self._by_path))]
        if not put and not gone:
            return self
        if len(put) + len(gone) > _FEW:
            left = dict(self._by_path)
            for path in gone:
                del left[path]
            copy = Placements({**left, **put})
        else:
            copy = Placements()
            copy._by_path = self._by_path.changed(put, gone)
            copy._by_workload = _regroup(
                self._by_workload,
                [(placement.workload, placement) for placement in old],
                [(placement.workload, placement) for placement in put.values()],
            )
            copy._by_cluster = _regroup(
                self._by_cluster,
                [(placement.cluster, placement) for placement in old],
                [(placement.cluster, placement) for placement in put.values()],
            )
            copy._expiries = self._expiries.copy()
            for placement in old:
                del copy._expiries[bisect_left(copy._expiries, (placement.expires_at, placement.path))]
            for placement in put.values():
                insort(copy._expiries, (placement.expires_at, placement.path))
            copy._workloads = self._sorted_workloads(copy._by_workload, (*old, *put.values()))
        copy._before = self._mark
        copy._touched = frozenset(placement.workload for placement in (*old, *put.values()))
        return copy

    def touched_since(self, earlier: Placements) -> Collection[WorkloadId] | None:
        """Return the workloads whose placements may differ from `earlier`, which this is a changed copy of.

        None where it is a copy of any other.
        """
        if earlier is self:
            return ()
        return self._touched if self._before is earlier._mark else None

    def workloads(self) -> tuple[WorkloadId, ...]:
        """List the workloads that have placements, by name."""
        return self._workloads

    def _sorted_workloads(
        self, groups: Mapping[WorkloadId, PlacementGroup], changed: Iterable[Placement]
    ) -> tuple[WorkloadId, ...]:
        """Return the workloads of `groups`, which differ from those of this map in the `changed` placements only."""
        touched = {placement.workload for placement in changed}
        others = {workload for workload in touched if (workload in groups) != (workload in self._by_workload)}
        if not others:
            return self._workloads
        workloads = [*self._workloads]
        for workload in others:
            if workload in groups:
                insort(workloads, workload)
            else:
                del workloads[bisect_left(workloads, workload)]
        return tuple(workloads)

    def clusters(self) -> frozenset[ClusterName]:
        """Name the clusters that have placements."""
        return frozenset(self._by_cluster)

    @property
    def by_workload(self) -> Mapping[WorkloadId, PlacementGroup]:
        """The placements of each workload that has any."""
        return self._by_workload

    def of(self, workload: WorkloadId) -> PlacementGroup:
        """Return the placements of a workload."""
        return self._by_workload.get(workload, NOTHING)

    def on(self, cluster: ClusterName) -> PlacementGroup:
        """Return the placements on a cluster."""
        return self._by_cluster.get(cluster, NOTHING)

    def lapsed(self, now: datetime) -> list[Placement]:
        """List the expired placements, the longest overdue first."""
        end = bisect_right(self._expiries, now, key=lambda expiry: expiry[0])
        return [self._by_path[path] for _, path in self._expiries[:end]]

    def next_expiry(self, now: datetime) -> datetime | None:
        """Return when the next placement expires."""
        index = bisect_right(self._expiries, now, key=lambda expiry: expiry[0])
        return self._expiries[index][0] if index < len(self._expiries) else None

    def __getitem__(self, path: str) -> Placement:
        return self._by_path[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_path)

    def __len__(self) -> int:
        return len(self._by_path)

    def __contains__(self, path: object) -> bool:
        return path in self._by_path


def _regroup(
    groups: Mapping[K, PlacementGroup],
    old: Iterable[tuple[K, Placement]],
    new: Iterable[tuple[K, Placement]],
) -> dict[K, PlacementGroup]:
    """Copy groups without old members and with new ones; empty groups are dropped."""
    copy = dict(groups)
    for key, placement in old:
        left = copy.pop(key).without(placement)
        if left.placements:
            copy[key] = left
    for key, placement in new:
        copy[key] = copy.get(key, NOTHING).with_(placement)
    return copy


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A placement whose files a person changed on the output branch since the daemon's last write."""

    placement: Placement
    removed: bool
    """Whether placement.yaml was deleted, which is a revert to respect; any other edit is undone."""
    files: Mapping[str, BlobId]
    """All files of the placement as the daemon left them, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The output branch as values, at one commit."""

    commit: CommitId | None
    """None while the branch does not exist."""
    placements: Placements = field(default_factory=Placements)
    """By directory (``clusters/worker-2/vllm-7f3a90c1``)."""
    requests: Mapping[WorkloadId, RequestRecord] = field(default_factory=dict)
    """Requests by workload, until each is forgotten."""
    restraints: Mapping[WorkloadId, tuple[Restraint, ...]] = field(default_factory=dict)
    """Restraints as written, lapsed ones included."""
    proposals: Mapping[WorkloadId, BurstProposal] = field(default_factory=dict)
    """Bursts that wait for an approval."""
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    """Approvals by path, until the pass that has seen them."""
    drifted: tuple[Drift, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Files that could not be read, which are left as they are."""
    blocked: frozenset[WorkloadId] = frozenset()
    """Workloads of unreadable files; they get no new placements until a person repairs the files."""
    anchored: frozenset[str] = frozenset()
    """Files that keep engines' directories alive."""
