"""placement.yaml, the complete record of a placement, written and read back.

The file is EGS's WorkloadPlacement with annotations of Overspill, as strict Pydantic models. Engines' templates read
its field names (Argo CD's git file generator), which are therefore a contract with installed templates. The bytes
depend on the arguments alone: the same decision gives the same file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from sys import intern
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, PlainValidator

from reconciler.core.engines import RESERVED_PLACEMENT_NAMES
from reconciler.core.engines.deployment import autoscaled, scaled_objects, shares_objects
from reconciler.core.ledger.record_fields import (
    ANNOTATIONS,
    RECORD,
    Commit,
    Count,
    Duration,
    Moment,
    Name,
    duration,
    name,
    quote_value,
    read_model,
    record_error,
    validate_document,
)
from reconciler.core.ledger.replica_record import read_shape, write_shape
from reconciler.core.ledger.restraints import ledger_path, read_restraints, write_restraints
from reconciler.core.schema.egs.resource import parts, write_duration
from reconciler.core.schema.strict_model import refusal
from reconciler.core.schema.yaml import MAX_BYTES, Document, emit, reads_back
from reconciler.core.workloads.builtin_kinds import NO_KINDS, Kinds
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import (
    MAX_PLACEMENT_NAME,
    ClusterName,
    CommitId,
    PlacementName,
    TemplateName,
    WorkloadId,
    WorkspaceName,
)
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas
from reconciler.model.manifest_source import MadeFrom
from reconciler.model.placement import Origin, Placement
from reconciler.model.policy import EngineName
from reconciler.model.workload import (
    Command,
    DeletionPolicy,
    DeploySpec,
    HelmConfig,
    HelmFlags,
    Json,
    ManifestResource,
    Step,
    StepType,
)
from reconciler.text.findings import Finding, shortened
from reconciler.text.timestamps import format_time


def _placement_name(text: str) -> str:
    if text in RESERVED_PLACEMENT_NAMES:
        raise refusal(f"{text!r} is a name that engines keep for themselves")
    if len(text) > MAX_PLACEMENT_NAME:
        raise refusal(f"{shortened(text)!r} is longer than {MAX_PLACEMENT_NAME} characters")
    return name(text)


def _shape(value: Json) -> ReplicaShape:
    if type(value) is not str:
        raise refusal(f"{quote_value(value)} is not JSON in quotes")
    return read_shape(value)


def _timeout(value: Json) -> timedelta | None:
    """Read a Helm timeout, which is always present and empty without a limit."""
    return None if value == "" else duration(value)


def _flag(value: Json) -> bool:
    """Read an annotation that is ``true`` or absent."""
    if value != "true":
        raise refusal(f"{quote_value(value)} is not true")
    return True


class PlacementAnnotationsRecord(BaseModel):
    """Fields of a placement that EGS's resource lacks."""

    model_config = ANNOTATIONS
    workspace: Name
    workload: Name
    template_commit: Commit
    template_version: str = ""
    namespace: str
    replicas: Count
    origin: Annotated[Origin, Field(strict=False)]
    policy: str
    engine: Annotated[EngineName, Field(strict=False)]
    created_at: Moment
    changed_at: Moment
    expires_at: Moment
    replica: Annotated[ReplicaShape, PlainValidator(_shape)]
    digest: str
    subset: str = ""
    first_ordinal: Count | None = None
    made_from: str = ""
    made_from_digest: str = ""
    made_from_images: str = ""
    fixed_end: Annotated[bool, PlainValidator(_flag)] = False
    runs_once: Annotated[bool, PlainValidator(_flag)] = False
    kept: str = ""


class PlacementMetadataRecord(BaseModel):
    """The resource's own name and namespace."""

    model_config = RECORD
    name: Annotated[str, AfterValidator(_placement_name)]
    namespace: str
    annotations: PlacementAnnotationsRecord


class HelmFlagsRecord(BaseModel):
    """EGS's helmFlags, all of them always written."""

    model_config = RECORD
    atomic: bool
    cleanup_on_fail: bool = Field(alias="cleanupOnFail")
    create_namespace: bool = Field(alias="createNamespace")
    skip_crds: bool = Field(alias="skipCRDs")
    timeout: Annotated[timedelta | None, PlainValidator(_timeout)]
    wait: bool


class SecretRefRecord(BaseModel):
    """The name of a Secret with a chart repository's credentials."""

    model_config = RECORD
    name: str


class ChartRecord(BaseModel):
    """A chart."""

    model_config = RECORD
    name: str
    chart: str
    repo_name: str
    repo_url: str = Field(alias="repoURL")
    version: str
    release_name: str
    release_namespace: str
    secret_ref: SecretRefRecord | None = None
    helm_flags: HelmFlagsRecord
    values: dict[str, Json]


class ManifestRecord(BaseModel):
    """An object."""

    model_config = RECORD
    name: str
    manifest: dict[str, Json]


class CommandRecord(BaseModel):
    """A command."""

    model_config = RECORD
    name: str
    cmd: str


class StepRecord(BaseModel):
    """A step."""

    model_config = RECORD
    name: str
    type: Annotated[StepType, Field(strict=False)]


