"""The replicas of a burst in the objects of its template: written, divided, or fixed.

The number of a placement in its commit and in its record is the number that its engine deploys. So a number that a
template writes out becomes ``"{{ replicas }}"`` where the kind of the object says where its replicas stand. What
cannot be written is deployed in copies of its own size (`core.decide.assign.copies`). This module alone decides which
(docs/reference/kinds.md, "The number that is deployed").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.core.capacity.chart_gangs import is_declared_gang
from reconciler.core.capacity.gangs import has_chart, has_gang_manifest
from reconciler.core.capacity.pod_requirements import takes_gpus
from reconciler.core.engines import autoscaled_replicas
from reconciler.core.expressions import dialect, render, sandbox
from reconciler.core.expressions.dialect import has_expression
from reconciler.core.expressions.work import SHORT_WORK, EvaluationBudget
from reconciler.core.fleet.replica_paths import FIXED, REPLICAS, SHARE, FixedReplicas, share_expressions
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds, kind_of
from reconciler.core.workloads.paths import at, items, put, within
from reconciler.core.workloads.pods import unknown_field
from reconciler.errors import Severity
from reconciler.model.ids import WorkloadId
from reconciler.model.kubernetes.workload_kind import Path, WorkloadKind, path
from reconciler.model.policy import BurstPolicy
from reconciler.model.workload import (
    DeploySpec,
    Json,
    ManifestResource,
    ReplicaCount,
    StepType,
    WorkloadRef,
    WorkloadTemplate,
)
from reconciler.text.findings import Finding, Loc, dotted
from reconciler.text.wording import count

_SPEC_REPLICAS = path("spec.replicas")
_TRIED = (1, 2, 3, 10, 100)
"""Replicas that an expression is tried with."""
_CACHED = 16_384
"""Templates in the cache; beyond that it is emptied."""
_COUNT_NAMES = ("replicaCount", "replicas", "minReplicas")
"""Names of the field with the replicas in the values of most charts."""


class _Cache:
    """The last result of each template. Losing it costs time only, and makes new specs of equal content."""

    def __init__(self) -> None:
        self._last: dict[
            WorkloadId, tuple[tuple[object, ...], Kinds, tuple[WorkloadTemplate, tuple[Finding, ...]]]
        ] = {}

    def of(
        self, template: WorkloadTemplate, fixed: FixedReplicas | None, kinds: Kinds
    ) -> tuple[WorkloadTemplate, tuple[Finding, ...]]:
        last = self._last.get(template.workload)
        if (
            last is not None
            and last[0][0] is template.spec
            and last[0][1:] == (template.ref, fixed, template.runs_once)
            and last[1] == kinds
        ):
            counted, findings = last[2]
        else:
            if len(self._last) >= _CACHED:
                self._last.clear()
            counted, findings = _with_replica_sites(template, fixed, kinds)
            key = template.spec, template.ref, fixed, template.runs_once
            self._last[template.workload] = key, kinds, (counted, findings)
        made = replace(
            template,
            spec=counted.spec,
            own_spec=counted.own_spec,
            uses_replicas=counted.uses_replicas,
            copy=counted.copy,
            count=counted.count,
        )
        return made, findings


_CACHE = _Cache()


def with_replicas(
    template: WorkloadTemplate, fixed: FixedReplicas | None, kinds: Kinds
) -> tuple[WorkloadTemplate, tuple[Finding, ...]]:
    """Return a template that writes the replicas of its placements or says how many a copy has, and warnings."""
    return _CACHE.of(template, fixed, kinds)


def manifest_of_share(template: WorkloadTemplate, replicas: int) -> tuple[int, Mapping[str, Json]] | None:
    """Return the position of the manifest that has the replicas of a template, and it with this number of them.

    None where no manifest has them. Expressions that read anything but the replicas stay.
    """
    if template.count is None:
        return None
    variables = {**sandbox.spec_variables({}, EvaluationBudget(SHORT_WORK)), "replicas": replicas}
    for index, resource in enumerate(template.spec.manifests):
        if resource.name == template.count.manifest:
            rendered: Json = resource.manifest
            for field_path in template.count.paths:
                value = _evaluate(at(resource.manifest, field_path), variables)
                rendered = put(rendered, field_path, value)
            return index, rendered
    return None


def describe_maximum(policy: BurstPolicy) -> str:
    """Say how many replicas a policy allows each of its workloads outside the primary, as a clause."""
    return f"policy {policy.name} allows {count(policy.max_replicas or 0, 'replica')}"


def copy_above_maximum(template: WorkloadTemplate, policy: BurstPolicy | None) -> Iterator[Finding]:
    """Warn of copies that are larger than their policy allows, so that none is ever placed."""
    if policy is None or template.copy is None:
        return
    most = policy.capped(template.copy)
    if most == template.copy:
        return
    message = f"its copies of {count(template.copy, 'replica')} are more than the {most} that policy"
    yield Finding(
        loc=("spec",),
        message=f"{message} {policy.name} allows, so that it never bursts",
        hint=f"raise maxReplicas there, or leave out {REPLICAS}: {FIXED}",
        severity=Severity.WARNING,
    )


def miscounted(template: WorkloadTemplate, spec: DeploySpec, replicas: int, kinds: Kinds) -> str:
    """Say that a rendered spec deploys another number than a placement has; empty where it deploys that.

    This is the last word on every placement of a burst: what does not hold here is not committed.
    """
    hint = f'write "{SHARE}" there, or set the annotation {REPLICAS}: {FIXED}'
    # 1. The number stands in an object.
    if template.count is not None:
        resource = next((item for item in spec.manifests if item.name == template.count.manifest), None)
        number = None if resource is None else _written_number(resource.manifest, template.count.paths, kinds)
        if number is None or number == replicas:
            return ""
        where = ", ".join(".".join(field_path) for field_path in template.count.paths)
        return f"{count(replicas, 'replica')} would be {number} in {template.count.manifest} at {where} ({hint})"
    # 2. Every copy has the same number.
    if template.copy is not None and template.copy != replicas:
        return (
            f"its template deploys copies of {count(template.copy, 'replica')}, and this placement has {replicas}"
            " (revert it, and what is missing is placed anew)"
        )
    # 3. The expressions of a chart or a command say it, or the groups of its pods.
    return ""


def _with_replica_sites(
    template: WorkloadTemplate, fixed: FixedReplicas | None, kinds: Kinds
) -> tuple[WorkloadTemplate, tuple[Finding, ...]]:
    """Work out where the replicas of a template's placements stand."""
    spec = template.spec
    # 1. It says itself that it is fixed.
    if fixed is not None:
        resource = _burst_manifest(template, kinds)
        number = fixed.copy or (None if resource is None else _own_number(resource.manifest, kinds)) or 1
        whole = _goes_whole(template, resource, kinds)
        return replace(template, copy=None if whole and number == 1 else number), ()
    # 2. A chart or a command reads the share.
    if render.reads_variable(replace(spec, manifests=()), "replicas"):
        return template, ()
    resource = _burst_manifest(template, kinds)
    # 3. Nothing of it has replicas that could be written.
    if resource is None:
        return _without_path(template, None, kinds)
    kind = kind_of(resource.manifest, kinds)
    # 4. It runs in groups of which a placement is one, or an autoscaler owns its replicas.
    if _goes_whole(template, resource, kinds) or _is_autoscaled(spec, resource, kinds):
        return template, ()
    paths = _paths(resource.manifest, kind)
    if not paths:
        return (template, ()) if template.uses_replicas else _without_path(template, resource, kinds)
    values = [at(resource.manifest, field_path) for field_path in paths]
    # 5. Expressions stand there; numbers beside them, as those of other roles, are not replicas.
    stated = tuple(item for item, value in zip(paths, values, strict=True) if has_expression(str(value)))
    if stated:
        loc: Loc = ("spec", "manifestResources", spec.manifests.index(resource), "manifest")
        counted = ReplicaCount(manifest=resource.name, paths=stated)
        return replace(template, count=counted), _check_evaluated_number(resource.manifest, stated, loc, kinds)
    # 6. Numbers do, or nothing where one is the default.
    if len(paths) == 1 and values[0] is None:
        values = [1]
    if not all(type(value) is int and value >= 0 for value in values):
        return template, ()  # the checks of its kind refuse it
    made: Json = resource.manifest
    for field_path, share in zip(paths, share_expressions(values), strict=True):
        made = put(made, field_path, share)
    if kind is not None and kind.ceiling and not has_expression(str(at(made, kind.ceiling))):
        made = put(made, kind.ceiling, SHARE)
    manifests = tuple(replace(item, manifest=made) if item is resource else item for item in spec.manifests)
    written = replace(spec, manifests=manifests)
    counted = ReplicaCount(manifest=resource.name, paths=paths)
    return replace(template, spec=written, own_spec=spec, uses_replicas=True, count=counted), ()


