"""Observation files, from bytes to the observation of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from reconciler.core.observe.default_causes import DEFAULT_CAUSES, DefaultCause
from reconciler.core.observe.kubernetes.live_objects import by_name, observed_object
from reconciler.core.observe.kubernetes.unplaced_workloads import sorted_refs
from reconciler.core.pods.gpu_parts import gpu_part_obstacle
from reconciler.core.pods.pod_affinity import pod_identities, pod_rules
from reconciler.core.pods.pod_requests import parse_amounts
from reconciler.core.schema import yaml
from reconciler.core.schema.errors import validation_findings
from reconciler.core.schema.observation import (
    BlockedFile,
    ContainerFile,
    LimitRangeFile,
    NodeFile,
    ObjectFile,
    ObservationFile,
    PlacedFile,
    PoolFile,
    ReplicaFile,
    ResourceQuotaFile,
    WorkloadFile,
)
from reconciler.core.schema.strict_model import resources
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.containers import summary_of
from reconciler.core.workloads.kueue_queues import (
    GROUP,
    kueue_queues,
    read_cluster_queue,
    read_cohort,
    read_local_queue,
    read_namespace_labels,
    read_resource_flavor,
)
from reconciler.core.workloads.resource_quotas import quotas_by_namespace, read_scopes
from reconciler.core.workloads.runtime_defaults import LimitRange, bounds_by_namespace, by_namespace
from reconciler.core.workloads.watch import key_of
from reconciler.errors import InvalidInput, Problem
from reconciler.model.capacity import (
    BlockedReplicas,
    ClosedNode,
    ClusterObservation,
    GpuPod,
    MissingReplicas,
    Node,
    NodePool,
    ObservedObject,
    PendingPods,
    Pool,
    ReplicaShape,
    SucceededPods,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, PlacementName
from reconciler.model.kubernetes.admission import LimitRangeItem, PodAdmission, ResourceQuota
from reconciler.model.kubernetes.queues import KueueQueues
from reconciler.model.kubernetes.scheduling import PodOnNode, RuntimeClass, Taint, UnstatedRequests, sorted_amounts
from reconciler.model.rollout import EngineReport, ReportedSource
from reconciler.model.signal import ReplicaRequest
from reconciler.model.units import Resources, format_quantity
from reconciler.model.workload import ContainerSummary, Json, WorkloadRef
from reconciler.text.findings import Finding, Loc, shortened
from reconciler.text.timestamps import format_time
from reconciler.text.wording import as_clause, engine_message

_CLOCK_SKEW = timedelta(minutes=1)
"""What the clock of an API server may be ahead of that of the writer of an observation."""
_LIST_FIELDS = frozenset({"apiVersion", "kind", "metadata", "items"})


def read(data: bytes, path: str) -> tuple[ClusterObservation, ...]:
    """Read every observation of a file or a request: one or more documents, or one with a list of ``items``.

    Raises InvalidInput with all problems, for two observations of one cluster too.
    """
    return tuple(observation for observation, _ in read_with_lines(data, path))


def read_with_lines(data: bytes, path: str) -> tuple[tuple[ClusterObservation, int], ...]:
    """Read like `read`, each observation with the line of its field `cluster`."""
    documents = yaml.parse(data, path)
    problems: list[Problem] = []
    observations: dict[ClusterName, tuple[ClusterObservation, int]] = {}
    for document in documents:
        for root, value in _items(document.value):
            observation, findings = _observation(value)
            if observation is not None and observation.cluster in observations:
                findings = (Finding(loc=("cluster",), message=f"{observation.cluster} is observed here twice"),)
            for finding in findings:
                placed = Finding(loc=(*root, *finding.loc), message=finding.message, hint=finding.hint)
                problems.append(placed.problem(path=path, line=document.line(placed.loc)))
            if observation is not None:
                observations.setdefault(observation.cluster, (observation, document.line((*root, "cluster"))))
    if problems:
        raise InvalidInput(problems=tuple(sorted(problems)))
    return tuple(observations.values())


def _items(value: Json) -> Iterator[tuple[Loc, Json]]:
    """Yield the observations of a document with their places."""
    items = value.get("items") if isinstance(value, Mapping) and value.keys() <= _LIST_FIELDS else None
    if isinstance(items, Sequence):
        yield from ((("items", index), item) for index, item in enumerate(items))
    else:
        yield (), value


def _observation(value: Json) -> tuple[ClusterObservation | None, tuple[Finding, ...]]:
    """Read one observation."""
    try:
        file = ObservationFile.model_validate(value)
    except ValidationError as error:
        return None, validation_findings(error, ObservationFile)
    queues, unreadable = _queues(file)
    evicted = {PlacementName(placed.name): _evicted(placed.evicted) for placed in file.placements if placed.evicted}
    observation = ClusterObservation(
        cluster=ClusterName(file.cluster),
        observed_at=file.observed_at,
        healthy=file.healthy,
        message=file.message,
        pools=tuple(_pool(pool) for pool in file.pools),
        closed=tuple(_closed_nodes(file)),
        workloads=tuple(_workload(workload) for workload in file.workloads),
        objects=by_name(map(_object, file.objects)),
        unplaced=sorted_refs(_ref(workload) for workload in file.workloads if workload.placement is None),
        bound={PlacementName(placed.name): placed.bound for placed in file.placements},
        ready={PlacementName(placed.name): placed.ready for placed in file.placements if placed.ready is not None},
        pending_pods={PlacementName(placed.name): pods for placed in file.placements if (pods := _homeless(placed))},
        gpu_pods={PlacementName(placed.name): _gpu_pods(placed) for placed in file.placements if placed.gpu_pods},
        unused={
            PlacementName(placed.name): placed.unused_since
            for placed in file.placements
            if placed.unused_since is not None
        },
        succeeded={
            PlacementName(placed.name): SucceededPods(pods=None, at=placed.completion_time)
            for placed in file.placements
            if placed.completion_time is not None
        },
        waiting_reasons={
            **evicted,
            **{
                PlacementName(placed.name): engine_message(placed.message)
                for placed in file.placements
                if _is_of_pods(placed)
            },
        },
        reports={report.path: report for report in _reports(file)},
        api_versions=None if file.api_versions is None else frozenset(file.api_versions),
        runtime_classes=_runtime_classes(file),
        limit_ranges=by_namespace(
            (f"{limits.namespace}/", resources(limits.default_request)) for limits in file.limit_ranges
        ),
        limit_range_items=bounds_by_namespace(
            (f"{limits.namespace}/", _bounds(limits)) for limits in file.limit_ranges
        ),
        quotas=quotas_by_namespace(
            (f"{quota.namespace}/{quota.name}", _quota(quota)) for quota in file.resource_quotas
        ),
        priority_class=file.default_priority_class,
        node_pools=_node_pools(file),
        queues=queues,
        reserved={
            PlacementName(placed.name): placed.bound if placed.reserved is None else placed.reserved
            for placed in file.placements
        },
        unadmitted=evicted,
        evicted=evicted,
    )
    return observation, (*_from_the_future(file), *_repeated_node_pools(file), *unreadable)


_QUEUES: Mapping[str, Callable[[Json], object]] = {
    f"{GROUP}/LocalQueue": read_local_queue,
    f"{GROUP}/ClusterQueue": read_cluster_queue,
    f"{GROUP}/Cohort": read_cohort,
    f"{GROUP}/ResourceFlavor": read_resource_flavor,
    "/Namespace": read_namespace_labels,
}
"""The objects of `queues`, each with how it is read."""
_QUANTITIES = frozenset({"nominalQuota", "borrowingLimit", "lendingLimit", "total", "borrowed"})
"""Fields of ClusterQueues and Cohorts that are quantities."""


def _queues(file: ObservationFile) -> tuple[KueueQueues | None, tuple[Finding, ...]]:
    """Read the queues of Kueue, which are there as kubectl prints them."""
    read: dict[str, dict[str, Any]] = {kind: {} for kind in _QUEUES}
    findings: list[Finding] = []
    for place, each in enumerate(file.queues or ()):
        raw = each.model_dump(by_alias=True)
        kind = group_kind(raw)
        if kind not in _QUEUES:
            findings.append(_no_queue(each, ("queues", place)))
            continue
        wrong = [*_wrong_quantities(raw, ("queues", place))]
        if wrong:
            findings += wrong
            continue
        try:
            read[kind][key_of(raw)] = _QUEUES[kind](raw)
        except (AttributeError, LookupError, TypeError, ValueError):
            message = f"{shortened(f'{kind} {each.metadata.name}')} is not as Kueue writes it"
            findings.append(Finding(loc=("queues", place), message=message, hint="try it as kubectl prints it"))
    if file.queues is None or findings:
        return None, tuple(findings)
    local, clusters, cohorts, flavors, namespaces = read.values()
    return kueue_queues(local, clusters, cohorts, flavors, namespaces or None), ()


def _no_queue(file: ObjectFile, loc: Loc) -> Finding:
    """Report an object that is none of Kueue's queues, at the field that says so."""
    known = {kind.rpartition("/")[2]: kind.rpartition("/")[0] for kind in _QUEUES}
    if file.kind in known:
        message = f"{file.kind} is not of {shortened(file.api_version)}"
        versions = f"{known[file.kind]}/v1beta2 or v1beta1" if known[file.kind] else "v1"
        return Finding(loc=(*loc, "apiVersion"), message=message, hint=f"try {versions}")
    names = ", ".join(f"{kind} of {group}" if group else f"{kind} of v1" for kind, group in known.items())
    return Finding(loc=(*loc, "kind"), message=f"{shortened(file.kind)} is no queue of Kueue", hint=f"one of {names}")


