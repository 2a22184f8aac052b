"""A pod as the admission plugins of a namespace see it: what it uses of a quota, and which bounds it breaks.

Rules of Kubernetes 1.36: ``pkg/quota/v1/evaluator/core`` (pods.go, persistent_volume_claims.go, resource_claims.go)
says what a pod uses of a quota, and ``PodValidateLimitFunc`` of ``plugin/pkg/admission/limitranger`` when a LimitRange
refuses it. In doubt a pod uses more: one that names no PriorityClass may have any where the default of its cluster is
unknown, and a volume without a StorageClass may have any.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from reconciler.model.capacity import CLASS_PREFIX, ClusterObservation, ReplicaShape
from reconciler.model.kubernetes.admission import (
    ContainerResources,
    LimitRangeItem,
    PodAdmission,
    ResourceQuota,
    VolumeClaim,
)
from reconciler.model.kubernetes.requirements import Requirement
from reconciler.model.kubernetes.scheduling import Amounts
from reconciler.model.units import ONE, Quantity, Resources, format_quantity
from reconciler.text.wording import sanitize

Usage = Mapping[str, int]
"""Amounts by the name that a quota has for them (``requests.cpu``), in the units of a Quantity."""

_ALL_DEVICES = 32
"""Devices that a claim of all of them counts as: the most that one may get (``AllocationResultsMaxSize``)."""
_CLAIMS = "count/resourceclaims.resource.k8s.io"
_OF_DEVICE_CLASS = ".deviceclass.resource.k8s.io/devices"
_OF_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_OF_PODS = frozenset(
    {"pods", "count/pods", *_COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE)}
)
_STATED = ("cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
"""What each container has to state where a quota bounds it (``validationSet``)."""
_OF_VOLUMES = ("persistentvolumeclaims", "count/persistentvolumeclaims", "requests.storage")
_POD_LEVEL = ("cpu", "memory", "hugepages-")
UNCOUNTED = "create it there first, or see why the quota controller there has not counted it"
"""The way out where the use of a quota is unknown: the API server refuses what it means (``hasUsageStats``)."""
_SYSTEM = "system-"
"""How the PriorityClasses of Kubernetes itself begin; none of them is the default of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedPod:
    """A pod with what the mutating plugins of a cluster add to it."""

    stated: PodAdmission
    containers: tuple[ContainerResources, ...]
    """Empty where they are unknown."""
    requests: Mapping[str, Quantity]
    """Requests of the pod, its overhead included."""
    bounded: tuple[Mapping[str, Quantity], Mapping[str, Quantity]]
    """Its requests and its limits without overhead."""
    limits: Mapping[str, Quantity]
    """Limits of the pod, its overhead included."""
    devices: Mapping[str, int]
    """The most devices that its claims may get, by DeviceClass."""
    priority_class: str | None
    """None where it may be any but those of Kubernetes itself."""

    @property
    def is_whole(self) -> bool:
        """Whether resources are stated for the pod as a whole, so that its containers need state none."""
        return any(name.startswith(_POD_LEVEL) for name, _ in (*self.stated.requests, *self.stated.limits))

    @property
    def _may_be_best_effort(self) -> frozenset[bool]:
        """Whether nothing of it states cpu or memory (``ComputePodQOS``); both where its containers are unknown."""
        whole = (*self.stated.requests, *self.stated.limits)
        parts = (part for container in self.containers for part in (*container.requests, *container.limits))
        stated = any(amount and name in ("cpu", "memory") for name, amount in (whole or parts))
        if self.containers or whole:
            return frozenset({not stated})
        some = any(self.requests.get(name) for name in ("cpu", "memory"))
        return frozenset({False}) if some else frozenset({False, True})

    def may_match(self, scope: Requirement) -> bool:
        """Return whether a scope of a quota may mean the pod (``podMatchesScopeFunc``)."""
        known = bool(self.containers)
        match scope.key:
            case "Terminating":
                return self.stated.terminating or not known
            case "NotTerminating":
                return not self.stated.terminating
            case "BestEffort":
                return True in self._may_be_best_effort
            case "NotBestEffort":
                return False in self._may_be_best_effort
            case "PriorityClass":
                return self._may_have_class(scope) or not known
            case "CrossNamespacePodAffinity":
                return self.stated.crosses_namespaces or not known
            case _:
                return False

    def _may_have_class(self, scope: Requirement) -> bool:
        if self.priority_class is not None:
            return scope.is_met(self.priority_class or None)
        return scope.operator != "In" or not all(value.startswith(_SYSTEM) for value in scope.values)

    def usage(self, quota: ResourceQuota, seen: ClusterObservation) -> Usage:
        """Return what each such pod, and the claims that are made with it, use of a quota."""
        usage: dict[str, int] = {}
        if all(map(self.may_match, quota.scopes)):
            usage |= {name: amount for name, amount in self._pod_usage().items() if name in quota.hard.amounts}
        of_volumes = Counter[str]()
        for claim in self.stated.volumes:
            of_volumes.update(volume_usage(claim, quota))
        usage |= of_volumes
        for name, amount in () if quota.scopes else self._claim_usage(seen).items():
            if name in quota.hard.amounts:
                usage[name] = max(usage.get(name, 0), amount)
        return usage

    def _pod_usage(self) -> Usage:
        """Return what the pod itself uses (``podComputeUsageHelper``)."""
        usage: dict[str, int] = {"pods": ONE, "count/pods": ONE}
        for name, amount in self.requests.items():
            usage[f"requests.{name}"] = amount
            if name in _COMPUTE or name.startswith("hugepages-"):
                usage[name] = amount
        usage |= {f"limits.{name}": amount for name, amount in self.limits.items() if name in _COMPUTE}
        return usage

    def _claim_usage(self, seen: ClusterObservation) -> Usage:
        """Return what its ResourceClaims use, those that the scheduler makes for extended resources included."""
        usage: dict[str, int] = {_CLAIMS: self.stated.claims * ONE} if self.stated.claims else {}
        extended = {device_class: name for name, device_class in seen.extended_resources.items()}
        for device_class, number in self.devices.items():
            names = [f"{device_class}{_OF_DEVICE_CLASS}", f"requests.{CLASS_PREFIX}{device_class}"]
            if device_class in extended:
                names.append(f"requests.{extended[device_class]}")
            usage |= dict.fromkeys(names, number * ONE)
        return usage

    def refusals(self, quota: ResourceQuota) -> Iterator[tuple[str, str]]:
        """Yield why a quota refuses the pod whatever is left of it, each with the remedy."""
        bounded = [name for name in quota.hard.amounts if concerns_pods(name)]
        if not bounded or not all(map(self.may_match, quota.scopes)):
            return
        title, where = f"quota {sanitize(quota.name)} of {sanitize(self.stated.namespace)}", "in its pods"
        for name in () if self.is_whole else filter(bounded.__contains__, _STATED):
            kind, _, resource = name.rpartition(".")
            if not self.containers and kind != "limits" and resource in self.requests:
                continue
            silent = [each.name for each in self.containers if resource not in dict(_part(each, kind))]
            if silent or not self.containers:
                who = f"container {sanitize(silent[0])} states none" if silent else "those of its pods are unknown"
                yield (
                    f"{title} demands {name} of every container, and {who}",
                    f"state {kind or 'requests'} of {resource} {where}, or let a LimitRange there give defaults",
                )
        if not quota.used.amounts.keys() >= set(bounded):
            yield f"{title}: what is used of it is unknown", UNCOUNTED

    def broken_bounds(self, items: Iterable[LimitRangeItem]) -> Iterator[tuple[str, str]]:
        """Yield the bounds of LimitRanges that the pod breaks, each with the remedy."""
        for item in items:
            named = f" {sanitize(item.limit_range)}" if item.limit_range else ""
            title = f"LimitRange{named} of {sanitize(self.stated.namespace)}"
            parts: list[tuple[str, Mapping[str, int], Mapping[str, int]]] = [("its pod", *self.bounded)]
            if item.of_claim:  # of which only the request is looked at
                claims = (dict(claim.storage) for claim in self.stated.volumes)
                parts = [("a volume claim of its pods", requests, requests) for requests in claims]
            elif not item.of_pod:
                parts = [
                    (f"container {sanitize(container.name)}", dict(container.requests), dict(container.limits))
                    for container in self.containers
                ]
            for called, requests, limits in parts:
                for bound in _broken(item, requests, limits):
                    yield f"{title} {bound.format(called)}", "change the resources of its pods, or that LimitRange"