def _without_path(
    template: WorkloadTemplate, resource: ManifestResource | None, kinds: Kinds
) -> tuple[WorkloadTemplate, tuple[Finding, ...]]:
    """Make a template one of copies, and warn of it with the field that may have the replicas."""
    gang = is_declared_gang(template.spec, template.ref, template.group_size, kinds)
    if gang or (resource is None and template.uses_replicas):
        return template, ()
    number = 1 if resource is None else _own_number(resource.manifest, kinds) or 1
    if template.runs_once:
        return replace(template, copy=number), ()  # there is one copy, with as many pods as at home
    name, where = _likely_path(template.spec)
    hint = f"try the annotation {REPLICAS}: {name}:{where}" if where else f'write "{SHARE}" where the count belongs'
    warning = Finding(
        loc=("spec",),
        message="nothing says where its replicas are written: each placement is one copy of"
        f" {count(number, 'replica')}, and a cluster gets one at most",
        hint=f"{hint}, or {REPLICAS}: {FIXED} if that is meant",
        severity=Severity.WARNING,
    )
    return replace(template, copy=number), (warning,)


def _burst_manifest(template: WorkloadTemplate, kinds: Kinds) -> ManifestResource | None:
    """Return the manifest whose replicas burst; None where none has any, or a chart makes the object."""
    spec, ref = template.spec, template.ref
    steps = {step.name for step in spec.steps if step.type is StepType.MANIFEST}
    able = [item for item in spec.manifests if item.name in steps and _has_replicas(item.manifest, kinds)]
    # 1. One whose count is an expression already.
    reading = [item for item in able if _reads_share(item.manifest, kinds)]
    # 2. The object that is counted on the primary.
    named = [item for item in able if ref is not None and _is_object(item.manifest, ref)]
    first = next((item for item in (*[item for item in named if item in reading], *reading, *named)), None)
    if first is not None or has_chart(spec):
        return first
    # 3. One of its kind, one with GPUs, or the first.
    same_kind = [item for item in able if ref is not None and ref.kind and item.manifest.get("kind") == ref.kind]
    with_gpus = [item for item in same_kind or able if takes_gpus(spec, item, kinds)]
    return next(iter((*with_gpus, *same_kind, *able)), None)


