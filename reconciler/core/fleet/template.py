"""A WorkloadTemplate on its own: all checks that need no other file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.core.capacity.chart_gangs import GROUP_SIZE
from reconciler.core.capacity.gangs import has_gang_manifest
from reconciler.core.expressions import render
from reconciler.core.fleet.replica_paths import REPLICAS, FixedReplicas, fixed_replicas, with_share_expression
from reconciler.core.observe.counted_object import WORKLOAD
from reconciler.core.schema.egs import deploy_spec
from reconciler.core.schema.egs.deploy_spec import Spelling
from reconciler.core.schema.egs.template import COMPANIONS, FromFile, TemplateSpec, WorkloadTemplateFile
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, kind_of
from reconciler.core.workloads.single_run import RUNS_ONCE
from reconciler.errors import Severity
from reconciler.model.ids import ClusterName, TemplateName, WorkspaceName
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.manifest_source import (
    ArgoCDSource,
    Companion,
    ManifestPatch,
    ManifestSource,
    PathSource,
    RepositorySource,
    WorkloadSource,
)
from reconciler.model.workload import DeploySpec, Json, StepType, WorkloadRef
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.spelling import nearest

_ANNOTATIONS = (WORKLOAD, REPLICAS, GROUP_SIZE, RUNS_ONCE)
_ANNOTATE = f'annotate it: {WORKLOAD}: "Deployment/namespace/name"'
_UNCOUNTED: Loc = ("metadata", "name")
_SWITCH = {"true": True, "false": False}
_COUNTED = frozenset(
    kind.kind for kind in BUILT_IN.values() if kind.replicas == (path("spec.replicas"),) and kind.together is None
)
"""Kinds with one pod for each replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateDraft:
    """A template before its workspace is known."""

    name: TemplateName
    workspace: WorkspaceName | None
    namespace: str
    spec: DeploySpec
    ref: WorkloadRef | None
    namespaces: tuple[str, ...]
    # The namespaces that the template names outright.
    used: tuple[str, ...]
    labels: Mapping[str, str]
    uses_replicas: bool
    # The fixed replicas by the annotation; None where they are not fixed.
    fixed: FixedReplicas | None = None
    # Whether an annotation gives `ref`.
    annotated: bool = False
    # The pods of one replica, as an annotation states them.
    group_size: int | None = None
    # Whether it must run once, as an annotation says; None leaves that to its kinds.
    runs_once: bool | None = None
    gpr_templates: tuple[str, ...] = ()
    # EGS's burst fields: whether it bursts by itself (None: unstated), to any cluster, or to which.
    auto: bool | None = None
    bursts_anywhere: bool | None = None
    clusters: tuple[ClusterName, ...] = ()
    # The names of the fields of the spec in this file.
    spelling: Spelling = field(default_factory=Spelling)
    # Where its other objects come from, with its file; None for a template that holds all of its objects.
    source: ManifestSource | None = None
    file: WorkloadTemplateFile | None = None
    patches: tuple[ManifestPatch, ...] = ()


def template_draft(file: WorkloadTemplateFile) -> tuple[TemplateDraft, tuple[Finding, ...]]:
    """Make a draft of a valid file, and check its parts against each other.

    A file with `spec.from` makes a draft without the objects of its source (`core.fleet.sources.expansion` adds them).
    """
    if file.spec.from_ is not None:
        return _sourced_draft(file, file.spec.from_)
    findings: list[Finding] = []
    annotations = file.metadata.annotations
    spec = with_share_expression(deploy_spec.deploy_spec(file.spec, findings), annotations, findings)
    findings += deploy_spec.check_spec(spec)
    ref = _workload_ref(file, spec, findings)
    broken = any(finding.severity is Severity.ERROR for finding in findings)
    uses_replicas = broken or render.reads_variable(spec, "replicas")
    group_size = _group_size(file, spec, findings)
    value = TemplateDraft(
        name=TemplateName(file.metadata.name),
        workspace=None if file.spec.workspace_name is None else WorkspaceName(file.spec.workspace_name),
        namespace=file.metadata.namespace,
        spec=spec,
        ref=ref,
        namespaces=tuple(dict.fromkeys(file.spec.namespaces)),
        used=deploy_spec.used_namespaces(file.spec.namespaces, spec),
        labels=file.metadata.labels,
        uses_replicas=uses_replicas,
        fixed=fixed_replicas(spec, annotations),
        annotated=WORKLOAD in file.metadata.annotations,
        group_size=group_size,
        runs_once=_runs_once(annotations, findings),
        gpr_templates=tuple(dict.fromkeys(file.spec.gpr_templates)),
        auto=file.spec.auto_placement,
        bursts_anywhere=file.spec.enable_burst,
        clusters=tuple(ClusterName(name) for name in dict.fromkeys(file.spec.cluster_names)),
        spelling=Spelling(names={"helmConfig": deploy_spec.charts_field(file.spec)}),
    )
    return value, tuple(value.spelling.of(finding) for finding in findings)


