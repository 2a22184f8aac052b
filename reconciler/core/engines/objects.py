"""Objects of a placement, step by step, as files: the part that all engines have in common.

Each object is a file of its own, named so that the alphabet is the order of the steps:
``NN-<step>-<kind>-<name>.yaml``. Namespaces come before everything (``00-namespace-<name>.yaml``), wherever their step
stands, since no object can be applied without its namespace. An object gets the label ``overspill.dev/placement``, and
so do the pods of workload kinds. The change of a WorkloadSpread's subset to pods is made here; selectors and all other
fields of the user stay as they are, but for replicas that an autoscaler beside them owns (`autoscaled_replicas`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.core.engines import autoscaled_replicas, service_export, subset_patches
from reconciler.core.engines.deployment import Deployment
from reconciler.core.safety import commands, rules
from reconciler.core.safety.scope import is_cluster_scoped, outlives_placements
from reconciler.core.schema.yaml import emit
from reconciler.core.workloads import pods
from reconciler.core.workloads.api_kinds import group_kind, is_list
from reconciler.core.workloads.held_objects import with_wrapped
from reconciler.core.workloads.paths import at
from reconciler.errors import InvalidInput, Severity
from reconciler.model.kubernetes.workload_kind import Path
from reconciler.model.placement import PLACEMENT_LABEL, Placement
from reconciler.model.workload import HelmConfig, Json, StepType
from reconciler.text.findings import Finding, told

DIRECTORY = "manifests"
KUSTOMIZATION = "kustomization.yaml"

_MOST_TOLD = 10
"""Problems of a chart, in the one sentence on why it is not placed."""
_NAMESPACE = ("metadata", "namespace")
_SLUG = re.compile(r"[^a-z0-9.-]+")
_MAX_SLUG = 80
_MAX_STEM = 200
"""Of a file's name: no file system takes more than 255 bytes, and git writes temporary names beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PayloadObject:
    """An object and the step that makes it."""

    step: int
    """The number of the step, from 0."""
    name: str
    """The name of the step."""
    manifest: Json
    ordinal: int = 0
    """The number among the objects of one chart, from 1; 0 for any other object."""
    kept: bool = False
    """Whether the object outlives the placement. It may be shared, and does not have the placement's label."""
    namespace: str = ""
    """The namespace of an object that names none; empty for that of the placement."""

    @property
    def is_namespace(self) -> bool:
        """Return whether the object is a Namespace, on which all others may depend."""
        return group_kind(self.manifest) == "/Namespace"


def items(deployment: Deployment, rendered: tuple[HelmConfig, ...]) -> list[PayloadObject]:
    """List the objects of every step in order; of charts, those that Overspill has `rendered`.

    Raises InvalidInput for a command or a chart that the safety rules refuse, and for a change of the placement's
    subset that its pods cannot take.
    """
    spec = deployment.spec
    charts = {chart.name: chart for chart in rendered}
    manifests = {resource.name: resource.manifest for resource in spec.manifests}
    lines = {command.name: command.cmd for command in spec.commands}
    payload: list[PayloadObject] = []
    for number, step in enumerate(spec.steps):
        if step.type is StepType.MANIFEST:
            manifest = manifests[step.name]
            kept = outlives_placements(manifest, deployment.kinds, deployment.schemas)
            payload.append(PayloadObject(step=number, name=step.name, manifest=manifest, kept=kept))
        elif step.type is StepType.COMMAND:
            payload.extend(_command(deployment, number, step.name, lines[step.name]))
        elif step.name in charts:
            payload.extend(_chart(deployment, number, charts[step.name]))
    injected = subset_patches.injected(deployment, of_subset(payload), rendered)
    payload = [
        item if manifest is None else replace(item, manifest=manifest)
        for item, manifest in zip(payload, injected, strict=True)
    ]
    return [*payload, *_exports(deployment, payload)]


def of_subset(payload: list[PayloadObject]) -> list[Mapping[str, Json] | None]:
    """Return the objects that a subset may change, in order; None for a command's Job and for a shared object."""
    labels = ("metadata", "labels", commands.STEP_LABEL)
    return [None if item.kept or at(item.manifest, labels) else item.manifest for item in payload]


def _exports(deployment: Deployment, payload: list[PayloadObject]) -> Iterator[PayloadObject]:
    """Export the Services among objects, each in the step of its own, where the workspace shares a network."""
    made = [
        (item, manifest)
        for item in payload
        if not item.kept
        for manifest in with_wrapped(item.manifest, deployment.kinds)
    ]
    objects = [(manifest, str(at(manifest, _NAMESPACE) or namespace_of(item, deployment))) for item, manifest in made]
    for position, manifest in service_export.exports(deployment.workspace, objects, deployment.kinds):
        yield replace(made[position][0], manifest=manifest)


