"""The Helm release of an object, by what Helm and charts write into its metadata.

``helm install`` annotates all objects of a release (Helm, pkg/action/validate.go). Engines that apply what ``helm
template`` prints do not; there the labels tell that charts give their objects by Helm's conventions.
"""

from __future__ import annotations

from reconciler.model.workload import Json

_NAME, _NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
_INSTANCE, _MANAGER = "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"
_OF_CHART = "helm-release-name"
"""The label of the vLLM production stack's chart."""


def release_of(metadata: Json) -> str:
    """Return the release that made an object, as ``namespace/name``; empty for none.

    A release whose namespace nothing tells is in that of its object.
    """
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    own = metadata.get("namespace") or ""
    if annotations.get(_NAME):
        return f"{annotations.get(_NAMESPACE) or own}/{annotations[_NAME]}"
    name = labels.get(_INSTANCE) or (labels.get(_OF_CHART) if labels.get(_MANAGER) == "Helm" else None)
    return f"{own}/{name}" if name else ""
