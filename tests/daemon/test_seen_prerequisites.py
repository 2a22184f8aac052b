"""The warnings of a fleet know what is seen on its clusters, and cost no assembly while that stays."""

from __future__ import annotations

from dataclasses import replace

from reconciler.daemon.source import SourceReader
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName
from tests.builders.fleet_files import FLEET
from tests.builders.inputs import NOW
from tests.fakes.memory_repository import MemoryRepository

WORKER_2 = ClusterName("worker-2")


def clusters(*api_versions: str) -> Observed:
    seen = ClusterObservation(cluster=WORKER_2, observed_at=NOW, api_versions=frozenset(api_versions))
    return Observed(clusters={WORKER_2: seen} if api_versions else {})


def test_warnings_go_by_the_api_versions_that_are_seen() -> None:
    files = {path: data.encode() if isinstance(data, str) else data for path, data in FLEET.items()}
    cluster = next(path for path in files if path.endswith("clusters/worker-2.yaml"))
    files[cluster] = files[cluster].partition(b"spec:")[0] + b"spec: {provides: {apiVersions: [v1]}}\n"
    repository = MemoryRepository(files)
    source, commit = SourceReader(repository), repository.tips().source
    assert commit is not None

    def told(seen: Observed) -> list[str]:
        problems = source.expanded(commit, seen).problems
        return [problem.message for problem in problems if problem.field.endswith(".apiVersion")]

    (by_its_file,) = told(clusters())
    assert by_its_file.startswith("worker-2 serves no version of apps, the API group of the Deployment")
    assert told(clusters("v1", "apps/v1")) == []
    (by_its_server,) = told(clusters("v1", "apps/v1beta2"))
    assert by_its_server.startswith("worker-2 serves apps/v1beta2, but the Deployment is written in apps/v1")
    first = source.expanded(commit, clusters("v1", "apps/v1beta2"))
    later = clusters("v1", "apps/v1beta2")
    later = replace(later, clusters={WORKER_2: replace(later.clusters[WORKER_2], observed_at=NOW.replace(year=2030))})
    assert source.expanded(commit, later) is first
    assert told(clusters()) == [by_its_file]
