"""ResourceClaims, their templates and DeviceClasses: allocated devices, and devices that pods claim."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from sys import intern

from reconciler.model.capacity import CLASS_PREFIX, DeviceId, DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.units import ONE, Resources
from reconciler.model.workload import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateRecord:
    """Devices that a ResourceClaimTemplate requests."""

    requests: tuple[DeviceRequest, ...] = ()
    obstacle: str = ""
    """Why they cannot be counted; empty where they can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRecord:
    """The record of a DeviceClass."""

    selectors: tuple[str, ...]
    """CEL expressions."""
    resource: str = ""
    """The extended resource by which pods request its devices as well; empty for none."""
    created: str = ""
    """Its creation time (RFC 3339, UTC, to the second)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodClaims:
    """Claims in a pod spec."""

    templates: tuple[str, ...] = ()
    """Templates of claims that are made for each pod."""
    shared: tuple[str, ...] = ()
    """Claims that all pods share."""


NO_CLAIMS = PodClaims()


class _UncountableError(Exception):
    """A request that only the scheduler can evaluate."""


def read_class(raw: Json) -> ClassRecord:
    """Read a DeviceClass; a selector in another language than CEL is empty."""
    spec = raw.get("spec") or {}
    return ClassRecord(
        selectors=tuple(_expressions(spec)),
        resource=spec.get("extendedResourceName") or "",
        created=raw["metadata"].get("creationTimestamp") or "",
    )


def extended_resources(classes: Mapping[str, ClassRecord]) -> dict[str, str]:
    """Return the DeviceClass of each extended resource that stands for one (KEP-5004), sorted.

    Of several the newest holds, and of those the first by name, as for the scheduler: ``updateResourceName2class`` of
    k8s.io/dynamic-resource-allocation 0.36, deviceclass/extendedresourcecache.
    """
    chosen: dict[str, str] = {}
    for name, record in sorted(classes.items()):
        rival = classes.get(chosen.get(record.resource, ""))
        if record.resource and (rival is None or rival.created < record.created):
            chosen[record.resource] = name
    return dict(sorted(chosen.items()))


def read_claim(raw: Json) -> tuple[DeviceId, ...] | None:
    """Read the devices allocated to a ResourceClaim; None before allocation. Admin access allocates none."""
    allocation = (raw.get("status") or {}).get("allocation")
    if allocation is None:
        return None
    results = (allocation.get("devices") or {}).get("results") or ()
    held = (result for result in results if not result.get("adminAccess"))
    return tuple((intern(device["driver"]), intern(device["pool"]), intern(device["device"])) for device in held)


def read_template(raw: Json) -> TemplateRecord:
    """Read a ResourceClaimTemplate."""
    devices: Json = raw["spec"]["spec"].get("devices") or {}
    if devices.get("constraints"):
        return TemplateRecord(obstacle="claims devices that must have an attribute in common")
    try:
        requests = tuple(
            DeviceRequest(
                options=tuple(
                    _option(alternative)
                    for alternative in request.get("firstAvailable") or [request.get("exactly") or request]
                )
            )
            for request in devices.get("requests") or ()
        )
    except _UncountableError as error:
        return TemplateRecord(obstacle=str(error))
    return TemplateRecord(requests=requests)


def pod_claims(spec: Json) -> PodClaims:
    """Read the claims of a pod spec."""
    claims = spec.get("resourceClaims")
    if not claims:
        return NO_CLAIMS
    return _pod_claims(
        tuple(claim["resourceClaimTemplateName"] for claim in claims if claim.get("resourceClaimTemplateName")),
        tuple(claim["resourceClaimName"] for claim in claims if claim.get("resourceClaimName")),
    )


def claims_held(namespace: str, spec: Json, status: Json) -> tuple[str, ...]:
    """Return the claims of a pod as ``namespace/name``, without those that are not created yet."""
    made = {claim["name"]: claim.get("resourceClaimName") for claim in status.get("resourceClaimStatuses") or ()}
    names = [
        claim.get("resourceClaimName") or made.get(claim["name"], "") for claim in spec.get("resourceClaims") or ()
    ]
    extended = status.get("extendedResourceClaimStatus")  # of a resource that a DeviceClass stands behind (KEP-5004)
    if extended:
        names.append(extended.get("resourceClaimName") or "")
    return tuple(f"{namespace}/{name}" for name in names if name is not None)


def with_claims(
    shape: ReplicaShape, claims: PodClaims, namespace: str, templates: Mapping[str, TemplateRecord]
) -> ReplicaShape:
    """Add the claimed devices of a pod to its shape, or the obstacle to counting them.

    A class that is requested as a resource is a claim as well (KEP-5004).
    """
    implied = {name: amount for name, amount in shape.requests.amounts.items() if name.startswith(CLASS_PREFIX)}
    if not implied and claims == NO_CLAIMS:
        return shape
    if claims.shared:
        return replace(shape, obstacle=f"shares the ResourceClaim {claims.shared[0]} between its pods")
    requests: list[DeviceRequest] = []
    for name in claims.templates:
        record = templates.get(f"{namespace}/{name}")
        if record is None:
            return replace(shape, obstacle=f"claims devices by the ResourceClaimTemplate {name}, which is not known")
        if record.obstacle:
            return replace(shape, obstacle=f"{record.obstacle}: only the scheduler can count them")
        requests += record.requests
    for name, amount in sorted(implied.items()):
        option = DeviceOption(device_class=name.removeprefix(CLASS_PREFIX), count=-(-amount // ONE))
        requests.append(DeviceRequest(options=(option,)))
    rest = {name: amount for name, amount in shape.requests.amounts.items() if name not in implied}
    return replace(shape, requests=Resources(amounts=rest), devices=tuple(requests))


def _option(raw: Json) -> DeviceOption:
    """Read one alternative of a request, with API defaults. Tolerations only ever admit more devices."""
    if raw.get("adminAccess"):
        raise _UncountableError("claims admin access to devices")
    if (raw.get("capacity") or {}).get("requests"):
        raise _UncountableError("claims a part of a device's capacity")
    mode = raw.get("allocationMode") or "ExactCount"
    if mode not in {"ExactCount", "All"} or not raw.get("deviceClassName"):
        raise _UncountableError("claims devices in a way that is not known here")
    return DeviceOption(
        device_class=raw["deviceClassName"],
        selectors=tuple(_expressions(raw)),
        count=raw.get("count") or 1,
        every=mode == "All",
    )


def _expressions(raw: Json) -> Iterator[str]:
    for selector in raw.get("selectors") or ():
        yield (selector.get("cel") or {}).get("expression") or ""


@lru_cache(maxsize=4096)
def _pod_claims(templates: tuple[str, ...], shared: tuple[str, ...]) -> PodClaims:
    return PodClaims(templates=templates, shared=shared)
