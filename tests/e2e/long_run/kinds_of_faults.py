"""The kinds of faults of a run, and those that cannot be played here."""

from __future__ import annotations

from functools import partial

from tests.e2e.argo_cd import ArgoCD
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import KUSTOMIZE, Flux
from tests.e2e.long_run import clock
from tests.e2e.long_run.clock import ShiftedClock
from tests.e2e.long_run.daemon import Daemon
from tests.e2e.long_run.faults import Fault
from tests.e2e.long_run.stage import Stage

AHEAD, BEHIND = 75, -45
"""Seconds by which the daemon's clock is put ahead and back; certificates of a minute ago have to hold for it."""
_AWAY = (6.0, 20.0)
"""Seconds: KWOK and the controllers take a server that was away for longer than 40 s for another one."""
_SHORT = (1.0, 3.0)
_APART = (5.0, 10.0)
_API_SERVER = "kube-apiserver"


def kinds(stage: Stage, daemon: Daemon, shifted: ShiftedClock | None) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    """Return the kinds of faults, and a sentence for each kind that is left out."""
    flux, argo_cd, git = stage.three.flux, stage.three.argo_cd, stage.fleet.server
    faults = [
        *(_process("Flux", flux, name) for name in (KUSTOMIZE, flux.source)),
        *(
            _process("Argo CD", argo_cd, f"argocd-{name}")
            for name in ("application-controller", "repo-server", "applicationset-controller")
        ),
        *(_process(cluster.name, cluster, _API_SERVER) for cluster in stage.three.clusters.values()),
        Fault(name="git server away", begin=git.kill, end=git.start, lasts=_AWAY),
        Fault(name="daemon killed", begin=daemon.kill, end=daemon.start, lasts=_SHORT),
    ]
    if shifted is None:
        return tuple(faults), (f"clocks apart: {clock.missing()}",)
    for name, ahead in ((f"clock {AHEAD} s ahead", AHEAD), (f"clock {-BEHIND} s behind", BEHIND)):
        faults.append(Fault(name=name, begin=partial(shifted.put, ahead), end=partial(shifted.put, 0), lasts=_APART))
    return tuple(faults), ()


def _process(owner: str, processes: Cluster | Flux | ArgoCD, name: str) -> Fault:
    """Make the fault of a process that is killed, and started again."""
    return Fault(
        name=f"{owner}: {name} away",
        begin=partial(processes.kill, name),
        end=partial(processes.start, name),
        lasts=_AWAY,
    )
