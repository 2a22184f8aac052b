"""A WorkloadTemplate on its own: everything that can be said of it without any other file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from reconciler.core import templates
from reconciler.core.findings import Finding, Loc, shortened
from reconciler.core.helmflags import read_flags
from reconciler.core.schema.complaints import nearest
from reconciler.core.schema.template import NOT_ACTED_ON, HelmConfigFile, TemplateSpec, WorkloadTemplateFile
from reconciler.errors import Severity
from reconciler.model.ids import TemplateName, WorkspaceName
from reconciler.model.workload import (
    Command,
    DeploySpec,
    HelmConfig,
    HelmFlags,
    Json,
    ManifestResource,
    Step,
    StepType,
    WorkloadRef,
)

WORKLOAD = "overspill.dev/workload"
"""The annotation that names the object on the primary whose replicas are counted."""

_PART_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_MOST = 100
"""Problems of a kind that are told."""
_MOST_HINTS = 10
_MOST_COMPARED = 200
"""Steps that get a guess at what was meant, and names that each is compared with: a comparison takes long."""
_LONGEST = 63
_COUNTED = frozenset({"Deployment", "StatefulSet", "ReplicaSet"})
_LISTS = {
    StepType.HELM: ("helmConfig", "helm config"),
    StepType.MANIFEST: ("manifestResources", "manifest"),
    StepType.COMMAND: ("cmdExec", "command"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A template before its workspace is known.

    `used` are the namespaces that it names outright; `annotated` tells that an annotation says what `ref` is. `charts`
    is the field that its charts stand under: findings about a spec say ``helmConfig``, whatever the file says.
    """

    name: TemplateName
    workspace: WorkspaceName | None
    namespace: str
    spec: DeploySpec
    ref: WorkloadRef | None
    namespaces: tuple[str, ...]
    used: tuple[str, ...]
    labels: Mapping[str, str]
    uses_replicas: bool
    annotated: bool = False
    charts: str = "helmConfig"

    def spelt(self, finding: Finding) -> Finding:
        """Point into the file's own fields with a finding about the spec."""
        if finding.loc[:2] != ("spec", "helmConfig") or self.charts == "helmConfig":
            return finding
        return replace(finding, loc=("spec", self.charts, *finding.loc[2:]))


def draft(file: WorkloadTemplateFile) -> tuple[Draft, tuple[Finding, ...]]:
    """Make a draft of a file that fits the schema, and find what is wrong between its parts."""
    found: list[Finding] = []
    spec = _deploy_spec(file.spec, found)
    found += islice(_parts(spec), _MOST)
    found += islice(_steps(spec), _MOST)
    found += templates.check(spec)
    found += [
        Finding(loc=("spec", name), message="is not acted on by this version", hint=hint, severity=Severity.WARNING)
        for name, (attribute, hint) in NOT_ACTED_ON.items()
        if attribute in file.spec.model_fields_set
    ]
    ref = _ref(file, spec, found)
    broken = any(finding.severity is Severity.ERROR for finding in found)
    uses_replicas = broken or templates.uses(spec, "replicas")
    if not uses_replicas:
        found.append(
            Finding(
                loc=("spec",),
                message="no expression reads replicas: every placement deploys the same, whatever its share",
                hint='write replicas: "{{ replicas }}" where the count belongs',
                severity=Severity.WARNING,
            )
        )
    value = Draft(
        name=TemplateName(file.metadata.name),
        workspace=None if file.spec.workspace_name is None else WorkspaceName(file.spec.workspace_name),
        namespace=file.metadata.namespace,
        spec=spec,
        ref=ref,
        namespaces=tuple(dict.fromkeys(file.spec.namespaces)),
        used=_used_namespaces(file.spec.namespaces, spec),
        labels=file.metadata.labels,
        uses_replicas=uses_replicas,
        annotated=WORKLOAD in file.metadata.annotations,
        charts="helmConfig" if file.spec.helm_config else "helmConfigs",
    )
    return value, tuple(value.spelt(finding) for finding in found)


def _deploy_spec(file: TemplateSpec, found: list[Finding]) -> DeploySpec:
    """Turn the file's lists into the model's, with names filled in."""
    manifests = []
    for index, resource in enumerate(file.manifest_resources):
        loc: Loc = ("spec", "manifestResources", index)
        metadata = resource.manifest.get("metadata")
        own = metadata.get("name", "") if isinstance(metadata, Mapping) else ""
        name = _named(resource.name, own, "the object's name", loc, found)
        manifests.append(ManifestResource(name=name, manifest=resource.manifest))
    return DeploySpec(
        helm=tuple(
            _chart(chart, ("spec", "helmConfig", index), found)
            for index, chart in enumerate(file.helm_config or file.helm_configs)
        ),
        manifests=tuple(manifests),
        commands=tuple(Command(name=command.name, cmd=command.cmd) for command in file.cmd_exec),
        steps=tuple(Step(name=step.name, type=step.type) for step in file.steps),
        burst_duration=file.burst_duration,
        deletion_policy=file.deletion_policy,
        service_account=file.service_account or file.service_account_name,
    )


