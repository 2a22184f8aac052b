"""The pods of placements in a cluster, and the progress of each placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.core.observe.kubernetes.pods import PodRecord
from reconciler.model.capacity import NonGpuPods, PendingPods
from reconciler.model.ids import PlacementName


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementProgress:
    """The progress of the pods of placements, as in `ClusterObservation`."""

    bound: Mapping[PlacementName, int] = field(default_factory=dict)
    ready: Mapping[PlacementName, int] = field(default_factory=dict)
    helpers: Mapping[PlacementName, NonGpuPods] = field(default_factory=dict)
    homeless: Mapping[PlacementName, PendingPods] = field(default_factory=dict)
    troubles: Mapping[PlacementName, str] = field(default_factory=dict)


class PlacementPods:
    """The pods of each placement; terminating pods are no replicas any more."""

    def __init__(self) -> None:
        self._pods: dict[PlacementName, dict[str, PodRecord]] = {}
        self._come: PlacementProgress | None = None

    def count(self, key: str, pod: PodRecord, sign: int) -> None:
        """Add a pod, or remove it."""
        self._come = None
        if sign > 0:
            self._pods.setdefault(pod.placement, {})[key] = pod
            return
        pods = self._pods[pod.placement]
        del pods[key]
        if not pods:
            del self._pods[pod.placement]

    def come(self) -> PlacementProgress:
        """Return the progress of each placement; the same object until something changes."""
        if self._come is None:
            self._come = _summed_up(self._pods)
        return self._come


def _summed_up(placements: Mapping[PlacementName, Mapping[str, PodRecord]]) -> PlacementProgress:
    bound: dict[PlacementName, int] = {}
    ready: dict[PlacementName, int] = {}
    helpers: dict[PlacementName, NonGpuPods] = {}
    homeless: dict[PlacementName, PendingPods] = {}
    troubles: dict[PlacementName, str] = {}
    for name, pods in sorted(placements.items()):
        staying = [pod for _, pod in sorted(pods.items()) if not pod.leaving]
        if not staying:
            continue
        ready[name] = sum(pod.ready for pod in staying)
        if runs := sum(pod.runs for pod in staying):
            bound[name] = runs
        if helping := [pod for pod in staying if pod.helping and pod.node]:
            helpers[name] = NonGpuPods(bound=len(helping), ready=sum(pod.ready for pod in helping))
        waiting = [pod for pod in staying if not pod.node]
        asking = [pod for pod in waiting if not pod.helping]
        shape = next((pod.shape for pod in asking or waiting if pod.shape), None)
        if shape is not None:
            since = min((pod.held.since for pod in asking or waiting if pod.held), default=None)
            homeless[name] = PendingPods(replicas=len(asking or waiting), shape=shape, helping=not asking, since=since)
        if troubles_told := Counter(pod.trouble for pod in staying if pod.trouble):
            trouble, pods_in_it = min(troubles_told.items(), key=lambda entry: (-entry[1], entry[0]))
            troubles[name] = f"{pods_in_it} of {len(staying)} pods {trouble}"
    return PlacementProgress(bound=bound, ready=ready, helpers=helpers, homeless=homeless, troubles=troubles)