def _wrong_quantities(value: Json, loc: Loc) -> Iterator[Finding]:
    """Find the amounts of quotas that are no quantities, anywhere in an object of Kueue."""
    if isinstance(value, Mapping):
        for key, child in value.items():
            if key not in _QUANTITIES:
                yield from _wrong_quantities(child, (*loc, str(key)))
            elif child is not None:
                try:
                    parse_amounts({key: child})
                except ValueError:
                    message = f"{shortened(str(child))!r} is no quantity"
                    yield Finding(loc=(*loc, str(key)), message=message, hint="try a number, as 8 or 500m or 64Gi")
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _wrong_quantities(child, (*loc, index))


def _homeless(file: PlacedFile) -> PendingPods | None:
    """Read how many pods of a placement have no node, and since when the first of them has had none."""
    waiting = [entry for entry in file.waiting if entry.pods]  # an entry without pods sets no time, as below
    if not waiting:
        return None
    since = min((entry.since for entry in waiting if entry.since is not None), default=None)
    return PendingPods(replicas=sum(entry.pods for entry in waiting), shape=None, since=since)


def _gpu_pods(file: PlacedFile) -> tuple[GpuPod, ...]:
    """Read the pods of a placement that have GPUs."""
    return tuple(GpuPod(namespace=pod.namespace, name=pod.name, gpus=pod.gpus) for pod in file.gpu_pods)


