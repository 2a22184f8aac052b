"""Suppositions: an observation as it would be with more replicas missing, more nodes, or without a cluster.

`plan --what-if` decides on such an observation. The fleet files stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from reconciler.core.capacity.pod_requirements import largest_shape
from reconciler.core.observe.demand import counted_workload
from reconciler.errors import InvalidInput, Problem
from reconciler.model.capacity import (
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    Pool,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import SERVING_LOST_TIMEOUT, Desired
from reconciler.model.units import format_duration
from reconciler.text.spelling import nearest
from reconciler.text.wording import count

FORMS = "[WORKSPACE/]TEMPLATE+3, cluster/NAME=down, cluster/NAME+4 or cluster/NAME/POOL+4"
"""The forms of a supposition, by example."""
_MORE = re.compile(r"(?P<path>[^=]+)\+(?P<number>[1-9][0-9]{0,3})")
_DOWN = re.compile(r"cluster/(?P<name>[^/+=]+)=down")
_HOSTNAME = "kubernetes.io/hostname"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreMissing:
    """More replicas of a workload are missing on its primary, for as long as its scale-up window lasts."""

    text: str
    """The supposition as it was written."""
    workload: WorkloadId
    """Its workspace is empty where only the template is named; see `with_workspace`."""
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDown:
    """A cluster has not been seen, for longer than any burst stays on a lost one."""

    text: str
    """The supposition as it was written."""
    cluster: ClusterName


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreNodes:
    """A cluster has more nodes, each like one that it has, and empty."""

    text: str
    """The supposition as it was written."""
    cluster: ClusterName
    pool: str
    """A pool, or one of its nodes; empty for the only pool."""
    nodes: int


Supposition: TypeAlias = MoreMissing | ClusterDown | MoreNodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Supposed:
    """An observation with suppositions."""

    observed: Observed
    lost: Mapping[ClusterName, datetime] = field(default_factory=dict)
    """Since when each cluster is lost that is supposed to be down."""
    questions: tuple[str, ...] = ()
    """Each supposition in words, as a question."""


def parse_supposition(text: str) -> Supposition:
    """Read a supposition in one of the `FORMS`. Raises ValueError for anything else."""
    down, more = _DOWN.fullmatch(text), _MORE.fullmatch(text)
    if down is not None:
        return ClusterDown(text=text, cluster=ClusterName(down["name"]))
    if more is not None:
        first, *rest = more["path"].split("/", 2)
        number = int(more["number"])
        if first == "cluster" and all(rest) and rest:
            return MoreNodes(text=text, cluster=ClusterName(rest[0]), pool="/".join(rest[1:]), nodes=number)
        if len(rest) <= 1 and all((first, *rest)) and more["path"] != "cluster":
            workspace, name = (first, rest[0]) if rest else ("", first)
            workload = WorkloadId(WorkspaceName(workspace), TemplateName(name))
            return MoreMissing(text=text, workload=workload, replicas=number)
    raise ValueError(f"{text!r} is no supposition (try {FORMS})")


def with_workspace(supposition: Supposition, workloads: Iterable[WorkloadId]) -> Supposition:
    """Add the workspace to a workload that is named without. Raises InvalidInput unless one workload has the name."""
    if not isinstance(supposition, MoreMissing) or supposition.workload.workspace:
        return supposition
    name, known = supposition.workload.name, sorted(workload for workload in workloads if not workload.request)
    matches = [workload for workload in known if workload.name == name]
    if len(matches) == 1:
        return replace(supposition, workload=matches[0])
    if matches:
        forms = [f"{workload}+{supposition.replicas}" for workload in matches]
        raise _refusal(supposition, f"{count(len(matches), 'workspace')} have a workload {name}", nearest("", forms))
    raise _refusal(supposition, f"there is no workload {name}", nearest(name, {workload.name for workload in known}))


def suppose(observed: Observed, desired: Desired, suppositions: Iterable[Supposition], now: datetime) -> Supposed:
    """Change an observation as suppositions say, one after the other.

    Raises InvalidInput for a workload, cluster or pool that does not exist.
    """
    supposed = Supposed(observed=observed)
    for supposition in (with_workspace(each, desired.templates) for each in suppositions):
        match supposition:
            case MoreMissing():
                supposed = _with_missing(supposed, desired, supposition, now)
            case ClusterDown():
                supposed = _without_cluster(supposed, desired, supposition, now)
            case MoreNodes():
                supposed = _with_nodes(supposed, desired, supposition)
    return supposed


def _with_missing(supposed: Supposed, desired: Desired, supposition: MoreMissing, now: datetime) -> Supposed:
    """Add missing replicas to the object that is counted on the primary, also where no pod of it exists yet."""
    workload, observed = supposition.workload, supposed.observed
    policy = desired.policies.get(workload)
    if policy is None:
        raise _unknown_workload(desired, supposition)
    primary = desired.workspaces[workload.workspace].primary
    ref = desired.templates[workload].ref
    if ref is None:
        raise _refusal(supposition, f"no object on {primary} is known to be {workload}, so none of it can be missing")
    observation = _observation(observed, primary, supposition)
    seen, gang = counted_workload(desired, observation, workload, now)
    before = seen if seen is not None else WorkloadObservation(ref=ref, wanted=0, running=0)
    by_template = ""
    if before.shape is None and gang is None:
        # Nobody has reported a pod of it: files tell of workloads that they know, and no cluster of one without pods.
        shape = largest_shape(desired.templates[workload].spec, desired.kinds)
        before = replace(before, shape=shape)
        by_template = ", with the requests of its template" if shape is not None else ""
    more = supposition.replicas
    if gang is not None:
        # The primary reports pods: as many as make that many more replicas missing.
        size = before.shape.group_size if before.shape is not None else 1
        pods = size * max(before.wanted - before.running, sum(wait.replicas for wait in before.waiting))
        more = -(-(gang.pods(gang.replicas(pods) + more) - pods) // size)
    seen_at = min(observation.observed_at, now)
    since = min([seen_at - policy.scale_up_window, *(wait.since for wait in before.waiting)])
    after = replace(
        before,
        wanted=max(before.wanted, before.running) + more,
        waiting=(*before.waiting, MissingReplicas(replicas=more, since=since)),
    )
    missing, lasts = count(supposition.replicas, "more replica"), format_duration(seen_at - since)
    others = tuple(other for other in observation.workloads if other is not seen)
    return replace(
        _put(supposed, replace(observation, workloads=(*others, after))),
        questions=(
            *supposed.questions,
            f"What if {missing} of {workload} had been missing on {primary} for {lasts}{by_template}?",
        ),
    )


def _without_cluster(supposed: Supposed, desired: Desired, supposition: ClusterDown, now: datetime) -> Supposed:
    """Let a cluster's last observation be so old that every burst that may leave a lost cluster does so."""
    cluster = _cluster(desired, supposition.cluster, supposition)
    observation = supposed.observed.clusters.get(cluster)
    lasts = _longest_timeout(desired)
    since = (now if observation is None else min(observation.observed_at, now)) - lasts
    if observation is not None:
        old = replace(observation, observed_at=since - desired.fleet.observation_max_age)
        supposed = _put(supposed, old)
    return replace(
        supposed,
        lost={**supposed.lost, cluster: since},
        questions=(*supposed.questions, f"What if {cluster} had been out of reach for {format_duration(lasts)}?"),
    )


