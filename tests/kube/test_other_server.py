"""A cluster that is another API server now has nothing of what it was before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.adapters.kube import KubeObservations
from reconciler.model.ids import ClusterName
from tests.builders.engine_objects import cluster_secret
from tests.builders.kube_objects import node
from tests.builders.watched_clusters import LASTING, ONE_NAME, QUICK, TWO_NAME, Fleet, seen, until
from tests.fakes.kube_api_server import Cluster, serving
from tests.kube.test_argocd_logins import OLD, Logins


@pytest.fixture
def rebuilt(clusters: Fleet) -> Cluster:
    """Serve what a cluster will be one day; versions of its predecessor are far ahead by then."""
    clusters.one.version = 5_000_000
    clusters.one.put("nodes", node("old-1"))
    successor = Cluster()
    clusters.stack.enter_context(serving(successor))
    successor.put("nodes", node("new-1"))
    return successor


@pytest.fixture
def logins(tmp_path: Path) -> Iterator[Logins]:
    with ExitStack() as stack:
        yield Logins(tmp_path, stack)


def nodes(view: KubeObservations, name: ClusterName = ONE_NAME) -> set[str]:
    observed = view.observe().clusters.get(name)
    return {one.name for pool in observed.pools for one in pool.nodes} if observed else set()


def test_context_that_leads_to_another_server_is_read_anew(clusters: Fleet, rebuilt: Cluster) -> None:
    view = clusters.following(LASTING)
    assert nodes(view) == {"gpu-1", "old-1"}
    clusters.one = rebuilt
    clusters.login()
    until(lambda: nodes(view) == {"new-1"})
    rebuilt.put("nodes", node("new-2"))
    until(lambda: nodes(view) == {"new-1", "new-2"})
    assert rebuilt.count("/nodes", watch=False) == 1
    assert view.observe().problems == ()


def test_what_was_seen_of_another_server_is_forgotten_at_once(clusters: Fleet, rebuilt: Cluster) -> None:
    view = clusters.view(replace(QUICK, answer=4))
    view.follow(clusters.desired)
    seen(view)
    rebuilt.hangs.set()
    clusters.one = rebuilt
    clusters.login()
    until(lambda: ONE_NAME not in view.observe().clusters)
    assert nodes(view, TWO_NAME) == {"gpu-1"}
    until(lambda: "did not answer in time" in str(view.observe().problems))


def test_another_token_for_the_same_server_forgets_nothing(clusters: Fleet) -> None:
    view = clusters.following(LASTING)
    until(lambda: clusters.one.count("/nodes", watch=True) == 1)  # one that is not there yet is asked for by a list
    clusters.login("other-" * 4)
    clusters.one.drop()
    until(lambda: any(token and "watch" in query for token, _, query in list(clusters.one.asked)))
    assert clusters.one.count("/nodes", watch=False) == 1
    assert nodes(view) == {"gpu-1"}


def test_secret_that_leads_to_another_server_is_read_anew(logins: Logins) -> None:
    logins.two.version = 5_000_000
    logins.two.put("nodes", node("old-1"))
    logins.store({"bearerToken": OLD})
    view = logins.following()
    assert nodes(view, TWO_NAME) == {"gpu-1", "old-1"}
    successor = Cluster()
    logins.stack.enter_context(serving(successor))
    successor.put("nodes", node("new-1"))
    logins.store({"bearerToken": OLD}, url=successor.url)
    until(lambda: nodes(view, TWO_NAME) == {"new-1"})


def test_argo_cd_at_another_server_has_other_logins(logins: Logins) -> None:
    logins.control.version = 5_000_000
    logins.store({"bearerToken": OLD})
    view = logins.following()
    assert seen(view, TWO_NAME)
    successor = Cluster()
    logins.stack.enter_context(serving(successor))
    logins.control = successor
    logins.login()
    until(lambda: TWO_NAME not in view.observe().clusters)
    successor.put("secrets", cluster_secret("worker-2", logins.two.url, {"bearerToken": OLD}))
    until(lambda: TWO_NAME in view.observe().clusters)
