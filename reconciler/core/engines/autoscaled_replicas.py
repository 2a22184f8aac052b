"""Autoscalers that ship with a placement, and the replicas that they own: no engine writes those.

An engine does not revert a count that is not in its files, so this holds for Argo CD, for Flux and for plain kubectl
alike. A new object has one replica until its autoscaler has acted; where a missing count means none, one is written,
and an engine that can ignore fields ignores it.

Ray's own autoscaler is another matter: it ships inside of what it scales. It writes ``replicas`` and ``scaleStrategy``
of the groups of workers, in a list that is applied as one and where the CRD defaults an absent count to 0 (KubeRay,
raycluster_types.go). So these are written, and an engine that can ignore fields ignores them. A RayJob or a RayService
creates a RayCluster, and only Overspill writes their own fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds, kind_of, scale_paths
from reconciler.core.workloads.paths import at, items, put
from reconciler.model.kubernetes.workload_kind import EACH, Path
from reconciler.model.workload import Json

Target: TypeAlias = tuple[str, str, str]
"""An object that is scaled: its ``group/Kind``, namespace and name."""

_AUTOSCALERS = frozenset({"HorizontalPodAutoscaler", "HTTPScaledObject", "ScaledObject"})
"""Kinds of Kubernetes and KEDA. A ScaledJob is none: it makes Jobs of its own."""

_USUAL = ("apps/v1", "Deployment")
"""The version and kind that KEDA assumes for a target that gives a name alone."""

REPLICAS: Path = ("spec", "replicas")
"""Where the replicas of most kinds that can be scaled stand."""

_WORKERS = "workerGroupSpecs"

_RAY: Mapping[str, Path] = {
    name: replicas_path[: replicas_path.index(_WORKERS)]
    for name, kind in BUILT_IN.items()
    for replicas_path in kind.replicas
    if _WORKERS in replicas_path
}
"""Where each kind of Ray's describes a cluster."""


def autoscaler(manifest: Mapping[str, Json]) -> bool:
    """Return whether an object scales another."""
    return str(manifest.get("kind")) in _AUTOSCALERS


def targets(objects: Iterable[tuple[Mapping[str, Json], str]]) -> frozenset[Target]:
    """Return the targets of the autoscalers among objects; each object comes with its namespace."""
    references = (_target(manifest, namespace) for manifest, namespace in objects if autoscaler(manifest))
    return frozenset(target for target in references if target is not None)


def has_unnamed_target(manifests: Iterable[Mapping[str, Json]]) -> bool:
    """Return whether an autoscaler among these does not name its target: then it may be any object beside it."""
    return any(autoscaler(manifest) and _target(manifest, "") is None for manifest in manifests)


def owned_replica_paths(manifest: Mapping[str, Json], namespace: str, scaled: frozenset[Target], kinds: Kinds) -> Path:
    """Return where the replicas of an object stand that an autoscaler owns; empty where none does.

    An autoscaler goes by the scale of an object, which has one number. Of a kind of which nothing is known it is
    ``spec.replicas``, as of most that can be scaled.
    """
    name = at(manifest, ("metadata", "name"))
    if not scaled or not isinstance(name, str) or (group_kind(manifest), namespace, name) not in scaled:
        return ()
    kind = kind_of(manifest, kinds)
    declared = kind is not None and group_kind(manifest) in kinds
    paths = scale_paths(manifest, kinds)
    if kind is not None and declared:
        paths = tuple(field_path for field_path in kind.replicas if EACH not in field_path)
    return next(iter(paths), () if kind is not None else REPLICAS)


def ray_worker_paths(manifest: Mapping[str, Json]) -> tuple[Path, ...]:
    """Return the paths to the groups of workers that Ray's own autoscaler scales; empty where none does."""
    root = _RAY.get(group_kind(manifest), ())
    described = at(manifest, root) if root else None
    if not isinstance(described, Mapping) or described.get("enableInTreeAutoscaling") is not True:
        return ()
    return tuple(items(manifest, (*root, _WORKERS, EACH)))