def _with_nodes(supposed: Supposed, desired: Desired, supposition: MoreNodes) -> Supposed:
    """Add empty nodes to a pool."""
    cluster = _cluster(desired, supposition.cluster, supposition)
    observation = _observation(supposed.observed, cluster, supposition)
    pool = _pool(observation, supposition)
    model = next((node for node in pool.nodes if node.name == supposition.pool), pool.nodes[0])
    taken = len(pool.nodes)
    added = tuple(
        _empty_node(model, pool, f"{model.name}-supposed-{number}")
        for number in range(taken + 1, taken + supposition.nodes + 1)
    )
    pools = tuple(replace(each, nodes=(*each.nodes, *added)) if each is pool else each for each in observation.pools)
    return replace(
        _put(supposed, replace(observation, pools=pools)),
        questions=(
            *supposed.questions,
            f"What if {cluster} had {count(supposition.nodes, 'more node')} like {model.name}, and empty?",
        ),
    )


def _empty_node(model: Node, pool: Pool, name: str) -> Node:
    """Return a node like another, with all of its resources and devices free.

    Devices that several nodes share are not more for it. Of a node without allocatable resources the free ones count.
    """
    labels = {**model.labels, _HOSTNAME: name} if _HOSTNAME in {**pool.labels, **model.labels} else model.labels
    return replace(
        model,
        name=name,
        free=model.allocatable if model.allocatable.amounts else model.free,
        labels=labels,
        devices=tuple(stock if stock.shared else replace(stock, free=stock.total) for stock in model.devices),
        pods=None if model.pods is None else (),
    )