def admitted_pod(stated: PodAdmission, shape: ReplicaShape, seen: ClusterObservation) -> AdmittedPod:
    """Return a pod of a shape, whose requests have the admission defaults of the cluster already."""
    requested = (seen.limit_ranges or {}).get(stated.namespace, Resources()).amounts
    limited = _largest(item.default for item in seen.limit_range_items.get(stated.namespace, ()))
    containers = tuple(
        container._replace(
            requests=tuple({**requested, **dict(container.requests)}.items()),
            limits=tuple({**limited, **dict(container.limits)}.items()),
        )
        for container in stated.containers
    )
    requests = dict(shape.requests.amounts)
    for request in shape.devices:
        if request.resource:
            requests[request.resource] = Quantity(max(option.count for option in request.options) * ONE)
    of_requests, of_limits = ({**_sum(containers, part)} for part in ("requests", "limits"))
    bounded = (
        {**dict(stated.limits), **of_requests, **dict(stated.requests)},
        {**of_limits, **dict(stated.limits)},
    )
    runtime_class = (seen.runtime_classes or {}).get(stated.runtime_class) if stated.runtime_class else None
    overhead = dict(stated.overhead) if runtime_class is None else runtime_class.overhead.amounts
    return AdmittedPod(
        stated=stated,
        containers=containers,
        requests=requests,
        bounded=bounded,
        limits={name: Quantity(amount + overhead.get(name, 0) * bool(amount)) for name, amount in bounded[1].items()},
        devices=_devices(shape),
        priority_class=stated.priority_class or seen.priority_class,
    )