def _chart(file: HelmConfigFile, loc: Loc, found: list[Finding]) -> HelmConfig:
    """Turn one chart into the model's."""
    flags = HelmFlags()
    if isinstance(file.helm_flags, str):
        flags, wrong = read_flags(file.helm_flags, (*loc, "helmFlags"))
        found += wrong
    elif file.helm_flags is not None:
        flags = HelmFlags(
            atomic=file.helm_flags.atomic,
            cleanup_on_fail=file.helm_flags.cleanup_on_fail,
            create_namespace=file.helm_flags.create_namespace,
            skip_crds=file.helm_flags.skip_crds,
            wait=file.helm_flags.wait,
            timeout=file.helm_flags.timeout,
        )
    return HelmConfig(
        name=_named(file.name, file.release_name, "its releaseName", loc, found),
        chart=file.chart,
        release_name=file.release_name,
        release_namespace=file.release_namespace,
        repo_name=file.repo_name,
        repo_url=file.repo_url,
        version=file.version,
        values=file.values,
        secret_ref="" if file.secret_ref is None else file.secret_ref.name,
        flags=flags,
    )


def _named(name: str, default: Json, source: str, loc: Loc, found: list[Finding]) -> str:
    """Name a part as steps know it, by default after its object or release (R5)."""
    if name:
        return name
    if isinstance(default, str) and _PART_NAME.fullmatch(default):
        message = f"has no name; steps know it as {default}, {source}"
        found.append(Finding(loc=loc, message=message, hint=f"try name: {default}", severity=Severity.WARNING))
        return default
    found.append(Finding(loc=(*loc, "name"), message="is required"))
    return ""


def _parts(spec: DeploySpec) -> Iterable[Finding]:
    """Find parts that are missing, of one name, of a bad name, or that no step applies."""
    if not (spec.helm or spec.manifests or spec.commands):
        hint = "list something under helmConfig, manifestResources or cmdExec"
        yield Finding(loc=("spec",), message="deploys nothing", hint=hint)
        return
    applied = {(step.type, step.name) for step in spec.steps}
    for kind, names in _names(spec).items():
        field, word = _LISTS[kind]
        seen: set[str] = set()
        for index, name in enumerate(names):
            loc: Loc = ("spec", field, index)
            if not name:
                continue  # reported where it was found missing
            if _PART_NAME.fullmatch(name) is None:
                message = f"{shortened(name)!r} is not a name of letters, digits, '-', '_' and '.' (63 at most)"
                yield Finding(loc=(*loc, "name"), message=message)
            elif name in seen:
                yield Finding(loc=(*loc, "name"), message=f"another {word} is called {name}")
            elif spec.steps and (kind, name) not in applied:
                yield Finding(
                    loc=loc,
                    message=f"no step applies {word} {name}",
                    hint=f"try a step {{name: {name}, type: {kind}}}",
                    severity=Severity.WARNING,
                )
            seen.add(name)


def _steps(spec: DeploySpec) -> Iterable[Finding]:
    """Find steps that are missing, double, or that point nowhere."""
    listed = _names(spec)
    if not spec.steps and any(listed.values()):
        first = next((name, kind) for kind in StepType for name in listed[kind])
        hint = f"try steps: [{{name: {first[0]}, type: {first[1]}}}]"
        yield Finding(loc=("spec", "steps"), message="is required: only what a step names is applied", hint=hint)
    names = {kind: frozenset(listed[kind]) for kind in StepType}
    hints = _MOST_HINTS
    seen: set[Step] = set()
    for index, step in enumerate(spec.steps):
        loc: Loc = ("spec", "steps", index)
        if step.name not in names[step.type]:
            others = [kind for kind in StepType if step.name in names[kind]]
            guess = ""
            if not others and hints and len(names[step.type]) <= _MOST_COMPARED:
                hints -= 1
                guess = nearest(step.name[:_LONGEST], names[step.type])
            yield Finding(
                loc=(*loc, "name"),
                message=f"step {shortened(step.name)} references {_LISTS[step.type][1]} {shortened(step.name)}"
                " that doesn't exist",
                hint=f"try type: {others[0]}" if others else f"try '{guess}'" if guess else "",
            )
        elif step in seen:
            yield Finding(
                loc=loc, message=f"{step.type} {step.name} is already an earlier step", hint="try removing one"
            )
        seen.add(step)


