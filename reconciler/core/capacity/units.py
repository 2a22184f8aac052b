"""The unit of a workload: the replicas that are placed together on one slot, or not at all.

A slot is a cluster, or a subset's part of one. Kinds, templates and pods only say what the unit is; every step that
asks whether replicas go one by one asks the unit:

================================== ====== ============ =====================================
unit                               size   a placement  in all
================================== ====== ============ =====================================
one replica                        1      any number   any number
a copy of k replicas               k      one copy     any number; one copy if it runs once
a run of all missing replicas      all    the run      one run
replicas that share a domain       all    those        any number
a gang whose replicas are groups   all    any number   one placement, which more may join
a gang that does not divide        k      one copy     one placement
a group of a set that is divided   1      any number   any number
a request of k main pods           k      all its pods as many as it asks for
a burst that was approved          all    as shown     as shown
================================== ====== ============ =====================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.core.capacity.gangs import GangCount, GangWorkload
from reconciler.core.capacity.pod_requirements import (
    UNKNOWN_REMEDY,
    Gang,
    ManifestPods,
    PodRequirements,
    request_requirements,
    unknown_needs,
)
from reconciler.core.workloads.elastic_jobs import is_elastic
from reconciler.model.approval import ProposedPlacement
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.policy import SetDivision, Workspace
from reconciler.model.request import Request
from reconciler.model.workload import WorkloadTemplate
from reconciler.text.wording import count

_ALL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementUnit:
    """What of a workload is placed together."""

    size: int = 1
    """Replicas of one unit; 0 for all that are missing."""
    whole: bool = False
    """Whether a placement is one unit: it neither grows nor shrinks."""
    once: bool = False
    """Whether the workload runs once: a second unit would do the same work again."""
    elastic: bool = False
    """Whether a run that has begun may grow where it is, and nowhere else."""
    gang: GangWorkload | None = None
    """The gang that its pods are; None where they need not start together."""
    apart: bool = False
    """Whether each placement has all of it: one on another cluster joins none of them, and begins again."""
    moves: bool = False
    """Whether its replicas are single, and go together on a move alone."""
    shown: tuple[ProposedPlacement, ...] | None = None
    """Where a person has approved its replicas: all of them go there, or none. None where nobody is asked."""

    @property
    def is_single(self) -> bool:
        """Whether each replica may be placed and taken away alone, be it a pod or a group of pods."""
        return self.size == 1 and not self.whole and self.shown is None

    @property
    def is_set(self) -> bool:
        """Whether one cluster has all of it, as of a gang that no policy divides."""
        return self.gang is not None and (self.size != 1 or self.whole)

    @property
    def approved(self) -> int:
        """The replicas that were approved and go together; 0 for none, and for a set, which goes whole anyway."""
        return 0 if self.is_set else sum(placement.replicas for placement in self.shown or ())

    @property
    def is_replica(self) -> bool:
        """Whether it is one replica that is no group of pods."""
        return self.is_single and self.gang is None

    @property
    def is_loose(self) -> bool:
        """Whether pods without a node may run elsewhere: those of a group or a run that has begun may not."""
        return self.gang is None and not self.once

    @property
    def is_lone_run(self) -> bool:
        """Whether it runs once and does not start together: a part of it may be at work while the rest waits."""
        return self.once and self.gang is None

    @property
    def is_copy(self) -> bool:
        """Whether its template deploys the same number everywhere, which a field for replicas would change."""
        return self.whole and bool(self.size) and self.gang is None and not self.once

    @property
    def keeps_version(self) -> bool:
        """Whether what has begun of it stays as it was placed, whatever its template says now: a run is not changed."""
        return self.once

    @property
    def divided_gang(self) -> GangWorkload | None:
        """The gang whose groups a policy divides over clusters; None for any other unit."""
        return self.gang if self.is_single else None

    @property
    def shape(self) -> ReplicaShape | None:
        """The recorded shape of a group of pods, where it is known; None for what is no gang."""
        return self.gang.shape if self.gang is not None else None

    @property
    def unknown(self) -> str:
        """Why its pods cannot be counted; empty where they can."""
        return self.gang.unknown if self.gang is not None else ""

    @property
    def step(self) -> int:
        """The replicas by which the workload may grow; 0 where all of it is placed, or nothing."""
        return _ALL if self.once or self.is_set or self.shown is not None else self.size

    @property
    def why_together(self) -> str:
        """Why all missing replicas go together, as a clause; empty where they do not, and for a gang."""
        if self.size or self.gang is not None:
            return ""
        return "they run once" if self.once else "they share a topology domain"

    def gives(self, placed: int) -> int:
        """Return the replicas by which a placement of so many gives room to others; 0 for what runs once."""
        if self.once:
            return 0
        return 1 if self.is_single else placed

    def replicas(self, missing: int) -> int:
        """Return the replicas of one unit, given the number that is missing."""
        return self.size or missing

    def number(self, missing: int, each: int) -> int:
        """Return how many units of `each` replicas may begin for the missing ones."""
        return 1 if self.once else missing // each

    def groups(self, replicas: int) -> tuple[Gang, ...]:
        """Return the groups of pods that a number of replicas are; none where pods start one by one, or are unknown."""
        return self.gang.gangs(replicas) if self.gang is not None else ()

    def needs(self, replicas: int) -> PodRequirements | None:
        """Return what a number of replicas take where it is more than their shapes; None where it is not."""
        return self.gang.of(replicas) if self.gang is not None else None

    def on(self, seen: ClusterObservation | None) -> PlacementUnit:
        """Return the unit in the terms of a cluster, which may change what its pods request."""
        gang = self.gang.on(seen) if self.gang is not None else None
        return self if gang is self.gang else replace(self, gang=gang)

    def more(self, here: int, more: int) -> PodRequirements | None:
        """Return what more replicas take beside those `here`, as `needs` does."""
        return self.gang.more(here, more) if self.gang is not None else None

    def has_groups_left(self, replicas: int, ready: int) -> bool:
        """Return whether this number of ready pods may be a whole group of several, so that only a part has failed."""
        gangs = self.groups(replicas)
        return sum(gang.groups for gang in gangs) > 1 and ready >= min(gang.size for gang in gangs)

    def within(self, limit: int) -> int:
        """Return how many replicas may begin where a limit is below what is missing: no part of a run."""
        return 0 if self.is_lone_run and not self.size else limit

    def units(self, placed: int) -> int:
        """Return the units that the replicas of one placement are."""
        return placed if self.is_single or not placed else 1

    def together(self, replicas: int) -> PlacementUnit:
        """Return the unit of single replicas that move together, also to a cluster that has others of them."""
        return replace(self, size=replicas, moves=True)

    def why_kept(self, going: int, placed: int) -> str:
        """Say why replicas of a placement do not leave a cluster where they may still run; empty where they may.

        Only what starts together is taken for dead with its cluster.
        """
        if self.is_lone_run:
            return "it runs once, and may still run there"
        return f"its {count(placed, 'replica')} go together or not at all" if self.whole and going < placed else ""

    def undivided(self, way_out: str) -> str:
        """Say why it cannot be divided over clusters; empty where it can. A copy has a `way_out` of being one."""
        revert = "(try `overspill revert` with its placement)"
        if self.is_set:
            return f"it runs in groups and goes whole to one cluster, so there is nothing to share out {revert}"
        if self.once:
            return "it runs once, so that there is nothing to share out"
        if self.why_together:
            return f"its replicas go together, since {self.why_together} {revert}"
        copies = f"its template deploys copies of {count(self.size, 'replica')}, which are not divided"
        return f"{copies} ({way_out})" if self.whole else ""

    def held(self, here: int) -> str:
        """Say that a cluster that has the replicas of one unit gets no second unit."""
        if self.why_together and not self.once:
            domain = "in a topology domain that more would have to join, and nobody knows which"
            return f"has {count(here, 'replica')} {domain}"
        return f"has its copy of {count(here, 'replica')}, and gets one at most"

    def clause(self, replicas: int) -> str:
        """Say that the replicas of one unit are not divided."""
        number = count(replicas, "replica")
        if self.moves:
            return f"its {number} move together"
        return f"its {number} go together: {self.why_together}" if self.why_together else f"a copy is {number}"

    def phrase(self, replicas: int) -> str:
        """Name the replicas of one unit."""
        number = count(replicas, "replica")
        if self.moves:
            return f"{number}, which move together"
        return f"{number}, which go together: {self.why_together}" if self.why_together else f"the {number} of a copy"


@dataclass(frozen=True, kw_only=True)
class _RequestedPods(GangWorkload):
    """The pods of a request, which are its number of replicas and no other."""

    by_pod = True
    remedy = UNKNOWN_REMEDY
    request: Request
    found: ManifestPods
    needed: PodRequirements
    why_unknown: str

    def on(self, seen: ClusterObservation | None) -> GangWorkload:
        """Return the pods with the labels that the requested GPUs have on a cluster."""
        if self.request.ask is None:
            return self
        return replace(self, needed=request_requirements(self.request, seen, self.found), _known={}, _within={})

    @property
    def unknown(self) -> str:
        """Return why its pods are unknown; empty where they are known, or count as nothing."""
        return self.why_unknown

    @property
    def shape(self) -> ReplicaShape:
        """The shape of its main pods."""
        return self.needed.main.shape

    def _count(self, replicas: int) -> GangCount:
        del replicas
        return GangCount(
            needs=self.needed,
            gangs=self.found.gangs,
            pods=self.needed.pods,
            groups=sum(gang.groups for gang in self.found.gangs),
            enough=self.needed.start,
        )


def gang_of_request(request: Request, pods: ManifestPods, needs: PodRequirements, workspace: Workspace) -> GangWorkload:
    """Return the pods of a request, with its `needs` on any cluster; its workspace may let unknown ones count."""
    why_unknown = unknown_needs(needs, workspace)
    return _RequestedPods(counts=False, request=request, found=pods, needed=needs, why_unknown=why_unknown)


def unit_of_request(gang: GangWorkload) -> PlacementUnit:
    """Return the unit of a request by name: all pods of its manifests. Its record says whether it begins again."""
    return PlacementUnit(size=gang.of(1).main.replicas, whole=True, gang=gang, apart=True)


def unit_of(
    template: WorkloadTemplate, gang: GangWorkload | None, sets: SetDivision = SetDivision.WHOLE
) -> PlacementUnit:
    """Return the unit of a template; `gang` is what its manifests, or its pods on the primary, say of it."""
    once = template.runs_once
    # 1. Its pods start together.
    if gang is not None:
        divisible = gang.divisible
        if divisible and sets is SetDivision.BY_GROUP:
            return PlacementUnit(once=once, gang=gang)
        return PlacementUnit(size=_ALL if divisible else gang.copy, whole=not divisible, once=once, gang=gang)
    # 2. Every placement deploys the same number.
    if template.copy is not None:
        return PlacementUnit(size=template.copy, whole=True, once=once)
    # 3. Its replicas are parts of one run.
    if once:
        return PlacementUnit(size=_ALL, whole=True, once=True, elastic=is_elastic(template.spec))
    # 4. Its replicas have to run in one topology domain, and nobody knows which of a cluster those have that run.
    if template.shares_domain:
        return PlacementUnit(size=_ALL, whole=True)
    # 5. Each replica is for itself.
    return PlacementUnit()
