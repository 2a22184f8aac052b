"""Which clusters a workload may use, in its policy's order, and the reason for each that it may not.

Each rule is about the cluster alone; how many replicas it can hold is for `fit` to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.core.demand import unseen
from reconciler.core.engines import engine
from reconciler.core.fit import repelled
from reconciler.core.situation import Situation
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Restraint, RestraintKind
from reconciler.model.plan import Reason, Refusal
from reconciler.model.policy import Availability, BurstPolicy, Cluster, Desired, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One cluster in a workload's order. `rank` counts from 1; `limit` is the most replicas it may take."""

    cluster: ClusterName
    rank: int
    limit: int | None


def order(policy: BurstPolicy, workspace: Workspace, clusters: Mapping[ClusterName, Cluster]) -> tuple[Rung, ...]:
    """Lay out the policy's candidates as single clusters, each once, at its first mention.

    Labels match clusters of the workspace only, by name within one candidate. A cluster named outright stays in the
    order even where it cannot be used, so that the refusal can be told. The primary never bursts to itself.
    """
    limits: dict[ClusterName, int | None] = {}
    for candidate in policy.candidates:
        if candidate.name is not None:
            limits.setdefault(candidate.name, candidate.max_replicas)
            continue
        for name in sorted(workspace.clusters):
            cluster = clusters.get(name)
            if cluster is not None and candidate.match_labels.items() <= cluster.labels.items():
                limits.setdefault(name, candidate.max_replicas)
    if not policy.candidates:
        limits = dict.fromkeys(sorted(workspace.clusters))
    limits.pop(workspace.primary, None)
    return tuple(
        Rung(cluster=name, rank=rank, limit=limit) for rank, (name, limit) in enumerate(limits.items(), start=1)
    )


def banned(desired: Desired, workspace: Workspace, rungs: tuple[Rung, ...], name: ClusterName) -> Refusal | None:
    """Say why a cluster may not even keep what it has, or None.

    These are the words of people, in git; nothing that merely cannot be seen is among them.
    """
    cluster = desired.clusters.get(name)
    # 1. Nobody describes it.
    if cluster is None:
        return Refusal(
            cluster=name,
            reason=Reason.UNKNOWN_CLUSTER,
            message="no Cluster of this name is in the fleet repository",
            remedy=f"add a Cluster named {name}",
        )
    # 2. It is not the tenant's.
    if name not in workspace.clusters:
        return Refusal(
            cluster=name,
            reason=Reason.NOT_IN_WORKSPACE,
            message=f"not a cluster of workspace {workspace.name}",
            remedy=f"add it to spec.clusters of workspace {workspace.name}",
        )
    # 3. The policy does not name it.
    if all(rung.cluster != name for rung in rungs):
        primary = name == workspace.primary
        return Refusal(
            cluster=name,
            reason=Reason.NOT_IN_POLICY,
            message="the primary cluster itself" if primary else "not among the clusters of the policy",
            remedy="" if primary else "add it to spec.clusters of the policy",
        )
    # 4. It is being emptied.
    if cluster.availability is Availability.DRAINING:
        return Refusal(
            cluster=name,
            reason=Reason.CORDONED,
            message="it is Draining",
            remedy="set its spec.availability to Active",
        )
    return None


def refuse(
    situation: Situation,
    workload: WorkloadId,
    name: ClusterName,
    *,
    rungs: tuple[Rung, ...],
    shape: ReplicaShape,
    restraints: tuple[Restraint, ...],
) -> Refusal | None:
    """Say why a cluster gets nothing new of this workload, or None if only its capacity is left to ask."""
    desired, observed, now = situation.desired, situation.observed, situation.now
    template, policy = desired.templates[workload], desired.policies[workload]
    workspace = desired.workspaces[workload.workspace]
    # 1. It may not have it at all.
    refusal = banned(desired, workspace, rungs, name)
    if refusal is not None:
        return refusal
    cluster = desired.clusters[name]
    # 2. It takes nothing new.
    if cluster.availability is Availability.CORDONED:
        return Refusal(
            cluster=name,
            reason=Reason.CORDONED,
            message="it is Cordoned",
            remedy="set its spec.availability to Active",
        )
    # 3. The policy asks for labels it does not have.
    for key, value in sorted(policy.require_labels.items()):
        if cluster.labels.get(key) != value:
            return Refusal(
                cluster=name,
                reason=Reason.LABELS,
                message=f"needs label {key}={value}, has {key}={cluster.labels.get(key, '')}",
                remedy=f"label the Cluster {key}={value}, or change spec.requireLabels of policy {policy.name}",
            )
    # 4. It is tainted as a whole.
    taint = repelled(policy.tolerations + shape.tolerations, cluster.taints)
    if taint is not None:
        return Refusal(
            cluster=name,
            reason=Reason.TAINTED,
            message=f"tainted {taint}",
            remedy=f"add a toleration for it to policy {policy.name}",
        )
    # 5. Its engine cannot apply the template.
    for text in engine(cluster.engine).refusals(template.spec, workspace, helm=observed.helm):
        return Refusal(cluster=name, reason=Reason.ENGINE, message=text, remedy="choose another engine for the cluster")
    # 6. A person, or a burst that has just ended there, holds it back.
    for restraint in restraints:
        if restraint.cluster == name and now < restraint.until:
            held = restraint.kind is RestraintKind.HOLD
            return Refusal(
                cluster=name,
                reason=Reason.HELD if held else Reason.COOLING_DOWN,
                message=f"{restraint.reason}; until {restraint.until:%Y-%m-%dT%H:%M:%SZ}",
                remedy="wait, or remove the restraint from the ledger file" if held else "wait",
            )
    # 7. It cannot be seen.
    blind = unseen(desired.fleet, observed, name, now)
    if blind:
        return Refusal(
            cluster=name, reason=Reason.UNSEEN, message=blind, remedy="see why its observations do not arrive"
        )
    # 8. It says itself that it is not well.
    observation = observed.clusters[name]
    if not observation.healthy:
        return Refusal(
            cluster=name,
            reason=Reason.UNHEALTHY,
            message=observation.message or "it reports itself unhealthy",
            remedy="mend the cluster",
        )
    return None
