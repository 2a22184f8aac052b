"""The subset that docs/how-to/spread.md shows, and what becomes of a pod template."""

from __future__ import annotations

from dataclasses import replace
from difflib import unified_diff

from reconciler.core.schema.yaml import emit
from reconciler.core.spread.inject import inject_subset
from reconciler.core.spread.subset_pods import Injection, injection, patch_template
from reconciler.errors import InvalidInput
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.kubernetes.workload_spread import Subset, WorkloadSpread
from reconciler.model.policy import Cluster, Workspace
from reconciler.model.workload import WorkloadRef

SUBSET = Subset(
    name="spot",
    required=Requirements(
        labels=(
            Requirement(key="region", operator="In", values=("eu-1",)),
            Requirement(key="capacity", operator="In", values=("spot",)),
        )
    ),
    tolerations=(Toleration(key="capacity", value="spot", effect="NoSchedule"),),
    patch={"spec": {"containers": [{"name": "vllm", "env": [{"name": "POOL", "value": "spot"}]}]}},
)
CLUSTER = Cluster(name=ClusterName("worker-2"), labels={"region": "eu-1"})
TEMPLATE = {
    "metadata": {"labels": {"app": "vllm"}},
    "spec": {"containers": [{"name": "vllm", "env": [{"name": "MODEL", "value": "llama"}]}]},
}


def difference() -> str:
    """Return what the subset changes in the pod template on a cluster, as a difference of YAML."""
    before, after = emit(TEMPLATE), emit(patch_template(TEMPLATE, _injected(SUBSET)))
    _, _, _, *lines = unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=100)
    return "".join(f"{line}\n" for line in lines)


def complaint() -> str:
    """Say what is told of a subset that mounts a volume which is not there."""
    mounts = {"name": "vllm", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    broken = replace(SUBSET, patch={"spec": {"containers": [mounts]}})
    workspace = Workspace(name=WorkspaceName("llm"), primary=ClusterName("worker-1"), clusters=(CLUSTER.name,))
    made = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}, "spec": {"template": TEMPLATE}}
    try:
        inject_subset(made, _injected(broken), workspace, {})
    except InvalidInput as error:
        return str(error)
    raise AssertionError("it mounts nothing")


def _injected(subset: Subset) -> Injection:
    spread = WorkloadSpread(
        name="pools",
        namespace="llm",
        group="apps",
        target=WorkloadRef(namespace="llm", name="vllm", kind="Deployment"),
        subsets=(subset,),
        path="spreads/pools.yaml",
        line=1,
    )
    return injection(spread, subset, CLUSTER)
