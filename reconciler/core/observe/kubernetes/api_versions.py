"""The API versions that an API server serves, as it lists its groups at ``/apis``."""

from __future__ import annotations

from reconciler.model.workload import Json

PATH = "/apis"
"""Where API servers list their groups, for every login (Kubernetes' role system:discovery)."""


def read_api_versions(groups: Json) -> frozenset[str]:
    """Return the versions of an APIGroupList as objects name them, ``batch/v1``; none for anything else.

    The core group is not among them: every API server serves its one version.
    """
    entries = groups.get("groups") if isinstance(groups, dict) else None
    return frozenset(
        version["groupVersion"]
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("versions"), list)
        for version in entry["versions"]
        if isinstance(version, dict) and isinstance(version.get("groupVersion"), str)
    )
