"""Why a cluster gets nothing new of a workload.

Each rule is about the cluster alone; how many replicas it can hold is for `fit` to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from reconciler.core.decide.candidates.cluster_obstacles import in_place_of_directory, slurm_refusal
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.engines import engine
from reconciler.core.fleet.cluster_order import tainted
from reconciler.core.observe.demand import unseen_since
from reconciler.core.pods.taints import untolerated_taint
from reconciler.core.workloads.cluster_provides import refuse_lacking
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Restraint, RestraintKind, place_name
from reconciler.model.plan import Reason, Refusal, unwritten_reason, unwritten_remedy
from reconciler.model.policy import Availability, Cluster
from reconciler.model.workload import WorkloadTemplate

STALLED_REMEDY = "mend its file: `overspill check` tells the problem"
"""The way out where a WorkloadSpread is not in force."""


def refuse(
    inputs: PassInput,
    workload: WorkloadId,
    name: ClusterName,
    *,
    shape: ReplicaShape,
    restraints: tuple[Restraint, ...],
    needed: Sequence[Prerequisite],
    subset: str = "",
) -> Refusal | None:
    """Say why a cluster gets nothing new of this workload, or None if only its capacity is left to ask.

    `needed` are the things that it must have first.
    """
    desired, observed, now = inputs.desired, inputs.observed, inputs.now
    template, policy = desired.templates[workload], desired.policies[workload]
    # 1. The cluster is a partition of Slurm, where no engine applies anything.
    described = desired.clusters.get(name)
    if described is not None and described.slurm is not None:
        return slurm_refusal(name, described.slurm)
    # 2. Files exclude the workload from the cluster, on the output branch as well.
    refusal = inputs.reach.exclusion(workload, name, subset=subset, tolerations=shape.tolerations)
    refusal = refusal or inputs.reach.policy_refusal(workload, name)
    if policy.stalled:
        stalled = Refusal(
            cluster=name, reason=Reason.SPREAD_NOT_IN_FORCE, message=policy.stalled, remedy=STALLED_REMEDY
        )
        refusal = refusal or stalled
    refusal = refusal or in_place_of_directory(inputs, name)
    if refusal is not None:
        return refusal
    cluster = desired.clusters[name]
    # 3. The cluster is cordoned.
    if cluster.availability is Availability.CORDONED:
        return Refusal(
            cluster=name,
            reason=Reason.CORDONED,
            message="it is Cordoned",
            remedy="set its spec.availability to Active",
        )
    # 4. The cluster has a taint that is not tolerated. It keeps what runs there, unless it evicts.
    taint = untolerated_taint(policy.tolerations + shape.tolerations, cluster.taints)
    if taint is not None:
        return tainted(cluster, taint, policy, workload)
    # 5. Its objects are unknown, the engine cannot apply them, or they cannot be filled in for the cluster.
    undeployable = _undeployable(inputs, template, cluster, subset)
    if undeployable is not None:
        return undeployable
    # 6. The cluster lacks objects that the template refers to.
    lacks = refuse_lacking(cluster, needed, observed.clusters.get(name))
    if lacks is not None:
        return lacks
    # 7. A person, or a burst that has just ended there, holds it back.
    held = _held_back(workload, name, subset, restraints, now)
    if held is not None:
        return held
    # 8. The cluster is unseen.
    blind = unseen_since(desired.fleet, observed, name, now)
    if blind:
        return Refusal(
            cluster=name, reason=Reason.UNSEEN, message=f"it {blind}", remedy="see why its observations do not arrive"
        )
    # 9. The cluster reports itself unhealthy.
    observation = observed.clusters[name]
    if not observation.healthy:
        return Refusal(
            cluster=name,
            reason=Reason.UNHEALTHY,
            message=observation.message or "it reports itself unhealthy",
            remedy="mend the cluster",
        )
    return None


def _undeployable(inputs: PassInput, template: WorkloadTemplate, cluster: Cluster, subset: str) -> Refusal | None:
    """Say why the objects of a template cannot be written for a cluster; None where they can, as far as is known."""
    name, workspace = cluster.name, inputs.desired.workspaces[template.workspace]
    if template.unread:
        remedy = "see what its template is made from"
        return Refusal(cluster=name, reason=Reason.SOURCE_UNREAD, message=template.unread, remedy=remedy)
    for text in engine(cluster.engine).refusals(template.spec, workspace, helm=inputs.observed.helm):
        return Refusal(cluster=name, reason=Reason.ENGINE, message=text, remedy="choose another engine for the cluster")
    place = (template.workload, place_name(name, subset))
    problem = inputs.unwritable.get(place) if inputs.unwritable else None
    if problem is None:
        return None
    remedy = unwritten_remedy(problem, subset)
    return Refusal(cluster=name, reason=unwritten_reason(problem), message=problem, remedy=remedy)


def _held_back(
    workload: WorkloadId, name: ClusterName, subset: str, restraints: tuple[Restraint, ...], now: datetime
) -> Refusal | None:
    """Say by what and until when a cluster, or a subset's part of it, gets nothing of a workload; None where it may."""
    for restraint in restraints:
        if restraint.cluster == name and restraint.subset in ("", subset) and now < restraint.until:
            held = restraint.kind is RestraintKind.HOLD
            return Refusal(
                cluster=name,
                reason=Reason.HELD if held else Reason.COOLING_DOWN,
                message=f"{restraint.reason}; until {restraint.until:%Y-%m-%dT%H:%M:%SZ}",
                remedy=f"wait, or `overspill release {workload} --cluster {name}`",
            )
    return None