def handed_over(manifest: Mapping[str, Json], path: Path, kinds: Kinds) -> dict[str, Json]:
    """Return an object without the number at a path, which its autoscaler owns; with one replica where none means 0.

    No autoscaler scales a target from 0 that was not scaled to 0 by itself, and Grove's CRD defaults an absent number
    to 0 (podcliqueset.go).
    """
    kind = kind_of(manifest, kinds)
    counts = (count for template in (kind.templates if kind else ()) for count in template.counts)
    if path and any(count.path == path and count.default == 0 for count in counts):
        begun: dict[str, Json] = put(dict(manifest), path, 1)
        return begun
    left: dict[str, Json] = without(dict(manifest), path)
    return left


def without(value: Json, path: Path) -> Json:
    """Copy a mapping, without the value at a path."""
    if path and isinstance(value, list):
        return [without(item, path[1:]) if str(index) == path[0] else item for index, item in enumerate(value)]
    if not path or not isinstance(value, dict) or path[0] not in value:
        return value
    if len(path) == 1:
        return {key: item for key, item in value.items() if key != path[0]}
    return {**value, path[0]: without(value[path[0]], path[1:])}


def ignore_rules(
    stage: Iterable[tuple[Mapping[str, Json], str]], scaled: frozenset[Target], kinds: Kinds, *, every: bool
) -> Iterator[Json]:
    """Write Flux's rules for fields to ignore: replicas of the scaled objects, or of `every` kind that can be scaled.

    Flux creates an object with the ignored fields, and leaves them out of a later apply only if they have changed. Each
    part of a target is a pattern, and one that is left out means any: objects of two groups may share kind and name.
    """
    kinds_by_path: dict[tuple[tuple[str, ...], str], set[str]] = {}
    for manifest, namespace in stage:
        path = owned_replica_paths(manifest, namespace, scaled, kinds)
        groups = ray_worker_paths(manifest) if group_kind(manifest) == "ray.io/RayCluster" else ()
        if groups:
            paths = [pointer((*group, field)) for group in groups for field in ("replicas", "scaleStrategy")]
            yield {"paths": paths, "target": _selector(manifest, namespace)}
        elif path:
            yield {"paths": [pointer(path)], "target": _selector(manifest, namespace)}
        elif every and (pointers := tuple(map(pointer, scale_paths(manifest, kinds)))):
            group = group_kind(manifest).rpartition("/")[0]
            kinds_by_path.setdefault((pointers, group), set()).add(manifest["kind"])
    for (pointers, group), names in sorted(kinds_by_path.items()):
        kind = "|".join(sorted(names))
        target = {"group": _literal(group), "kind": f"({kind})" if len(names) > 1 else kind}
        yield {"paths": [*pointers], "target": target}


def _selector(manifest: Mapping[str, Json], namespace: str) -> Json:
    """Select one object; Flux takes each value for an anchored pattern (ssa/jsondiff/selector.go of fluxcd/pkg)."""
    group, _, kind = group_kind(manifest).rpartition("/")
    parts = {"group": group, "kind": kind, "name": str(manifest["metadata"]["name"]), "namespace": namespace}
    return {part: _literal(value) for part, value in parts.items() if value}


def _literal(value: str) -> str:
    """Write a name as a pattern that matches it alone."""
    return value.replace(".", "\\.")


def pointer(path: Path) -> str:
    """Write a path as a JSON pointer."""
    return "/" + "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)


def _target(manifest: Mapping[str, Json], namespace: str) -> Target | None:
    """Read the target of an autoscaler; None where it names none, or by an expression."""
    reference = at(manifest, ("spec", "scaleTargetRef"))
    if not isinstance(reference, Mapping):
        return None
    version, kind = reference.get("apiVersion") or _USUAL[0], reference.get("kind") or _USUAL[1]
    name = reference.get("name")
    if not all(isinstance(part, str) and part and not has_expression(part) for part in (version, kind, name)):
        return None
    return group_kind({"apiVersion": version, "kind": kind}), namespace, str(name)