def _names(spec: DeploySpec) -> Mapping[StepType, tuple[str, ...]]:
    """List the names that steps of each type can refer to."""
    return {
        StepType.HELM: tuple(chart.name for chart in spec.helm),
        StepType.MANIFEST: tuple(resource.name for resource in spec.manifests),
        StepType.COMMAND: tuple(command.name for command in spec.commands),
    }


def _used_namespaces(declared: Iterable[str], spec: DeploySpec) -> tuple[str, ...]:
    """List the namespaces that a template says it uses, or else those that its parts name outright."""
    names = list(declared) or [
        *(chart.release_namespace for chart in spec.helm),
        *(
            resource.manifest.get("metadata", {}).get("namespace")
            for resource in spec.manifests
            if _has_metadata(resource)
        ),
    ]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name and "{{" not in name))


def _has_metadata(resource: ManifestResource) -> bool:
    """Tell whether an object has metadata to look into."""
    return isinstance(resource.manifest.get("metadata"), Mapping)


def _ref(file: WorkloadTemplateFile, spec: DeploySpec, found: list[Finding]) -> WorkloadRef | None:
    """Find the object on the primary whose replicas are counted.

    In this order: our annotation, EGS's status, the first Helm step, the first manifest step that has replicas.
    """
    loc: Loc = ("metadata", "annotations", WORKLOAD)
    for key in file.metadata.annotations:
        if key.startswith("overspill.dev/") and key != WORKLOAD:
            hint = f"try '{WORKLOAD}'"
            found.append(
                Finding(loc=(*loc[:2], key), message="unknown annotation", hint=hint, severity=Severity.WARNING)
            )
    # 1. Somebody says so.
    written = file.metadata.annotations.get(WORKLOAD)
    if written is not None:
        *kind, namespace, name = parts if len(parts := written.split("/")) in (2, 3) else ("", "")
        if not kind and namespace[:1].isupper():  # no namespace has capital letters, and every kind has
            message, hint = f"{shortened(written)!r} names no namespace", "try '<Kind>/<namespace>/<name>'"
            found.append(Finding(loc=loc, message=message, hint=hint))
            return None
        if namespace and name and all(kind):
            return WorkloadRef(namespace=namespace, name=name, kind=kind[0] if kind else "")
        found.append(
            Finding(loc=loc, message=f"{shortened(written)!r} names no object", hint="try 'Deployment/namespace/name'")
        )
        return None
    # 2. EGS has found it.
    selector = file.status.workload_selector
    if selector.name and selector.namespace:
        return WorkloadRef(namespace=selector.namespace, name=selector.name)
    # 3. The first chart's release, whatever object it makes of its name.
    charts = {chart.name: chart for chart in spec.helm}
    for step in spec.steps:
        chart = charts.get(step.name) if step.type is StepType.HELM else None
        if chart is not None and "{{" not in chart.release_name + chart.release_namespace:
            return WorkloadRef(namespace=chart.release_namespace, name=chart.release_name)
    # 4. The first object that has replicas.
    objects = {resource.name: resource for resource in spec.manifests}
    for step in spec.steps:
        resource = objects.get(step.name) if step.type is StepType.MANIFEST else None
        ref = _counted(resource.manifest, file.spec.namespaces) if resource is not None else None
        if ref is not None:
            return ref
    found.append(
        Finding(
            loc=("metadata", "name"),
            message="nothing says which object on the primary it lends replicas to, so demand cannot place it",
            hint=f'annotate it: {WORKLOAD}: "Deployment/namespace/name"',
            severity=Severity.WARNING,
        )
    )
    return None


def _counted(manifest: Mapping[str, Json], namespaces: list[str]) -> WorkloadRef | None:
    """Take an object for the workload if it is of a kind with replicas and has a plain name."""
    metadata = manifest.get("metadata")
    if manifest.get("kind") not in _COUNTED or not isinstance(metadata, Mapping):
        return None
    name = metadata.get("name")
    namespace = metadata.get("namespace", namespaces[0] if len(namespaces) == 1 else "default")
    if not isinstance(name, str) or not isinstance(namespace, str) or "{{" in name + namespace:
        return None
    return WorkloadRef(namespace=namespace, name=name, kind=manifest["kind"])