class PlacementSpecRecord(BaseModel):
    """The content and the cluster of a placement. Empty lists are written too: engines' templates read them."""

    model_config = RECORD
    cluster_name: Name
    burst_duration: Duration | None = None
    deletion_policy: Annotated[DeletionPolicy, Field(strict=False)]
    service_account: str = ""
    helm_config: list[ChartRecord]
    manifest_resources: list[ManifestRecord]
    cmd_exec: list[CommandRecord]
    steps: list[StepRecord]


class PlacementRecordFile(BaseModel):
    """The whole document."""

    model_config = RECORD
    api_version: Literal["worker.kubeslice.io/v1alpha1"]
    kind: Literal["WorkloadPlacement"]
    metadata: PlacementMetadataRecord
    spec: PlacementSpecRecord


__all__ = [
    "digest",
    "ledger_path",
    "read_placement",
    "read_restraints",
    "read_spec",
    "write_placement",
    "write_restraints",
]

SKIP = "# +argocd:skip-file-rendering\n"
"""Keeps Argo CD from applying the record if a source covers the placement's whole directory."""


def write_placement(
    placement: Placement,
    spec: DeploySpec,
    *,
    charts: str,
    kinds: Kinds = NO_KINDS,
    schemas: ObjectSchemas = NO_SCHEMAS,
) -> bytes:
    """Write the record of a placement.

    `spec` is the rendered spec; its deletion policy is that of the placement, which never changes. `charts` names the
    renderer of the charts, the engine or Overspill (``engine`` or ``rendered``). By `kinds` and `schemas` the
    record says whether objects outlive the placement. Raises InvalidInput for a record that could not be read again,
    such as too large a one: its placement would never end.
    """
    path = f"{placement.path}/placement.yaml"
    document = _document(placement, spec, charts, kinds, schemas)
    data = (SKIP + emit(document)).encode()
    if len(data) > MAX_BYTES:
        size = f"{len(data) / MAX_BYTES:.1f} MB"
        raise InvalidInput(
            f"writing {path}: it would be {size}, and files over 1 MiB are not read"
            " (try moving large values out of the template)"
        )
    if reads_back(data):
        read = Document(value=document, start=1, path=path, data=data)
        again = _value(_check_path(validate_document(read, path, PlacementRecordFile), read, path))
    else:
        again = read_placement(data, path)
    if again != placement:
        raise InvalidInput(f"{path} would not be read again as it was written")
    return data


def read_placement(data: bytes, path: str) -> Placement:
    """Read a record at its path in the output branch. Raises InvalidInput with every problem of the file.

    Equal parts of records are shared, since tens of thousands of placements are held at once.
    """
    return _value(_check_path(*read_model(data, path, PlacementRecordFile), path))


def _value(file: PlacementRecordFile) -> Placement:
    notes = file.metadata.annotations
    return Placement(
        name=PlacementName(file.metadata.name),
        cluster=ClusterName(intern(file.spec.cluster_name)),
        workload=WorkloadId(
            WorkspaceName(intern(notes.workspace)),
            TemplateName(intern(notes.workload)),
            request=notes.origin is Origin.REQUEST,
        ),
        replicas=notes.replicas,
        created_at=notes.created_at,
        changed_at=notes.created_at if notes.changed_at == notes.created_at else notes.changed_at,
        expires_at=notes.expires_at,
        engine=notes.engine,
        policy=intern(notes.policy),
        deletion_policy=file.spec.deletion_policy,
        source_commit=CommitId(intern(notes.template_commit)),
        template_version=intern(notes.template_version),
        namespace=intern(file.metadata.namespace),
        target_namespace=intern(notes.namespace),
        shape=notes.replica,
        origin=notes.origin,
        digest=notes.digest,
        subset=intern(notes.subset),
        first_ordinal=notes.first_ordinal,
        fixed_end=notes.fixed_end,
        runs_once=notes.runs_once,
        kept=notes.kept,
        made_from=MadeFrom(
            text=intern(notes.made_from), digest=intern(notes.made_from_digest), images=intern(notes.made_from_images)
        )
        if notes.made_from
        else None,
    )


def read_spec(data: bytes, path: str) -> DeploySpec:
    """Read the spec of a placement. Raises InvalidInput as `read_placement` does."""
    spec = _check_path(*read_model(data, path, PlacementRecordFile), path).spec
    return DeploySpec(
        helm=tuple(_helm(chart) for chart in spec.helm_config),
        manifests=tuple(ManifestResource(name=item.name, manifest=item.manifest) for item in spec.manifest_resources),
        commands=tuple(Command(name=item.name, cmd=item.cmd) for item in spec.cmd_exec),
        steps=tuple(Step(name=step.name, type=step.type) for step in spec.steps),
        burst_duration=spec.burst_duration,
        deletion_policy=spec.deletion_policy,
        service_account=spec.service_account,
    )