def _command(deployment: Deployment, number: int, step: str, cmd: str) -> Iterator[PayloadObject]:
    outcome = commands.read_command(cmd)
    jobs, account = deployment.workspace.command_jobs, deployment.spec.service_account
    if refusal := commands.refuse_command(outcome, jobs, account):
        finding = Finding(loc=("spec", "cmdExec"), message=f"{step}: {refusal.message}", hint=refusal.hint)
        raise InvalidInput(problems=(finding.problem(path="", line=0),))
    if isinstance(outcome, commands.ObjectCommand):
        yield PayloadObject(step=number, name=step, manifest=outcome.manifest, kept=outcome.kept)
    elif jobs is not None and (argv := commands.job_argv(outcome, jobs, account)):
        placement = deployment.placement.name
        manifest = commands.command_job(placement, number + 1, step, argv, image=jobs.image, account=account)
        yield PayloadObject(step=number, name=step, manifest=manifest)


def _chart(deployment: Deployment, number: int, chart: HelmConfig) -> Iterator[PayloadObject]:
    manifests = [part for manifest in deployment.charts[chart.name] for part in _parts(manifest)]
    findings = rules.check_chart_objects(
        manifests,
        ("spec", "helmConfig", chart.name),
        deployment.workspace,
        deployment.kinds,
        deletion_policy=deployment.spec.deletion_policy,
        schemas=deployment.schemas,
        placement=deployment.placement.name,
    )
    if errors := [finding for finding in findings if finding.severity is Severity.ERROR]:
        raise InvalidInput(problems=tuple(finding.problem(path="", line=0) for finding in told(errors, _MOST_TOLD)))
    for ordinal, manifest in enumerate(manifests, 1):
        yield PayloadObject(
            step=number,
            name=chart.name,
            ordinal=ordinal,
            manifest=manifest,
            kept=outlives_placements(manifest, deployment.kinds, deployment.schemas),
            namespace=chart.release_namespace,
        )


def _parts(manifest: Json) -> list[Json]:
    """Split a List, as kubectl does; an object that only engines would take for one stays whole, and is refused."""
    parts = manifest.get("items")
    whole = not is_list(manifest) or not str(manifest.get("kind")).endswith("List")
    if whole or not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return [manifest]
    return parts


def namespaces(rendered: tuple[HelmConfig, ...], payload: list[PayloadObject], but: str = "") -> list[PayloadObject]:
    """Make the namespaces that rendered charts ask for with ``createNamespace`` and no step makes; `but` one."""
    names = {item.manifest["metadata"]["name"] for item in payload if item.is_namespace} | {but}
    missing: list[PayloadObject] = []
    for chart in rendered:
        name = chart.release_namespace
        if chart.flags.create_namespace and name not in names:
            names.add(name)
            manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            missing.append(PayloadObject(step=0, name=chart.name, manifest=manifest, kept=True))
    return missing


def write(
    deployment: Deployment,
    objects: list[PayloadObject],
    annotations: Callable[[PayloadObject], Mapping[str, str]],
    directory: Callable[[PayloadObject], str] = lambda _: DIRECTORY,
) -> dict[str, bytes]:
    """Write the objects as files by path below the cluster's directory.

    Each gets the label and the engine's `annotations`, and lies in the `directory` of the placement that it belongs to.
    Raises InvalidInput when the same object is made twice: engines would apply one over the other for ever.
    """
    placement = deployment.placement
    width = max(2, len(str(len(deployment.spec.steps))))
    origins: dict[tuple[str, str, str], str] = {
        ("/ConfigMap", placement.target_namespace, _marker_name(placement)): "Overspill itself"
    }
    files: dict[str, bytes] = {}
    scaled = autoscaled_replicas.targets((item.manifest, namespace_of(item, deployment)) for item in objects)
    for item in objects:
        manifest = _finish(item, deployment, annotations(item))
        path = autoscaled_replicas.owned_replica_paths(
            manifest, namespace_of(item, deployment), scaled, deployment.kinds
        )
        manifest = autoscaled_replicas.handed_over(manifest, path, deployment.kinds)
        identity, *_ = identities = [*map(_identity, with_wrapped(manifest, deployment.kinds))]
        for made in identities:
            if made in origins:
                where = "/".join(part for part in made[1:] if part)
                by = f"{origins[made]} and step {item.name!r}"
                raise InvalidInput(f"{by} both make {made[0].rpartition('/')[2]} {where}: an object can be made once")
            origins[made] = f"step {item.name!r}"
        files[f"{placement.name}/{directory(item)}/{_file_name(item, identity, width)}"] = emit(manifest).encode()
    return files


def _identity(manifest: Mapping[str, Json]) -> tuple[str, str, str]:
    """Return what no two objects of a cluster have in common: ``group/Kind``, namespace and name."""
    return group_kind(manifest), str(at(manifest, _NAMESPACE) or ""), str(at(manifest, ("metadata", "name")))


def namespace_of(item: PayloadObject, deployment: Deployment) -> str:
    """Return the namespace that an object which lives in one goes to."""
    own = item.manifest["metadata"].get("namespace")
    return str(own) if own else item.namespace or deployment.placement.target_namespace


