"""Short ways to write the objects of engines, as far as anything is read of them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

COMMIT = "a1" * 20
DIGEST = "sha256-" + "0c" * 32
AT = "2026-11-20T10:00:00Z"

Raw = dict[str, Any]


def labelled(name: str, namespace: str, placement: str, **labels: str) -> Raw:
    return {
        "name": name,
        "namespace": namespace,
        "generation": 1,
        "labels": {
            "overspill.dev/placement": placement,
            **{f"overspill.dev/{key}": one for key, one in labels.items()},
        },
        "annotations": {"overspill.dev/digest": DIGEST},
    }


def application(
    cluster: str,
    placement: str = "vllm-1",
    *,
    health: str = "Healthy",
    namespace: str = "argocd",
    project: str = "overspill",
) -> Raw:
    """Make an Application that is applied and of this health."""
    operation = {"phase": "Succeeded", "finishedAt": AT, "syncResult": {"revisions": [COMMIT]}}
    return {
        "metadata": labelled(f"{cluster}.{placement}", namespace, placement, cluster=cluster),
        "spec": {"project": project, "sources": [{"path": f"clusters/{cluster}/{placement}/manifests"}]},
        "status": {
            "sync": {"status": "Synced", "revisions": [COMMIT]},
            "health": {"status": health, "lastTransitionTime": AT},
            "operationState": operation,
            "reconciledAt": AT,
        },
    }


def kustomization(
    placement: str = "vllm-1", stage: int = 0, *, ready: bool = True, namespace: str = "overspill"
) -> Raw:
    """Make a stage that is applied, or at it."""
    told = [{"type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "lastTransitionTime": AT}]
    if not ready:
        told[0] |= {"status": "Unknown", "reason": "Progressing", "message": "waiting for what it has applied"}
        told.append({"type": "Healthy", "status": "Unknown"})
    revision = f"placements@sha1:{COMMIT}"
    return {
        "metadata": labelled(f"{placement}-s{stage:02d}", namespace, placement),
        "spec": {},
        "status": {
            "observedGeneration": 1,
            "conditions": told,
            "lastAppliedRevision": revision if ready else "",
            "lastAttemptedRevision": revision,
        },
    }


def release(placement: str = "vllm-1", stage: int = 0, *, message: str, namespace: str = "overspill") -> Raw:
    """Make a HelmRelease that has given up."""
    metadata = labelled(f"{placement}-chart", namespace, placement)
    metadata["labels"]["kustomize.toolkit.fluxcd.io/name"] = f"{placement}-s{stage:02d}"
    told = [
        {"type": "Stalled", "status": "True", "reason": "RetriesExceeded", "message": message},
        {"type": "Ready", "status": "False", "reason": "InstallFailed", "message": message, "lastTransitionTime": AT},
    ]
    return {"metadata": metadata, "spec": {}, "status": {"observedGeneration": 1, "conditions": told}}


def cluster_secret(
    name: str, server: str, config: Mapping[str, Any] | str, *, called: str = "", namespace: str = "argocd"
) -> Raw:
    """Make one of Argo CD's cluster Secrets."""
    texts = {"name": name, "server": server, "config": config if isinstance(config, str) else json.dumps(config)}
    return {
        "metadata": {
            "name": called or f"cluster-{name}",
            "namespace": namespace,
            "labels": {"argocd.argoproj.io/secret-type": "cluster"},
        },
        "data": {key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }
