"""How many more pods the ResourceQuotas and LimitRanges of a cluster let in while one pass places replicas there.

The API server refuses a pod whose use, on top of `status.used`, is more than `status.hard` of any quota of its
namespace that means it (``CheckRequest`` of k8s.io/apiserver 0.36). Pods that exist are in `status.used`; those to
come, of this pass or of placements in flight, are taken here, so that no room is given twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass

from reconciler.core.capacity.admitted_pod import UNCOUNTED, AdmittedPod, admitted_pod
from reconciler.core.capacity.included_admission import brings_bounds, with_included
from reconciler.core.capacity.shortfall import Shortfall
from reconciler.model.capacity import ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.admission import ResourceQuota
from reconciler.model.units import format_quantity
from reconciler.text.wording import conjugate, sanitize

UNBOUNDED = 2**31
"""More pods than Kubernetes can count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Charge:
    """What each pod uses of a quota."""

    namespace: str
    quota: ResourceQuota
    amounts: Mapping[str, int]

    def key(self, name: str) -> tuple[str, str, str]:
        """Return the key of a resource of the quota."""
        return self.namespace, self.quota.name, name


_DEFAULT = "default"
"""The namespace of pods that nothing else gives one."""
_Answer = tuple[tuple[_Charge, ...], Shortfall | None]
"""What each pod of a shape uses, and why none like it is ever let in."""

_UNKNOWN = Shortfall(
    message="ResourceQuotas are unknown there", remedy="give Overspill the rights of bootstrap/rbac.yaml there"
)


