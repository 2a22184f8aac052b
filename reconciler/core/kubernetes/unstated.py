"""What a pod spec leaves to the cluster where its pods are made, and what of that a pod has been given already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from reconciler.core.kubernetes.requests import amounts, pod_requests, stated
from reconciler.model.units import Quantity
from reconciler.model.unstated import Amounts, Unstated, sorted_amounts
from reconciler.model.workload import Json

_GIVEN = "kubernetes.io/limit-ranger"
"""The annotation in which the API server tells what a LimitRange has given to a pod."""
_OF_CONTAINER = re.compile(r"(?:^|[:;] )([^:;]+) request for (init )?container ([^;]+)")

_Own = tuple[frozenset[str], Mapping[str, Quantity]]
"""The resources that a container requests by its own word, and what it has been given of others."""
_Given = Mapping[tuple[bool, str], frozenset[str]]
"""The resources that a LimitRange has set, by whether it is an init container and by its name."""


def unstated(spec: Json, metadata: Json = None) -> Unstated:
    """Read what admission may add to a pod, or to the pods of a template; `metadata` are as for its shape.

    An init container that requests nothing counts only where all containers that come after it request something: else
    it takes no more than these do.
    """
    given = _given((metadata or {}).get("annotations") or {})
    own = [_own(one, given.get((False, one.get("name", "")), frozenset())) for one in spec.get("containers") or ()]
    sidecars, before = list[_Own](), list[_Own]()
    for one in spec.get("initContainers") or ():
        kind = sidecars if one.get("restartPolicy") == "Always" else before
        kind.append(_own(one, given.get((True, one.get("name", "")), frozenset())))
    running = [*sidecars, *own]
    silent: dict[str, int] = {}
    for name in {name for names, _ in (*running, *before) for name in names}:
        alone = _lacking(before, name) > 0 and not _lacking(own, name)
        silent[name] = _lacking(running, name) + alone
    defaults: dict[str, Quantity] = {}
    for _, added in running:
        for name, amount in added.items():
            defaults[name] = Quantity(defaults.get(name, 0) + amount)
    return _shared_unstated(
        Unstated(
            runtime_class=spec.get("runtimeClassName") or "",
            overhead=sorted_amounts(amounts(spec.get("overhead"))),
            containers=len(running),
            silent=tuple(sorted(silent.items())),
            defaults=sorted_amounts(defaults),
            spare=_spare(spec),
        )
    )


@lru_cache(maxsize=4096)
def _shared_unstated(found: Unstated) -> Unstated:
    """Return the same object for the same: thousands of pods leave the same unsaid."""
    return found


def _spare(spec: Json) -> Amounts:
    """Read how much less the containers request than the pod as a whole, of what that says anything of."""
    whole = spec.get("resources") or {}
    if not whole:
        return ()
    alone = {**spec, "resources": None, "overhead": None}
    summed, all_of_it = (pod_requests(one).amounts for one in (alone, {**spec, "overhead": None}))
    named = amounts(whole.get("requests")).keys() | (amounts(whole.get("limits")).keys() - summed.keys())
    return tuple(sorted((name, Quantity(all_of_it.get(name, 0) - summed.get(name, 0))) for name in named))


def _lacking(containers: Iterable[_Own], resource: str) -> int:
    return sum(resource not in names for names, _ in containers)


def _own(container: Json, given: frozenset[str]) -> _Own:
    """Name the resources that a container requests by its own word, and say what it has been given of others."""
    requests = stated(container.get("resources") or {})
    return frozenset(requests.keys() - given), {name: requests[name] for name in given if name in requests}


def _given(annotations: Mapping[str, str]) -> _Given:
    """Read the words of the API server: ``LimitRanger plugin set: cpu, memory request for container server; ...``."""
    found = _OF_CONTAINER.findall(annotations.get(_GIVEN) or "")
    return {(bool(early), name.strip()): frozenset(names.strip().split(", ")) for names, early, name in found}
