"""The placements and restraints as one decision changes them, and the plan that comes of it."""

from __future__ import annotations

from datetime import datetime

from reconciler.core.flight import Flight, flight
from reconciler.core.situation import Situation
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint
from reconciler.model.placements import Lent
from reconciler.model.plan import Change, Extend, Hold, Move, Place, Plan, Release, Resize, Revert, Suppressed


class Standing:
    """What stands while a pass is being decided. Every change goes through `change`, so that later steps see it."""

    def __init__(self, situation: Situation) -> None:
        """Begin with what the ledger holds."""
        ledger, now = situation.ledger, situation.now
        self._desired = situation.desired
        self._observed = situation.observed
        self._rollouts = situation.rollouts
        self._now = now
        self._before = ledger.placements
        self._of: dict[WorkloadId, Lent] = {}
        self._on: dict[ClusterName, Lent] = {}
        self._flights: dict[ClusterName, Flight] = {}
        self._begun: list[Placement] = []
        self._moments: list[datetime] = []
        self._restraints = {
            workload: tuple(restraint for restraint in restraints if now < restraint.until)
            for workload, restraints in ledger.restraints.items()
        }
        self._changes: list[Change] = []
        self._suppressed: list[Suppressed] = []
        self._turn: datetime | None = None

    def look_again(self, moment: datetime | None) -> None:
        """Note the moment at which what people have planned begins or ends next, if there is one."""
        self._turn = moment

    def change(self, change: Change) -> None:
        """Add a change to the plan, and let it stand from here on."""
        self._changes.append(change)
        match change:
            case Place(placement=placement):
                self._put(placement)
            case Resize(before=before, after=after) | Extend(before=before, after=after):
                self._drop(before)
                self._put(after)
            case Move(before=before, after=after):
                self._drop(before)
                self._put(after)  # in place of the one it joins, if there is one: they share a directory
            case Revert(placement=placement, restraint=restraint):
                self._drop(placement)
                if restraint is not None:
                    self._restrain(placement.workload, restraint)
            case Hold(workload=workload, restraint=restraint):
                self._restrain(workload, restraint)
            case Release(workload=workload, restraints=ended):
                left = (restraint for restraint in self.restraints(workload) if restraint not in ended)
                self._restraints[workload] = tuple(left)
            case _:
                pass

    def suppress(self, suppressed: Suppressed) -> None:
        """Note a change that is not made."""
        self._suppressed.append(suppressed)

    def wake(self, moment: datetime) -> None:
        """Have it looked at again at a moment."""
        self._moments.append(moment)

    def placed(self) -> tuple[WorkloadId, ...]:
        """List the workloads that have placements, by name."""
        if not self._of:
            return self._before.workloads()
        workloads = {*self._before.workloads(), *self._of}
        return tuple(sorted(workload for workload in workloads if self.lent(workload).placements))

    def lent(self, workload: WorkloadId) -> Lent:
        """Return what a workload has elsewhere."""
        changed = self._of.get(workload)
        return self._before.of(workload) if changed is None else changed

    def of(self, workload: WorkloadId) -> tuple[Placement, ...]:
        """Return a workload's placements, by path."""
        return self.lent(workload).placements

    def on(self, cluster: ClusterName) -> tuple[Placement, ...]:
        """Return a cluster's placements, by path."""
        return self._hosted(cluster).placements

    def replicas(self, workload: WorkloadId) -> int:
        """Count the replicas a workload has elsewhere."""
        return self.lent(workload).replicas

    def lapsed(self) -> list[Placement]:
        """List the placements that the ledger holds beyond their time, the longest overdue first."""
        return self._before.lapsed(self._now)

    def restraints(self, workload: WorkloadId) -> tuple[Restraint, ...]:
        """Return what holds a workload back now; what has lapsed is left out."""
        return self._restraints.get(workload, ())

    def cooling(self, workload: WorkloadId) -> Restraint | None:
        """Return the restraint that keeps a workload at home altogether, the longest-lasting if there are several."""
        everywhere = (restraint for restraint in self.restraints(workload) if restraint.cluster is None)
        return max(everywhere, key=lambda restraint: restraint.until, default=None)

    def in_flight(self, cluster: ClusterName) -> Flight:
        """Return what has no node in a cluster; the same object for as long as nothing changes there."""
        if cluster not in self._flights:
            seen = self._observed.clusters.get(cluster)
            policies = self._desired.policies
            self._flights[cluster] = flight(self.on(cluster), seen, self._rollouts, policies, self._now)
        return self._flights[cluster]

    def plan(self) -> Plan:
        """Close the decision. The next wake-up is the first expiry, plan, or end of a window or restraint."""
        moments = [suppressed.until for suppressed in self._suppressed if suppressed.until is not None]
        moments += (*self._moments, *(placement.expires_at for placement in self._begun))
        expiry = self._before.next_expiry(self._now)
        moments += [moment for moment in (expiry, self._turn) if moment is not None]
        return Plan(
            changes=tuple(self._changes),
            suppressed=tuple(self._suppressed),
            wake_at=min((moment for moment in moments if moment > self._now), default=None),
        )

    def _put(self, placement: Placement) -> None:
        self._begun.append(placement)
        self._of[placement.workload] = self.lent(placement.workload).with_(placement)
        self._on[placement.cluster] = self._hosted(placement.cluster).with_(placement)
        self._flights.pop(placement.cluster, None)

    def _drop(self, placement: Placement) -> None:
        self._of[placement.workload] = self.lent(placement.workload).without(placement)
        self._on[placement.cluster] = self._hosted(placement.cluster).without(placement)
        self._flights.pop(placement.cluster, None)

    def _hosted(self, cluster: ClusterName) -> Lent:
        changed = self._on.get(cluster)
        return self._before.on(cluster) if changed is None else changed

    def _restrain(self, workload: WorkloadId, restraint: Restraint) -> None:
        self._restraints[workload] = (*self.restraints(workload), restraint)
