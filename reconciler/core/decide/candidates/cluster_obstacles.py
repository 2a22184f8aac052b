"""Why a cluster gives nothing at all to a workspace at present, whatever is asked of it."""

from __future__ import annotations

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.demand import unseen_since
from reconciler.core.pods.taints import untolerated_taint
from reconciler.model.cluster import SlurmPartition
from reconciler.model.ids import ClusterName, WorkspaceName
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import Availability
from reconciler.model.tree import ROOT, describe_standing


def slurm_refusal(name: ClusterName, partition: SlurmPartition) -> Refusal:
    """Refuse a partition of Slurm, whatever is asked of it."""
    return Refusal(
        cluster=name,
        reason=Reason.SLURM_PARTITION,
        message=partition.description,
        remedy="take its pending jobs as a signal, or name a Kubernetes cluster",
    )


def in_place_of_directory(inputs: PassInput, name: ClusterName) -> Refusal | None:
    """Refuse a cluster whose directory on the output branch is a file, a link or a submodule of a person's."""
    for path in (ROOT, f"{ROOT}/{name}"):
        if path in inputs.obstacles:
            message, remedy = describe_standing(inputs.obstacles[path], path)
            return Refusal(cluster=name, reason=Reason.NOT_RENDERED, message=message, remedy=remedy)
    return None


def obstacle(inputs: PassInput, workspace: WorkspaceName, name: ClusterName) -> Refusal | None:
    """Return the refusal of a cluster before its capacity is counted; None without one. A primary is no exception."""
    desired, observed = inputs.desired, inputs.observed
    cluster, tenant = desired.clusters.get(name), desired.workspaces.get(workspace)

    def refuse(reason: Reason, message: str, remedy: str) -> Refusal:
        return Refusal(cluster=name, reason=reason, message=message, remedy=remedy)

    # 1. The cluster is outside the workspace, or takes nothing new.
    if cluster is None:
        message = "no Cluster of this name is in the fleet repository"
        return refuse(Reason.UNKNOWN_CLUSTER, message, f"add a Cluster named {name}")
    if tenant is None or name not in tenant.everywhere:
        message = f"not a cluster of workspace {workspace}"
        return refuse(Reason.NOT_IN_WORKSPACE, message, f"add it to spec.clusters of workspace {workspace}")
    if cluster.slurm is not None:
        return slurm_refusal(name, cluster.slurm)
    if cluster.availability is not Availability.ACTIVE:
        return refuse(Reason.CORDONED, f"it is {cluster.availability}", "set its spec.availability to Active")
    taint = untolerated_taint((), cluster.taints)
    if taint is not None:
        return refuse(Reason.TAINTED, f"tainted {taint}", "take the taint off its Cluster")
    standing = in_place_of_directory(inputs, name)
    if standing is not None:
        return standing
    # 2. The cluster is unseen or unhealthy.
    blind = unseen_since(desired.fleet, observed, name, inputs.now)
    if blind:
        return refuse(Reason.UNSEEN, f"it {blind}", "see why its observations do not arrive")
    seen = observed.clusters[name]
    if not seen.healthy:
        return refuse(Reason.UNHEALTHY, seen.message or "it reports itself unhealthy", "mend the cluster")
    return None
