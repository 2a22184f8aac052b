"""The shape of a request's record beside what EGS's resource itself says: our annotations, and how it ended.

Only `core.requestrecord` reads with these models. What a person edits on the output branch goes through them too, so
they refuse what nobody could have meant.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, PlainValidator

from reconciler.core.recordfields import NOTES, RECORD, Commit, Count, Moment, Name, shown
from reconciler.core.schema.strict import refusal
from reconciler.model.ids import is_name
from reconciler.model.request import Asker, Provisioning
from reconciler.model.workload import Json

_FINAL = (Provisioning.COMPLETED, Provisioning.FAILED)


def _names(value: Json) -> tuple[str, ...]:
    """Read names that stand in one annotation, with commas between them."""
    names = tuple(value.split(",")) if type(value) is str and value else ()
    if type(value) is not str or not all(is_name(name) for name in names):
        raise refusal(f"{shown(value)} are not names with commas between them", 'try "worker-1,worker-2"')
    return names


def _final(value: Json) -> Provisioning:
    """Read the state in which a request has ended; one that has not ended has no status in the ledger."""
    if value not in _FINAL:
        raise refusal(f"{shown(value)} is not how a request ends", "try Completed or Failed, or no status")
    return Provisioning(value)


class RequestNotesRecord(BaseModel):
    """What EGS's resources have no field for."""

    model_config = NOTES
    asker: Annotated[Asker, Field(strict=False)]
    author: str = ""
    received_at: Moment
    changed_at: Moment
    source_commit: Commit
    asked: str = ""
    key: str = ""
    body: str = ""
    began_at: Moment | None = None
    cluster: Name | None = None
    avoids: Annotated[tuple[str, ...], PlainValidator(_names)] = ()
    attempts: Count = 0
    evicted_by: str = ""
    observed_clusters: Annotated[tuple[str, ...], PlainValidator(_names)] = ()


class RequestMetadataRecord(BaseModel):
    """The resource's own name and namespace."""

    model_config = RECORD
    name: Name
    namespace: str = ""
    annotations: RequestNotesRecord


class RequestStatusRecord(BaseModel):
    """How it ended."""

    model_config = RECORD
    provisioning_status: Annotated[Provisioning, PlainValidator(_final)]
    message: str
    last_updated: Moment


class RequestFile(BaseModel):
    """The whole document; what is asked for is read by EGS's own rules (`core.egsdocument`)."""

    model_config = RECORD
    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["WorkloadPlacement", "GPUProvisioningRequest"]
    metadata: RequestMetadataRecord
    spec: dict[str, Json]
    status: RequestStatusRecord | None = None
