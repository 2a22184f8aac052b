"""Prometheus as a source of signals: asks the queries of policies, on a thread of its own.

Called by `app` and, through the port, by a pass, which never waits for an answer. Nothing is decided here:
`core.signals` says how many replicas an answer comes to, and how old it may be.
"""

from reconciler.adapters.prometheus.server import PrometheusServer
from reconciler.adapters.prometheus.view import NoPrometheus, PrometheusSignals

__all__ = ["NoPrometheus", "PrometheusServer", "PrometheusSignals"]
