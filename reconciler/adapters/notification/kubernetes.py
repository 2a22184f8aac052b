"""Writes notices as Kubernetes Events, in the primary and where a workload is placed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from reconciler.adapters.notification.sender import ONLY, NotTaken
from reconciler.core.notification.kubernetes_event import LIFETIME, event_targets, is_current
from reconciler.core.notification.message import Uncertain
from reconciler.errors import Transient
from reconciler.model.events.event import Notice
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration
from reconciler.ports import Clock


class KubernetesSender:
    """Writes Events with the daemon's own logins; a target is a cluster, and `remark` is told once if it takes none."""

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
        self._told: set[tuple[str, str]] = set()

    def ready(self) -> None:
        """Do nothing: only a try shows whether a login works."""

    def targets(self, notice: Notice) -> Sequence[str]:
        """Name the clusters with the object of a notice; `ONLY` where nothing is to be written, or not any more."""
        if not is_current(notice, self._clock.now()):
            return (ONLY,)
        return [target.cluster for target in event_targets(notice, self._desired)] or (ONLY,)

    def send(self, target: str, notices: Sequence[Notice], _uncertain: Uncertain | None = None) -> None:
        """Write the Events of notices in one cluster. Raises NotTaken where it does not answer."""
        from reconciler.adapters.kube.events import create_event  # noqa: PLC0415 - slow to import, and for few fleets

        places = (
            (notice, place)
            for notice in notices
            for place in event_targets(notice, self._desired)
            if place.cluster == target
        )
        for notice, place in places:
            try:
                why = create_event(self._kubeconfig, notice, place, patience=self._timeout)
            except Transient as error:
                raise NotTaken(f"{error} (Events of more than {format_duration(LIFETIME)} ago are left out)") from error
            if why and (target, why) not in self._told:
                self._told.add((target, why))
                self._remark(f"cluster {target} takes no Event: {why}")
