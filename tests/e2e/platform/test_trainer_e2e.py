"""Kubeflow Trainer's own controller on both clusters, with JobSet, which makes the Jobs of what Trainer makes.

Where no queue of Kueue holds a job, nothing does at home but its nodes, so that its template says that two copies may
run. Trainer's own example says nothing of its pods: its runtime does, which the daemon reads at home.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import yaml

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.controllers import QUEUED, TRAINER, example
from tests.e2e.platform.queues import admitted, is_held, open_queue, set_quota, waits
from tests.e2e.platform.two_clusters import GPU, Lender

CONTROLLERS = QUEUED
NAMESPACE = "research"
EXAMPLE = "pytorch-mnist-example"
BURST = f"burst(llm/{EXAMPLE}): 1 replica on away"
DEFAULT = "default"
LACK = f"insufficient quota for pods in flavor {NAMESPACE}"
PODS = 2
"""Pods of the job, with a node of eight GPUs each."""


def test_a_job_runs_whole_elsewhere_and_its_end_is_carried_home(lender: Lender) -> None:
    home, away = lender.home, lender.away
    with cordoned(home):
        lender.apply(json.dumps(job()))
        lender.until_at(home, lambda: len(lender.pods(home)) == PODS, "the job has no pods")
        lender.lend("trainjob/torch-ddp", two_copies=True)
        with lender.daemon():
            burst = "burst(llm/torch-ddp): 1 replica on away"
            lender.until_committed(burst)
            lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the job does not run away")
            lender.end_pods(away)
            lender.until_committed(burst, f'Revert "{burst}')
            assert "its run was complete at" in lender.told()
            lender.until_at(away, lambda: not lender.pods(away), "the job is still away")
            assert not lender.running(home)
            [held] = json.loads(lender.asks("explain", "llm/torch-ddp", "--output", "json"))["suppressed"]
            assert held["reason"] == "Held", held


def test_the_projects_example_bursts_as_its_runtime_says(lender: Lender) -> None:
    """The TrainJob is the one of Trainer's page for contributors, unchanged: it names a released runtime, and no more.

    That runtime says one node, of which it asks for nothing.
    """
    home, away = lender.home, lender.away
    with cordoned(home):
        lender.apply(example(TRAINER, "CONTRIBUTING.md", "TrainJob"))
        lender.until_at(home, lambda: len(lender.pods(home)) == 1, "the job has no pod")
        lender.lend(f"trainjob/{EXAMPLE}", two_copies=True)
        with lender.daemon():
            lender.until_committed(BURST)
            lender.until_at(away, lambda: len(lender.running(away)) == 1, "the job does not run away")
            lender.end_pods(away)
            lender.until_committed(BURST, f'Revert "{BURST}')
            assert "its run was complete at" in lender.told()
            lender.until_at(away, lambda: not lender.pods(away), "the job is still away")
            assert not lender.running(home)


def test_an_example_that_waits_for_quota_runs_in_the_queue_of_the_other_cluster_and_its_end_is_carried_home(
    lender: Lender,
) -> None:
    """Kueue's queue named `default` takes what names none, and what it has not admitted is the only copy elsewhere."""
    home, away = lender.home, lender.away
    open_queue(lender, home, DEFAULT, {"pods": "0"})
    open_queue(lender, away, DEFAULT, {"pods": "8"})
    lender.apply(example(TRAINER, "CONTRIBUTING.md", "TrainJob"))
    held = waits(home, NAMESPACE, EXAMPLE, LACK)
    lender.until_at(home, held, "the job does not wait")
    lender.lend(f"trainjob/{EXAMPLE}")
    with lender.daemon():
        lender.until_committed(BURST)
        assert f"kueue {DEFAULT} {LACK}" in lender.told()
        lender.until_at(away, lambda: len(lender.running(away)) == 1, "the job does not run away")
        lender.until_at(away, admitted(away, NAMESPACE, EXAMPLE), "Kueue does not say that it is admitted")
        assert not lender.pods(home)
        lender.end_pods(away)
        lender.until_committed(BURST, f'Revert "{BURST}')
        assert "its run was complete at" in lender.told()
        lender.until_at(away, lambda: not lender.pods(away), "the job is still away")
        lender.until_at(home, held, "the job does not wait any more")
        lender.until_answered(("explain", f"llm/{EXAMPLE}"), is_held)


def test_an_example_that_its_own_queue_admits_is_given_back_at_once(lender: Lender) -> None:
    home, away = lender.home, lender.away
    open_queue(lender, home, DEFAULT, {"pods": "0"})
    open_queue(lender, away, DEFAULT, {"pods": "8"})
    lender.apply(example(TRAINER, "CONTRIBUTING.md", "TrainJob"))
    lender.until_at(home, waits(home, NAMESPACE, EXAMPLE, LACK), "the job does not wait")
    lender.lend(f"trainjob/{EXAMPLE}")
    with lender.daemon():
        lender.until_at(away, lambda: len(lender.running(away)) == 1, "the job does not run away")
        assert not lender.pods(home)
        set_quota(lender, home, {"pods": "1"})
        lender.until_at(home, lambda: len(lender.running(home)) == 1, "the job does not run at home")
        lender.until_committed(BURST, f'Revert "{BURST}')
        assert "1 pod of it runs on home, and the copy elsewhere would do the same work again" in lender.told()
        lender.until_at(away, lambda: not lender.pods(away), "the job is still away")


