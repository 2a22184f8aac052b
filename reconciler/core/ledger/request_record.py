"""ledger/<workspace>/requests/<shard>/<name>.yaml: a request by name, its author and times, and its end.

The file is EGS's own WorkloadPlacement, or a GPUProvisioningRequest for a reservation, with annotations for fields that
these lack. A recorded request never starts again. People edit these files on the output branch, so the models are
strict.
"""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import BaseModel, Field, PlainValidator

from reconciler.core.ledger.record_fields import (
    ANNOTATIONS,
    RECORD,
    Commit,
    Count,
    Moment,
    Name,
    quote_value,
    read_model,
    record_error,
)
from reconciler.core.schema.egs import resource
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.strict_model import refusal
from reconciler.core.schema.yaml import MAX_BYTES, emit, reads_back
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, CommitId, WorkloadId, WorkspaceName, is_name
from reconciler.model.placement import Phase
from reconciler.model.request import Asker, Ended, Provisioning, Request, RequestRecord
from reconciler.model.workload import Json
from reconciler.text.findings import Finding
from reconciler.text.timestamps import format_time

_FINAL = (Provisioning.COMPLETED, Provisioning.FAILED)


def _names(value: Json) -> tuple[str, ...]:
    """Read names from one annotation, separated by commas."""
    names = tuple(value.split(",")) if type(value) is str and value else ()
    if type(value) is not str or not all(is_name(name) for name in names):
        raise refusal(f"{quote_value(value)} are not names with commas between them", 'try "worker-1,worker-2"')
    return names


def _final(value: Json) -> Provisioning:
    """Read the final state of a request; the ledger holds no status of an open one."""
    if value not in _FINAL:
        raise refusal(f"{quote_value(value)} is not how a request ends", "try Completed or Failed, or no status")
    return Provisioning(value)


class RequestAnnotationsRecord(BaseModel):
    """Fields of a request that EGS's resources lack."""

    model_config = ANNOTATIONS
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
    annotations: RequestAnnotationsRecord


class RequestStatusRecord(BaseModel):
    """The end of a request."""

    model_config = RECORD
    provisioning_status: Annotated[Provisioning, PlainValidator(_final)]
    message: str
    last_updated: Moment
    phase: Literal["Succeeded"] | None = None


class RequestFile(BaseModel):
    """The whole document; the requested content is read by EGS's own rules (`schema.egs.resource`)."""

    model_config = RECORD
    api_version: Literal["gpr.kubeslice.io/v1alpha1"]
    kind: Literal["WorkloadPlacement", "GPUProvisioningRequest"]
    metadata: RequestMetadataRecord
    spec: dict[str, Json]
    status: RequestStatusRecord | None = None


def request_path(workload: WorkloadId) -> str:
    """Return the path of a request on the output branch: in one of 256 shards, by the SHA-256 of its name.

    git writes a directory anew for each commit that changes a file of it, so no directory may grow with the requests.
    git notes are sharded in the same way.
    """
    shard = sha256(workload.name.encode()).hexdigest()[:2]
    return f"ledger/{workload.workspace}/requests/{shard}/{workload.name}.yaml"


def digest_of(request: Request) -> str:
    """Digest the requested content, wherever it is written: equal requests have equal digests.

    Fields that a policy has added are left out: a file does not change because a policy does.
    """
    document = resource.document(request)
    terms = document["spec"] if request.reserves else document["spec"]["gprDetails"]
    for name in request.assumed:
        del terms[name]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return f"sha256-{sha256(text.encode()).hexdigest()}"


def body_digest(draft: RequestDraft, workspace: WorkspaceName) -> str:
    """Digest the body of a call in a workspace, independent of its policies: another body has another digest."""
    of_gpr = [draft.terms is not None, draft.requeues]
    text = json.dumps([resource.document(draft.request(workspace)), *of_gpr], sort_keys=True, separators=(",", ":"))
    return f"sha256-{sha256(text.encode()).hexdigest()}"


