"""Planned bursts and Prometheus at the command line: what is foreseen, what is told, what is missing."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from reconciler.text.timestamps import format_time
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal
from tests.fakes import slurm
from tests.fakes.prometheus import serving

QUERY = 'sum(waiting{namespace="demo",pod=~"vllm-.+"})'


def signals(fleet: Remote, text: str) -> None:
    """Give the fleet's policy signals."""
    fleet.commit("main", {"policies.yaml": SOURCE_FILES["policies.yaml"] + "  signals:\n" + text})


def scheduled(fleet: Remote, start: datetime, *, lasting: str = "1h") -> None:
    signals(
        fleet,
        f"  - name: demo\n    schedule: {{start: {start:%M %H %d} * *, duration: {lasting}, replicas: 2}}\n",
    )


def asking(fleet: Remote) -> None:
    query = 'sum(waiting{namespace="{{ namespace }}",pod=~"{{ name }}-.+"})'
    signals(fleet, f"  - name: queue\n    prometheus:\n      query: {query}\n      perReplica: 10\n")


def changes(overspill: Terminal, at: datetime) -> list[dict]:
    """List what would be changed at a moment; that the branch begins is no change."""
    commits = overspill.answer("plan", "--at", format_time(at))["commits"]
    return [commit["change"] for commit in commits if commit["change"] is not None]


def soon(**later: int) -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(**later)


def test_a_planned_burst_is_foreseen_from_its_first_second_on(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0, worker_2=4)
    start = soon(days=3)
    scheduled(fleet, start)
    assert changes(overspill, start - timedelta(seconds=1)) == []
    there = overspill.answer("plan", "--at", format_time(start))
    assert there["commits"][-1]["subject"] == "burst(llm/vllm): 2 replicas on worker-2 for 10m"
    told = f"schedule demo plans 2 from {format_time(start)} on"
    assert told in there["commits"][-1]["message"].replace("\n", " ")
    assert there["commits"][-1]["change"]["shortage"]["asks"] == [told]
    assert changes(overspill, start + timedelta(hours=1)) == []
    row = overspill.done("plan", "--at", format_time(start)).splitlines()[2]
    assert row.endswith(f"2 replicas missing on worker-1: {told}"), "it begins this second: it has not lasted for 0s"


def test_the_line_of_a_planned_burst_says_who_planned_it(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=1, worker_2=4)
    start = soon(minutes=-2)
    scheduled(fleet, start)
    signal = f"schedule demo plans 2 from {format_time(start)} on"
    assert signal in overspill.done("plan")
    (_, line, _) = overspill.done("once").splitlines()
    assert signal in line


def test_the_next_look_is_due_when_the_plan_begins(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    start = soon(minutes=90)
    scheduled(fleet, start)
    assert overspill.answer("plan")["wakeAt"] == format_time(start)


def test_what_was_planned_is_foreseen_to_come_home(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0, watched=False)
    start = soon(minutes=-2)
    scheduled(fleet, start, lasting="5m")
    overspill.done("once")
    end = start + timedelta(minutes=5)
    before = overspill.answer("plan", "--at", format_time(end + timedelta(seconds=59)))
    assert (before["commits"], [one["reason"] for one in before["suppressed"]]) == ([], ["ScaleDownWindow"])
    after = overspill.answer("plan", "--at", format_time(end + timedelta(seconds=61)))
    assert [commit["change"]["why"] for commit in after["commits"]] == ["demand-gone"]


def test_explain_tells_who_asks_for_what(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=1)
    start = soon(minutes=-2)
    scheduled(fleet, start)
    told = overspill.done("explain", "vllm")
    moment = format_time(start)
    assert f"2 missing (schedule demo plans 2 from {moment} on: 2 since {moment})" in told.replace("\n", " ")


def test_once_bursts_on_what_prometheus_has_seen_for_the_window(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0, worker_2=4)
    asking(fleet)
    with serving() as metrics:
        metrics.values |= {QUERY: 23, f"min_over_time((\n{QUERY}\n)[30s:7s])": 11}
        result = overspill("once", "--prometheus", metrics.url)
    assert result.exit_code == 0, result.output
    told = r"burst\(llm/vllm\): 2 replicas on worker-2 for 10m \(3 replicas missing on worker-1 for 3[01]s: "
    assert re.search(told, result.stdout)  # the clock goes on from the first look to the pass
    assert ": prometheus queue is 23, and a replica takes 10)" in result.stdout


def test_a_query_that_says_nothing_is_a_warning(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    asking(fleet)
    with serving() as metrics:
        result = overspill("plan", "--prometheus", metrics.url)
    assert result.exit_code == 0, result.output
    assert "policy gpu: prometheus queue tells nothing: the answer is empty" in result.stderr.replace("\n", " ")


def test_a_policy_that_asks_nobody_is_one_warning(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    asking(fleet)
    result = overspill("plan")
    assert result.exit_code == 0
    assert result.stderr.count("policy gpu: asks Prometheus, and none is configured") == 1


def test_an_address_that_is_none_is_a_usage_error(overspill: Terminal) -> None:
    result = overspill("plan", "--prometheus", "prometheus:9090")
    assert result.exit_code == 2
    assert "--prometheus: 'prometheus:9090' is not the address of a server" in result.stderr.replace("\n", " ")


def test_what_is_heard_now_goes_on_being_heard_in_what_is_foreseen(
    overspill: Terminal, fleet: Remote, see: See
) -> None:
    see(missing=0, worker_2=4)
    asking(fleet)
    with serving() as metrics:
        metrics.values[QUERY] = 23
        soon_after = overspill.answer("plan", "--at", "+1h", "--prometheus", metrics.url)
    assert [commit["change"]["placement"]["replicas"] for commit in soon_after["commits"][1:]] == [3]


def test_explain_tells_what_cannot_be_heard(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    asking(fleet)
    told = overspill.done("explain", "vllm").replace("\n", " ")
    assert "prometheus queue is not asked (is a Prometheus configured?): nothing new comes of it" in told


def waiting(fleet: Remote) -> None:
    signals(fleet, "  - name: gpu-h100\n    slurm: {partition: gpu-h100, gpusPerReplica: 8}\n")


def test_once_bursts_on_jobs_that_have_waited_in_slurm(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0, worker_2=4)
    waiting(fleet)
    with slurm.serving() as controller:
        controller.jobs = [slurm.job(number, 4) for number in range(1, 6)]
        result = overspill("once", "--slurm", controller.url)
    assert result.exit_code == 0, result.output
    words = "slurm gpu-h100 has 5 pending jobs with 20 GPUs, and a replica takes 8"
    assert words in fleet.git("log", "-1", "--format=%b", "placements").replace("\n", " ")
    assert "burst(llm/vllm): 3 replicas on worker-2 for 10m" in result.stdout


def test_slurm_that_cannot_be_asked_is_a_warning_and_no_burst(overspill: Terminal, fleet: Remote, see: See) -> None:
    see(missing=0)
    waiting(fleet)
    with slurm.serving() as controller:
        controller.says = (500, b"")
        result = overspill("explain", "vllm", "--slurm", controller.url)
    assert "slurm gpu-h100 has not answered (it answers 500 Internal Server Error)" in result.output.replace("\n", " ")
    plan = overspill("plan")
    assert plan.stderr.replace("\n", " ").count("policy gpu: asks Slurm, and none is configured") == 1
