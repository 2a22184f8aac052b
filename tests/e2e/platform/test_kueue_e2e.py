"""Kueue's own controller on both clusters: what its queue at home holds back bursts into its queue of the other."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.controllers import QUEUED
from tests.e2e.platform.queues import (
    activate_check,
    add_check,
    add_multikueue,
    add_priority,
    admitted,
    is_held,
    open_queue,
    pass_check,
    reserved,
    set_quota,
    waits,
)
from tests.e2e.platform.two_clusters import GPU, Lender

CONTROLLERS = QUEUED
NAMESPACE = "training"
QUEUE = "user-queue"
IN_QUEUE = {"kueue.x-k8s.io/queue-name": QUEUE}
PODS = 2
"""Pods of each Job, with a node of eight GPUs each."""

QUOTA = {"cpu": "100", GPU: "24"}
"""Room for the pods of one Job and half of another's, whatever nodes there are."""

LACK = f"insufficient unused quota for {GPU} in flavor {NAMESPACE}, 8 more needed"
PREEMPTED = (
    f"kueue {QUEUE} evicted it (Preempted): Preempted to accommodate a workload due to prioritization in the"
    " ClusterQueue"
)
BURST = f"burst(llm/second): {PODS} replicas on away"
SERVING = "nginx-leaderworkerset"


def test_a_job_that_waits_for_quota_runs_in_the_queue_of_the_other_cluster_until_its_own_admits_it(
    lender: Lender,
) -> None:
    home, away = lender.home, lender.away
    let_second_wait(lender)
    lender.lend("job/second")
    with lender.daemon():
        lender.until_committed(BURST)
        # What Kueue says at home is what the commit and `explain` say, and away it is Kueue that lets it start.
        said = f"kueue {QUEUE} {LACK}"
        assert said in lender.told()
        assert said in lender.asks("explain", "llm/second")
        lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the second does not run away")
        lender.until_at(away, admitted(away, NAMESPACE, "second"), "Kueue does not say that it is admitted")
        assert jobs_of(lender.pods(home)) == {"first"}

        lender.end_pods(home)
        lender.until_at(home, lambda: len(lender.running(home)) == PODS, "the second does not run at home")
        lender.until_committed(BURST, f'Revert "{BURST}')
        # One of its pods at home is enough for the copy to go.
        assert re.search(r"pods? of it runs? on home, and the copy elsewhere would do the same", lender.told())
        lender.until_at(away, lambda: not lender.pods(away), "the second is still away")


def test_a_job_that_is_complete_elsewhere_is_not_lent_again_while_its_own_queue_holds_it(lender: Lender) -> None:
    home, away = lender.home, lender.away
    held = let_second_wait(lender)
    lender.lend("job/second")
    with lender.daemon():
        lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the second does not run away")
        lender.end_pods(away)
        lender.until_committed(BURST, f'Revert "{BURST}')
        assert "was complete at" in lender.told()  # its pods or the Job itself, whichever is heard first
        lender.until_at(away, lambda: not lender.pods(away), "the second is still away")
        lender.until_at(home, held, "the second does not wait any more")
        lender.until_answered(("explain", "llm/second"), is_held)


def test_a_burst_that_is_preempted_in_the_queue_of_the_other_cluster_says_so_until_it_is_admitted_again(
    lender: Lender,
) -> None:
    away = lender.away
    let_second_wait(lender, preempts=True)
    add_priority(lender, away, "urgent", 1000)
    lender.lend("job/second")
    with lender.daemon():
        lender.until_committed(BURST)
        lender.until_at(away, lambda: running_jobs(lender, away) == {"second"}, "the second does not run away")
        # Somebody of that cluster has more urgent work.
        away.kubectl(
            "apply",
            f"--namespace={NAMESPACE}",
            "--filename=-",
            stdin=job("urgent", {"kueue.x-k8s.io/priority-class": "urgent"}),
        )
        lender.until_at(away, lambda: running_jobs(lender, away) == {"urgent"}, "the urgent one does not run alone")
        lender.until_answered(("status",), lambda told: PREEMPTED in told["placements"][0]["message"])
        lender.until_answered(
            ("explain", "llm/second"), lambda told: PREEMPTED in " ".join(each["message"] for each in ailing(told))
        )
        lender.end_pods(away)
        lender.until_at(away, lambda: running_jobs(lender, away) == {"second"}, "the second does not run again")
        lender.until_answered(("status",), lambda told: not told["placements"][0]["message"])
        lender.until_committed(BURST)


def test_a_copy_goes_on_while_an_admission_check_at_home_may_refuse_the_job_and_ends_once_it_passes(
    lender: Lender,
) -> None:
    """The controller of the check is played here, by the words that Kueue asks of one."""
    home, away = lender.home, lender.away
    add_check(lender, home, "people", "example.com/people")
    activate_check(home, "people")
    let_second_wait(lender, check="people")
    lender.lend("job/second")
    with lender.daemon():
        lender.until_committed(BURST)
        lender.until_at(away, lambda: running_jobs(lender, away) == {"second"}, "the second does not run away")
        copy = lender.uids(away)
        lender.end_pods(home)
        lender.until_at(home, reserved(home, NAMESPACE, "second"), "the second gets no quota")
        begins = f"on home kueue {QUEUE} has reserved quota for it"
        lender.until_answered(("explain", "llm/second"), lambda told: begins in json.dumps(told))
        assert json.loads(lender.asks("plan", "--output", "json"))["commits"] == []
        assert (lender.uids(away), lender.running(home)) == (copy, set())
        pass_check(home, NAMESPACE, "second", "people")
        lender.until_at(home, lambda: len(lender.running(home)) == PODS, "the second does not run at home")
        lender.until_committed(BURST, f'Revert "{BURST}')
        assert "and the copy elsewhere would do the same work again" in lender.told()
        lender.until_at(away, lambda: not lender.pods(away), "the second is still away")


