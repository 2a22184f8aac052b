"""What observations say of the sources that are not in the fleet repository."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.capacity import Observed
from reconciler.model.manifest_source import (
    ArgoCDSource,
    RepositorySource,
    SourceContent,
    SourceContents,
    SourceKey,
    UnreadSource,
    WorkloadSource,
)


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
    live = next((each for each in seen.objects if source.is_meant(each.manifest)), None)
    if live is None:
        return UnreadSource(
            message=f"{key.cluster} reports no {source.title}",
            remedy="mend spec.from.workload, or list it below objects in the observation of the cluster",
        )
    if live.refused:
        return UnreadSource(message=f"{source.title}: {live.refused}", remedy="mend it on the primary")
    return SourceContent(manifests=(live.manifest,), version="")
