"""What observations say of the sources that are not in the fleet repository."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.core.observe.unread_kinds import unread_kind
from reconciler.model.capacity import Observed
from reconciler.model.manifest_source import (
    ArgoCDSource,
    Companion,
    RepositorySource,
    SourceContent,
    SourceContents,
    SourceKey,
    UnreadSource,
    WorkloadSource,
)

_SERVICE = "Service"


def observed_contents(sources: Iterable[SourceKey], observed: Observed) -> SourceContents:
    """Return the contents of sources on clusters and in other repositories, or why they are unknown.

    Of a cluster that is out of sight the last observation counts, as long as there is one.
    """
    contents: dict[SourceKey, SourceContent | UnreadSource | RepositorySource] = {}
    for key in sources:
        if isinstance(key.source, WorkloadSource):
            contents[key] = _content(key, key.source, observed)
        elif isinstance(key.source, RepositorySource) and key.source in observed.sources:
            contents[key] = observed.sources[key.source]
        elif isinstance(key.source, ArgoCDSource):
            contents[key] = place = observed.applications.get(key.source.name) or UnreadSource(
                message=f"Argo CD is unseen, so that what {key.source.title} deploys is unknown",
                remedy="see `overspill doctor`",
            )
            if isinstance(place, RepositorySource) and place in observed.sources:
                contents[SourceKey(place)] = observed.sources[place]
    return contents


def _content(key: SourceKey, source: WorkloadSource, observed: Observed) -> SourceContent | UnreadSource:
    seen = observed.clusters.get(key.cluster)
    if seen is None:
        return UnreadSource(
            message=f"{key.cluster} is unseen, so that {source.title} there is unknown",
            remedy="see why its observations do not arrive",
        )
    manifests: list[Mapping[str, Any]] = []
    for part in _parts(source):
        live = next((each for each in seen.objects if part.is_meant(each.manifest)), None)
        unread = unread_kind(seen.unread, part.kind, part.group) if isinstance(part, WorkloadSource) else None
        if live is None and unread is not None:
            return UnreadSource(
                message=f"{part.title} cannot be read on {key.cluster}: {unread.why}", remedy="see `overspill doctor`"
            )
        if live is None:
            mend = "mend spec.from.workload"
            if part is not source:
                mend = "make it, mend spec.from.companions, see `overspill doctor` for the right to read it"
            return UnreadSource(
                message=f"{key.cluster} reports no {part.title}",
                remedy=f"{mend}, or list it below objects in the observation of the cluster",
            )
        if live.refused:
            return UnreadSource(message=f"{part.title}: {live.refused}", remedy="mend it on the primary")
        manifests.append(live.manifest)
    return SourceContent(manifests=tuple(manifests), version="")


def _parts(source: WorkloadSource) -> tuple[Companion | WorkloadSource, ...]:
    """Return the objects of a source in the order of deployment: pods read ConfigMaps when they start."""
    services = [each for each in source.companions if each.kind == _SERVICE]
    return (*(each for each in source.companions if each.kind != _SERVICE), source, *services)
