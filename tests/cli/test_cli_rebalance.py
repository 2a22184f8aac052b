"""`rebalance`: what a workload has elsewhere, shared out again because a person asks for it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal, on, over, push_first, shown_then_done


@pytest.fixture
def lopsided(overspill: Terminal, see: See) -> str:
    """Burst to worker-3 alone, which comes last, and let worker-2 have room afterwards; return the placement's name."""
    see(missing=3, worker_2=0, worker_3=4)
    (placed,) = [one["change"] for one in overspill.answer("once")["commits"] if one["change"]]
    see(missing=3, worker_2=2, worker_3=4)
    return str(placed["placement"]["name"])


def shares(overspill: Terminal) -> dict[str, int]:
    placements = [one["placement"] for one in overspill.answer("status")["placements"]]
    return {one["cluster"]: one["replicas"] for one in placements}


@pytest.mark.usefixtures("lopsided")
def test_each_cluster_gets_what_it_would_if_nothing_stood(overspill: Terminal) -> None:
    assert overspill.done("plan").startswith("Nothing to change.")  # steady by default
    shown = overspill.done("rebalance", "llm/vllm", "--author", ANN)
    assert "Pushed 2 commits to placements" in shown
    assert shares(overspill) == {"worker-2": 2, "worker-3": 1}


@pytest.mark.usefixtures("lopsided")
def test_a_dry_run_shows_the_shares_and_why_and_leaves_all_as_it_is(overspill: Terminal, fleet: Remote) -> None:
    before = shares(overspill)
    shown = overspill.done("rebalance", "llm/vllm", "--author", ANN, "--dry-run")
    assert "rebalanced by Ann: worker-2 had none of 3 replicas and gets 2" in shown
    assert shares(overspill) == before
    subjects = shown_then_done(overspill, fleet, "rebalance", "llm/vllm", "--author", ANN)
    assert subjects == [
        "resize(llm/vllm): 3 to 1 replica on worker-3",
        "burst(llm/vllm): 2 replicas on worker-2 for 10m",
    ]


@pytest.mark.usefixtures("lopsided")
def test_no_pass_undoes_it(overspill: Terminal, see: See) -> None:
    overspill.done("rebalance", "vllm", "--author", ANN)
    assert overspill.answer("once")["commits"] == []
    see(missing=3, worker_2=0, worker_3=6)
    assert overspill.answer("once")["commits"] == []


def test_the_commits_are_in_the_name_of_who_asked_and_say_what_each_cluster_had(
    overspill: Terminal, fleet: Remote, lopsided: str
) -> None:
    overspill.done("rebalance", "llm/vllm", "--author", ANN, "--reason", "worker-2 is nearer")
    log = " ".join(fleet.git("log", "-2", "--format=%an %cn: %B", "placements").split())
    assert log.count("Ann Overspill: ") == 2
    assert "Rebalanced by Ann: worker-3 had 3 of 3 replicas and gets 1; worker-2 is nearer." in log
    assert "Rebalanced by Ann: worker-2 had none of 3 replicas and gets 2;" in log
    assert f"it ends when {lopsided} on worker-3 would have; worker-2 is nearer." in log
    assert "worker-2 chosen: 2 GPUs free, 2 replicas fit." in log


@pytest.mark.usefixtures("lopsided")
def test_the_end_of_the_replicas_stays(overspill: Terminal) -> None:
    ends = {one["placement"]["expiresAt"] for one in overspill.answer("status")["placements"]}
    overspill.done("rebalance", "llm/vllm", "--author", ANN)
    assert {one["placement"]["expiresAt"] for one in overspill.answer("status")["placements"]} == ends


@pytest.mark.usefixtures("lopsided")
def test_it_leaves_no_hold_and_no_cool_down(overspill: Terminal) -> None:
    overspill.done("rebalance", "llm/vllm", "--author", ANN)
    assert overspill.answer("explain", "llm/vllm")["restraints"] == []


