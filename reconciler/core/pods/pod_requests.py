"""Requests of a pod, counted as the scheduler does, and those that admission has yet to add."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from reconciler.model.kubernetes.scheduling import Amounts, UnstatedRequests, sorted_amounts
from reconciler.model.units import Quantity, Resources, parse_quantity
from reconciler.model.workload import Json

_HUGE_PAGES = "hugepages-"
_parse = lru_cache(maxsize=4096)(parse_quantity)


def parse_amounts(raw: Json) -> dict[str, Quantity]:
    """Parse a mapping of resource names to quantities."""
    return {name: _parse(str(text)) for name, text in (raw or {}).items()}


def shared_resources(amounts_by_name: Mapping[str, Quantity]) -> Resources:
    """Return resources of these amounts, the same object for equal ones: thousands of pods are equal."""
    return _resources(tuple(sorted((name, amount) for name, amount in amounts_by_name.items() if amount)))


@lru_cache(maxsize=4096)
def _resources(amounts_by_name: tuple[tuple[str, Quantity], ...]) -> Resources:
    return Resources(amounts=dict(amounts_by_name))


def container_requests(resources: Json) -> dict[str, Quantity]:
    """Read the requests of a container or of a pod; a limit without a request counts as one."""
    return {**parse_amounts(resources.get("limits")), **parse_amounts(resources.get("requests"))}


def pod_requests(spec: Json) -> Resources:
    """Sum the requests of a pod, from its spec or from a pod template's.

    The rule of Kubernetes' resource helpers: containers and sidecars together, or the largest init container beside the
    sidecars that were started before it, whichever is more, resource by resource; then the overhead of the runtime.
    Pod-level requests (1.34) replace the sum; pod-level limits only where it has no request, and for huge pages. A
    limit without a request counts as one, which the API server writes into pods but not into templates.
    """
    steady: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        own = container_requests(container.get("resources") or {})
        if container.get("restartPolicy") == "Always":  # a sidecar (KEP-753): it goes on running
            _add(steady, own)
            _raise_to(peak, steady)
        else:
            together = dict(steady)
            _add(together, own)
            _raise_to(peak, together)
    for container in spec.get("containers") or ():
        _add(steady, container_requests(container.get("resources") or {}))
    _raise_to(peak, steady)
    whole = spec.get("resources")
    if whole:
        limits = parse_amounts(whole.get("limits"))
        pages = {name: amount for name, amount in limits.items() if name.startswith(_HUGE_PAGES)}
        peak = {**limits, **peak, **pages, **parse_amounts(whole.get("requests"))}
    _add(peak, parse_amounts(spec.get("overhead")))
    return shared_resources(peak)


def _add(sums: dict[str, Quantity], more: Mapping[str, Quantity]) -> None:
    for name, amount in more.items():
        sums[name] = Quantity(sums.get(name, 0) + amount)


def _raise_to(peak: dict[str, Quantity], level: Mapping[str, Quantity]) -> None:
    for name, amount in level.items():
        peak[name] = max(peak.get(name, Quantity(0)), amount)


_LIMIT_RANGER = "kubernetes.io/limit-ranger"
"""The annotation in which the API server lists the defaults that a LimitRange gave to a pod."""
_OF_CONTAINER = re.compile(r"(?:^|[:;] )([^:;]+) (request|limit) for (init )?container ([^;]+)")

_ContainerRequests = tuple[frozenset[str], Mapping[str, Quantity]]
"""Resources that a container requests itself, and amounts that it got by default."""
LimitRangerDefaults = Mapping[tuple[bool, str], frozenset[str]]
"""Resources that a LimitRange has set, by whether the container is an init container, and its name."""


def unstated_requests(spec: Json, metadata: Json = None) -> UnstatedRequests:
    """Read the requests that admission may add to a pod or a template's pods; `metadata` as in `replica_shape`.

    An init container without requests counts only where all later containers have some: else it takes no more than
    these do.
    """
    given = limit_ranger_defaults(metadata, "request")
    own = [
        _container_requests(container, given.get((False, container.get("name", "")), frozenset()))
        for container in spec.get("containers") or ()
    ]
    sidecars, before = list[_ContainerRequests](), list[_ContainerRequests]()
    for container in spec.get("initContainers") or ():
        kind = sidecars if container.get("restartPolicy") == "Always" else before
        kind.append(_container_requests(container, given.get((True, container.get("name", "")), frozenset())))
    running = [*sidecars, *own]
    silent: dict[str, int] = {}
    for name in {name for names, _ in (*running, *before) for name in names}:
        alone = _silent_containers(before, name) > 0 and not _silent_containers(own, name)
        silent[name] = _silent_containers(running, name) + alone
    defaults: dict[str, Quantity] = {}
    for _, added in running:
        for name, amount in added.items():
            defaults[name] = Quantity(defaults.get(name, 0) + amount)
    return _shared_unstated(
        UnstatedRequests(
            runtime_class=spec.get("runtimeClassName") or "",
            overhead=sorted_amounts(parse_amounts(spec.get("overhead"))),
            containers=len(running),
            silent=tuple(sorted(silent.items())),
            defaults=sorted_amounts(defaults),
            spare=_spare(spec),
        )
    )


@lru_cache(maxsize=4096)
def _shared_unstated(unstated_amounts: UnstatedRequests) -> UnstatedRequests:
    """Return the same object for equal values, which thousands of pods share."""
    return unstated_amounts


def _spare(spec: Json) -> Amounts:
    """Read the pod-level requests less those of the containers, for each resource that has any."""
    whole = spec.get("resources") or {}
    if not whole:
        return ()
    alone = {**spec, "resources": None, "overhead": None}
    summed, all_of_it = (pod_requests(pod_spec).amounts for pod_spec in (alone, {**spec, "overhead": None}))
    named = parse_amounts(whole.get("requests")).keys() | (parse_amounts(whole.get("limits")).keys() - summed.keys())
    return tuple(sorted((name, Quantity(all_of_it.get(name, 0) - summed.get(name, 0))) for name in named))


def _silent_containers(containers: Iterable[_ContainerRequests], resource: str) -> int:
    return sum(resource not in names for names, _ in containers)


def _container_requests(container: Json, given: frozenset[str]) -> _ContainerRequests:
    """Return the resources that a container requests itself, and the amounts that it got by default."""
    requests = container_requests(container.get("resources") or {})
    return frozenset(requests.keys() - given), {name: requests[name] for name in given if name in requests}


def limit_ranger_defaults(metadata: Json, kind: str) -> LimitRangerDefaults:
    """Parse ``LimitRanger plugin set: cpu, memory request for container server; ...``; `kind` is request or limit."""
    text = ((metadata or {}).get("annotations") or {}).get(_LIMIT_RANGER) or ""
    entries = (found for found in _OF_CONTAINER.findall(text) if found[1] == kind)
    return {(bool(early), name.strip()): frozenset(names.strip().split(", ")) for names, _, early, name in entries}
