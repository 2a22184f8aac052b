"""The clusters themselves as the source of observations: the only package that imports kubernetes.

Each cluster is listed once and watched from then on, all of them in one thread with one event loop, each by itself: a
slow one holds up no other. Objects stay the JSON that the API server sends; `core.kubernetes` makes numbers of it.
Nothing is written to any cluster.
"""

from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.view import KubeObservations

__all__ = ["KubeObservations", "WatchTiming"]