def test_nothing_to_do_writes_nothing(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    overspill.done("once")
    before = fleet.tip("placements")
    assert overspill.done("rebalance", "llm/vllm", "--author", ANN) == (
        "Nothing to rebalance: each cluster has its share.\n"
    )
    assert fleet.tip("placements") == before


def test_before_the_first_burst_it_begins_no_branch(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    overspill.done("rebalance", "llm/vllm", "--author", ANN)
    assert fleet.tip("placements") is None


def test_it_is_tried_again_when_the_branch_moves_under_it(overspill: Terminal, fleet: Remote, lopsided: str) -> None:
    push_first(fleet, "First")
    assert "resize(llm/vllm): 3 to 1 replica on worker-3 (rebalanced by Ann: " in overspill.done(
        "rebalance", "llm/vllm", "--author", ANN
    )
    assert "First" in fleet.subjects("placements")[:3]
    assert lopsided in str(fleet.files("placements", "clusters/worker-3"))


def test_a_template_that_cannot_be_filled_in_for_a_cluster_leaves_that_one_out(
    overspill: Terminal, fleet: Remote, lopsided: str
) -> None:
    picky = "\"{{ 2 if cluster.name == 'worker-3' else cluster.labels['zone'] }}\""
    template = SOURCE_FILES["template.yaml"].replace('"{{ replicas }}"', picky)
    fleet.commit("main", {"template.yaml": template}, at=datetime.now(UTC))
    before = fleet.tip("placements")
    assert overspill.done("rebalance", "llm/vllm", "--author", ANN).startswith("Nothing to rebalance")
    assert (fleet.tip("placements"), shares(overspill)) == (before, {"worker-3": 3})


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("llm/vlm", "no workload 'llm/vlm' (did you mean llm/vllm?)"),
        ("nothing-like-it", "no workload 'nothing-like-it' (there are: llm/vllm)"),
    ],
)
def test_what_is_no_workload_is_refused_with_what_there_is(
    overspill: Terminal, lopsided: str, named: str, told: str
) -> None:
    result = overspill("rebalance", named, "--author", ANN)
    assert (result.exit_code, result.stderr) == (1, f"error: {told}\n")
    result = overspill("rebalance", lopsided, "--author", ANN)
    assert (result.exit_code, "is a placement; name its workload: llm/vllm" in result.stderr) == (1, True)


def test_subsets_of_a_spread_are_filled_in_order_as_if_nothing_stood(
    overspill: Terminal, fleet: Remote, lopsided: str
) -> None:
    fleet.commit("main", over(f"name: near, {on('worker-2')}", "name: far"), at=datetime.now(UTC))
    assert overspill.done("plan").startswith("Nothing to change."), lopsided
    subjects = shown_then_done(overspill, fleet, "rebalance", "llm/vllm", "--author", ANN)
    assert subjects == [
        "resize(llm/vllm): 3 to 1 replica on worker-3",
        "burst(llm/vllm): 2 replicas on worker-2/near for 10m",
    ]
    assert fleet.git("log", "-1", "--format=%an", "placements") == "Ann"
    assert overspill.answer("once")["commits"] == []


REFUSED = {
    "in groups": {
        "template.yaml": """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {name: vllm, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  manifestResources:
    - name: server
      manifest:
        apiVersion: leaderworkerset.x-k8s.io/v1
        kind: LeaderWorkerSet
        metadata: {name: vllm, namespace: demo}
        spec:
          replicas: "{{ replicas }}"
          leaderWorkerTemplate:
            size: 2
            workerTemplate: {spec: {containers: [{name: server, image: registry.example.com/vllm:1.0}]}}
  steps: [{name: server, type: manifest}]
"""
    },
    "it has no policy": {"policies.yaml": None},
}


@pytest.mark.parametrize("told", REFUSED)
def test_what_is_not_shared_out_is_refused(overspill: Terminal, fleet: Remote, lopsided: str, told: str) -> None:
    fleet.commit("main", REFUSED[told], at=datetime.now(UTC))
    before = fleet.tip("placements")
    result = overspill("rebalance", "llm/vllm", "--author", ANN)
    assert (result.exit_code, told in result.stderr) == (1, True), result.stderr
    assert fleet.tip("placements") == before, lopsided


def test_a_request_is_refused(overspill: Terminal, fleet: Remote, see: See) -> None:
    request = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: eval, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  clusters: [worker-2]
  burstDuration: 10m
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: eval, namespace: demo}
        spec:
          selector: {matchLabels: {app: eval}}
          template:
            metadata: {labels: {app: eval}}
            spec: {containers: [{name: server, image: registry.example.com/eval:1.0}]}
  steps: [{name: server, type: manifest}]
"""
    fleet.commit("main", {"request.yaml": request})
    see(missing=0)
    overspill("once")
    result = overspill("rebalance", "llm/eval", "--author", ANN)
    assert (result.exit_code, "is a request, whose clusters were chosen" in result.stderr) == (1, True), result.stderr
