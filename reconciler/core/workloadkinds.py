"""The kinds of workloads that are known without anybody's saying so, as data, and how a kind is looked up.

Each path was read from the project's own API types, of the release or the commit that `checked` names. A WorkloadKind
in the fleet repository goes before what stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from reconciler.core import batchkinds, servingkinds
from reconciler.core.describing import SUSPEND, at_a_time, plain, template
from reconciler.core.kinds import group_kind
from reconciler.model.workload import Json
from reconciler.model.workloadkind import EACH, Path, PodTemplate, WorkloadKind, path

Kinds: TypeAlias = Mapping[str, WorkloadKind]
"""Kinds that the fleet repository declares, by ``group/Kind``."""

NONE: Kinds = {}
_KUBERNETES = "Kubernetes 1.37"


def _kubernetes() -> Iterator[WorkloadKind]:
    yield WorkloadKind(
        group="",
        kind="Pod",
        versions=("v1",),
        templates=(PodTemplate(spec=("spec",)),),
        checked=_KUBERNETES,
    )
    yield plain("", "ReplicationController", ("v1",), _KUBERNETES)
    for kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        yield plain("apps", kind, ("v1",), _KUBERNETES)
    yield plain("apps", "DaemonSet", ("v1",), _KUBERNETES, counted=False)
    yield WorkloadKind(
        group="batch",
        kind="Job",
        versions=("v1",),
        replicas=(path("spec.parallelism"),),
        templates=(template("spec.template", at_a_time("spec")),),
        suspended=SUSPEND,
        checked=_KUBERNETES,
    )
    yield WorkloadKind(
        group="batch",
        kind="CronJob",
        versions=("v1",),
        templates=(PodTemplate(spec=path("spec.jobTemplate.spec.template.spec")),),
        counted=False,
        checked=_KUBERNETES,
    )


def _table(*parts: Iterable[WorkloadKind]) -> dict[str, WorkloadKind]:
    return {kind.name: kind for part in parts for kind in part}


BUILT_IN: Mapping[str, WorkloadKind] = _table(
    _kubernetes(),
    servingkinds.rolling(),
    batchkinds.sets(),
    batchkinds.training(),
    batchkinds.ray(),
    servingkinds.serving(),
    servingkinds.dynamo(),
)
"""What is known by ``group/Kind``, in the order in which the documentation lists it."""

POD_TEMPLATES = frozenset(
    kind.name for kind in BUILT_IN.values() if kind.group in {"apps", "batch"} and kind.kind != "CronJob"
)
"""Kinds of Kubernetes itself whose pods are made from ``spec.template``."""


_CALLED: Mapping[str, tuple[WorkloadKind, ...]] = {
    name: tuple(kind for kind in BUILT_IN.values() if kind.kind == name)
    for name in (one.kind for one in BUILT_IN.values())
}


def called(name: str, declared: Kinds) -> list[WorkloadKind]:
    """Return what is known of the kinds of this name, whichever API groups they are of."""
    own = [kind for kind in declared.values() if kind.kind == name]
    return [*own, *(kind for kind in _CALLED.get(name, ()) if kind.name not in declared)]


def known(manifest: Mapping[str, Json], declared: Kinds) -> WorkloadKind | None:
    """Return what is known of an object's kind; None where nothing is, as of what makes no pods."""
    name = group_kind(manifest)
    return declared.get(name) or BUILT_IN.get(name)


def scaled_at(manifest: Mapping[str, Json], declared: Kinds) -> tuple[Path, ...]:
    """Return where an autoscaler that goes by the scale of an object sets its replicas; empty where none does."""
    kind = known(manifest, declared)
    ways = kind.replicas if kind is not None else ()
    return tuple(way for way in ways if way[-1] == "replicas" and EACH not in way)
