"""What is judged by other projects: all objects that Overspill writes in the stories, and all samples that it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache

from reconciler.core.engines import service_export
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.cluster import NetworkApi, SharedNetworking
from tests.builders.workload_kinds import SAMPLES
from tests.e2e.api_server import Json
from tests.e2e.published_kinds import versions
from tests.stories.golden import GOLDEN
from tests.stories.kinds import STORIES, play, read


def of_kinds(definitions: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """Yield the objects of these kinds, in the versions that are served; each with a name for messages."""
    served = set()
    for definition in definitions:
        group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
        served |= {(f"{group}/{version}", kind) for version in versions(definition)}
    yield from ((name, made) for name, made in every_object() if (made["apiVersion"], made["kind"]) in served)


@cache
def every_object() -> tuple[tuple[str, Json], ...]:
    """All samples, what is written in the stories, and ServiceExports as they are made; equal ones once."""
    found: dict[str, tuple[str, Json]] = {}
    for name, made in (*_samples(), *_written(), *_goldens(), ("ServiceExport", _exported())):
        found.setdefault(json.dumps(made, sort_keys=True), (name, made))
    return tuple(found.values())


def _samples() -> Iterator[tuple[str, Json]]:
    yield from ((name, made) for name, (made, _) in SAMPLES.items())


def _written() -> Iterator[tuple[str, Json]]:
    for story in STORIES:
        played = play(read(story))
        for step in range(len(played.trees)):
            yield from ((f"{path} after step {step}", made) for _, path, made in played.objects(step))


def _goldens() -> Iterator[tuple[str, Json]]:
    """Yield the manifests and WorkloadSpreads of the other stories."""
    for file in (*GOLDEN.rglob("manifests/*.yaml"), *GOLDEN.rglob("fleet/*.yaml")):
        for document in yaml.parse(file.read_bytes(), file.name):
            if "manifests" in file.parts or document.value["kind"] == "WorkloadSpread":
                yield str(file.relative_to(GOLDEN)), document.value


def _exported() -> Json:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "model", "namespace": "demo"},
        "spec": {"selector": {"app": "model"}, "ports": [{"port": 80}]},
    }
    return service_export.export(service, SharedNetworking(api=NetworkApi.MULTICLUSTER), [], NO_KINDS)
