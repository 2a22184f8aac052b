"""Volumes that only one node, or one pod, can mount and that the replicas of a workload share: told, not refused.

Kubernetes puts such replicas on one node, or leaves all but one of them waiting, which counting nodes does not show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.fieldpath import at, items, within
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.kinds import group_kind
from reconciler.core.podneeds import mapping, maps
from reconciler.core.podsof import places
from reconciler.core.workloadkinds import Kinds, known
from reconciler.errors import Severity
from reconciler.model.workload import DeploySpec, Json

_CLAIM = "/PersistentVolumeClaim"
_ONE = {"ReadWriteOnce": "on one node", "ReadWriteOncePod": "in one pod"}


def warn_shared_claims(spec: DeploySpec, kinds: Kinds) -> Iterator[Finding]:
    """Warn of replicas that mount a claim of their own template which cannot be mounted everywhere."""
    bounds = dict(_bounds(resource.manifest for resource in spec.manifests))
    for index, resource in enumerate(spec.manifests) if bounds else ():
        manifest = resource.manifest
        for claim in dict.fromkeys(_mounted(manifest, kinds) if _several(manifest, kinds) else ()):
            if claim in bounds:
                mode = bounds[claim]
                loc: Loc = ("spec", "manifestResources", index)
                what = f"{manifest.get('kind')} {at(manifest, ('metadata', 'name'))}"
                message = f"the replicas of {shortened(what)} share the {mode} claim {shortened(claim)}"
                hint = f"it is mounted {_ONE[mode]} only; use ReadWriteMany, ReadOnlyMany or volumeClaimTemplates"
                yield Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING)


def _bounds(manifests: Iterator[Mapping[str, Json]]) -> Iterator[tuple[str, str]]:
    """Yield the names of the claims that are not for every node, with their access mode."""
    for manifest in manifests:
        modes = at(manifest, ("spec", "accessModes"))
        name = at(manifest, ("metadata", "name"))
        if group_kind(manifest) == _CLAIM and isinstance(modes, list) and isinstance(name, str):
            found = [mode for mode in modes if isinstance(mode, str)]
            if found and all(mode in _ONE for mode in found):
                yield name, found[0]


def _mounted(manifest: Mapping[str, Json], kinds: Kinds) -> Iterator[str]:
    """Yield the claims that the pods of an object name."""
    for place in places(manifest, kinds):
        pod = at(manifest, tuple(map(str, place.loc))) if place.loc else None
        for volume in maps(mapping(pod).get("volumes")):
            claim = mapping(volume.get("persistentVolumeClaim"))
            name = claim.get("claimName")
            if isinstance(name, str) and claim.get("readOnly") is not True:
                yield name


def _several(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    """Tell whether an object may make several pods of a template: what an expression says may be any number."""
    kind = known(manifest, kinds)
    ways = (count.path for template in kind.templates for count in template.counts) if kind is not None else ()
    numbers = (at(manifest, within(way, item, way)) for way in ways for item in items(manifest, way))
    return any(number is not None and number not in (0, 1) for number in numbers)
