"""Short ways to ask for a placement by name, and to say what the ledger holds of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.core.ledger.request_record import digest_of
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger, Placements
from reconciler.model.placement import Origin, Placement
from reconciler.model.policy import Cluster, Desired
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.workload import DeploySpec, Json, ManifestResource, Step, StepType
from tests.builders.inputs import GPU, NOW, SOURCE, cluster, desired, placement

BOOKINFO = WorkloadId(WorkspaceName("llm"), TemplateName("bookinfo"), request=True)
LASTING = timedelta(minutes=15)


def deployment(replicas: Json = 2, gpus: int = 1, **pod: object) -> Json:
    """Make a Deployment whose pods ask for so many GPUs each."""
    container = {"name": "server", "image": "registry.example.com/server:1", "resources": {"limits": {GPU: str(gpus)}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "server", "namespace": "demo"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "server"}},
            "template": {
                "metadata": {"labels": {"app": "server"}},
                "spec": {"containers": [container if gpus else container | {"resources": {}}], **pod},
            },
        },
    }


def manifests(*objects: Json, lasting: timedelta | None = LASTING, **fields: object) -> DeploySpec:
    named = tuple(ManifestResource(name=f"part-{index}", manifest=one) for index, one in enumerate(objects))
    return DeploySpec(
        manifests=named,
        steps=tuple(Step(name=one.name, type=StepType.MANIFEST) for one in named),
        burst_duration=lasting,
        **fields,
    )


def request(*clusters: str, name: str = "bookinfo", **fields: object) -> Request:
    """Ask for two pods of one GPU each, for a quarter of an hour, on these clusters."""
    made = Request(
        name=TemplateName(name),
        workspace=WorkspaceName("llm"),
        namespace="kubeslice-demo",
        spec=manifests(deployment()),
        clusters=tuple(ClusterName(one) for one in clusters),
    )
    return replace(made, **fields)


def gpus(number: int, nodes: int = 1, **fields: object) -> GpuAsk:
    return GpuAsk(gpus=number, nodes=nodes, **fields)


def record(asked: Request, *, asker: Asker = Asker.FILE, at: datetime = NOW, **fields: object) -> RequestRecord:
    made = RequestRecord(
        request=asked,
        asker=asker,
        author="",
        received_at=at,
        changed_at=at,
        source_commit=SOURCE,
        asked=digest_of(asked) if asker is Asker.FILE else "",
    )
    return replace(made, **fields)


def wants(
    *asked: Request,
    clusters: Iterable[Cluster] = (cluster("worker-1"), cluster("worker-2"), cluster("worker-3")),
    **fields: object,
) -> Desired:
    """Make a fleet with these requests in its files, and nothing that bursts."""
    made = desired(clusters=clusters, policies={})
    return replace(made, templates={}, requests={one.workload: one for one in asked}, **fields)


def holds(*records: RequestRecord, placed: Iterable[Placement] = (), **fields: object) -> Ledger:
    return Ledger(
        commit=CommitId("7" * 40),
        requests={one.workload: one for one in records},
        placements=Placements({one.path: one for one in placed}),
        **fields,
    )


def placed(
    name: str = "worker-2", *, replicas: int = 2, created: datetime = NOW - timedelta(minutes=1), **fields: object
) -> Placement:
    """Place the request on a cluster, with two replicas."""
    return placement(
        name, replicas, workload=BOOKINFO, created=created, lasting=LASTING, origin=Origin.REQUEST, **fields
    )
