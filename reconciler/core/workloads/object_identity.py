"""The identity of an object of an API server: what has to hold of it before anything else of it is read."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.bounds import CLUSTER_LABELS, CLUSTER_NAME
from reconciler.model.workload import Json

_TEXTS = ("namespace", "resourceVersion", "uid", "creationTimestamp")


def why_unidentified(raw: Json) -> str:
    """Say why an object cannot be told from others, as a predicate; empty where it can."""
    if not isinstance(raw, Mapping):
        return "is no object"
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        return "has no metadata"
    name = metadata.get("name")
    if not isinstance(name, str) or not name:
        return "has no name"
    for field in _TEXTS:
        text = metadata.get(field)
        if text is not None and not isinstance(text, str):
            return f"has a metadata.{field} that is no text"
    if len(name) > CLUSTER_NAME.most or len(metadata.get("namespace") or "") > CLUSTER_NAME.most:
        return f"has a name of over {CLUSTER_NAME}"
    labels = metadata.get("labels")
    if labels is None:
        return ""
    if not isinstance(labels, Mapping) or not all(map(_is_text, labels.values())):
        return "has labels that are no texts"
    if sum(map(len, labels)) + sum(map(len, labels.values())) > CLUSTER_LABELS.most:
        return f"has labels of over {CLUSTER_LABELS}"
    return ""


def _is_text(value: Json) -> bool:
    return isinstance(value, str)