def _from_the_future(file: ObservationFile) -> Iterator[Finding]:
    """Find what lies after the observation: pods that have waited since then never do so for long enough."""
    condition = "try the lastTransitionTime of the pod's condition PodScheduled"
    for loc, moment, hint in _moments(file):
        if moment is not None and moment > file.observed_at + _CLOCK_SKEW:
            yield Finding(loc=loc, message=f"{format_time(moment)} is after observedAt", hint=hint or condition)


def _moments(file: ObservationFile) -> Iterator[tuple[Loc, datetime | None, str]]:
    """Yield the times that are not after the observation, each with a hint; an empty one for those of waiting pods."""
    for place, placed in enumerate(file.placements):
        root: Loc = ("placements", place)
        yield (
            (*root, "completionTime"),
            placed.completion_time,
            "try the completionTime of the Job, and none while it runs",
        )
        yield (*root, "unusedSince"), placed.unused_since, "try the time of the last sample"
        for index, pods in enumerate(placed.waiting):
            yield (*root, "waiting", index, "since"), pods.since, ""
    for place, workload in enumerate(file.workloads):
        root = ("workloads", place)
        yield (*root, "deficitSince"), workload.deficit_since, "try the time since when replicas have been missing"
        for index, waiting in enumerate(workload.unschedulable):
            yield (*root, "unschedulable", index, "since"), waiting.since, ""
        for index, blocked in enumerate(workload.blocked):
            yield (
                (*root, "blocked", index, "since"),
                blocked.since,
                "try the time since when it waits",
            )
        for index, signal in enumerate(workload.signals):
            yield (*root, "signals", index, "since"), signal.since, "try the time since when it has asked"


def _repeated_node_pools(file: ObservationFile) -> Iterator[Finding]:
    """Find NodePools that are there more than once: of their limits only one would hold."""
    names = set[str]()
    for place, pool in enumerate(file.node_pools or ()):
        if pool.name in names:
            message = f"NodePool {shortened(pool.name)} is there twice"
            yield Finding(loc=("nodePools", place, "name"), message=message, hint="remove one of them")
        names.add(pool.name)


def _is_of_pods(file: PlacedFile) -> bool:
    """Return whether a placement's message is about its pods; beside a state it is the engine's."""
    return file.state is None and bool(file.message)


