"""NodePools are watched in the clusters that declare nodes of them, and keep nothing else from being seen."""

from __future__ import annotations

from reconciler.adapters.kube import KubeObservations
from reconciler.model.capacity import NodePool
from tests.builders.inputs import GPU, cluster
from tests.builders.node_pools import amounts, declared, node_pool, pool
from tests.builders.watched_clusters import TWO_NAME, Fleet, fleet, seen, until

POOLS = "/apis/karpenter.sh/v1/nodepools"
GROWING = fleet(cluster("worker-1"), cluster("worker-2", autoscaling=(declared(),)))


def following(clusters: Fleet) -> KubeObservations:
    clusters.desired = GROWING
    return clusters.following()


def pools(view: KubeObservations) -> dict[str, NodePool] | None:
    known = seen(view, TWO_NAME).node_pools
    return None if known is None else dict(known)


def test_pools_are_watched_where_nodes_of_them_are_declared_only(clusters: Fleet) -> None:
    clusters.two.put("nodepools", node_pool(limits={GPU: "16"}))
    view = following(clusters)
    assert pools(view) == {"gpu": pool(amounts(gpu="16"))}
    assert seen(view).node_pools is None
    assert not clusters.one.count(POOLS, watch=False)


def test_a_limit_that_is_used_up_wakes_the_daemon(clusters: Fleet) -> None:
    clusters.two.put("nodepools", node_pool(limits={GPU: "16"}))
    view = following(clusters)
    until(lambda: clusters.two.count(POOLS, watch=True))
    clusters.woken.clear()
    clusters.two.put("nodepools", node_pool(limits={GPU: "16"}, resources={GPU: "16"}))
    until(lambda: pools(view) == {"gpu": pool(amounts(gpu="16"), amounts(gpu="16"))})
    until(lambda: clusters.woken)


def test_without_the_right_pools_are_unknown_and_that_is_told(clusters: Fleet) -> None:
    clusters.two.refuses[POOLS] = 403
    clusters.two.put("nodepools", node_pool())
    view = following(clusters)
    assert pools(view) is None
    (problem,) = view.observe().problems
    assert problem.path == "cluster worker-2"
    assert problem.message.startswith("nodepools.karpenter.sh are not looked at: forbids it")
    assert "bootstrap/rbac.yaml" in problem.message
    clusters.two.refuses.clear()
    until(lambda: pools(view) == {"gpu": pool()})
    assert view.observe().problems == ()


def test_where_the_kind_is_not_served_pools_are_unknown_and_that_is_told(clusters: Fleet) -> None:
    clusters.two.refuses[POOLS] = 404
    view = following(clusters)
    assert pools(view) is None
    (problem,) = view.observe().problems
    assert problem.message == "nodepools.karpenter.sh are not looked at: its API server serves no such kind"
    clusters.two.refuses.clear()
    until(lambda: pools(view) == {})
    assert view.observe().problems == ()


def test_pools_are_watched_from_when_their_nodes_are_declared(clusters: Fleet) -> None:
    clusters.two.put("nodepools", node_pool())
    view = clusters.following()
    assert pools(view) is None
    view.follow(GROWING)
    until(lambda: pools(view) == {"gpu": pool()})
    view.follow(clusters.desired)
    until(lambda: pools(view) is None)
