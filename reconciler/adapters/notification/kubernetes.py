"""Writes notices as Kubernetes Events, in the primary and where a workload is placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from reconciler.adapters.notification.sender import NotTaken
from reconciler.core.notification.kubernetes_event import event_targets, is_current
from reconciler.core.notification.message import Uncertain
from reconciler.errors import Transient
from reconciler.model.events.notice import Notice
from reconciler.model.ids import ClusterName
from reconciler.model.policy import Desired
from reconciler.ports import Clock


class KubernetesSender:
    """Writes Events with the daemon's own logins; `remark` is told once of a cluster that takes none."""

    def __init__(
        self,
        desired: Desired,
        kubeconfig: Path | None,
        *,
        remark: Callable[[str], None],
        clock: Clock,
        timeout: float,
    ) -> None:
        self._desired = desired
        self._kubeconfig = kubeconfig
        self._remark = remark
        self._clock = clock
        self._timeout = timeout
        self._told: set[tuple[ClusterName, str]] = set()

    def ready(self) -> None:
        """Do nothing: only a try shows whether a login works."""

    def send(self, notices: Sequence[Notice], _uncertain: Uncertain | None = None) -> None:
        """Write the Events of notices. Raises NotTaken where a cluster does not answer."""
        from reconciler.adapters.kube.events import create_event  # noqa: PLC0415 - slow to import, and for few fleets

        for notice in notices:
            if not is_current(notice, self._clock.now()):
                continue
            for target in event_targets(notice, self._desired):
                try:
                    why = create_event(self._kubeconfig, notice, target, patience=self._timeout)
                except Transient as error:
                    raise NotTaken(str(error)) from error
                if why and (target.cluster, why) not in self._told:
                    self._told.add((target.cluster, why))
                    self._remark(f"cluster {target.cluster} takes no Event: {why}")
