"""The key of a Kubernetes object within its resource."""

from __future__ import annotations

from reconciler.model.workload import Json


def key_of(raw: Json) -> str:
    """Name an object within its resource: ``namespace/name``, or the name alone where there is no namespace."""
    metadata = raw["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def namespace_of_key(key: str) -> str:
    """Return the namespace in a key of `key_of`."""
    return key.partition("/")[0]
