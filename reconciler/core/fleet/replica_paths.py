"""The annotation that says where a placement's replicas are written, or that they are fixed.

EGS reads the same files and knows no expressions, so a chart's values and an object keep the number that EGS deploys.
The annotation turns that number into ``"{{ replicas }}"``; `burst_replicas` does the same for kinds that it knows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.schema.workloadkind import fault
from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.core.workloads.paths import at, put
from reconciler.model.kubernetes.workload_kind import EACH, Path, path
from reconciler.model.workload import DeploySpec, Json
from reconciler.text.digits import whole_number
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest

REPLICAS = "overspill.dev/replicas"
"""The annotation: ``<chart or manifest>:<path>`` of the replicas, ``fixed``, or the replicas of one copy."""

FIXED = "fixed"
SHARE = "{{ replicas }}"
_MAX_COPY = 10**6
"""Replicas of one copy that the annotation may state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedReplicas:
    """A template whose placements all deploy the same number."""

    copy: int | None = None
    """The replicas of one copy as the annotation states them; None where the objects tell."""


def fixed_replicas(spec: DeploySpec, annotations: Mapping[str, str]) -> FixedReplicas | None:
    """Return what the annotation says of fixed replicas; None where it is absent or names a path."""
    written = annotations.get(REPLICAS, "")
    if written == FIXED:
        return FixedReplicas()
    parts = {*(chart.name for chart in spec.helm), *(resource.name for resource in spec.manifests)}
    copy = None if written in parts else whole_number(written, len(str(_MAX_COPY)) - 1)
    return FixedReplicas(copy=copy) if copy else None


def share_expressions(numbers: Sequence[int]) -> list[str]:
    """Write the expressions that divide a placement's replicas in proportion to numbers."""
    if len(numbers) == 1:
        return [SHARE]
    return [f"{{{{ (replicas | shares({[*numbers]}))[{place}] }}}}" for place in range(len(numbers))]


def with_share_expression(spec: DeploySpec, annotations: Mapping[str, str], findings: list[Finding]) -> DeploySpec:
    """Replace the number at the annotated path by the share; problems are added to `findings`."""
    written = annotations.get(REPLICAS)
    if written is None or fixed_replicas(spec, annotations) is not None:
        return spec
    name, _, written_path = written.partition(":")
    charts = {chart.name: chart for chart in spec.helm}
    manifests = {resource.name: resource for resource in spec.manifests}
    if (name in charts) == (name in manifests):
        what = "is a chart and a manifest" if name in charts else "is no chart or manifest of this template"
        hint = "give one of them another name" if name in charts else nearest(name, (*charts, *manifests))
        return _wrong(spec, f"{shortened(name)!r} {what}", hint, findings)
    root = charts[name].values if name in charts else manifests[name].manifest
    if not written_path and name in manifests:
        written_path = _default_path(root)
    message, hint = _fault(root, written_path, name)
    if message:
        return _wrong(spec, message, hint, findings)
    content = put(root, path(written_path), SHARE)
    return replace(
        spec,
        helm=tuple(replace(chart, values=content) if chart.name == name else chart for chart in spec.helm),
        manifests=tuple(
            replace(manifest, manifest=content) if manifest.name == name else manifest for manifest in spec.manifests
        ),
    )


def _default_path(manifest: Mapping[str, Json]) -> str:
    """Return the path of the replicas of a built-in kind, if it has exactly one."""
    kind = kind_of(manifest, NO_KINDS)
    replicas_paths = kind.replicas if kind is not None else ()
    return ".".join(replicas_paths[0]) if len(replicas_paths) == 1 and EACH not in replicas_paths[0] else ""


def _fault(root: Json, written_path: str, name: str) -> tuple[str, str]:
    """Return why the share cannot be written at a path, and the remedy; both empty if it can."""
    if not written_path:
        return f"says nothing of where in {name}", f"try '{name}:spec.replicas', or where it is there"
    message, hint = fault(written_path)
    if message:
        return message, hint
    if EACH in path(written_path):
        return f"{shortened(written_path)!r} leads to several places", "try the index of one"
    value = at(root, path(written_path))
    if isinstance(value, str) and has_expression(value):
        return f"an expression stands at {shortened(written_path)} already", "leave the annotation out"
    if type(value) is not int or value < 0:
        stands = "nothing stands" if value is None else "no number of replicas stands"
        return f"{stands} at {shortened(written_path)} in {name}", _path_hint(root, path(written_path))
    return "", ""


def _path_hint(root: Json, field_path: Path) -> str:
    """Return how far a path leads, and a possible next part; else that its end holds no number."""
    for depth, part in enumerate(field_path):
        here = at(root, field_path[:depth])
        if at(root, (*field_path[:depth], part)) is not None:
            continue
        if isinstance(here, Mapping) and depth < len(field_path) - 1:
            return nearest(part, tuple(map(str, here))) or "write it out there"
        if isinstance(here, list):
            return f"it has {len(here)} items, counted from 0"
        break
    return "write out there the number that is deployed without a burst"


def _wrong(spec: DeploySpec, message: str, hint: str, findings: list[Finding]) -> DeploySpec:
    loc: Loc = ("metadata", "annotations", REPLICAS)
    findings.append(Finding(loc=loc, message=message, hint=hint))
    return spec
