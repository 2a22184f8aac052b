"""Views joined into one, and the view of a machine without any source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from operator import is_
from types import MappingProxyType

from reconciler.bulkhead import Seam, attempt
from reconciler.errors import Bug
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.manifest_source import DeployedSources, RepositorySource, SourceContent, UnreadSource
from reconciler.model.policy import Desired, EngineName
from reconciler.model.rollout import EngineReport
from reconciler.model.signal import ReplicaRequest, SignalFreshness
from reconciler.ports import Charts, ClusterView

ReportsByPath = Mapping[str, EngineReport]
_NONE: ReportsByPath = MappingProxyType({})


class JoinedView:
    """The newest observation of each cluster from several views (a `ports.ClusterView`).

    Of two with the same time that of the earlier view wins. All replica requests and signals of a workload are kept, in
    the order of the views. Of two reports on one placement that of the engine's own objects wins over one in an
    observation. Charts can be rendered if one of the views can. A view that fails in a way that nothing foresaw has
    nothing to say, and its clusters are unseen.
    """

    def __init__(self, *views: ClusterView) -> None:
        self._views = views
        self._unfollowed: tuple[Bug | None, ...] = ()
        self._parts: tuple[ReportsByPath, ...] = ()
        self._reports = _NONE

    def follow(self, desired: Desired) -> None:
        """Pass the fleet on to each view."""
        self._unfollowed = tuple(
            attempt(Seam.VIEW, type(view).__name__, partial(view.follow, desired)) for view in self._views
        )

    def observe(self) -> Observed:
        """Read each view once and join the results; problems keep the order of the views."""
        clusters: dict[ClusterName, ClusterObservation] = {}
        problems = [bug.problem(bug.item) for bug in self._unfollowed if bug is not None]
        asks: dict[WorkloadId, tuple[ReplicaRequest, ...]] = {}
        reports: list[ReportsByPath] = []
        reporting: dict[ClusterName, EngineName] = {}
        freshness: dict[WorkloadId, tuple[SignalFreshness, ...]] = {}
        nameless: dict[ClusterName, str] = {}
        reached_by: dict[ClusterName, str] = {}
        sources: dict[RepositorySource, SourceContent | UnreadSource] = {}
        applications: DeployedSources = {}
        helm = False
        for view in self._views:
            observed = attempt(Seam.VIEW, type(view).__name__, view.observe)
            seen = Observed() if isinstance(observed, Bug) else observed
            if isinstance(observed, Bug):
                problems.append(observed.problem(observed.item))
            helm = helm or seen.helm
            problems.extend(seen.problems)
            reporting |= seen.reporting
            nameless |= seen.nameless
            sources |= seen.sources
            applications = {**applications, **seen.applications}
            reached_by |= seen.reached_by
            reports.append(seen.reports)
            for workload, asked in seen.asks.items():
                asks[workload] = asks.get(workload, ()) + asked
            for workload, answers in seen.freshness.items():
                freshness[workload] = freshness.get(workload, ()) + answers
            for name, observation in seen.clusters.items():
                newest = clusters.get(name)
                if newest is None or observation.observed_at > newest.observed_at:
                    clusters[name] = observation
        reports += (observation.reports for observation in clusters.values())
        return Observed(
            clusters=clusters,
            asks=asks,
            freshness=freshness,
            reports=self._join_reports(tuple(part for part in reports if part)),
            reporting=reporting,
            sources=sources,
            applications=applications,
            nameless=nameless,
            reached_by=reached_by,
            helm=helm,
            problems=tuple(problems),
        )

    def _join_reports(self, parts: tuple[ReportsByPath, ...]) -> ReportsByPath:
        """Join reports; the same object for the same parts."""
        if len(parts) != len(self._parts) or not all(map(is_, parts, self._parts)):
            joined = {path: report for part in reversed(parts) for path, report in part.items()}
            self._parts, self._reports = parts, parts[0] if len(parts) == 1 else joined
        return self._reports


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartsView:
    """A view without clusters, which only knows whether charts can be rendered here (a `ports.ClusterView`)."""

    charts: Charts

    def follow(self, desired: Desired) -> None:
        """Do nothing: no cluster is watched."""

    def observe(self) -> Observed:
        """Return no cluster, and whether charts can be rendered."""
        return Observed(helm=self.charts.available())
