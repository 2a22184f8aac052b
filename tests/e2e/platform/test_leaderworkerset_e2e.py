"""LeaderWorkerSet's own controller on both clusters: its vLLM example, as released, bursts by whole groups."""

from __future__ import annotations

import json

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.controllers import LEADER_WORKER_SET, example
from tests.e2e.platform.two_clusters import AWAY, HOME, Lender

CONTROLLERS = (LEADER_WORKER_SET,)
NAMESPACE = "serving"
EXAMPLE = "docs/examples/vllm/GPU/lws.yaml"
"""Two groups of a leader and a worker, each of which takes a node of eight GPUs: they fill the four nodes of home."""

SETS = f"/apis/leaderworkerset.x-k8s.io/v1/namespaces/{NAMESPACE}/leaderworkersets"


def test_a_group_that_does_not_fit_runs_whole_on_the_other_cluster_is_recreated_there_and_comes_home(
    lender: Lender,
) -> None:
    home, away = lender.home, lender.away
    lender.apply(example(LEADER_WORKER_SET, EXAMPLE))
    lender.until_at(home, lambda: lender.running(home) == groups(0, 1), "two groups do not run at home")
    before = lender.uids(home)
    lender.lend("leaderworkerset/vllm")
    with lender.daemon():
        scale(home, 3)
        lender.until_committed("burst(llm/vllm): 1 replica on away")
        lender.until_at(away, lambda: lender.running(away) == groups(0), "the group does not run away")
        assert "1 replica of 2 pods unschedulable on home" in lender.told()
        # What the controller says of its groups is what the commands say of them.
        lender.until_at(away, lambda: (ready(home), ready(away)) == (2, 1), "not ready by the controllers' word")
        said = f"{HOME} runs 2 of 3, 1 runs elsewhere"
        lender.until_answered(("explain", "llm/vllm"), lambda explained: said in " ".join(explained["conclusion"]))
        lender.until_answered(("status",), lambda told: placed(told) == [(AWAY, 1, 1)])

        # RecreateGroupOnPodRestart, as at home: the leader goes with the worker, and nothing is committed for it.
        of_the_group = lender.uids(away)
        away.kubectl("delete", "pod", "vllm-0-1", f"--namespace={NAMESPACE}", "--wait=false")
        lender.until_at(
            away,
            lambda: lender.running(away) == groups(0) and not of_the_group & lender.uids(away),
            "the group is not recreated whole",
        )
        lender.until_committed("burst(llm/vllm): 1 replica on away")

        scale(home, 2)
        lender.until_committed("burst(llm/vllm): 1 replica on away", 'Revert "burst(llm/vllm): 1 replica on away')
        lender.until_at(away, lambda: not away.items(SETS) and not lender.pods(away), "the group is still away")
    # The pods of the third group are the controller's to take away; those of the others have never gone.
    lender.until_at(home, lambda: lender.uids(home) == before, "what ran at home was touched")


def test_a_rollout_whose_surge_group_finds_no_room_bursts_nothing(lender: Lender) -> None:
    """It waits for as long as it may not take a group away; its two groups serve meanwhile."""
    home, away = lender.home, lender.away
    lender.apply(example(LEADER_WORKER_SET, EXAMPLE))
    lender.until_at(home, lambda: lender.running(home) == groups(0, 1), "two groups do not run at home")
    lender.lend("leaderworkerset/vllm")
    rolling = {"rollingUpdateConfiguration": {"maxSurge": 1, "maxUnavailable": 0}}
    newer = {"metadata": {"annotations": {"example.com/build": "2"}}}
    spec = {"rolloutStrategy": rolling, "leaderWorkerTemplate": {"leaderTemplate": newer, "workerTemplate": newer}}
    home.kubectl(
        "patch",
        "leaderworkerset/vllm",
        f"--namespace={NAMESPACE}",
        "--type=merge",
        f"--patch={json.dumps({'spec': spec})}",
    )
    lender.until_at(home, lambda: "vllm-2" in unschedulable(lender), "the surge group does not wait for a node")
    assert "llm/vllm misses nothing on home, which runs 2 of 2" in lender.asks("explain", "llm/vllm")
    planned = [each["subject"] for each in json.loads(lender.asks("plan", "--output", "json"))["commits"]]
    assert not [subject for subject in planned if "burst(" in subject]
    assert not lender.pods(away)


def unschedulable(lender: Lender) -> set[str]:
    """Name the pods at home that the scheduler finds no node for."""
    return {
        pod["metadata"]["name"]
        for pod in lender.pods(lender.home)
        for condition in pod["status"].get("conditions", ())
        if condition.get("reason") == "Unschedulable"
    }


def groups(*indexes: int) -> set[str]:
    """Name the pods of groups."""
    return {name for index in indexes for name in (f"vllm-{index}", f"vllm-{index}-1")}


def placed(status: Json) -> list[tuple[str, int, int]]:
    """Return the cluster of each placement with its replicas, and how many of them have nodes."""
    told = [(each["placement"], each["bound"]) for each in status["placements"]]
    return [(placement["cluster"], placement["replicas"], bound) for placement, bound in told]


def scale(cluster: Cluster, replicas: int) -> None:
    """Want so many groups at home, as a person or an autoscaler would."""
    cluster.kubectl("scale", "leaderworkerset/vllm", f"--namespace={NAMESPACE}", f"--replicas={replicas}")


def ready(cluster: Cluster) -> int:
    """Count the groups that are ready by the controller's word."""
    return sum(int(found.get("status", {}).get("readyReplicas", 0)) for found in cluster.items(SETS))
