"""Observations from the API servers of clusters: the only package that imports kubernetes.

Each cluster is listed once and watched from then on. All share one thread with one event loop, and none waits for
another. Objects stay the JSON that the API server sends; `core.observe.kubernetes` computes capacity and demand from
it. `KubeInquiry` asks single questions in place of that. Nothing is written to any cluster, but by `apply`, which no
daemon calls: it applies what an admin has seen and confirmed; and by `events`, which remarks on objects where an admin
has given a right for that.
"""

from reconciler.adapters.kube.inquiry import KubeInquiry
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.view import KubeObservations

__all__ = ["KubeInquiry", "KubeObservations", "WatchTiming"]
