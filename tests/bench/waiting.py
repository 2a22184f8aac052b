"""Requests that wait for room: of twenty shapes, on any of a hundred clusters of fifty nodes each, all full."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.enrolment import Enrolment
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.model.capacity import ClusterObservation, Node, Observed, Pool
from reconciler.model.gpr import GpuAsk
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.plan import Plan
from reconciler.model.policy import Cluster, Desired, EngineName, Workspace
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.sorted_map import SortedMap
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import DeploySpec, HelmConfig, Step, StepType
from tests.bench.fleet import GPU, START

SHAPES = 20
CLUSTERS = 100
NODES = 50
_SPACE = WorkspaceName("bench")
_NAMES = tuple(ClusterName(f"gpu-{index:04d}") for index in range(CLUSTERS))


class Waiting:
    """Passes of one daemon over so many requests that wait; nothing changes between them but the time."""

    def __init__(self, requests: int) -> None:
        records = SortedMap({one.workload: one for one in map(_record, range(requests))})
        self._ledger = Ledger(commit=CommitId("7" * 40), requests=records)
        self._desired = Desired(
            commit=CommitId("5" * 40),
            clusters={name: Cluster(name=name, engine=EngineName.ARGOCD) for name in _NAMES},
            workspaces={_SPACE: Workspace(name=_SPACE, primary=_NAMES[0], clusters=_NAMES)},
        )
        self._seen = {name: _full(name) for name in _NAMES}
        self._enrolment = Enrolment(self._desired, {})
        self._now = START
        self._memory = PassMemory()

    def run(self) -> Plan:
        """Decide once, a second after the time before."""
        self._now += timedelta(seconds=1)
        self._enrolment = self._enrolment.updated(self._desired, self._ledger.requests)
        clusters = {name: replace(seen, observed_at=self._now) for name, seen in self._seen.items()}
        return decide(
            PassInput(
                desired=self._enrolment.desired,
                ledger=self._ledger,
                observed=Observed(clusters=clusters),
                demands={},
                now=self._now,
                reach=self._enrolment.reach,
                enrolment=self._enrolment,
            ),
            self._memory,
        )


def _record(index: int) -> RequestRecord:
    nodes, gpus = divmod(index % SHAPES, 8)
    chart = HelmConfig(
        name="server",
        chart="server",
        release_name=f"server-{index:05d}",
        release_namespace="serving",
        repo_url="https://charts.example.com",
    )
    request = Request(
        name=TemplateName(f"serving-{index:05d}"),
        workspace=_SPACE,
        namespace="kubeslice-bench",
        spec=DeploySpec(helm=(chart,), steps=(Step(name="server", type=StepType.HELM),)),
        clusters=(),
        placements=1,
        ask=GpuAsk(gpus=1 + gpus, nodes=1 + nodes),
    )
    return RequestRecord(
        request=request,
        asker=Asker.API,
        author="Ada <ada@example.com>",
        received_at=START,
        changed_at=START,
        source_commit=CommitId("5" * 40),
    )


def _full(name: ClusterName) -> ClusterObservation:
    free, there = Resources(amounts={GPU: Quantity(0)}), Resources(amounts={GPU: Quantity(8 * ONE)})
    nodes = tuple(Node(name=f"node-{index:02d}", free=free, allocatable=there) for index in range(NODES))
    return ClusterObservation(cluster=name, observed_at=START, pools=(Pool(name="gpu", nodes=nodes),))