def _reports(file: ObservationFile) -> Iterator[EngineReport]:
    """Read the reports of engines on placements."""
    for placed in file.placements:
        if placed.state is not None:
            yield EngineReport(
                cluster=ClusterName(file.cluster),
                placement=PlacementName(placed.name),
                digest=placed.digest,
                revision=placed.revision,
                state=placed.state,
                message=engine_message(placed.message),
                since=placed.since,
                source=ReportedSource(branch=placed.branch, repo_url=placed.repo_url) if placed.branch else None,
            )


def _pool(file: PoolFile) -> Pool:
    """Read a pool, leaving out the nodes that no pod can go to."""
    allocatable = resources(file.allocatable)
    return Pool(
        name=file.name,
        nodes=tuple(_node(node, allocatable) for node in file.nodes if _is_open(node)),
        labels=file.labels,
        taints=tuple(taint.value_of() for taint in file.taints),
    )


def _is_open(file: NodeFile) -> bool:
    return file.ready and not file.cordoned


def _closed_nodes(file: ObservationFile) -> Iterator[ClosedNode]:
    """Read the nodes that no pod can go to, with the labels of their pools."""
    for pool in file.pools:
        allocatable = resources(pool.allocatable)
        for node in pool.nodes:
            if not _is_open(node):
                labels = {**pool.labels, **node.labels}
                yield ClosedNode(
                    name=node.name,
                    allocatable=_allocatable(node, allocatable),
                    ready=node.ready,
                    labels=labels,
                    pods=_pods(node),
                )


def _node(file: NodeFile, pool: Resources) -> Node:
    """Read a node."""
    allocatable = _allocatable(file, pool)
    taints: tuple[Taint, ...] = tuple(taint.value_of() for taint in file.taints)
    free = allocatable.minus(resources(file.used))
    return Node(name=file.name, free=free, allocatable=allocatable, labels=file.labels, taints=taints, pods=_pods(file))


def _pods(file: NodeFile) -> tuple[PodOnNode, ...] | None:
    """Read which pods are on a node; None where the file does not tell."""
    return None if file.pods is None else tuple(pod for entry in file.pods for pod in entry.value_of())


def _allocatable(file: NodeFile, pool: Resources) -> Resources:
    """Read the allocatable resources of a node; its own entries go before those of its pool."""
    if not file.allocatable:
        return pool
    return Resources(amounts={**pool.amounts, **resources(file.allocatable).amounts})


def _object(file: ObjectFile) -> ObservedObject:
    """Read an object that a template is made from."""
    return observed_object(file.model_dump(mode="json", by_alias=True, exclude_unset=True))


def _ref(file: WorkloadFile) -> WorkloadRef:
    return WorkloadRef(namespace=file.namespace, name=file.name, kind=file.kind)


def _blocked(file: BlockedFile) -> BlockedReplicas:
    """Read pods that wait for something else than room; without a cause their reason says what it is."""
    said = DefaultCause(file.cause, file.way_out) if file.cause else DEFAULT_CAUSES[file.reason]
    return BlockedReplicas(
        replicas=file.replicas,
        since=file.since,
        reason=file.reason,
        cause=said.cause,
        way_out=file.way_out or said.way_out,
    )


def _evicted(words: str) -> str:
    """Return a queue's words on an eviction, which may name only why it evicted."""
    said = engine_message(words)
    return said if "evict" in said.lower() else f"evicted: {said}"


def _workload(file: WorkloadFile) -> WorkloadObservation:
    """Read a workload."""
    return WorkloadObservation(
        ref=_ref(file),
        wanted=file.wanted,
        running=file.running,
        waiting=tuple(  # an entry without replicas sets no time
            MissingReplicas(replicas=waiting.replicas, since=waiting.since, cause=waiting.cause)
            for waiting in file.unschedulable
            if waiting.replicas
        ),
        blocked=tuple(
            _blocked(blocked) for blocked in sorted(file.blocked, key=lambda blocked: blocked.since) if blocked.replicas
        ),
        deficit_since=file.deficit_since,
        held=file.held,
        release=file.release if "/" in file.release or not file.release else f"{file.namespace}/{file.release}",
        shape=None if file.replica is None else _shape(file.replica, file.namespace),
        asks=tuple(
            ReplicaRequest(
                signal=signal.name,
                replicas=signal.replicas,
                since=signal.since,
                cause=signal.cause,
                beyond=signal.beyond_wanted,
            )
            for signal in file.signals
            if signal.replicas
        ),
        containers=tuple(sorted(map(_container, file.containers), key=lambda summary: summary.name)),
    )