def test_a_job_that_multikueue_runs_on_the_other_cluster_is_not_lent_and_ends_at_home(lender: Lender) -> None:
    home, away = lender.home, lender.away
    add_multikueue(lender, home, away, "workers")
    open_queue(lender, away, QUEUE, QUOTA)
    open_queue(lender, home, QUEUE, QUOTA, check="workers")
    lender.apply(job("second"))
    lender.until_at(away, lambda: running_jobs(lender, away) == {"second"}, "MultiKueue does not run it")
    path = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/second"
    lender.lend("job/second")
    with lender.daemon():
        begins = f"on home kueue {QUEUE} has dispatched it to away by MultiKueue"
        lender.until_answered(("explain", "llm/second"), lambda told: begins in " ".join(told["conclusion"]))
        assert not lender.pods(home)
        lender.end_pods(away)
        lender.until_at(
            home, lambda: home.call("GET", path)["status"].get("completionTime"), "it is not complete at home"
        )
        lender.until_committed()


def test_a_group_that_kueue_gates_at_home_is_admitted_whole_by_kueue_elsewhere_until_home_has_quota(
    lender: Lender,
) -> None:
    """The set is the example of Kueue's page on LeaderWorkerSets in several clusters."""
    home, away = lender.home, lender.away
    for cluster in (home, away):
        open_queue(lender, cluster, QUEUE, {"cpu": "600m"})
    lender.apply(json.dumps(serving()))
    # Kueue takes the Workloads as they come: either group may be the one that has quota.
    lender.until_at(home, lambda: lender.running(home) in (group(0), group(1)), "no group runs at home")
    before, both = lender.running(home), group(0) | group(1)
    lender.until_at(home, lambda: len(lender.pods(home)) == len(both), "the other has no pods")
    lender.lend(f"leaderworkerset/{SERVING}")
    with lender.daemon():
        burst = f"burst(llm/{SERVING}): 1 replica on away"
        lender.until_committed(burst)
        said = "held by scheduling gate kueue.x-k8s.io/admission"
        assert "1 replica of 3 pods unschedulable on home" in lender.told()
        assert said in lender.told()
        assert said in lender.asks("explain", f"llm/{SERVING}")
        lender.until_at(away, lambda: lender.running(away) == group(0), "the group does not run away")
        lender.until_at(away, admitted(away, NAMESPACE, SERVING), "Kueue does not say that it is admitted")
        assert lender.running(home) == before
        set_quota(lender, home, {"cpu": "1"})
        lender.until_at(home, lambda: lender.running(home) == both, "the other group does not run at home")
        lender.until_committed(burst, f'Revert "{burst}')
        lender.until_at(away, lambda: not lender.pods(away), "the group is still away")


def let_second_wait(lender: Lender, *, preempts: bool = False, check: str = "") -> Callable[[], bool]:
    """Fill the queue at home with a Job so that another waits for quota, as the returned question tells.

    The other cluster's queue `preempts`, that at home has the AdmissionCheck.
    """
    home = lender.home
    open_queue(lender, lender.away, QUEUE, QUOTA, preempts=preempts)
    open_queue(lender, home, QUEUE, QUOTA, check=check)
    lender.apply(job("first"))
    if check:
        lender.until_at(home, reserved(home, NAMESPACE, "first"), "the first gets no quota")
        pass_check(home, NAMESPACE, "first", check)
    lender.until_at(home, lambda: len(lender.running(home)) == PODS, "the first does not run")
    lender.apply(job("second"))
    held = waits(home, NAMESPACE, "second", LACK)
    lender.until_at(home, held, "the second does not wait")
    return held


def jobs_of(pods: list[Json]) -> set[str]:
    """Name the Jobs of pods."""
    return {pod["metadata"]["labels"]["job-name"] for pod in pods}


def running_jobs(lender: Lender, cluster: Cluster) -> set[str]:
    """Name the Jobs all of whose pods run in a cluster."""
    running = lender.running(cluster)
    pods = Counter(
        pod["metadata"]["labels"]["job-name"] for pod in lender.pods(cluster) if pod["metadata"]["name"] in running
    )
    return {name for name, number in pods.items() if number == PODS}


def ailing(explained: Json) -> list[Json]:
    """Return what `explain` says of the placements that are not healthy."""
    return [*explained["ailing"].values()]


def job(name: str, labels: Mapping[str, str] | None = None) -> str:
    """Write a Job for the queue, suspended as Kueue wants it."""
    resources = {"requests": {"cpu": "1"}, "limits": {GPU: "8"}}
    container = {"name": "trainer", "image": "registry.invalid/trainer:1", "resources": resources}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"parallelism": PODS, "completions": PODS, "suspend": True, "template": template}
    metadata = {"name": name, "labels": {**IN_QUEUE, **(labels or {})}}
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def serving() -> Json:
    """Write two groups of a leader with 100m of CPU and two workers with 200m each."""

    def pod(name: str, cpu: str) -> Json:
        container = {"name": name, "image": "registry.k8s.io/nginx-slim:0.27", "ports": [{"containerPort": 80}]}
        return {"spec": {"containers": [{**container, "resources": {"requests": {"cpu": cpu}}}]}}

    leader, worker = pod("nginx-leader", "100m"), pod("nginx-worker", "200m")
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": SERVING, "labels": {"app": "nginx", **IN_QUEUE}},
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {"leaderTemplate": leader, "size": 3, "workerTemplate": worker},
        },
    }


def group(index: int) -> set[str]:
    """Name the pods of a group."""
    return {f"{SERVING}-{index}", f"{SERVING}-{index}-1", f"{SERVING}-{index}-2"}
