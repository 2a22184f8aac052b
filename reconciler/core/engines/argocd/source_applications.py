"""What an Application of Argo CD has deployed, as a source of templates: a path of a repository at a commit.

The rules are those of docs/background/upstream/argocd.md, "What an Application has deployed".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from pydantic import TypeAdapter, ValidationError

from reconciler.core.schema.urls import GitAddress
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.manifest_source import RepositorySource, UnreadSource
from reconciler.model.workload import Json

_COMMIT = re.compile(r"[0-9a-f]{40}")
_ADDRESS: TypeAdapter[str] = TypeAdapter(GitAddress)
_RENDERED = {"helm": "Helm", "kustomize": "Kustomize", "plugin": "a plugin"}
_OTHERWISE = "write the chart as spec.helmConfig, or name the live object: spec.from.workload"
_LIVE = "name the live object instead: spec.from.workload"


class SourceApplication:
    """One Application, followed by its name (a `ResourcePart`)."""

    def __init__(self, name: str, namespace: str) -> None:
        self._key = f"{namespace}/{name}"
        self._absent = UnreadSource(
            message=f"Argo CD has no Application {name} in namespace {namespace}",
            remedy="mend spec.from.application, or spec.argocd.namespace of the Fleet",
        )
        self.source: RepositorySource | UnreadSource = self._absent
        """What it has deployed; the same value while that is so."""

    def apply(self, raw: Json) -> ChangeEffect:
        """Note the Application as it is now; another one is ignored."""
        return self._note(deployed_source(raw)) if key_of(raw) == self._key else ChangeEffect.NOTHING

    def remove(self, key: str) -> ChangeEffect:
        """Note that the Application is gone."""
        return self._note(self._absent) if key == self._key else ChangeEffect.NOTHING

    def keys(self) -> AbstractSet[str]:
        """Return the key of the Application, while it is there."""
        return frozenset() if self.source is self._absent else {self._key}

    def _note(self, source: RepositorySource | UnreadSource) -> ChangeEffect:
        if source == self.source:
            return ChangeEffect.NOTHING
        self.source = source
        return ChangeEffect.DEMAND


def deployed_source(raw: Json) -> RepositorySource | UnreadSource:
    """Read what an Application has deployed, or why that is no source.

    While it is in sync, that is the commit that it was compared to; otherwise the one of its last sync, which is still
    what runs.
    """
    title = f"Application {raw['metadata']['name']}"
    spec: Json = raw.get("spec") or {}
    status: Json = raw.get("status") or {}
    # 1. Objects come from several places.
    holder, place = _deployed(spec, status)
    if any(len(each.get(key) or ()) > 1 for each in (spec, holder, place) for key in ("sources", "revisions")):
        return UnreadSource(message=f"{title} has several sources, and a template has one", remedy=_LIVE)
    source, revision = _only(place) or _only(spec), _revision(holder)
    # 2. A program makes the objects.
    program = "Helm" if source.get("chart") else next((_RENDERED[key] for key in _RENDERED if source.get(key)), "")
    program = program or _RENDERED.get(_source_type(status).casefold(), "")
    if program:
        message = f"{title} is rendered by {program}, and sources are plain manifests"
        return UnreadSource(message=message, remedy=_OTHERWISE if program == "Helm" else _LIVE)
    # 3. Only some of the files count, or a program reads them.
    directory: Json = source.get("directory") or {}
    if chosen := [name for name in ("include", "exclude", "jsonnet") if directory.get(name)]:
        message = f"{title} has directory.{chosen[0]}, and sources are all manifests of a directory"
        return UnreadSource(message=message, remedy=_LIVE)
    # 4. Nothing of it runs.
    if not revision:
        return UnreadSource(message=f"{title} has not been synced yet", remedy="see what Argo CD says of it")
    # 5. It is no repository that can be fetched without a login of its own.
    try:
        url = _ADDRESS.validate_python(source.get("repoURL") or "")
    except ValidationError:
        return UnreadSource(message=f"the repoURL of {title} holds a credential", remedy="move it to Argo CD's Secrets")
    if not url or _COMMIT.fullmatch(revision) is None:
        return UnreadSource(message=f"{title} is not deployed from a commit of a git repository", remedy=_LIVE)
    path = "/".join(part for part in str(source.get("path") or "").split("/") if part not in ("", "."))
    return RepositorySource(
        url=url,
        revision="",
        path=path,
        at=revision,
        recurse=bool(directory.get("recurse")),
        namespace=str((spec.get("destination") or {}).get("namespace") or ""),
    )


def _deployed(spec: Json, status: Json) -> tuple[Json, Json]:
    """Return what holds the commit that runs, and what holds its source; empty before the first sync."""
    sync: Json = status.get("sync") or {}
    if sync.get("status") == "Synced":
        return sync, sync.get("comparedTo") or {}
    operation: Json = status.get("operationState") or {}
    options: Json = (operation.get("operation") or {}).get("sync") or {}
    # A dry run, or a sync of some objects, deploys no commit and is in no history.
    whole = operation.get("phase") == "Succeeded" and not options.get("dryRun") and not options.get("resources")
    done: Json = operation.get("syncResult") if whole and spec.get("revisionHistoryLimit") == 0 else None
    last: Json = next(reversed(status.get("history") or ()), done or {})
    return last, last


def _source_type(status: Json) -> str:
    """Return what renders the source; Argo CD writes a list for a list of sources."""
    return str(status.get("sourceType") or next(iter(status.get("sourceTypes") or ()), ""))


def _only(holder: Json) -> Mapping[str, Json]:
    """Return the source of something that has one, alone or in a list."""
    source: Mapping[str, Json] = (holder.get("sources") or [holder.get("source") or {}])[0]
    return source


def _revision(holder: Json) -> str:
    return str((holder.get("revisions") or [holder.get("revision") or ""])[0])
