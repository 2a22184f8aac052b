"""Several sources of observations seen as one."""

from __future__ import annotations

from reconciler.errors import Problem
from reconciler.model.capacity import Ask, ClusterObservation, Observed
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import Desired
from reconciler.ports import ClusterView


class JoinedView:
    """The newest observation of each cluster from several views (a `ports.ClusterView`).

    Of two that are equally new the earlier view's stands. All that is asked for a workload is kept, in the order of the
    views. Charts can be rendered when one of the views says so.
    """

    def __init__(self, *views: ClusterView) -> None:
        self._views = views

    def follow(self, desired: Desired) -> None:
        """Tell each view."""
        for view in self._views:
            view.follow(desired)

    def observe(self) -> Observed:
        """Ask each view once and join what they say; problems keep the order of the views."""
        clusters: dict[ClusterName, ClusterObservation] = {}
        problems: list[Problem] = []
        asks: dict[WorkloadId, tuple[Ask, ...]] = {}
        helm = False
        for view in self._views:
            seen = view.observe()
            helm = helm or seen.helm
            problems.extend(seen.problems)
            for workload, asked in seen.asks.items():
                asks[workload] = asks.get(workload, ()) + asked
            for name, observation in seen.clusters.items():
                known = clusters.get(name)
                if known is None or observation.observed_at > known.observed_at:
                    clusters[name] = observation
        return Observed(clusters=clusters, asks=asks, helm=helm, problems=tuple(problems))