def digest(files: Mapping[str, bytes], placement: Placement, spec: DeploySpec) -> str:
    """Digest a placement: its files by path within its cluster's directory, and its record without digest.

    The marker and placement.yaml hold the digest and are no part of `files`. The end is left out, and whether it runs
    once: they change nothing that an engine applies.
    """
    total = sha256()
    for path in sorted(files):
        total.update(f"{path}\0{len(files[path])}\0".encode())
        total.update(files[path])
    lasting = replace(placement, digest="", expires_at=placement.created_at, fixed_end=False, runs_once=False)
    total.update(json.dumps(_document(lasting, spec, "", NO_KINDS, NO_SCHEMAS), sort_keys=True, default=str).encode())
    return f"sha256-{total.hexdigest()}"


def _document(placement: Placement, spec: DeploySpec, charts: str, kinds: Kinds, schemas: ObjectSchemas) -> Json:
    scaled = scaled_objects(spec, placement.target_namespace)
    annotations = {
        "workspace": placement.workload.workspace,
        "workload": placement.workload.name,
        "template": placement.workload.name,
        "template-commit": placement.source_commit,
        "namespace": placement.target_namespace,
        "replicas": str(placement.replicas),
        "origin": placement.origin.value,
        "policy": placement.policy,
        "engine": placement.engine.value,
        "charts": charts,
        "autoscaled": "true" if autoscaled(spec) else "false",
        **({"scaled": json.dumps(scaled, sort_keys=True)} if scaled else {}),
        **({"shared": "true"} if shares_objects(spec, kinds, schemas) else {}),
        "created-at": format_time(placement.created_at),
        "changed-at": format_time(placement.changed_at),
        "expires-at": format_time(placement.expires_at),
        "replica": write_shape(placement.shape),
        "digest": placement.digest,
        **({"template-version": placement.template_version} if placement.template_version else {}),
        **({"subset": placement.subset} if placement.subset else {}),
        **({"fixed-end": "true"} if placement.fixed_end else {}),
        **({"runs-once": "true"} if placement.runs_once else {}),
        **({"first-ordinal": str(placement.first_ordinal)} if placement.first_ordinal is not None else {}),
        **({"kept": placement.kept} if placement.kept else {}),
        **_made_from(placement.made_from),
    }
    return {
        "apiVersion": "worker.kubeslice.io/v1alpha1",
        "kind": "WorkloadPlacement",
        "metadata": {
            "name": placement.name,
            "namespace": placement.namespace,
            "annotations": {f"overspill.dev/{name}": value for name, value in annotations.items()},
        },
        "spec": _spec(placement, spec),
    }


def _made_from(made_from: MadeFrom | None) -> dict[str, str]:
    if made_from is None:
        return {}
    notes = {"made-from": made_from.text, "made-from-digest": made_from.digest, "made-from-images": made_from.images}
    return {name: value for name, value in notes.items() if value}


def _spec(placement: Placement, spec: DeploySpec) -> Json:
    document: dict[str, Json] = {"clusterName": placement.cluster}
    if spec.burst_duration is not None:
        document["burstDuration"] = write_duration(spec.burst_duration)
    document["deletionPolicy"] = placement.deletion_policy.value
    if spec.service_account:
        document["serviceAccount"] = spec.service_account
    document |= parts(spec)
    return document


def _check_path(file: PlacementRecordFile, document: Document, path: str) -> PlacementRecordFile:
    """Check a record against the directory that it lies in."""
    findings: list[Finding] = []
    for directory, value, loc in zip(
        path.split("/")[1:3],
        (file.spec.cluster_name, file.metadata.name),
        (("spec", "clusterName"), ("metadata", "name")),
        strict=False,
    ):
        if directory != value:
            findings.append(Finding(loc=loc, message=f"is {value!r}, and the file lies under {directory!r}"))
    findings += _check_steps(file.spec)
    if findings:
        raise record_error(findings, document, path)
    return file


def _check_steps(spec: PlacementSpecRecord) -> list[Finding]:
    """Report steps without a part."""
    if not spec.steps:
        return []
    names = {
        StepType.HELM: {chart.name for chart in spec.helm_config},
        StepType.MANIFEST: {item.name for item in spec.manifest_resources},
        StepType.COMMAND: {item.name for item in spec.cmd_exec},
    }
    return [
        Finding(loc=("spec", "steps", number, "name"), message=f"names no {step.type} entry {step.name!r}")
        for number, step in enumerate(spec.steps)
        if step.name not in names[step.type]
    ]


def _helm(chart: ChartRecord) -> HelmConfig:
    flags = chart.helm_flags
    return HelmConfig(
        name=chart.name,
        chart=chart.chart,
        release_name=chart.release_name,
        release_namespace=chart.release_namespace,
        repo_name=chart.repo_name,
        repo_url=chart.repo_url,
        version=chart.version,
        values=chart.values,
        secret_ref="" if chart.secret_ref is None else chart.secret_ref.name,
        flags=HelmFlags(
            atomic=flags.atomic,
            cleanup_on_fail=flags.cleanup_on_fail,
            create_namespace=flags.create_namespace,
            skip_crds=flags.skip_crds,
            wait=flags.wait,
            timeout=flags.timeout,
        ),
    )