def _container(file: ContainerFile) -> ContainerSummary:
    """Read a container; a field that is absent is unknown."""
    command = {part: words for part, words in (("command", file.command), ("args", file.args)) if words}
    requests = {name: format_quantity(amount) for name, amount in (file.requests or {}).items()}
    summary = summary_of(file.name, file.image or "", command, {"requests": requests})
    return replace(
        summary,
        image=None if file.image is None else summary.image,
        command=None if file.command is None and file.args is None else summary.command,
        resources=None if file.requests is None else summary.resources,
    )


def _runtime_classes(file: ObservationFile) -> dict[str, RuntimeClass] | None:
    """Read what RuntimeClasses add to pods; None where the file does not list them."""
    if file.runtime_classes is None:
        return None
    return {
        runtime_class.name: RuntimeClass(
            overhead=resources(runtime_class.overhead),
            node_selector=runtime_class.node_selector,
            tolerations=tuple(toleration.value_of() for toleration in runtime_class.tolerations),
        )
        for runtime_class in file.runtime_classes
    }


def _bounds(file: LimitRangeFile) -> LimitRange:
    """Read the default limits and the bounds of a LimitRange."""
    stated = (file.default, file.min, file.max, file.max_limit_request_ratio)
    default, least, most, ratio = (tuple(sorted(resources(part).amounts.items())) for part in stated)
    item = LimitRangeItem(
        limit_range=file.name,
        of_pod=file.type == "Pod",
        of_claim=file.type == "PersistentVolumeClaim",
        default=default,
        least=least,
        most=most,
        ratio=ratio,
    )
    return LimitRange(items=(item,) if default or least or most or ratio else ())


def _quota(file: ResourceQuotaFile) -> ResourceQuota:
    """Read a ResourceQuota."""
    expressions = (scope.model_dump(mode="json", by_alias=True) for scope in file.scope_selector)
    return ResourceQuota(
        name=file.name,
        hard=resources(file.hard),
        used=resources({**dict.fromkeys(file.hard, 0), **file.used}),
        scopes=tuple(read_scopes(file.scopes, expressions)),
    )


def _node_pools(file: ObservationFile) -> dict[str, NodePool] | None:
    """Read the NodePools; None where the file does not list them."""
    if file.node_pools is None:
        return None
    return {
        pool.name: NodePool(
            limits=resources(pool.limits),
            used=resources(pool.resources),
            obstacle=pool.not_ready and f"is not Ready: {as_clause(engine_message(pool.not_ready))}",
            taints=tuple(taint.value_of() for taint in pool.taints),
            labels=pool.labels,
            requirements={key: tuple(sorted(set(values))) for key, values in sorted(pool.requirements.items())},
        )
        for pool in file.node_pools
    }


def _shape(file: ReplicaFile, namespace: str) -> ReplicaShape:
    """Read the shape of one replica; its rules are read as those of a pod are."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    raw = file.model_dump(mode="json", by_alias=True, exclude_none=True)
    spec = {
        "affinity": {kind: {required: raw[kind]} for kind in ("podAffinity", "podAntiAffinity")},
        "topologySpreadConstraints": raw["topologySpreadConstraints"],
        "containers": [{"ports": raw["hostPorts"]}],
    }
    rules, obstacle = pod_rules(spec, {"labels": file.labels, "namespace": namespace}, whole=bool(file.labels))
    requests = resources(file.requests)
    return ReplicaShape(
        requests=requests,
        node_selector=file.node_selector,
        node_terms=tuple(term.value_of() for term in file.node_selector_terms),
        tolerations=tuple(toleration.value_of() for toleration in file.tolerations),
        group_size=file.group_size,
        rules=rules,
        obstacle=obstacle or gpu_part_obstacle(requests.amounts, {"labels": file.labels}),
        who=pod_identities({"labels": file.labels, "namespace": namespace}) if file.labels else (),
        unstated=_unstated_requests(file),
        admission=(PodAdmission(namespace=namespace),),
    )


def _unstated_requests(file: ReplicaFile) -> UnstatedRequests | None:
    """Read what a replica leaves to clusters; None where it leaves them nothing."""
    if not file.runtime_class_name and not file.unrequested:
        return None
    return UnstatedRequests(
        runtime_class=file.runtime_class_name,
        overhead=sorted_amounts(resources(file.overhead).amounts),
        silent=tuple(sorted(file.unrequested.items())),
    )