def _finish(item: PayloadObject, deployment: Deployment, annotations: Mapping[str, str]) -> dict[str, Json]:
    """Copy an object and add namespace, label and annotations. No field of the user is replaced."""
    placement = deployment.placement
    kind = group_kind(item.manifest)
    manifest = dict(item.manifest)
    metadata = dict(manifest["metadata"])
    if not metadata.get("namespace") and _in_namespace(kind, deployment):
        name = metadata.pop("name")
        metadata.pop("namespace", None)
        metadata = {"name": name, "namespace": namespace_of(item, deployment), **metadata}
    manifest["metadata"] = metadata
    if not item.kept:
        metadata["labels"] = _add_label(metadata.get("labels"), placement)
        if commands.STEP_LABEL not in metadata["labels"]:  # a command is no replica
            _label_pods(manifest, deployment)
    if annotations:
        own = metadata.get("annotations")
        metadata["annotations"] = {**(own if isinstance(own, dict) else {}), **annotations}
    return manifest


def _in_namespace(kind: str, deployment: Deployment) -> bool:
    """Return whether a kind is one that lives in namespaces.

    A custom kind that the workspace allows by name may be cluster-scoped where no file says what it is.
    """
    group = kind.partition("/")[0]
    custom = "." in group and not group.endswith(".k8s.io")
    scope = is_cluster_scoped(kind, deployment.kinds, deployment.schemas)
    return not scope and not (custom and kind in deployment.workspace.allowed_kinds)


def _add_label(labels: Json, placement: Placement) -> dict[str, Json]:
    own = labels if isinstance(labels, dict) else {}
    return own if PLACEMENT_LABEL in own else {**own, PLACEMENT_LABEL: str(placement.name)}


def _label_pods(manifest: dict[str, Json], deployment: Deployment) -> None:
    """Label the pods of each template, so that they can be counted. A selector needs no change: it asks for less."""
    for site in pods.pod_template_sites(manifest, deployment.kinds):
        path = pods.pod_labels_path(manifest, site)
        if path:
            manifest |= _with_labels(manifest, path, deployment.placement)


def _with_labels(value: Json, path: Path, placement: Placement) -> Json:
    """Copy the values on the path to the labels, and add the placement's label; a value that is no mapping stays."""
    part, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_with_labels(item, rest, placement) if str(at) == part else item for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    below = value.get(part)
    if not rest:
        return {**value, part: _add_label(below, placement)}
    if below is None or part == "metadata":  # which stands first, as people have it
        labelled = _with_labels({} if below is None else below, rest, placement)
        return {part: labelled, **{k: v for k, v in value.items() if k != part}}
    return {**value, part: _with_labels(below, rest, placement)}


def _file_name(item: PayloadObject, identity: tuple[str, str, str], width: int) -> str:
    kind, _, name = identity
    if item.is_namespace:
        return f"00-namespace-{_slug(name, kind)}.yaml"
    parts = [f"{item.step + 1:0{width}d}", _slug(item.name)]
    if item.ordinal:
        parts.append(f"{item.ordinal:03d}")
    stem = "-".join(parts) + _ending(kind, name)
    if len(stem) > _MAX_STEM:
        stem = f"{stem[:_MAX_STEM]}-{hashlib.sha256(stem.encode()).hexdigest()[:8]}"
    return f"{stem}.yaml"


def _ending(kind: str, name: str) -> str:
    return f"-{_slug(kind.rpartition('/')[2].lower())}-{_slug(name, kind)}"


def file_suffix(manifest: Json, name: str) -> str:
    """Return how the name of the file of an object ends, whatever step makes it; a very long name ends otherwise."""
    return f"{_ending(group_kind(manifest), name)}.yaml"


def _slug(name: str, *more: str) -> str:
    """Write a name with what file names may hold; a name that loses something gets a hash of the whole instead."""
    slug = _SLUG.sub("-", name.lower()).strip("-.")[:_MAX_SLUG]
    if slug == name:
        return slug
    return f"{slug}-{hashlib.sha256('/'.join((name, *more)).encode()).hexdigest()[:8]}".lstrip("-")


def _marker_name(placement: Placement) -> str:
    return f"overspill-{placement.name}"


def kustomization(resources: Iterable[str]) -> bytes:
    """Write a ``kustomization.yaml`` that lists the files beside or below it in their order."""
    return emit({
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(resources),
        "sortOptions": {"order": "fifo"},
    }).encode()  # fmt: skip # as YAML would have it


def marker_path(placement: Placement) -> str:
    """Return where the marker lies, below the cluster's directory."""
    return f"{placement.name}/{DIRECTORY}/00-overspill-marker.yaml"


def marker(placement: Placement) -> bytes:
    """Write the ConfigMap that shows in a cluster which version of a placement it has.

    It also keeps an Application from being empty: Argo CD refuses a sync that would prune everything.
    """
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": _marker_name(placement),
            "namespace": placement.target_namespace,
            "labels": {PLACEMENT_LABEL: str(placement.name)},
        },
        "data": {"placement": placement.id, "digest": placement.digest},
    }
    return emit(manifest).encode()
