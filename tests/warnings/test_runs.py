"""A run that its burst's time may cut off is told beforehand, and nothing is told of what serves."""

from __future__ import annotations

import json

import pytest

from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, TEMPLATE, load, policy, warnings
from tests.builders.workload_kinds import SAMPLES, run, workload

_ENDS = "a run that is cut off is held until `overspill release` begins it again from its start"


def job(deadline: Json = None) -> Json:
    spec: dict[str, Json] = {"parallelism": 2, "completions": 2, "template": run(1)}
    return workload("batch/v1", "Job", spec | ({} if deadline is None else {"activeDeadlineSeconds": deadline}))


def job_set(*deadlines: int | None) -> Json:
    jobs = [
        {"name": f"job-{number}", "template": {"spec": job(deadline)["spec"]}}
        for number, deadline in enumerate(deadlines)
    ]
    return workload("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": jobs})


def torch(deadline: int) -> Json:
    made = SAMPLES["PyTorchJob"][0]
    return {**made, "spec": {**made["spec"], "runPolicy": {"activeDeadlineSeconds": deadline}}}


def told(made: Json, duration: str = "{}", *, lasts: str = "  burstDuration: 10m\n") -> list[str]:
    """Return what is told of the time of a template of one object, by its policy."""
    made = {**made, "metadata": {"name": "vllm", "namespace": "llm-demo"}}
    head, _, rest = TEMPLATE.partition(
        "        manifest:\n" if "        manifest:\n" in TEMPLATE else "    manifest:\n"
    )
    steps = rest[rest.index("  steps:") :]
    text = f"{head}    manifest: {json.dumps(made)}\n{steps}".replace("  burstDuration: 10m\n", lasts)
    files = {**FLEET, "templates/vllm.yaml": text, "policies/gpu.yaml": policy(spec=f"{{duration: {duration}}}")}
    read = load(files)
    assert len(read.templates) == 1, read.problems
    return [each for each in warnings(read) if "cut off" in each]


@pytest.mark.parametrize(
    ("made", "duration"),
    [
        (job(), "{}"),
        (job(300), "{renew: Never}"),
        (job(600), "{renew: Never}"),
        (job(3600), "{renew: WhileNeeded}"),
        (job(3600), "{max: 1h, default: 10m}"),
        (job(), "{max: 2h}"),
        (SAMPLES["Deployment"][0], "{renew: Never}"),
        (SAMPLES["LeaderWorkerSet"][0], "{renew: Never}"),
    ],
    ids=[
        "renewed by default",
        "a shorter deadline",
        "the same time",
        "no bound",
        "a bound that is enough",
        "a bound, and no deadline",
        "a Deployment",
        "a set that serves",
    ],
)
def test_nothing_is_told_of_what_has_the_time_it_takes_or_serves(made: Json, duration: str) -> None:
    assert told(made, duration) == []


@pytest.mark.parametrize(
    ("made", "may"),
    [
        (job(), "it runs once, and may take any time"),
        (job(3600), "it may run for 1h"),
        (job(90 * 10**12), "it may run for 3650d"),
        (job(2**63 - 1), "it may run for 3650d"),
        (job("{{ 60 * replicas }}"), "it runs once, and may take any time"),
        (job_set(60, 3600), "it may run for 1h"),
        (job_set(60, None), "it runs once, and may take any time"),
        (torch(7200), "it may run for 2h"),
    ],
)
def test_a_run_that_is_not_renewed_and_may_take_longer_is_told(made: Json, may: str) -> None:
    (problem,) = told(made, "{renew: Never}")
    assert problem == (
        f"templates/vllm.yaml:8: spec.burstDuration: {may}, and its burst is not renewed and ends after 10m by policy"
        f" gpu: {_ENDS} (leave duration.renew out of policy gpu, or give it a longer burstDuration)"
    )


def test_a_deadline_beyond_the_longest_time_is_told() -> None:
    (problem,) = told(job(7200), "{max: 1h}", lasts="")
    assert problem == (
        f"templates/vllm.yaml:6: spec: it may run for 2h, and its burst ends after 1h by policy gpu: {_ENDS} (raise"
        " duration.max of policy gpu, or maxExitDurationPerGPR of its WorkspacePolicy)"
    )