def _pool(observation: ClusterObservation, supposition: MoreNodes) -> Pool:
    """Find a pool by its name or that of one of its nodes; the only one, where no name is given."""
    pools = [pool for pool in observation.pools if pool.nodes]
    names = [pool.name for pool in pools]
    name, cluster = supposition.pool, observation.cluster
    if not pools:
        raise _refusal(supposition, f"no open node of {cluster} has been observed, so there is none to add more of")
    if not name and len(pools) > 1:
        forms = [f"cluster/{cluster}/{pool}+{supposition.nodes}" for pool in names]
        raise _refusal(supposition, f"{cluster} has {count(len(pools), 'pool')}; name one", nearest("", forms))
    match = [pool for pool in pools if name in {"", pool.name}] or [
        pool for pool in pools if any(node.name == name for node in pool.nodes)
    ]
    if not match:
        raise _refusal(supposition, f"{cluster} has no pool or node {name}", nearest(name, names))
    return match[0]


def _put(supposed: Supposed, observation: ClusterObservation) -> Supposed:
    clusters = {**supposed.observed.clusters, observation.cluster: observation}
    return replace(supposed, observed=replace(supposed.observed, clusters=clusters))


def _longest_timeout(desired: Desired) -> timedelta:
    """Return the longest time that a burst of any policy stays on a lost cluster."""
    own = (policy.worker_lost_timeout for policy in desired.policies.values())
    return max(SERVING_LOST_TIMEOUT, desired.fleet.worker_lost_timeout, *(time for time in own if time is not None))


def _cluster(desired: Desired, name: ClusterName, supposition: Supposition) -> ClusterName:
    if name not in desired.clusters:
        raise _refusal(supposition, f"there is no Cluster {name}", nearest(name, desired.clusters))
    return name


def _observation(observed: Observed, cluster: ClusterName, supposition: Supposition) -> ClusterObservation:
    observation = observed.clusters.get(cluster)
    if observation is None:
        raise _refusal(
            supposition,
            f"{cluster} has not been observed, so there is nothing to add it to",
            "give its observations or a kubeconfig",
        )
    return observation


def _unknown_workload(desired: Desired, supposition: MoreMissing) -> InvalidInput:
    workload = supposition.workload
    if workload in desired.templates:
        return _refusal(supposition, f"no BurstPolicy governs {workload}, so it does not burst")
    if ClusterName(workload.workspace) in desired.clusters:
        return _refusal(
            supposition, f"there is no workload {workload}", f"for nodes of a cluster, try 'cluster/{supposition.text}'"
        )
    return _refusal(supposition, f"there is no workload {workload}", nearest(str(workload), map(str, desired.policies)))


def _refusal(supposition: Supposition, message: str, hint: str = "") -> InvalidInput:
    return InvalidInput(problems=(Problem(path=f"what if {supposition.text}", message=message, hint=hint),))
