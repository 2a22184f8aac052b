"""Services outside as sources of signals and of the use of GPUs: asks their questions, on threads of its own.

Called by `app` and, through the port, by a pass, which never waits for an answer. Nothing is decided here:
`core.signals` says how many replicas an answer comes to, and how old it may be; `core.observe.gpu_use` says which GPUs
are idle.
"""

from reconciler.adapters.signals.gpu_use import PrometheusGpuUse
from reconciler.adapters.signals.prometheus import PrometheusServer
from reconciler.adapters.signals.slurm import SlurmServer
from reconciler.adapters.signals.view import AskedSignals, UnaskedSignals

__all__ = ["AskedSignals", "PrometheusGpuUse", "PrometheusServer", "SlurmServer", "UnaskedSignals"]
