"""Short ways to say what people ask for, and on which terms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconciler.model.gpr import ClusterBinding, GprBinding, GprTemplate, GprTerms, GpuAsk
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.workload import DeploySpec
from tests.builders.inputs import NOW, template

LLM = WorkspaceName("llm")
TRAIN = WorkloadId(LLM, TemplateName("train"), request=True)


def request(name: str = "train", *, clusters: tuple[str, ...] = ("worker-2",), **fields: object) -> Request:
    """Ask for one placement of a small manifest on each of some clusters."""
    workload = WorkloadId(LLM, TemplateName(name))
    given: dict[str, object] = {"spec": template(workload).spec, **fields}
    return Request(
        name=workload.name,
        workspace=LLM,
        namespace="kubeslice-demo",
        clusters=tuple(ClusterName(cluster) for cluster in clusters),
        **given,
    )


def reservation(name: str = "hold", *, gpus: int = 8, nodes: int = 1, cluster: str = "worker-2") -> Request:
    """Ask for GPUs and nothing to run on them."""
    return request(name, clusters=(cluster,), spec=DeploySpec(), placements=1, ask=GpuAsk(gpus=gpus, nodes=nodes))


def record(asked: Request | None = None, *, received: datetime = NOW, **fields: object) -> RequestRecord:
    return RequestRecord(
        request=asked or request(),
        asker=Asker.API,
        author="Ann <ann@example.com>",
        received_at=received,
        changed_at=received,
        source_commit=CommitId("5" * 40),
        **fields,
    )


def gpr_template(name: str = "h100", cluster: str = "worker-2", **terms: object) -> GprTemplate:
    return GprTemplate(
        name=name,
        cluster=ClusterName(cluster),
        ask=GpuAsk(gpus=1),
        terms=GprTerms(**terms),
    )


def binding(defaults: Mapping[str, str], *listed: str, auto: bool = True) -> dict[WorkspaceName, GprBinding]:
    """Bind each cluster to a default GPRTemplate, beside which others are listed."""
    clusters = tuple(
        ClusterBinding(cluster=ClusterName(name), default=named, templates=listed) for name, named in defaults.items()
    )
    return {LLM: GprBinding(workspace=LLM, auto=auto, clusters=clusters)}
