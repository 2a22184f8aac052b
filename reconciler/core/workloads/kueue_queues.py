"""Kueue's LocalQueues, ClusterQueues, Cohorts and ResourceFlavors: what they say of the quota that is left.

Fields are those of `apis/kueue/v1beta2` and `v1beta1` of kubernetes-sigs/kueue at ff69552; Cohorts are of v1alpha1
before Kueue 0.14.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.core.pods.pod_affinity import selector_requirements
from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.core.pods.pod_shape import tolerations
from reconciler.model.kubernetes.queues import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    FlavorResource,
    KueueQueues,
    LocalQueue,
    QuotaGroup,
    ResourceFlavor,
)
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.units import Quantity
from reconciler.model.workload import Json
from reconciler.text.wording import as_clause, engine_message

GROUP = "kueue.x-k8s.io"
_STOPS = frozenset({"Hold", "HoldAndDrain"})
_BY_CLUSTER_QUEUE = frozenset({"ClusterQueueIsInactive", "ClusterQueueDoesNotExist"})
"""Reasons of a LocalQueue that is not Active which its ClusterQueue tells itself."""
_PREEMPTS_FIRST = frozenset({"Preempt", "MayStopSearch"})
"""Values of `whenCanPreempt` (v1beta1, v1beta2) with which no later flavor is tried where preemption may help."""


def read_local_queue(raw: Json) -> LocalQueue:
    """Read a LocalQueue."""
    return LocalQueue(
        cluster_queue=str(raw["spec"].get("clusterQueue") or ""), closed=_why_closed(raw, _BY_CLUSTER_QUEUE)
    )


def read_cluster_queue(raw: Json) -> ClusterQueue:
    """Read a ClusterQueue. How many Workloads wait in it is left out where others may go before these."""
    spec, status = raw["spec"], raw.get("status") or {}
    fungibility, preemption = spec.get("flavorFungibility") or {}, spec.get("preemption") or {}
    selector = spec.get("namespaceSelector")
    is_strict = spec.get("queueingStrategy") == "StrictFIFO"
    policies = (preemption.get(policy) or "Never" for policy in ("withinClusterQueue", "reclaimWithinCohort"))
    return ClusterQueue(
        cohort=str(spec.get("cohortName") or spec.get("cohort") or ""),
        groups=tuple(_groups(spec)),
        quotas=_quotas(spec),
        used={
            FlavorResource(flavor["name"], used["name"]): amount
            for flavor in status.get("flavorsReservation") or ()
            for used in flavor.get("resources") or ()
            if (amount := _amount(used.get("total")))
        },
        namespaces=None if selector is None else tuple(selector_requirements(selector)),
        closed=_why_closed(raw),
        is_strict=is_strict,
        pending=int(status.get("pendingWorkloads") or 0) if is_strict else 0,
        borrows_last=fungibility.get("whenCanBorrow") == "TryNextFlavor",
        preempts_first=fungibility.get("whenCanPreempt") in _PREEMPTS_FIRST
        and any(policy != "Never" for policy in policies),
    )


def read_cohort(raw: Json) -> Cohort:
    """Read a Cohort; v1alpha1 names its parent in another field."""
    spec = raw.get("spec") or {}
    return Cohort(parent=str(spec.get("parentName") or spec.get("parent") or ""), quotas=_quotas(spec))


def read_resource_flavor(raw: Json) -> ResourceFlavor:
    """Read a ResourceFlavor."""
    spec = raw.get("spec") or {}
    return ResourceFlavor(
        labels=dict(sorted((spec.get("nodeLabels") or {}).items())),
        taints=tuple(
            Taint(key=item["key"], value=item.get("value") or "", effect=item.get("effect") or "NoSchedule")
            for item in spec.get("nodeTaints") or ()
        ),
        tolerations=tuple(tolerations(spec)),
        topology=str(spec.get("topologyName") or ""),
    )


def read_namespace_labels(raw: Json) -> Mapping[str, str]:
    """Read the labels of a namespace, which ClusterQueues select."""
    return dict(sorted((raw["metadata"].get("labels") or {}).items()))


def kueue_queues(
    local: Mapping[str, LocalQueue],
    clusters: Mapping[str, ClusterQueue],
    cohorts: Mapping[str, Cohort],
    flavors: Mapping[str, ResourceFlavor],
    namespaces: Mapping[str, Mapping[str, str]] | None,
) -> KueueQueues | None:
    """Put the queues of a cluster together, LocalQueues by ``namespace/name``; None where there is none at all.

    A cluster without Kueue has none, and jobs that name a queue start there at once.
    """
    if not (local or clusters or flavors):
        return None
    by_place = {(key.partition("/")[0], key.partition("/")[2]): queue for key, queue in sorted(local.items())}
    return KueueQueues(
        local=by_place,
        clusters=dict(sorted(clusters.items())),
        cohorts=dict(sorted(cohorts.items())),
        flavors=dict(sorted(flavors.items())),
        namespaces=namespaces,
    )


def _groups(spec: Json) -> Iterator[QuotaGroup]:
    for group in spec.get("resourceGroups") or ():
        yield QuotaGroup(
            resources=frozenset(group.get("coveredResources") or ()),
            flavors=tuple(flavor["name"] for flavor in group.get("flavors") or ()),
        )


def _quotas(spec: Json) -> Mapping[FlavorResource, FlavorQuota]:
    return {
        FlavorResource(flavor["name"], quota["name"]): FlavorQuota(
            nominal=_amount(quota.get("nominalQuota")),
            borrowing=_limit(quota.get("borrowingLimit")),
            lending=_limit(quota.get("lendingLimit")),
        )
        for group in spec.get("resourceGroups") or ()
        for flavor in group.get("flavors") or ()
        for quota in flavor.get("resources") or ()
    }


def _amount(raw: Json) -> Quantity:
    return Quantity(0) if raw is None else parse_amounts({"": raw})[""]


def _limit(raw: Json) -> Quantity | None:
    return None if raw is None else _amount(raw)


def _why_closed(raw: Json, told_elsewhere: Iterable[str] = ()) -> str:
    """Say why a queue admits nothing; empty while it does, and for a reason that is `told_elsewhere`."""
    if "deletionTimestamp" in raw["metadata"]:
        return "is being deleted"
    policy = (raw.get("spec") or {}).get("stopPolicy")
    if policy in _STOPS:
        return f"is stopped (stopPolicy {policy})"
    conditions = (raw.get("status") or {}).get("conditions") or ()
    active: Json = next((item for item in conditions if item.get("type") == "Active"), {})
    if active.get("status") != "False" or active.get("reason") in told_elsewhere:
        return ""
    words = [as_clause(engine_message(active.get(field))) for field in ("reason", "message")]
    return ": ".join(["is not active", *dict.fromkeys(filter(None, words))])