def volume_usage(claim: VolumeClaim, quota: ResourceQuota) -> Usage:
    """Return what a PersistentVolumeClaim uses of a quota (``pvcEvaluator``); nothing where no scope may mean it."""
    for scope in quota.scopes:
        if scope.key != "VolumeAttributesClass" or not scope.is_met(claim.attributes_class or None):
            return {}
    storage = sum(amount for _, amount in claim.storage)
    usage: dict[str, int] = {}
    for name in quota.hard.amounts:
        storage_class, _, resource = name.rpartition(_OF_STORAGE_CLASS)
        if resource in _OF_VOLUMES and storage_class in ("", claim.storage_class or storage_class):
            usage[name] = storage if resource == "requests.storage" else ONE
    return usage


def concerns_pods(name: str) -> bool:
    """Return whether a quota for a resource concerns pods (``MatchingResources``)."""
    if name in _OF_PODS or name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and "/" in name


def _part(container: ContainerResources, kind: str) -> Amounts:
    return container.limits if kind == "limits" else container.requests


def _sum(containers: Iterable[ContainerResources], kind: str) -> dict[str, Quantity]:
    """Sum up containers as the scheduler does: those that run together, or an init container beside its sidecars."""
    steady, before, peak = Counter[str](), Counter[str](), Counter[str]()
    for container in containers:
        own = Counter(dict(_part(container, kind)))
        if container.sidecar:
            before.update(own)
        if container.sidecar or not container.early:
            steady.update(own)
        else:
            own.update(before)
        peak |= before if container.sidecar else own if container.early else Counter()
    names = {name for container in containers for name, _ in _part(container, kind)}
    return {name: Quantity(max(steady[name], peak[name])) for name in sorted(names)}


def _largest(amounts: Iterable[Amounts]) -> dict[str, Quantity]:
    largest: dict[str, Quantity] = {}
    for part in amounts:
        for name, amount in part:
            largest[name] = max(largest.get(name, Quantity(0)), amount)
    return largest


def _devices(shape: ReplicaShape) -> Mapping[str, int]:
    """Count the devices of each class that a pod may get: of alternatives the most of each class."""
    devices = Counter[str]()
    for request in shape.devices:
        most = Counter[str]()
        for option in request.options:
            number = _ALL_DEVICES if option.every else option.count
            most[option.device_class] = max(most[option.device_class], number)
        devices.update(most)
    return devices


def _broken(item: LimitRangeItem, requests: Mapping[str, int], limits: Mapping[str, int]) -> Iterator[str]:
    """Yield the bounds that requests and limits break, with a place for what they are of."""
    for name, amount in item.least:
        stated = [part[name] for part in (requests, limits) if name in part]
        if name not in requests or min(stated) < amount:
            what = f"states {format_quantity(min(stated))}" if name in requests else "has no request"
            yield f"wants at least {format_quantity(amount)} {name}, and {{}} {what}"
    for name, amount in item.most:
        stated = [part[name] for part in (limits, requests) if name in part]
        if name not in limits or max(stated) > amount:
            what = f"states {format_quantity(max(stated))}" if name in limits else "has no limit"
            yield f"allows at most {format_quantity(amount)} {name}, and {{}} {what}"
    for name, amount in item.ratio:
        request, limit = requests.get(name, 0), limits.get(name, 0)
        if not request or not limit or Fraction(limit, request) > Fraction(amount, ONE):
            times = f"{format_quantity(amount)} times the request of {name}"
            yield f"allows a limit of {times}, and {{}} has more, or states none"
