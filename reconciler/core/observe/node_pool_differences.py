"""Warnings of declared nodes that part from the NodePool of Karpenter that they are launched for.

Nodes to come are counted with the taints and labels of their NodePool, beside those that their Cluster declares. Where
the two disagree, a person has forgotten one of them: without its NodePool's taint, a Cluster seems to have room for
pods that do not tolerate it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from reconciler.errors import Problem, Severity
from reconciler.model.capacity import NodePool, Observed
from reconciler.model.cluster import NODE_POOL_LABEL, ScalableNodes
from reconciler.model.kubernetes.scheduling import Taint
from reconciler.model.policy import Cluster, Desired
from reconciler.text.findings import shortened
from reconciler.text.spelling import nearest
from reconciler.text.wording import join_names

REASON = "NodePoolDiffers"
"""The word that these warnings begin with, for searches of logs."""


def with_node_pool_differences(observed: Observed, desired: Desired) -> Observed:
    """Add a warning for each declaration of nodes that parts from their NodePool, where NodePools are known."""
    problems = [
        problem
        for name, cluster in sorted(desired.clusters.items())
        if cluster.has_node_pools and name in observed.clusters
        for problem in _problems(cluster, observed.clusters[name].node_pools)
    ]
    return replace(observed, problems=(*observed.problems, *problems)) if problems else observed


def node_pool_differences(nodes: ScalableNodes, pool: NodePool) -> Iterator[str]:
    """Say in what declared nodes part from their NodePool: taints of one alone, and labels that they cannot have."""
    for taint in pool.taints:
        if taint not in nodes.taints:
            yield f"its nodes have the taint {_written(taint)}, which is not declared"
    for taint in nodes.taints:
        if taint not in pool.taints:
            yield f"its nodes do not have the taint {_written(taint)}, which is declared"
    for key, value in sorted(nodes.labels.items()):
        permitted = pool.requirements.get(key, (value,)) if key not in pool.labels else (pool.labels[key],)
        if key != NODE_POOL_LABEL and value not in permitted:
            words = join_names(map(shortened, permitted)) or "none"
            yield f"the label {shortened(key)} of its nodes is {words}, and {shortened(value)} is declared"


def _problems(cluster: Cluster, pools: Mapping[str, NodePool] | None) -> Iterator[Problem]:
    for place, nodes in enumerate(cluster.autoscaling):
        name = nodes.node_pool
        if not name or pools is None:
            continue
        if name not in pools:
            hint = nearest(name, pools) or "create it, or remove these nodes"
            yield _problem(cluster, place, f"there is no NodePool {shortened(name)}", hint)
        elif differences := [*node_pool_differences(nodes, pools[name])]:
            message = f"NodePool {shortened(name)}: {join_names(differences, 3)}"
            yield _problem(cluster, place, message, "declare the nodes as the NodePool has them")


def _problem(cluster: Cluster, place: int, message: str, hint: str) -> Problem:
    return Problem(
        path=f"cluster {cluster.name}",
        field=f"spec.autoscaling[{place}]",
        message=f"{REASON}: {message}",
        hint=hint,
        severity=Severity.WARNING,
    )


def _written(taint: Taint) -> str:
    """Write a taint as kubectl does."""
    return shortened(f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}")
