"""OpenAPI of the routes that EGS has too: bodies, examples, links (docs/reference/egs.md, "REST: calls")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from reconciler.api.refusal import SCHEMA, SCHEMA_NAME
from reconciler.core.schema.egs.gpr_bodies import ReleaseBody, WaitBody
from reconciler.core.schema.egs.placement import CreateBody, UpdateBody
from reconciler.core.schema.observation import ObservationFile
from reconciler.core.schema.steering import ExtendBody, RevertBody, RulingBody

_REF = "#/components/schemas/{model}"
_COMMIT = "8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c"
_NAME = "bookinfo-workload-template-worker-4-0"

_REQUEST: Mapping[str, Any] = {
    "workspaceName": "abc",
    "name": _NAME,
    "clusters": ["worker-1"],
    "burstDuration": "15m",
    "deletionPolicy": "Delete",
    "helmConfigs": [
        {
            "chart": "vaidio/cuda",
            "releaseName": "cuda",
            "releaseNamespace": "bookinfo",
            "repoName": "vaidio",
            "repoURL": "https://charts.example.com/vaidio/",
            "version": "1.4.2",
            "secretRef": "vaidio-secret",
            "values": {"replicaCount": 2},
        }
    ],
    "manifestResources": [
        {
            "name": "sample-configmap",
            "namespace": "bookinfo",
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "data": {"ui.properties": "color=purple\ntheme=dark\nlanguage=en"},
        }
    ],
    "cmdExec": [{"name": "create-namespace", "cmd": "kubectl get pods -n bookinfo"}],
    "steps": [
        {"name": "create-namespace", "type": "command"},
        {"name": "cuda", "type": "helm"},
        {"name": "sample-configmap", "type": "manifest"},
    ],
}
_STATUS: Mapping[str, Any] = {
    "provisioningStatus": "Successful",
    "phase": "Running",
    "message": "on worker-1 until 2026-11-20T10:15:00Z",
    "conditions": [
        {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": "2026-11-20T10:00:32Z",
            "reason": "Healthy",
            "message": "worker-1: 1 replica, running",
        }
    ],
    "lastUpdated": "2026-11-20T10:00:32Z",
}
_PLACEMENT = {
    **_REQUEST,
    "origin": "request",
    "status": _STATUS,
    "createdAt": "2026-11-20T10:00:00Z",
    "updatedAt": "2026-11-20T10:00:00Z",
}


def _envelope(data: Any, message: str = "Success", **more: Any) -> dict[str, Any]:
    return {"statusCode": 200, "status": "OK", "message": message, "data": data, **more}


def _example(answer: Mapping[str, Any], links: Mapping[str, Any] | None = None) -> dict[int | str, dict[str, Any]]:
    response: dict[str, Any] = {"content": {"application/json": {"example": answer}}}
    return {200: {**response, "links": dict(links)} if links else response}


def _body(model: type[BaseModel], examples: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    content = {
        "schema": {"$ref": _REF.format(model=model.__name__)},
        "examples": {name: {"value": value} for name, value in examples.items()},
    }
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _link(operation: str) -> dict[str, Any]:
    data = "$response.body#/data"
    return {
        "operationId": operation,
        "parameters": {"path.name": f"{data}/name", "query.workspaceName": f"{data}/workspaceName"},
    }


_BODIES: tuple[type[BaseModel], ...] = (
    CreateBody,
    UpdateBody,
    ReleaseBody,
    WaitBody,
    ObservationFile,
    RevertBody,
    ExtendBody,
    RulingBody,
)
_RECEIPT = {"name": _NAME, "workspaceName": "abc", "commit": _COMMIT, "warnings": []}

CREATION = _body(CreateBody, {"placement": _REQUEST})
UPDATE = _body(
    UpdateBody,
    {
        "waiting": {"clusters": ["worker-1", "worker-2"], "burstDuration": "20m", "deletionPolicy": "Delete"},
        "placed": {"burstDuration": "30m", "deletionPolicy": "Retain"},
    },
)
RELEASE = _body(ReleaseBody, {"release": {"gprId": "gpr-72b2aba0", "earlyRelease": True}})
WAIT = _body(WaitBody, {"four": {"workspaceName": "abc", "numberOfGPUs": 4, "enableAutoGpuSelection": True}})
REVERT = _body(RevertBody, {"audit": {"placements": ["vllm-7f3a90c1"], "reason": "worker-2 is needed for the audit"}})
EXTENSION = _body(ExtendBody, {"longer": {"placement": "vllm-7f3a90c1", "by": "30m"}})
APPROVAL = _body(RulingBody, {"audit": {"workload": "llm/vllm", "reason": "the launch is worth it"}})
REJECTION = _body(RulingBody, {"dear": {"workload": "llm/vllm", "reason": "too dear this week"}})
CREATED = _example(
    _envelope(_RECEIPT),
    {"read": _link("getPlacement"), "change": _link("updatePlacement"), "end": _link("deletePlacement")},
)
UPDATED = _example(_envelope(_RECEIPT, "Workload Placement updated successfully"), {"read": _link("getPlacement")})
DELETED = _example(_envelope(_RECEIPT, "Workload Placement deleted successfully"))
READ = _example(_envelope(_PLACEMENT))
LISTED = _example(_envelope([_PLACEMENT], metadata={"total": 1, "limit": 100, "continue": ""}))


def describe(app: FastAPI) -> None:
    """Add the schemas of errors and of request bodies, which routes read themselves, to the OpenAPI document."""
    tell = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schemas = tell().setdefault("components", {}).setdefault("schemas", {})
            _, made = models_json_schema([(model, "validation") for model in _BODIES], ref_template=_REF)
            made["$defs"][CreateBody.__name__]["required"] += ["workspaceName"]  # roles belong to a workspace
            schemas.update({name: _nullable(schema) for name, schema in made["$defs"].items()})
            schemas[SCHEMA_NAME] = SCHEMA
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)  # errors have the envelope of `refusal`
        return tell()

    app.openapi = openapi  # type: ignore[method-assign] # as FastAPI's documentation has it


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Make optional fields nullable: null counts as left out."""
    made = {**schema, **{word: [_nullable(part) for part in schema[word]] for word in ("anyOf",) if word in schema}}
    fields = schema.get("properties", {})
    optional = set(fields) - set(schema.get("required", ()))
    return made | (
        {"properties": {name: _or_null(field, optional=name in optional) for name, field in fields.items()}}
        if fields
        else {}
    )


def _or_null(field: Mapping[str, Any], *, optional: bool) -> dict[str, Any]:
    kept = {word: field[word] for word in ("description", "default") if word in field}
    rest = {word: value for word, value in field.items() if word not in kept}
    return {**kept, "anyOf": [rest, {"type": "null"}]} if optional and rest else dict(field)
