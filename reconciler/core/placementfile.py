"""The shape of placement.yaml: EGS's WorkloadPlacement with our annotations, as strict pydantic models.

The spec's field names and the annotations are what engines' templates read (Argo CD's git files generator), so they are
a contract with what admins have installed. Only `core.record` reads with these models.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator
from pydantic.alias_generators import to_camel

from reconciler.core.findings import shortened
from reconciler.core.replicafile import read_shape
from reconciler.core.schema.strict import refusal
from reconciler.core.times import NO_SUCH_YEAR, is_plausible, parse_time
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import MAX_PLACEMENT_NAME, RESERVED_PLACEMENT_NAMES, is_name
from reconciler.model.placement import Origin
from reconciler.model.policy import EngineName
from reconciler.model.units import parse_duration
from reconciler.model.workload import DeletionPolicy, Json, StepType

_CONFIG = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)
_COMMIT_DIGITS = frozenset("0123456789abcdef")
_COUNT = re.compile(r"[0-9]{1,9}")


def _name(text: str) -> str:
    """Accept what may stand in a path (`model.ids.NAME`)."""
    if not is_name(text):
        raise refusal(f"{shortened(text)!r} is not a name", "try lower-case letters, digits and '-', 63 at most")
    return text


def _placement_name(text: str) -> str:
    if text in RESERVED_PLACEMENT_NAMES:
        raise refusal(f"{text!r} is a name that engines keep for themselves")
    if len(text) > MAX_PLACEMENT_NAME:
        raise refusal(f"{shortened(text)!r} is longer than {MAX_PLACEMENT_NAME} characters")
    return _name(text)


def _commit(text: str) -> str:
    if not text or not _COMMIT_DIGITS.issuperset(text):
        raise refusal(f"{shortened(text)!r} is not a commit id")
    return text


def _count(value: Json) -> int:
    """Read a number of replicas; annotations are text."""
    if type(value) is not str or _COUNT.fullmatch(value) is None:
        raise refusal(f"{_shown(value)} is not a number of replicas", 'try "3"')
    return int(value)


def _moment(value: Json) -> datetime:
    try:
        moment = parse_time(value)
    except (TypeError, ValueError) as error:
        raise refusal(f"{_shown(value)} is not a time", 'try "2026-11-20T10:15:00Z"') from error
    if not is_plausible(moment):
        raise refusal(f"{_shown(value)} {NO_SUCH_YEAR}", 'try "2026-11-20T10:15:00Z"')
    return moment


def _duration(value: Json) -> timedelta:
    try:
        return parse_duration(value)
    except (TypeError, ValueError) as error:
        raise refusal(f"{_shown(value)} is not a duration", 'try "10m"') from error


def _timeout(value: Json) -> timedelta | None:
    """Read a Helm timeout, which is always there and empty when there is none."""
    return None if value == "" else _duration(value)


def _shape(value: Json) -> ReplicaShape:
    if type(value) is not str:
        raise refusal(f"{_shown(value)} is not JSON in quotes")
    return read_shape(value)


def _shown(value: Json) -> str:
    """Quote what was found: a text in quotes, all else as it is."""
    return repr(shortened(value)) if type(value) is str else shortened(str(value))


Name = Annotated[str, AfterValidator(_name)]
Moment = Annotated[datetime, PlainValidator(_moment)]


class Annotations(BaseModel):
    """What EGS's resource has no field for. Annotations are open by nature: unknown ones are passed over."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        strict=True,
        alias_generator=lambda field: f"overspill.dev/{field.replace('_', '-')}",
    )
    workspace: Name
    workload: Name
    template_commit: Annotated[str, AfterValidator(_commit)]
    template_version: str = ""
    namespace: str
    replicas: Annotated[int, PlainValidator(_count)]
    origin: Annotated[Origin, Field(strict=False)]
    policy: str
    engine: Annotated[EngineName, Field(strict=False)]
    created_at: Moment
    changed_at: Moment
    expires_at: Moment
    replica: Annotated[ReplicaShape, PlainValidator(_shape)]
    digest: str


class Metadata(BaseModel):
    """The resource's own name and namespace."""

    model_config = _CONFIG
    name: Annotated[str, AfterValidator(_placement_name)]
    namespace: str
    annotations: Annotations


class Flags(BaseModel):
    """EGS's helmFlags, all of them always written."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    atomic: bool
    cleanup_on_fail: bool = Field(alias="cleanupOnFail")
    create_namespace: bool = Field(alias="createNamespace")
    skip_crds: bool = Field(alias="skipCRDs")
    timeout: Annotated[timedelta | None, PlainValidator(_timeout)]
    wait: bool


class SecretRef(BaseModel):
    """The name of a Secret with a chart repository's credentials."""

    model_config = _CONFIG
    name: str


class Helm(BaseModel):
    """One chart."""

    model_config = _CONFIG
    name: str
    chart: str
    repo_name: str
    repo_url: str = Field(alias="repoURL")
    version: str
    release_name: str
    release_namespace: str
    secret_ref: SecretRef | None = None
    helm_flags: Flags
    values: dict[str, Json]


class Manifest(BaseModel):
    """One object."""

    model_config = _CONFIG
    name: str
    manifest: dict[str, Json]


class Cmd(BaseModel):
    """One command."""

    model_config = _CONFIG
    name: str
    cmd: str


class StepFile(BaseModel):
    """One step."""

    model_config = _CONFIG
    name: str
    type: Annotated[StepType, Field(strict=False)]


class Spec(BaseModel):
    """What is deployed and where. Lists are there even when they are empty: engines' templates read them."""

    model_config = _CONFIG
    cluster_name: Name
    burst_duration: Annotated[timedelta | None, PlainValidator(_duration)] = None
    deletion_policy: Annotated[DeletionPolicy, Field(strict=False)]
    service_account: str = ""
    helm_config: list[Helm]
    manifest_resources: list[Manifest]
    cmd_exec: list[Cmd]
    steps: list[StepFile]


class PlacementFile(BaseModel):
    """The whole document."""

    model_config = _CONFIG
    api_version: Literal["worker.kubeslice.io/v1alpha1"]
    kind: Literal["WorkloadPlacement"]
    metadata: Metadata
    spec: Spec