def differences(before: Request, after: Request) -> tuple[str, ...]:
    """Name the fields in which two requests differ, in EGS's words; those of gprDetails one by one.

    Fields that the later request leaves to a policy are no difference.
    """
    old, new = _fields(before), _fields(after)
    named = (name for name in {**old, **new} if name.removeprefix("gprDetails.") not in after.assumed)
    return tuple(name for name in named if old.get(name) != new.get(name))


def write_request(record: RequestRecord, *, sure: bool = False) -> bytes:
    """Write the record of a request.

    Raises InvalidInput for a record that could not be read again: too large, or with values that YAML cannot hold. The
    check costs three times as much as writing, and is skipped if the caller is `sure` or the text is certainly
    readable.
    """
    path = request_path(record.workload)
    data = emit(_document(record)).encode()
    if len(data) > MAX_BYTES:
        raise InvalidInput(
            f"writing {path}: it would be {len(data) / MAX_BYTES:.1f} MB, and files over 1 MiB are not read"
            " (try moving large values out of the request)"
        )
    if not (sure or reads_back(data)) and read_request(data, path) != replace(record, request=record.request.settled):
        raise InvalidInput(f"{path} would not be read again as it was written")
    return data


def read_request(data: bytes, path: str) -> RequestRecord:
    """Read a record at its path in the output branch. Raises InvalidInput with every problem of the file."""
    file, document = read_model(data, path, RequestFile)
    request = resource.read_request(document.value)
    if isinstance(request, tuple):
        raise record_error(request, document, path)
    if path != request_path(request.workload):
        belongs = f"{request.workload} belongs in {request_path(request.workload)}"
        raise record_error([Finding(loc=("metadata", "name"), message=belongs)], document, path)
    notes, status = file.metadata.annotations, file.status
    return RequestRecord(
        request=request,
        asker=notes.asker,
        author=notes.author,
        received_at=notes.received_at,
        changed_at=notes.changed_at,
        source_commit=CommitId(notes.source_commit),
        asked=notes.asked,
        key=notes.key,
        body=notes.body,
        began_at=notes.began_at,
        cluster=None if notes.cluster is None else ClusterName(notes.cluster),
        avoids=tuple(ClusterName(name) for name in notes.avoids),
        attempts=notes.attempts,
        evicted_by=notes.evicted_by,
        observed=tuple(ClusterName(name) for name in notes.observed_clusters),
        ended=None if status is None else _end_of_request(status),
    )


def _document(record: RequestRecord) -> Json:
    """Write the resource with all known fields; empty ones are left out."""
    notes = {
        "asker": record.asker.value,
        "author": record.author,
        "received-at": format_time(record.received_at),
        "changed-at": format_time(record.changed_at),
        "source-commit": record.source_commit,
        "asked": record.asked,
        "key": record.key,
        "body": record.body,
        "began-at": "" if record.began_at is None else format_time(record.began_at),
        "cluster": record.cluster or "",
        "avoids": ",".join(record.avoids),
        "attempts": str(record.attempts) if record.attempts else "",
        "evicted-by": record.evicted_by,
        "observed-clusters": ",".join(record.observed),
    }
    document = resource.document(record.request)
    metadata: dict[str, Json] = document["metadata"]
    annotations = {f"overspill.dev/{name}": value for name, value in notes.items() if value}
    metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    if record.ended is not None:
        document["status"] = {
            "provisioningStatus": record.ended.status.value,
            "message": record.ended.message,
            "lastUpdated": format_time(record.ended.at),
        }
        if record.ended.succeeded:
            document["status"]["phase"] = Phase.SUCCEEDED.value
    return document


def _end_of_request(status: RequestStatusRecord) -> Ended:
    return Ended(
        status=status.provisioning_status,
        at=status.last_updated,
        message=status.message,
        succeeded=status.phase is not None,
    )


def _fields(request: Request) -> dict[str, Json]:
    document = resource.document(request)
    spec: dict[str, Json] = dict(document["spec"])
    details = spec.pop("gprDetails", {})
    named = {f"gprDetails.{name}": value for name, value in details.items()}
    return {"namespace": request.namespace, "template": request.template, "kind": document["kind"], **spec, **named}
