"""The shape of placement.yaml: EGS's WorkloadPlacement with our annotations, as strict pydantic models.

The spec's field names and the annotations are what engines' templates read (Argo CD's git files generator), so they are
a contract with what admins have installed. Only `core.record` reads with these models.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, PlainValidator

from reconciler.core.findings import shortened
from reconciler.core.recordfields import NOTES, RECORD, Commit, Count, Duration, Moment, Name, duration, name, shown
from reconciler.core.replicafile import read_shape
from reconciler.core.schema.strict import refusal
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import MAX_PLACEMENT_NAME, RESERVED_PLACEMENT_NAMES
from reconciler.model.placement import Origin
from reconciler.model.policy import EngineName
from reconciler.model.workload import DeletionPolicy, Json, StepType


def _placement_name(text: str) -> str:
    if text in RESERVED_PLACEMENT_NAMES:
        raise refusal(f"{text!r} is a name that engines keep for themselves")
    if len(text) > MAX_PLACEMENT_NAME:
        raise refusal(f"{shortened(text)!r} is longer than {MAX_PLACEMENT_NAME} characters")
    return name(text)


def _shape(value: Json) -> ReplicaShape:
    if type(value) is not str:
        raise refusal(f"{shown(value)} is not JSON in quotes")
    return read_shape(value)


def _timeout(value: Json) -> timedelta | None:
    """Read a Helm timeout, which is always there and empty when there is none."""
    return None if value == "" else duration(value)


class PlacementAnnotationsRecord(BaseModel):
    """What EGS's resource has no field for."""

    model_config = NOTES
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
    """One chart."""

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
    """One object."""

    model_config = RECORD
    name: str
    manifest: dict[str, Json]


class CommandRecord(BaseModel):
    """One command."""

    model_config = RECORD
    name: str
    cmd: str


class StepRecord(BaseModel):
    """One step."""

    model_config = RECORD
    name: str
    type: Annotated[StepType, Field(strict=False)]


class PlacementSpecRecord(BaseModel):
    """What is deployed and where. Lists are there even when they are empty: engines' templates read them."""

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