class PodQuotas:
    """What the quotas of one cluster leave. Pods whose properties are unknown, as those of reservations, use none."""

    def __init__(self, seen: ClusterObservation) -> None:
        """Begin with the observed use."""
        self._seen = seen
        self._taken: dict[tuple[str, str, str], int] = {}
        self._answers: dict[Hashable, _Answer] = {}
        self._latest: tuple[ReplicaShape, _Answer] | None = None

    def copy(self) -> PodQuotas:
        """Return a copy, for a trial."""
        other = PodQuotas(self._seen)
        other._taken, other._answers = dict(self._taken), self._answers
        return other

    def fits(self, shape: ReplicaShape) -> int:
        """Count the pods that are let in, of a shape with the admission defaults of the cluster."""
        if not self._may_bound(shape):
            return UNBOUNDED
        charges, refusal = self._answer(shape)
        if refusal is not None:
            return 0
        return min((number for number, *_ in self._numbers(charges)), default=UNBOUNDED)

    def refusal(self, shape: ReplicaShape, pods: int) -> Shortfall | None:
        """Say why fewer pods of a shape than these are let in; None where all of them are."""
        if not self._may_bound(shape):
            return None
        charges, refusal = self._answer(shape)
        if refusal is not None:
            return refusal
        number, charge, name = min(
            self._numbers(charges), key=lambda entry: (entry[0], entry[1].key(entry[2])), default=(UNBOUNDED, None, "")
        )
        return None if charge is None or number >= pods else self._describe(charge, name, number)

    def used_up(self, shape: ReplicaShape) -> tuple[ResourceQuota, ...]:
        """Return the quotas that leave too little for one pod of a shape; none where other rules refuse it anyway."""
        if not self._may_bound(shape):
            return ()
        charges, _ = self._answer(shape)
        return tuple(charge.quota for number, charge, _ in self._numbers(charges) if not number)

    def take(self, shape: ReplicaShape, pods: int) -> None:
        """Count more pods as used, or with a negative number fewer."""
        if pods and self._may_bound(shape):
            for charge in self._answer(shape)[0]:
                for name, amount in charge.amounts.items():
                    key = charge.key(name)
                    self._taken[key] = self._taken.get(key, 0) + amount * pods

    def _may_bound(self, shape: ReplicaShape) -> bool:
        """Return whether quotas or LimitRanges may bound pods of a shape: those there, or those that come with it."""
        return may_bound_pods(self._seen, shape)

    def _numbers(self, charges: tuple[_Charge, ...]) -> Iterator[tuple[int, _Charge, str]]:
        """Yield how many pods each resource of each quota lets in."""
        for charge in charges:
            hard, used = charge.quota.hard.amounts, charge.quota.used.amounts
            for name, amount in charge.amounts.items():
                left = hard[name] - max(0, used[name] + self._taken.get(charge.key(name), 0))
                yield max(0, left) // amount, charge, name

    def _describe(self, charge: _Charge, name: str, number: int) -> Shortfall:
        quota, namespace = sanitize(charge.quota.name), sanitize(charge.namespace)
        used, hard = charge.quota.used.amounts[name], charge.quota.hard.amounts[name]
        taken, called = self._taken.get(charge.key(name), 0), sanitize(name)
        coming = f", {format_quantity(taken)} more taken by pods on their way" if taken > 0 else ""
        fits = f"{number} {conjugate(number, 'fits')}"
        if not number:
            fits = f"one pod takes {format_quantity(charge.amounts[name])}"
        have = f"{format_quantity(used)} of {format_quantity(hard)} {called} used"
        return Shortfall(
            message=f"quota {quota} of {namespace}: {have}{coming}; {fits}",
            remedy=f"raise quota {quota} of namespace {namespace} there, or free what it counts",
        )

    def _answer(self, shape: ReplicaShape) -> _Answer:
        """Return what a shape was answered before: one turn after the other asks for equal shapes."""
        if self._latest is None or self._latest[0] is not shape:
            key = shape.admission, shape.likeness
            if key not in self._answers:
                self._answers[key] = self._ask(shape)
            self._latest = shape, self._answers[key]
        return self._latest[1]

    def _ask(self, shape: ReplicaShape) -> _Answer:
        """Work out what each pod of a shape uses, and why none is let in. Of several templates the most counts."""
        if self._seen.quotas is None:
            return (), _UNKNOWN
        charges: dict[tuple[str, str], _Charge] = {}
        refusal: Shortfall | None = None
        for stated in (each if each.namespace else each._replace(namespace=_DEFAULT) for each in shape.admission):
            seen = with_included(self._seen, (stated,))
            quotas = (seen.quotas or {}).get(stated.namespace, ())
            pod = admitted_pod(stated, shape, seen)
            for why, remedy in _refusals(pod, seen, quotas):
                refusal = refusal or Shortfall(message=why, remedy=remedy)
            for quota in quotas:
                usage = {name: amount for name, amount in pod.usage(quota, seen).items() if amount}
                before = charges.get((stated.namespace, quota.name))
                for name, amount in before.amounts.items() if before is not None else ():
                    usage[name] = max(amount, usage.get(name, 0))
                charges[stated.namespace, quota.name] = _Charge(namespace=stated.namespace, quota=quota, amounts=usage)
        if refusal is None and (uncounted := next(filter(None, map(_uncounted, charges.values())), None)):
            refusal = uncounted
        return () if refusal is not None else tuple(charge for charge in charges.values() if charge.amounts), refusal


def may_bound_pods(seen: ClusterObservation, shape: ReplicaShape) -> bool:
    """Return whether quotas or LimitRanges of a cluster, or those that come with a shape, may bound its pods."""
    return bool(shape.admission) and (seen.has_pod_bounds or brings_bounds(shape.admission))


def _refusals(
    pod: AdmittedPod, seen: ClusterObservation, quotas: tuple[ResourceQuota, ...]
) -> Iterator[tuple[str, str]]:
    if pod.stated.included is not None and pod.stated.included.unreadable:
        yield pod.stated.included.unreadable, "state its values in the template"
    yield from pod.broken_bounds(seen.limit_range_items.get(pod.stated.namespace, ()))
    for quota in quotas:
        yield from pod.refusals(quota)


def _uncounted(charge: _Charge) -> Shortfall | None:
    """Refuse pods of which a quota has not been counted."""
    unknown = next((name for name in charge.amounts if name not in charge.quota.used.amounts), "")
    if not unknown:
        return None
    title = f"quota {sanitize(charge.quota.name)} of {sanitize(charge.namespace)}"
    return Shortfall(
        message=f"{title}: what is used of {sanitize(unknown)} is unknown",
        remedy=UNCOUNTED,
    )