def test_a_job_goes_whole_by_the_nodes_and_the_gpus_of_its_runtime(lender: Lender) -> None:
    home, away, runtime = lender.home, lender.away, json.dumps(runtime_of_nodes())
    for cluster in (home, away):
        cluster.kubectl("apply", f"--namespace={NAMESPACE}", "--filename=-", stdin=runtime)
    bare = job(RUNTIME, "TrainingRuntime")
    del bare["spec"]["trainer"]
    with cordoned(home):
        lender.apply(json.dumps(bare))
        lender.until_at(home, lambda: len(lender.pods(home)) == PODS, "the job has no pods")
        lender.lend("trainjob/torch-ddp", two_copies=True)
        with lender.daemon():
            lender.until_committed("burst(llm/torch-ddp): 1 replica on away")
            assert f"1 replica of {PODS} pods" in lender.told()
            lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the job does not run away")
            assert GPU in lender.told()


def test_a_job_that_finds_nodes_at_home_is_given_back(lender: Lender) -> None:
    home, away = lender.home, lender.away
    with cordoned(home):
        lender.apply(json.dumps(job()))
        lender.until_at(home, lambda: len(lender.pods(home)) == PODS, "the job has no pods")
        lender.lend("trainjob/torch-ddp", two_copies=True)
        with lender.daemon():
            burst = "burst(llm/torch-ddp): 1 replica on away"
            lender.until_committed(burst)
            lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the job does not run away")
            lender.fleet.until(lambda: bound(lender) == [1], "its pods are not counted")
            cordon(home, "uncordon")
            lender.until_at(home, lambda: len(lender.running(home)) == PODS, "the job does not run at home")
            lender.until_committed(burst, f'Revert "{burst}')
            lender.until_at(away, lambda: not lender.pods(away), "the job is still away")


def test_a_job_that_fails_elsewhere_for_good_is_told_with_its_words_and_given_back(lender: Lender) -> None:
    home, away, runtime = lender.home, lender.away, json.dumps(runtime_without_retries())
    for cluster in (home, away):
        cluster.kubectl("apply", f"--namespace={NAMESPACE}", "--filename=-", stdin=runtime)
    with cordoned(home):
        lender.apply(json.dumps(job(RUNTIME, "TrainingRuntime")))
        lender.until_at(home, lambda: len(lender.pods(home)) == PODS, "the job has no pods")
        lender.lend("trainjob/torch-ddp", two_copies=True, rolloutTimeout="45s", coolDown="1h")
        with lender.daemon():
            burst = "burst(llm/torch-ddp): 1 replica on away"
            lender.until_committed(burst)
            lender.until_at(away, lambda: len(lender.running(away)) == PODS, "the job does not run away")
            lender.end_pods(away, exit_code=1)
            lender.until_committed(burst, f'Revert "{burst}')
            assert "TrainJob torch-ddp has failed: jobset failed due to one or more job failures" in lender.told()
            lender.until_at(away, lambda: not lender.pods(away), "the job is still away")
            [held] = json.loads(lender.asks("explain", "llm/torch-ddp", "--output", "json"))["suppressed"]
            assert held["reason"] == "CoolingDown", held


RUNTIME = "torch-without-retries"


def runtime_without_retries() -> Json:
    """Make the released runtime one of the namespace, whose Job fails with its first pod."""
    made = yaml.safe_load(example(TRAINER, "manifests/base/runtimes/torch_distributed.yaml"))
    made |= {"kind": "TrainingRuntime", "metadata": {"name": RUNTIME}}
    [node] = made["spec"]["template"]["spec"]["replicatedJobs"]
    node["template"]["spec"]["backoffLimit"] = 0
    return made


def runtime_of_nodes() -> Json:
    """Make a runtime of the namespace that says how many pods there are, and what they need."""
    made = runtime_without_retries()
    made["spec"]["mlPolicy"]["numNodes"] = PODS
    [node] = made["spec"]["template"]["spec"]["replicatedJobs"]
    [container] = node["template"]["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "1"}, "limits": {GPU: "8"}}
    return made


def job(runtime: str = "torch-distributed", kind: str = "ClusterTrainingRuntime") -> Json:
    """Write a job of two pods with eight GPUs each."""
    per_node = {"requests": {"cpu": "1"}, "limits": {GPU: "8"}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "torch-ddp"},
        "spec": {
            "runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": kind, "name": runtime},
            "trainer": {"numNodes": PODS, "resourcesPerNode": per_node},
        },
    }


@contextmanager
def cordoned(cluster: Cluster) -> Iterator[None]:
    """Have no node of a cluster take new pods, until `uncordon` or the end."""
    cordon(cluster, "cordon")
    try:
        yield
    finally:
        cordon(cluster, "uncordon")


def cordon(cluster: Cluster, word: str) -> None:
    """Cordon or uncordon each node."""
    cluster.kubectl(word, *(node["metadata"]["name"] for node in cluster.items("/api/v1/nodes")))


def bound(lender: Lender) -> list[int]:
    """Return how many replicas of each placement have a node, as `status` says."""
    return [each["bound"] for each in json.loads(lender.asks("status", "--output", "json"))["placements"]]
