"""The conditions of an object's status, as Kubernetes' API conventions and Argo CD write them."""

from __future__ import annotations

from datetime import datetime

from reconciler.core.kubernetes.pods import moment
from reconciler.model.workload import Json


def condition(raw: Json, kind: str) -> Json:
    """Return an object's condition of one type; empty where it has none."""
    for one in (raw.get("status") or {}).get("conditions") or ():
        if one.get("type") == kind:
            return one
    return {}


def since(*times: Json) -> datetime | None:
    """Read the first time that is given."""
    return next((moment(str(text)) for text in times if text), None)