def _sourced_draft(file: WorkloadTemplateFile, source: FromFile) -> tuple[TemplateDraft, tuple[Finding, ...]]:
    """Make a draft of the objects that a file holds itself; what depends on all of them is left to the expansion."""
    alone = {name: note for name, note in file.metadata.annotations.items() if name != REPLICAS}
    plain = file.model_copy(
        update={
            "metadata": file.metadata.model_copy(update={"annotations": alone}),
            "spec": file.spec.model_copy(update={"from_": None, "patches": []}),
        }
    )
    draft, findings = template_draft(plain)
    ref = draft.ref if draft.annotated else None
    place = _manifest_source(source)
    if ref is None and isinstance(place, WorkloadSource):
        ref = WorkloadRef(namespace=place.namespace, name=place.name, kind=place.kind, group=place.group)
    if ref is None and isinstance(place, RepositorySource | ArgoCDSource):
        part = "repository" if isinstance(place, RepositorySource) else "application"
        message, hint = "nothing says which object on the primary it counts", _ANNOTATE
        findings = (*findings, Finding(loc=("spec", "from", part), message=message, hint=hint))
    kept = tuple(finding for finding in findings if finding.loc not in (_UNCOUNTED, ("spec",)))
    return replace(
        draft,
        ref=ref,
        uses_replicas=True,
        source=place,
        file=file,
        patches=_patches(file.spec),
    ), kept


def _manifest_source(file: FromFile) -> ManifestSource:
    live, other = file.workload, file.repository
    if other is not None:
        return RepositorySource(url=other.url, revision=other.revision, path=other.path, commit=file.pin)
    if file.application is not None:
        return ArgoCDSource(name=file.application.name, commit=file.pin)
    if live is None:
        return PathSource(path=file.path or "", commit=file.pin)
    group = live.api_version.rpartition("/")[0]
    named = (text.partition("/") for text in file.companions)
    companions = {Companion(kind=COMPANIONS[kind], namespace=live.namespace, name=name) for kind, _, name in named}
    return WorkloadSource(
        kind=live.kind,
        group=group,
        namespace=live.namespace,
        name=live.name,
        companions=tuple(sorted(companions)),
        digest=file.pin,
    )


def _patches(spec: TemplateSpec) -> tuple[ManifestPatch, ...]:
    return tuple(
        ManifestPatch(
            clusters=tuple(ClusterName(name) for name in patch.clusters),
            labels=tuple(sorted(patch.cluster_labels.items())),
            patch=patch.patch,
        )
        for patch in spec.patches
    )


def _group_size(file: WorkloadTemplateFile, spec: DeploySpec, findings: list[Finding]) -> int | None:
    """Read the pods of one replica from the annotation; manifests that state a group size take precedence."""
    written = file.metadata.annotations.get(GROUP_SIZE)
    if written is None:
        return None
    loc: Loc = ("metadata", "annotations", GROUP_SIZE)
    if re.fullmatch("[1-9][0-9]{0,4}", written) is None:
        findings.append(Finding(loc=loc, message=f"{shortened(written)!r} is no number of pods", hint="try '4'"))
        return None
    if has_gang_manifest(spec):
        message, hint = "its manifests say how many pods a group has", "leave the annotation out"
        findings.append(Finding(loc=loc, message=message, hint=hint, severity=Severity.WARNING))
        return None
    return int(written)


def _runs_once(annotations: Mapping[str, str], findings: list[Finding]) -> bool | None:
    """Read from the annotation whether it must run once; None without one."""
    written = annotations.get(RUNS_ONCE)
    if written is not None and written not in _SWITCH:
        message = f"{shortened(written)!r} is neither 'true' nor 'false'"
        findings.append(Finding(loc=("metadata", "annotations", RUNS_ONCE), message=message, hint="try 'false'"))
    return None if written is None else _SWITCH.get(written)


def _workload_ref(file: WorkloadTemplateFile, spec: DeploySpec, findings: list[Finding]) -> WorkloadRef | None:
    """Return the object on the primary whose replicas are counted.

    In this order: our annotation, EGS's status, the first Helm step, the first manifest step that has replicas.
    """
    loc: Loc = ("metadata", "annotations", WORKLOAD)
    findings += _unknown_annotations(file.metadata.annotations)
    # 1. Our annotation names it.
    written = file.metadata.annotations.get(WORKLOAD)
    if written is not None:
        *kind, namespace, name = parts if len(parts := written.split("/")) in (2, 3) else ("", "")
        if not kind and namespace[:1].isupper():  # no namespace has capital letters, and every kind has
            message, hint = f"{shortened(written)!r} names no namespace", "try '<Kind>/<namespace>/<name>'"
            findings.append(Finding(loc=loc, message=message, hint=hint))
            return None
        if namespace and name and all(kind):
            plain, _, group = (kind[0] if kind else "").partition(".")
            if plain or not kind:
                return WorkloadRef(namespace=namespace, name=name, kind=plain, group=group)
        findings.append(
            Finding(loc=loc, message=f"{shortened(written)!r} names no object", hint="try 'Deployment/namespace/name'")
        )
        return None
    # 2. EGS's status names it.
    selector = file.status.workload_selector
    if selector.name and selector.namespace:
        return WorkloadRef(namespace=selector.namespace, name=selector.name, release=True)
    # 3. The release of the first chart, or an object of any kind that carries its name.
    charts = {chart.name: chart for chart in spec.helm}
    for step in spec.steps:
        chart = charts.get(step.name) if step.type is StepType.HELM else None
        if chart is not None and "{{" not in chart.release_name + chart.release_namespace:
            return WorkloadRef(namespace=chart.release_namespace, name=chart.release_name, release=True)
    # 4. The first object with replicas.
    objects = {resource.name: resource for resource in spec.manifests}
    for step in spec.steps:
        resource = objects.get(step.name) if step.type is StepType.MANIFEST else None
        ref = _object_ref(resource.manifest, file.spec.namespaces) if resource is not None else None
        if ref is not None:
            return ref
    if deploy_spec.has_unknown_step(spec):
        return None
    findings.append(
        Finding(
            loc=_UNCOUNTED,
            message="nothing says which object on the primary it counts, so demand cannot place it",
            hint=annotate_hint(spec, file.spec.namespaces),
            severity=Severity.WARNING,
        )
    )
    return None


def _unknown_annotations(annotations: Mapping[str, str]) -> Iterator[Finding]:
    """Warn of annotations of ours that nothing reads."""
    for key in annotations:
        if key.startswith("overspill.dev/") and key not in _ANNOTATIONS:
            loc: Loc = ("metadata", "annotations", key)
            hint = nearest(key, _ANNOTATIONS)
            yield Finding(loc=loc, message="unknown annotation", hint=hint, severity=Severity.WARNING)


def annotate_hint(spec: DeploySpec, namespaces: Sequence[str]) -> str:
    """Write the annotation that names the first object whose replicas can be counted; an example without any."""
    for resource in spec.manifests:
        kind = kind_of(resource.manifest, NO_KINDS)
        ref = _named(resource.manifest, namespaces) if kind is not None and kind.counted and kind.templates else None
        if ref is not None:
            return f'annotate it: {WORKLOAD}: "{ref.full_kind}/{ref.namespace}/{ref.name}"'
    return _ANNOTATE


def _object_ref(manifest: Mapping[str, Json], namespaces: list[str]) -> WorkloadRef | None:
    """Return the reference to an object of a kind with replicas whose name holds no expression."""
    return _named(manifest, namespaces) if str(manifest.get("kind")) in _COUNTED else None


def _named(manifest: Mapping[str, Json], namespaces: Sequence[str]) -> WorkloadRef | None:
    """Return the reference to an object; None where an expression names it."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, Mapping):
        return None
    name = metadata.get("name")
    namespace = metadata.get("namespace", namespaces[0] if len(namespaces) == 1 else "default")
    if not isinstance(name, str) or not isinstance(namespace, str) or "{{" in name + namespace:
        return None
    return WorkloadRef(namespace=namespace, name=name, kind=manifest["kind"])
