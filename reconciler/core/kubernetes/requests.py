"""What a pod takes of a node, counted as the scheduler counts it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from reconciler.model.units import Quantity, Resources, parse_quantity
from reconciler.model.workload import Json

_HUGE_PAGES = "hugepages-"
_parse = lru_cache(maxsize=4096)(parse_quantity)


def amounts(raw: Json) -> dict[str, Quantity]:
    """Read a mapping of resource names to quantities."""
    return {name: _parse(str(text)) for name, text in (raw or {}).items()}


def shared(found: Mapping[str, Quantity]) -> Resources:
    """Return these amounts, the same object for the same amounts: thousands of pods ask for the same."""
    return _shared_resources(tuple(sorted((name, amount) for name, amount in found.items() if amount)))


@lru_cache(maxsize=4096)
def _shared_resources(found: tuple[tuple[str, Quantity], ...]) -> Resources:
    return Resources(amounts=dict(found))


def stated(resources: Json) -> dict[str, Quantity]:
    """Read what the resources of a container or of a pod request; a limit without a request counts as one."""
    return {**amounts(resources.get("limits")), **amounts(resources.get("requests"))}


def pod_requests(spec: Json) -> Resources:
    """Add up what a pod requests, from its spec or from a pod template's.

    The rule of Kubernetes' resource helpers: containers and sidecars together, or the largest init container beside the
    sidecars that were started before it, whichever is more, resource by resource; then the overhead of the runtime.
    Requests of the pod as a whole (1.34) go before the sum; its limits only where there is none, and for huge pages. A
    limit without a request counts as one, which the API server writes into pods but not into templates.
    """
    steady: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = stated(container.get("resources") or {})
        if container.get("restartPolicy") == "Always":  # a sidecar (KEP-753): it goes on running
            _add(steady, own)
            _raise(peak, steady)
        else:
            together = dict(steady)
            _add(together, own)
            _raise(peak, together)
    for container in spec.get("containers") or ():
        _add(steady, stated(container.get("resources") or {}))
    _raise(peak, steady)
    whole = spec.get("resources")
    if whole:
        limits = amounts(whole.get("limits"))
        pages = {name: amount for name, amount in limits.items() if name.startswith(_HUGE_PAGES)}
        peak = {**limits, **peak, **pages, **amounts(whole.get("requests"))}
    _add(peak, amounts(spec.get("overhead")))
    return shared(peak)


def _add(sums: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        sums[name] = Quantity(sums.get(name, 0) + amount)


def _raise(peak: dict[str, Quantity], level: Mapping[str, Quantity]) -> None:
    for name, amount in level.items():
        peak[name] = max(peak.get(name, Quantity(0)), amount)
