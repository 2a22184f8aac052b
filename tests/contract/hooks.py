"""Lets made-up bodies name what there is: a name that could be one becomes that of the workspace or of its cluster.

A body that fits its schema still fits it, and one that does not is still wrong; but now the calls get as far as git.
Loaded by schemathesis, in its own environment.
"""

from __future__ import annotations

import re
from typing import Any

import schemathesis

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_THERE = {"workspaceName": "abc", "sliceName": "abc", "clusterName": "worker-1", "releaseNamespace": "bookinfo"}
_LISTS = ("clusters", "clusterNames", "preferredClusters")
_CONFIG = {"name": "settings", "namespace": "bookinfo", "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
_DEPLOYS = {
    "clusters": ["worker-1"],
    "manifestResources": [_CONFIG],
    "steps": [{"name": "settings", "type": "manifest"}],
}


@schemathesis.hook
def map_body(_context: Any, body: Any) -> Any:
    """Put in what there is, as deep as it goes."""
    return _there(body)


@schemathesis.hook
def map_case(_context: Any, case: Any) -> Any:
    """Let half of the placements that are asked for as they should be deploy something."""
    body = case.body
    asks = case.operation.label == "POST /api/v1/workload-placement" and isinstance(body, dict)
    meant = case.meta is not None and case.meta.generation.mode is schemathesis.GenerationMode.POSITIVE
    if asks and meant and _is_name(body.get("name")) and len(body["name"]) % 2:
        kept = {
            name: body[name] for name in ("name", "workspaceName", "burstDuration", "deletionPolicy") if name in body
        }
        case.body = {**kept, **_DEPLOYS}
    return case


def _there(body: Any) -> Any:
    if isinstance(body, list):
        return [_there(one) for one in body]
    return {name: _named(name, value) for name, value in body.items()} if isinstance(body, dict) else body


def _named(name: str, value: Any) -> Any:
    if name in _THERE and _is_name(value):
        return _THERE[name]
    if name in _LISTS and isinstance(value, list):
        return [f"worker-{1 + index % 2}" if _is_name(one) else one for index, one in enumerate(value)]
    return _there(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
