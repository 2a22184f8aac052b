"""NodePools of Karpenter that a Cluster declares nodes of."""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.core.observe.kubernetes.capacity.node_pools import read_node_pool
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.observe.node_pool_differences import node_pool_differences
from reconciler.core.readiness.check import AskedServer, CheckResult, missing, ok, unknown
from reconciler.core.readiness.question import AnswerKind, Answers, ApiQuestion
from reconciler.model.cluster import ScalableNodes
from reconciler.text.wording import join_names

_LIST = ApiQuestion(path=Resource.NODE_POOLS.paths()[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredNodePool:
    """A NodePool, and the nodes of it that a Cluster declares (a `Check`)."""

    server: AskedServer
    nodes: ScalableNodes

    @property
    def questions(self) -> tuple[ApiQuestion, ...]:
        """All NodePools: the account of the daemon may list them, and not get one."""
        return (_LIST,)

    def result(self, answers: Answers) -> CheckResult:
        """Say whether it is there, whether nodes are launched for it, and in what the declared nodes part from it."""
        name, answer = self.nodes.node_pool, answers[_LIST]
        subject = f"NodePool {name}"
        look = self.server.kubectl("describe", Resource.NODE_POOLS.full_name, name)
        if answer.open:
            return unknown(subject, answer.why, look)
        items = (answer.body or {}).get("items") or () if answer.kind is AnswerKind.GIVEN else ()
        raw = next((item for item in items if item["metadata"]["name"] == name), None)
        if raw is None:
            seen = "not there" if answer.kind is AnswerKind.GIVEN else "its API server serves no NodePools"
            return missing(subject, seen, self.server.kubectl("get", Resource.NODE_POOLS.full_name))
        pool = read_node_pool(raw)
        faults = [*([pool.obstacle] if pool.obstacle else ()), *node_pool_differences(self.nodes, pool)]
        return missing(subject, join_names(faults, 3), look) if faults else ok(subject, "there, and Ready")