def _has_replicas(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    """Return whether an object makes pods that are counted, or is of an unknown kind with replicas."""
    kind = kind_of(manifest, kinds)
    return kind.counted if kind is not None else at(manifest, _SPEC_REPLICAS) is not None


def _reads_share(manifest: Mapping[str, Json], kinds: Kinds) -> bool:
    values = (at(manifest, field_path) for field_path in _paths(manifest, kind_of(manifest, kinds)))
    return any(isinstance(value, str) and "replicas" in dialect.read_expression(value).names for value in values)


def _is_object(manifest: Mapping[str, Json], ref: WorkloadRef) -> bool:
    """Return whether a manifest makes the object of this kind and name; in whatever namespace of its cluster."""
    return (
        at(manifest, ("metadata", "name")) == ref.name
        and ref.kind in ("", manifest.get("kind"))
        and ref.group in ("", group_kind(manifest).partition("/")[0])
    )


def _goes_whole(template: WorkloadTemplate, resource: ManifestResource | None, kinds: Kinds) -> bool:
    """Return whether a placement is one copy of groups that nothing counts: a job, a cluster, pods of one replica."""
    if resource is None:
        return template.group_size is not None
    kind = kind_of(resource.manifest, kinds)
    if kind is None:
        return template.group_size is not None
    if unknown_field(resource.manifest, kind) is not None:
        return True
    if kind.together is None:
        return template.group_size is not None or has_gang_manifest(template.spec, kinds)
    return tuple(number.path for number in kind.together.counts) != kind.replicas


def autoscaler_kind(template: WorkloadTemplate, kinds: Kinds) -> str:
    """Return the kind of the autoscaler beside a template's workload that owns its replicas; empty without one."""
    resource = _burst_manifest(template, kinds)
    if resource is None:
        return ""
    return next(
        (
            str(item.manifest["kind"])
            for item in template.spec.manifests
            if autoscaled_replicas.autoscaler(item.manifest)
            and _is_autoscaled(replace(template.spec, manifests=(item,)), resource, kinds)
        ),
        "",
    )


def _is_autoscaled(spec: DeploySpec, resource: ManifestResource, kinds: Kinds) -> bool:
    """Return whether an autoscaler beside an object owns its replicas, so that no engine writes them."""
    objects = [(item.manifest, str(at(item.manifest, ("metadata", "namespace")) or "")) for item in spec.manifests]
    scaled = autoscaled_replicas.targets(objects)
    namespace = str(at(resource.manifest, ("metadata", "namespace")) or "")
    return bool(autoscaled_replicas.owned_replica_paths(resource.manifest, namespace, scaled, kinds))


def _paths(manifest: Mapping[str, Json], kind: WorkloadKind | None) -> tuple[Path, ...]:
    """List the fields of an object with its replicas, of several only those that have a value."""
    patterns = kind.replicas if kind is not None else ()
    single = tuple(
        dict.fromkeys(within(pattern, item, pattern) for pattern in patterns for item in items(manifest, pattern))
    )
    paths = tuple(field_path for field_path in single if isinstance(at(manifest, field_path[:-1]), Mapping))
    stated = tuple(field_path for field_path in paths if at(manifest, field_path) is not None)
    return stated if len(paths) > 1 else paths


def _own_number(manifest: Mapping[str, Json], kinds: Kinds) -> int | None:
    """Return the replicas that an object states itself; None where it states none."""
    kind = kind_of(manifest, kinds)
    paths = (_SPEC_REPLICAS,) if kind is None else _paths(manifest, kind)
    return _written_number(manifest, paths, kinds) if paths else None


def _written_number(manifest: Mapping[str, Json], paths: tuple[Path, ...], kinds: Kinds) -> int | None:
    """Add up the numbers at paths, none above its own maximum; None where one is no number yet.

    One that is absent counts as one, as Kubernetes has it.
    """
    kind, total = kind_of(manifest, kinds), 0
    counts = [number for place in kind.templates for number in place.counts] if kind is not None else []
    for field_path in paths:
        value = at(manifest, field_path)
        number = 1 if value is None else value
        if type(number) is not int:
            return None
        most = next((at(manifest, own.most) for own in counts if own.path == field_path and own.most), None)
        total += min(number, most) if type(most) is int else number
    return total


def _check_evaluated_number(
    manifest: Mapping[str, Json], paths: tuple[Path, ...], loc: Loc, kinds: Kinds
) -> tuple[Finding, ...]:
    """Warn of an expression that gives another number than the replicas, as far as it reads nothing else."""
    # Of one budget, however many expressions and tries there are.
    variables = sandbox.spec_variables({}, EvaluationBudget(SHORT_WORK))
    for replicas in _TRIED:
        rendered: Json = manifest
        for field_path in paths:
            value = _evaluate(at(manifest, field_path), {**variables, "replicas": replicas})
            rendered = put(rendered, field_path, value)
        number = _written_number(rendered, paths, kinds)
        if number is not None and number != replicas:
            message = (
                f"deploys {number} for {count(replicas, 'replica')}, so that no placement of {replicas} is committed"
            )
            return (
                Finding(loc=(*loc, *paths[0]), message=message, hint=f'write "{SHARE}"', severity=Severity.WARNING),
            )
    return ()


def _evaluate(value: Json, variables: Mapping[str, Any]) -> Json:
    """Evaluate an expression that reads nothing but the replicas; any other value is returned as it is."""
    if not isinstance(value, str) or not has_expression(value):
        return value
    reading = dialect.read_expression(value)
    if reading.faults or not reading.names <= {"replicas"}:
        return value
    try:
        return sandbox.evaluate(value, variables)
    except render.FAILURES:
        return value


def _likely_path(spec: DeploySpec) -> tuple[str, str]:
    """Return the chart and the path of the number in its values that is called like replicas; empty without one."""
    for chart in spec.helm:
        for field_path in _numbers((), chart.values):
            return chart.name, dotted(field_path).replace("[", ".").replace("]", "")
    return "", ""


def _numbers(loc: Loc, value: Json) -> list[Loc]:
    """List the places of numbers that are called like replicas, outer ones first."""
    if isinstance(value, list):
        return [inner for index, item in enumerate(value) for inner in _numbers((*loc, index), item)]
    if not isinstance(value, Mapping):
        return []
    own = [(*loc, name) for name in _COUNT_NAMES if type(value.get(name)) is int]
    return own + [inner for key, item in value.items() for inner in _numbers((*loc, key), item)]
