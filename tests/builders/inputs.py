"""Short ways to say a situation: clusters, demand and placements with only what a test is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.observe.demand import DemandHistory, Demands, PastDemand, measure
from reconciler.model.capacity import (
    BlockedReplicas,
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    Pool,
    ReplicaShape,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.ledger import Ledger, Placements
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.policy import BurstPolicy, Cluster, ClusterPreference, Desired, EngineName, Workspace
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import (
    DeletionPolicy,
    DeploySpec,
    ManifestResource,
    Step,
    StepType,
    WorkloadRef,
    WorkloadTemplate,
)

NOW = datetime(2026, 11, 20, 10, 5, tzinfo=UTC)
SOURCE = CommitId("5" * 40)
VLLM = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
GPU = "nvidia.com/gpu"


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def gpus(number: int) -> Resources:
    return Resources(amounts={GPU: Quantity(number * ONE)})


def shape(per_pod: int = 1, **fields: object) -> ReplicaShape:
    return ReplicaShape(requests=gpus(per_pod), **fields)


def cluster(name: str, **fields: object) -> Cluster:
    return Cluster(name=ClusterName(name), engine=EngineName.MANIFESTS, **fields)


def free(
    name: str, *nodes: int, at: datetime = NOW, taints: tuple[Taint, ...] = (), **fields: object
) -> ClusterObservation:
    """Observe a cluster whose nodes have so many free GPUs each."""
    made = tuple(Node(name=f"node-{index}", free=gpus(count)) for index, count in enumerate(nodes))
    pool = Pool(name="gpu", nodes=made, taints=taints)
    return ClusterObservation(cluster=ClusterName(name), observed_at=at, pools=(pool,), **fields)


def short(
    missing: int,
    *,
    since: datetime = NOW - seconds(45),
    running: int = 5,
    at: datetime = NOW,
    workload: WorkloadId = VLLM,
    primary: str = "worker-1",
    replica: ReplicaShape | None = None,
    deficit_since: datetime | None = None,
    held: bool = False,
    started: str = "",
    claimed: str = "",
    blocked: tuple[BlockedReplicas, ...] = (),
) -> ClusterObservation:
    """Observe the full primary, where so many replicas of the workload are unschedulable."""
    seen = WorkloadObservation(
        ref=WorkloadRef(namespace="demo", name=workload.name),
        wanted=running + missing + sum(each.replicas for each in blocked),
        running=running,
        waiting=(MissingReplicas(replicas=missing, since=since),) if missing else (),
        blocked=blocked,
        deficit_since=deficit_since,
        shape=replica or shape(),
        held=held,
        started=started,
        claimed=claimed,
    )
    return ClusterObservation(cluster=ClusterName(primary), observed_at=at, workloads=(seen,))


def template(workload: WorkloadId = VLLM, *, burst: timedelta | None = timedelta(minutes=10)) -> WorkloadTemplate:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": str(workload.name), "namespace": "demo"},
        "spec": {"replicas": "{{ replicas }}", "template": {"spec": {"containers": []}}},
    }
    return WorkloadTemplate(
        name=workload.name,
        workspace=workload.workspace,
        namespace="kubeslice-demo",
        spec=DeploySpec(
            manifests=(ManifestResource(name="server", manifest=deployment),),
            steps=(Step(name="server", type=StepType.MANIFEST),),
            burst_duration=burst,
        ),
        ref=WorkloadRef(namespace="demo", name=workload.name),
    )


def desired(
    policy: BurstPolicy | None = None,
    *,
    clusters: Iterable[Cluster] = (cluster("worker-1"), cluster("worker-2"), cluster("worker-3")),
    workloads: Iterable[WorkloadId] = (VLLM,),
    policies: Mapping[WorkloadId, BurstPolicy] | None = None,
    **fields: object,
) -> Desired:
    named = {one.name: one for one in clusters}
    workloads = tuple(workloads)
    chosen = policy or ordering("worker-2", "worker-3")
    return Desired(
        commit=SOURCE,
        clusters=named,
        workspaces={
            name: Workspace(name=name, primary=ClusterName("worker-1"), clusters=tuple(named))
            for name in {workload.workspace for workload in workloads}
        },
        templates={workload: template(workload) for workload in workloads},
        policies=policies if policies is not None else dict.fromkeys(workloads, chosen),
        **fields,
    )


def ordering(*names: str | tuple[str, int], **fields: object) -> BurstPolicy:
    """Make a policy with these clusters in order; ("worker-2", 3) allows three replicas there."""
    candidates = tuple(
        ClusterPreference(name=ClusterName(name))
        if isinstance(name, str)
        else ClusterPreference(name=ClusterName(name[0]), max_replicas=name[1])
        for name in names
    )
    return replace(BurstPolicy(name="gpu", candidates=candidates), **fields)


def placement(
    name: str = "worker-2",
    replicas: int = 3,
    *,
    workload: WorkloadId = VLLM,
    created: datetime = NOW - timedelta(minutes=1),
    lasting: timedelta = timedelta(minutes=10),
    **fields: object,
) -> Placement:
    made = Placement(
        name=PlacementName(f"{workload.name}-{name[-1]}{created:%H%M%S}"),
        cluster=ClusterName(name),
        workload=workload,
        replicas=replicas,
        created_at=created,
        changed_at=created,
        expires_at=created + lasting,
        engine=EngineName.MANIFESTS,
        policy="gpu",
        deletion_policy=DeletionPolicy.DELETE,
        source_commit=SOURCE,
        namespace="kubeslice-demo",
        target_namespace="demo",
        shape=shape(),
    )
    return replace(made, **fields)


def ledger(*placements: Placement, **fields: object) -> Ledger:
    return Ledger(commit=CommitId("7" * 40), placements=Placements({one.path: one for one in placements}), **fields)


def inputs(
    *observations: ClusterObservation,
    wanted: Desired | None = None,
    there: Ledger | None = None,
    now: datetime = NOW,
    history: DemandHistory | None = None,
    past: PastDemand | None = None,
) -> PassInput:
    seen = Observed(clusters={observation.cluster: observation for observation in observations})
    wanted = wanted or desired()
    demands: Demands = measure(wanted, seen, history or {}, now, past or {})
    reach = ClusterOrder(wanted)
    return PassInput(
        desired=wanted,
        ledger=there or ledger(),
        observed=seen,
        demands=demands,
        now=now,
        reach=reach,
    )


def plan(*observations: ClusterObservation, **fields: object) -> Plan:
    return decide(inputs(*observations, **fields))


def tenants(number: int) -> tuple[WorkloadId, ...]:
    """Name so many workloads in each of two workspaces, in turn."""
    return tuple(
        WorkloadId(WorkspaceName(workspace), TemplateName(f"vllm-{index}"))
        for index in range(number)
        for workspace in ("llm", "vision")
    )
