"""`status`, `history` and `explain`: their tables, their JSON and their empty states."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from reconciler.model.units import parse_duration
from tests.cli.conftest import ANN, Terminal
from tests.conftest import Remote
from tests.passes import SOURCE_FILES

See = Callable[..., None]


@pytest.fixture
def placed(overspill: Terminal, see: See) -> list[str]:
    see()
    return [one["change"]["placement"]["name"] for one in overspill.answer("once")["commits"] if one["change"]]


def columns(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell]


def test_status_shows_demand_and_placements(overspill: Terminal, placed: list[str]) -> None:
    lines = overspill.done("status").splitlines()
    workload = next(line for line in lines if line.startswith("llm/vllm"))
    assert workload.split() == ["llm/vllm", "worker-1", "gpu", "7", "4", "3", "3", "-"]
    shown = [line.split()[:6] for line in lines if line.startswith("vllm-")]
    assert shown == [
        [placed[0], "llm/vllm", "worker-2", "2", "0", "Pending"],
        [placed[1], "llm/vllm", "worker-3", "1", "0", "Pending"],
    ]


def test_status_of_a_quiet_fleet_says_so(overspill: Terminal, see: See) -> None:
    see(missing=0)
    assert "No placements: nothing is bursting." in overspill.done("status")


def test_status_of_a_fleet_without_templates_says_how_to_begin(overspill: Terminal, fleet: Remote) -> None:
    fleet.commit("main", dict.fromkeys(SOURCE_FILES) | {"README.md": "empty"})
    assert "overspill init" in overspill.done("status")


def test_status_later_tells_how_little_is_left(overspill: Terminal, placed: list[str]) -> None:
    left = [parse_duration(one["left"]) for one in overspill.answer("status", "--at", "+9m")["placements"]]
    assert all(timedelta(seconds=30) < one <= timedelta(minutes=1) for one in left)


def test_status_as_json_is_complete(overspill: Terminal, placed: list[str]) -> None:
    answer = overspill.answer("status")
    assert set(answer) == {"now", "workloads", "placements", "problems", "wakeAt"}
    assert set(answer["workloads"][0]) == {
        "workload", "primary", "policy", "wanted", "running", "deficit", "placed", "message", "suppressed"
    }  # fmt: skip
    assert set(answer["placements"][0]) == {"placement", "phase", "bound", "left"}
    assert answer["placements"][0]["placement"]["shape"]["requests"] == {"nvidia.com/gpu": "1"}


def test_primary_that_cannot_be_seen_is_told_in_status(overspill: Terminal) -> None:
    assert "worker-1 has not been observed" in overspill.done("status")


def test_history_tells_placements_and_their_reasons_newest_first(overspill: Terminal, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "audit")
    lines = overspill.done("history").splitlines()
    assert [columns(line)[0].strip() for line in lines[1:]] == [f"llm/{placed[1]}", f"llm/{placed[0]}"]
    assert "until 20" in lines[1]
    assert "requested; began: 3 pods unschedulable on worker-1" in lines[2]


def test_history_of_one_workload_leaves_out_the_others(overspill: Terminal, placed: list[str]) -> None:
    assert len(overspill.answer("history", "llm/vllm")["placements"]) == 2
    assert len(overspill.answer("history", placed[0])["placements"]) == 1
    assert "No placement of llm/other in the history" in overspill.done("history", "llm/other")


def test_history_stops_at_its_limit_and_says_so(overspill: Terminal, placed: list[str]) -> None:
    result = overspill("history", "--limit", "1")
    assert len(result.stdout.splitlines()) == 2
    assert "raise --limit" in result.stderr
    answer = overspill.answer("history", "--limit", "1")
    assert (answer["more"], len(answer["placements"])) == (True, 1)


def test_history_since_keeps_what_still_stands_and_drops_what_ended_before(
    overspill: Terminal, placed: list[str]
) -> None:
    overspill.done("revert", placed[0], "--author", ANN)
    assert [one["id"] for one in overspill.answer("history", "--since", "+1m")["placements"]] == [f"llm/{placed[1]}"]
    assert len(overspill.answer("history", "--since", "-1h")["placements"]) == 2


def test_history_finds_a_beginning_that_lies_hundreds_of_commits_back(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    tip = fleet.tip("placements")
    stream = "".join(
        f"commit refs/heads/placements\ncommitter Bot <bot@example.com> {1800000000 + number} +0000\ndata 4\nnote\n"
        + (f"from {tip}\n" if number == 0 else "")
        for number in range(450)
    )
    fleet.git("fast-import", "--quiet", stdin=stream.encode())
    assert [one["startedAt"] is None for one in overspill.answer("history")["placements"]] == [False, False]


def test_history_before_anything_has_burst_says_so(overspill: Terminal) -> None:
    assert overspill.done("history") == "No placement in the history: nothing has burst yet.\n"
    assert overspill.answer("history") == {"placements": [], "more": False}


def test_explanation_tells_of_each_cluster_and_ends_in_a_conclusion(overspill: Terminal, see: See) -> None:
    see(missing=9, worker_2=0)
    shown = overspill.done("explain", "llm/vllm")
    assert "Demand: 13 wanted, 4 running, 9 missing" in shown
    assert "NoCapacity: needs 1 GPU on one node" in shown
    assert "can take it" in shown
    assert shown.index("Clusters") < shown.index("Conclusion") < shown.index("9 replicas missing")


def test_explanation_takes_the_templates_name_alone(overspill: Terminal, see: See) -> None:
    see()
    at = overspill.answer("explain", "llm/vllm")
    assert overspill.answer("explain", "vllm")["assessments"] == at["assessments"]


def test_explanation_of_an_unknown_workload_names_those_there_are(overspill: Terminal) -> None:
    for name in ("other", "llm/other"):
        result = overspill("explain", name)
        assert (result.exit_code, "there are: llm/vllm" in result.stderr) == (1, True)


def test_explanation_as_json_is_complete(overspill: Terminal, see: See) -> None:
    see()
    answer = overspill.answer("explain", "vllm")
    assert set(answer) == {
        "workload", "primary", "policy", "demand", "placements", "restraints", "assessments", "suppressed", "conclusion"
    }  # fmt: skip
    assert set(answer["assessments"][0]) == {
        "cluster", "rank", "placed", "fits", "limit", "free", "pricePerGpuHour", "refusal"
    }  # fmt: skip


def test_explanation_tells_what_holds_a_workload_back(overspill: Terminal, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "audit")
    shown = overspill.done("explain", "vllm")
    until = overspill.answer("explain", "vllm")["restraints"][0]["until"]
    assert f"held back on worker-2 until {until}: {placed[0]} was ended by Ann: audit" in shown
