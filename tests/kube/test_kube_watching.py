"""Clusters are listed once and watched from then on, each by itself, whatever happens to the connection."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.model.ids import PlacementName
from reconciler.model.kubernetes.workload_kind import Mark, WorkloadKind
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.policy import Connection
from reconciler.model.workload import WorkloadRef
from tests.builders.inputs import VLLM, cluster, desired
from tests.builders.kube_objects import GPU, NO_GPU, node, pod, workload
from tests.builders.watched_clusters import LASTING, ONE_NAME, QUICK, TWO_NAME, Fleet, fleet, free, seen, until
from tests.fakes.kube_api_server import kubeconfig


def test_first_list_is_read_page_by_page(clusters: Fleet) -> None:
    for index in range(7):
        clusters.one.put("pods", pod(f"a-{index}", on="gpu-1"))
    view = clusters.following(LASTING)
    assert free(view) == 1
    assert clusters.one.count("/pods", watch=False) == 3


def test_requests_are_measured_by_cluster_verb_and_code(clusters: Fleet) -> None:
    view = clusters.following(LASTING)
    assert free(view) == 8
    until(lambda: clusters.one.count("/nodes", watch=True))

    def requests(verb: str) -> float:
        labels = {"cluster": "worker-1", "verb": verb, "code": "200"}
        return clusters.process.registry.get_sample_value("overspill_kubernetes_requests_total", labels) or 0

    assert requests("list") == clusters.one.count("", watch=False) - requests("get")
    until(lambda: requests("watch") > 0)


def test_workloads_are_looked_for_on_their_primary_only(clusters: Fleet) -> None:
    clusters.one.put("deployments", workload("vllm", 3))
    clusters.one.put("replicasets", workload("vllm-1", 3, owner=("Deployment", "vllm")))
    clusters.one.put("pods", pod("vllm-1-a", on="gpu-1"))
    clusters.one.put("pods", pod("vllm-1-b", waits=NO_GPU))
    view = clusters.following()
    (found,) = seen(view).workloads
    assert (found.ref.kind, found.wanted, found.running) == ("Deployment", 3, 1)
    assert [wait.cause for wait in found.waiting] == [f"insufficient {GPU}"]
    assert clusters.two.selectors("/deployments") == {PLACEMENT_LABEL}


def test_change_is_seen_and_wakes_the_daemon(clusters: Fleet) -> None:
    view = clusters.following()
    until(lambda: clusters.woken)
    clusters.woken.clear()
    clusters.two.put("pods", pod("b", on="gpu-1", labels={"overspill.dev/placement": "vllm-7f3a"}))
    until(lambda: seen(view, TWO_NAME).bound == {PlacementName("vllm-7f3a"): 1})
    until(lambda: clusters.woken)
    clusters.two.delete("pods", "b", "demo")
    until(lambda: free(view, TWO_NAME) == 8)


def test_change_that_decides_nothing_wakes_nobody(clusters: Fleet) -> None:
    view = clusters.following()
    until(lambda: clusters.woken)
    time.sleep(0.2)
    clusters.woken.clear()
    told = node("gpu-1")
    told["status"]["conditions"][0]["lastHeartbeatTime"] = "2026-11-20T10:05:00Z"
    clusters.one.put("nodes", told)
    clusters.one.put("nodes", node("gpu-2"))
    until(lambda: free(view) == 16)
    until(lambda: clusters.woken)
    assert len(clusters.woken) == 1


def test_broken_watch_goes_on_from_where_it_was(clusters: Fleet) -> None:
    view = clusters.following(LASTING)
    clusters.one.drop()
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7)
    assert clusters.one.count("/pods", watch=False) == 1
    assert view.observe().problems == ()


def test_bookmark_moves_the_version_on(clusters: Fleet) -> None:
    view = clusters.following(LASTING)
    until(lambda: clusters.one.count("/pods", watch=True) and clusters.one.count("/nodes", watch=True))
    clusters.one.bookmark()
    version = str(clusters.one.version)
    time.sleep(0.3)
    clusters.one.forget_history()
    clusters.one.drop()
    until(lambda: any(query.get("resourceVersion") == version for _, _, query in list(clusters.one.asked)))
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7)
    assert clusters.one.count("/pods", watch=False) == 1


def test_version_that_is_gone_is_listed_anew(clusters: Fleet) -> None:
    clusters.one.put("pods", pod("a", on="gpu-1"))
    clusters.one.put("pods", pod("b", on="gpu-1"))
    view = clusters.following(LASTING)
    with clusters.one.changed:  # what happens is missed: the watches break, and the history is cut off
        clusters.one.delete("pods", "a", "demo")
        clusters.one.events.clear()
        clusters.one.forget_history()
        clusters.one.drop()
    until(lambda: free(view) == 7)
    assert clusters.one.count("/pods", watch=False) == 2


def test_gone_in_the_middle_of_a_watch_is_listed_anew(clusters: Fleet) -> None:
    view = clusters.following(LASTING)
    until(lambda: clusters.one.count("/pods", watch=True))
    with clusters.one.changed:
        clusters.one.version += 1
        status = {"kind": "Status", "code": 410, "message": "too old resource version", "metadata": {}}
        clusters.one.events.append((clusters.one.version, "pods", "ERROR", status))
        clusters.one.changed.notify_all()
    until(lambda: clusters.one.count("/pods", watch=False) == 2)
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7)


def test_expired_token_is_read_anew(clusters: Fleet) -> None:
    old, new = "old-" * 4, "new-" * 4
    clusters.login(old)
    clusters.one.token = clusters.two.token = old
    view = clusters.following()
    assert free(view) == 8
    clusters.one.token = clusters.two.token = new
    clusters.one.drop()
    told = "does not take our credentials (make a new login for context worker-1 in the kubeconfig"
    until(lambda: told in str(view.observe().problems))
    clusters.login(new)
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7)
    until(lambda: not any(problem.path == "cluster worker-1" for problem in view.observe().problems))


def test_login_plugin_is_asked_for_the_token_and_again_when_that_expires(clusters: Fleet, tmp_path: Path) -> None:
    given = tmp_path / "token"
    given.write_text("first-" * 4)
    clusters.one.token = given.read_text()
    answer = "{kind: ExecCredential, apiVersion: client.authentication.k8s.io/v1, status: {token: '%s'}}"
    plugin = f"import json, yaml; print(json.dumps(yaml.safe_load({answer!r} % open({str(given)!r}).read())))"
    config = json.loads(clusters.path.read_text())
    asks = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", plugin]}
    config["users"] = [{"name": "reader", "user": {"exec": asks}}]
    clusters.path.write_text(json.dumps(config))
    view = clusters.following()
    assert free(view) == 8
    given.write_text("second-" * 4)
    clusters.one.token = given.read_text()
    clusters.one.drop()
    clusters.one.put("pods", pod("a", on="gpu-1"))
    until(lambda: free(view) == 7, seconds=15)


def test_workload_that_is_asked_for_later_is_looked_for(clusters: Fleet) -> None:
    clusters.one.put("deployments", workload("vllm", 3))
    view = clusters.view()
    view.follow(desired(clusters=clusters.desired.clusters.values(), policies={}))
    assert seen(view).workloads == ()
    assert clusters.one.selectors("/deployments") == {PLACEMENT_LABEL}
    view.follow(clusters.desired)
    until(lambda: [one.wanted for one in seen(view).workloads] == [3])
    view.follow(desired(clusters=clusters.desired.clusters.values(), policies={}))
    assert seen(view).workloads == ()


def test_pods_are_known_by_the_labels_of_a_kind_that_is_declared_later(clusters: Fleet) -> None:
    clusters.one.put("pods", pod("a", waits=NO_GPU, owner=("Room", "x"), labels={"game.example.com/set": "vllm"}))
    view = clusters.view()
    games = replace(clusters.desired.templates[VLLM], ref=WorkloadRef(namespace="demo", name="vllm", kind="Games"))
    before = replace(clusters.desired, templates={VLLM: games})
    view.follow(before)
    assert seen(view).workloads == ()
    kind = WorkloadKind(group="game.example.com", kind="Games", marks=(Mark(label="game.example.com/set"),))
    view.follow(replace(before, kinds={kind.name: kind}))
    until(lambda: [(one.ref.kind, one.wanted) for one in seen(view).workloads] == [("Games", 1)])


def test_cluster_that_hangs_holds_up_no_other(clusters: Fleet) -> None:
    clusters.one.hangs.set()
    view = clusters.view(replace(QUICK, answer=4), patience=timedelta())
    view.follow(clusters.desired)
    until(lambda: TWO_NAME in view.observe().clusters, seconds=4)
    assert ONE_NAME not in view.observe().clusters
    until(lambda: any("did not answer in time" in problem.message for problem in view.observe().problems))


def test_time_of_a_quiet_cluster_moves_on(clusters: Fleet) -> None:
    view = clusters.following()
    first = seen(view).observed_at
    until(lambda: seen(view).observed_at > first)


def test_time_of_a_cluster_comes_back_with_the_clock(clusters: Fleet) -> None:
    clusters.clock.ahead = timedelta(hours=1)
    view = clusters.following()
    clusters.clock.ahead = timedelta()
    until(lambda: seen(view).observed_at <= clusters.clock.now())


def test_cluster_out_of_reach_grows_stale_and_keeps_what_was_seen(clusters: Fleet) -> None:
    view = clusters.following()
    clusters.one.hangs.set()
    clusters.one.drop()
    until(lambda: any("cluster worker-1" in problem.path for problem in view.observe().problems))
    last = seen(view).observed_at
    time.sleep(1.2)
    assert seen(view).observed_at == last
    assert free(view) == 8
    clusters.two.bookmark()
    until(lambda: datetime.now(UTC) - seen(view, TWO_NAME).observed_at < timedelta(seconds=2))
    clusters.one.hangs.clear()
    until(lambda: seen(view).observed_at > last)
    until(lambda: view.observe().problems == ())


def test_named_context_that_is_missing_is_told(clusters: Fleet) -> None:
    clusters.desired = fleet(
        cluster("worker-1", connection=Connection(context="nowhere")), cluster("worker-2"), cluster("worker-3")
    )
    view = clusters.following()
    (problem,) = view.observe().problems
    assert problem.path == "cluster worker-1"
    assert "nowhere" in problem.message
    assert set(view.observe().clusters) == {TWO_NAME}


def test_cluster_that_leaves_the_fleet_is_let_go(clusters: Fleet) -> None:
    view = clusters.following()
    view.follow(fleet(cluster("worker-1")))
    assert set(view.observe().clusters) == {ONE_NAME}


def test_new_context_of_the_kubeconfig_is_noticed(clusters: Fleet) -> None:
    kubeconfig(clusters.path, ("worker-1", clusters.one.url))
    view = clusters.following()
    assert set(view.observe().clusters) == {ONE_NAME}
    clusters.login()
    view.follow(clusters.desired)
    assert set(view.observe().clusters) == {ONE_NAME, TWO_NAME}
