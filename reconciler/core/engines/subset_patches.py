"""Changes of a placement's subset to its pods: in objects that are written, and in charts that Flux installs.

The objects of a chart that an engine installs are not known here. Flux lets Kustomize patch them by kind and name, and
Kustomize merges objects as Kubernetes does, but not lists: it puts new items elsewhere, and appends to none. So a
change of objects and scalars can be expressed for a release exactly; any other change is refused. So is one after which
pods that keep to all rules of their workspace would no longer do so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reconciler.core.engines.deployment import Deployment, chart_steps
from reconciler.core.schema.yaml import emit
from reconciler.core.spread import inject
from reconciler.core.spread.ordinal_fields import KRUISE
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds
from reconciler.errors import InvalidInput
from reconciler.model.kubernetes.workload_kind import EACH, Path
from reconciler.model.policy import Workspace
from reconciler.model.workload import DeploySpec, HelmConfig, Json

INSTEAD = "give the cluster the manifests engine, or use placement.subset in the chart's values"

_STRICT_POD: dict[str, Json] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [
        {
            "name": "any",
            "image": "any",
            "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        }
    ],
}
"""A pod that keeps to every pod security level: stands for those of a chart, which are not known here."""

Objects = Sequence[Mapping[str, Json] | None]
"""Objects of a placement in order; None for one that no subset changes."""


def injected(deployment: Deployment, objects: Objects, rendered: tuple[HelmConfig, ...]) -> list[Json]:
    """Make the pods of the objects that a spread targets those of the placement's subset.

    Raises InvalidInput where they cannot be, or where there are none and the engine installs no chart that may have
    them.
    """
    injection = deployment.injection
    if injection is None:
        return [*objects]
    chosen = _targets(objects, injection)
    if not chosen and injection.changes and not installs_chart(deployment.spec, rendered):
        raise missing_target(injection)
    return [
        inject.inject_subset(manifest, injection, deployment.workspace, deployment.kinds)
        if manifest is not None and index in chosen
        else manifest
        for index, manifest in enumerate(objects)
    ]


def missing_target(injection: Injection) -> InvalidInput:
    """Make the error of a subset whose target the placement does not make."""
    target = f"{injection.spread.target.kind} {injection.spread.target.name}"
    return inject.injection_error(injection, f"the placement makes no {target}, which it targets", inject.INSTEAD)


def installs_chart(spec: DeploySpec, rendered: tuple[HelmConfig, ...]) -> bool:
    """Return whether an engine installs a chart of a spec itself, beside those that are rendered for it."""
    names = {chart.name for chart in rendered}
    return any(chart.name not in names for chart in chart_steps(spec))


def left_to_charts(deployment: Deployment, objects: Objects, rendered: tuple[HelmConfig, ...]) -> Injection | None:
    """Return the change of a subset to the pods of charts that the engine installs itself; None without any."""
    injection = deployment.injection
    if injection is None or _targets(objects, injection) or not installs_chart(deployment.spec, rendered):
        return None
    return injection


def patches(injection: Injection, workspace: Workspace, kinds: Kinds) -> list[Json]:
    """Write the change of a subset as patches of Kustomize, for the object of the name that its spread targets.

    Raises InvalidInput with the part that no patch can express, or that the rules of the workspace refuse.
    """
    spread, subset = injection.spread, injection.subset
    name = f"{spread.group}/{spread.target.kind}"
    kind = kinds.get(name) or BUILT_IN.get(name)
    template = kind.templates[0] if kind is not None and len(kind.templates) == 1 else None
    own = template is not None and inject.has_own_metadata(template) and EACH not in template.spec
    if kind is None or template is None or not own:
        if not injection.changes:
            return []
        raise _inexact(injection, f"where a {spread.target.kind} has its pod template")
    for what in _not_merged(injection):
        raise _inexact(injection, what)
    patch: dict[str, Json] = {key: dict(subset.patch[key]) for key in ("metadata", "spec") if key in subset.patch}
    metadata = patch.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **injection.annotation}
    if "priorityClassName" in patch.get("spec", {}):
        patch["spec"]["priority"] = None
    document = _nested(template.spec[:-1], patch)
    if injection.start and spread.group == KRUISE:
        raise _inexact(injection, f"which ordinals a {spread.target.kind} of OpenKruise leaves out")
    if injection.start:
        document = {**document, "spec": {"ordinals": {"start": injection.start}, **document["spec"]}}
    version = "/".join(part for part in (spread.group, (kind.versions or ("v1",))[0]) if part)
    target = {"group": spread.group, "kind": spread.target.kind, "name": re.escape(spread.target.name)}
    head = {"apiVersion": version, "kind": spread.target.kind, "metadata": {"name": spread.target.name}}
    inject.inject_subset({**head, **_nested(template.spec, _STRICT_POD)}, injection, workspace, kinds)
    return [{"target": target, "patch": emit({**head, **document})}]


def _nested(path: Path, value: dict[str, Json]) -> dict[str, Json]:
    """Return an object that has a value at a path, and nothing else."""
    for part in reversed(path):
        value = {part: value}
    return value


def _not_merged(injection: Injection) -> Iterator[str]:
    """List the changes of a subset that Kustomize would merge otherwise than Kubernetes, or could not make at all."""
    if injection.spread.selector or injection.spread.selector_expressions:
        yield "which pods the spread selects"
    if injection.subset.tolerations:
        yield "tolerations"
    if injection.required or injection.preferred:
        yield "terms of nodes"
    for part in ("metadata", "spec"):
        patch = injection.subset.patch.get(part, {})
        if isinstance(patch, Mapping):
            yield from _lists(patch)
        else:
            yield f"that there is no {part}"


def _lists(value: Mapping[str, Json]) -> Iterator[str]:
    for key, below in value.items():
        if isinstance(below, list):
            yield f"the list {key} of its patch"
        elif key.startswith("$"):
            yield f"the directive {key} of its patch"
        elif isinstance(below, Mapping):
            yield from _lists(below)


def _inexact(injection: Injection, what: str) -> Exception:
    message = f"Flux installs the chart itself, and {what} cannot be said of what it makes"
    return inject.injection_error(injection, message, INSTEAD)


def _targets(objects: Objects, injection: Injection) -> frozenset[int]:
    return inject.target_indexes([manifest or {} for manifest in objects], injection.spread)
