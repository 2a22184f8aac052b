"""Services outside as sources of signals: asks the questions of policies, on a thread for each service.

Called by `app` and, through the port, by a pass, which never waits for an answer. Nothing is decided here:
`core.signals` says how many replicas an answer comes to, and how old it may be.
"""

from reconciler.adapters.signals.prometheus import PrometheusServer
from reconciler.adapters.signals.slurm import SlurmServer
from reconciler.adapters.signals.view import AskedSignals, UnaskedSignals

__all__ = ["AskedSignals", "PrometheusServer", "SlurmServer", "UnaskedSignals"]
