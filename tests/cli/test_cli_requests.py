"""Requests on the command line: planned, listed, explained, prolonged and ended."""

from __future__ import annotations

import pytest

from reconciler.core.ledger.request_record import read_request
from reconciler.model.request import Provisioning
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal
from tests.steps.test_request_passes import ASKED, RECORD

TWO = ASKED.replace("[worker-2]", "[worker-2, worker-3]")


@pytest.fixture
def placed(overspill: Terminal, fleet: Remote, see: See) -> list[str]:
    """Ask for bookinfo on two clusters, and return the names of its two placements."""
    fleet.commit("main", {"asked.yaml": TWO})
    see(missing=0)
    changes = [one["change"] for one in overspill.answer("once")["commits"] if one["change"]]
    return [change["placement"]["name"] for change in changes if change["action"] == "Place"]


def ended(fleet: Remote) -> str | None:
    kept = read_request(fleet.files("placements", RECORD)[RECORD], RECORD)
    return None if kept.ended is None else f"{kept.ended.status}: {kept.ended.message}"


def test_plan_shows_what_would_be_taken_and_placed(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", {"asked.yaml": ASKED})
    see(missing=0)
    lines = [line.split() for line in overspill.done("plan").splitlines() if "llm/bookinfo" in line]
    assert [line[0] for line in lines] == ["Receive", "Place"]
    actions = [one["change"]["action"] for one in overspill.answer("plan")["commits"] if one["change"]]
    assert actions == ["Receive", "Place"]


def test_status_lists_how_a_request_stands(overspill: Terminal, placed: list[str]) -> None:
    (one,) = overspill.answer("status")["requests"]
    assert (one["request"], one["asker"], one["provisioningStatus"], one["phase"]) == (
        "llm/bookinfo",
        "file",
        "Pending",
        "Pending",
    )
    assert one["placed"] == ["worker-2", "worker-3"]
    assert "llm/bookinfo" not in [one["workload"] for one in overspill.answer("status")["workloads"]]
    row = next(line for line in overspill.done("status").splitlines() if line.startswith("llm/bookinfo"))
    assert row.split()[1:6] == ["file", "worker-2,", "worker-3", "worker-2,", "worker-3"]


def test_status_says_why_a_request_waits(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", {"asked.yaml": ASKED})
    see(missing=0, worker_2=0)
    overspill.done("once")
    (one,) = overspill.answer("status")["requests"]
    assert one["provisioningStatus"] == "Queued"
    assert "worker-2: needs 1 GPU on one node; its only eligible node has none free" in one["message"]


def test_explain_tells_what_each_of_its_clusters_lacks(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", {"asked.yaml": TWO})
    see(missing=0, worker_2=0)
    told = overspill.done("explain", "bookinfo")
    assert "Request llm/bookinfo: Queued, Pending, from file" in told
    assert "To use worker-2: free or add nodes there" in told
    overspill.done("once")
    assert "It has 1 of 2 placements until" in overspill.done("explain", "llm/bookinfo")


def test_explain_tells_of_an_ended_request(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--everywhere", "--author", ANN)
    assert "It is Completed since" in overspill.done("explain", "llm/bookinfo")


def test_a_template_of_the_same_name_comes_first(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", {"asked.yaml": ASKED.replace("name: bookinfo", "name: vllm")})
    see(missing=0)
    assert "\nllm/vllm: primary worker-1" in overspill.done("explain", "llm/vllm")
    assert overspill.done("explain", "vllm", "--request").startswith("Request llm/vllm: ")


def test_history_tells_of_its_placements(overspill: Terminal, placed: list[str]) -> None:
    found = overspill.answer("history", "llm/bookinfo")["placements"]
    assert {one["id"] for one in found} == {f"llm/{name}" for name in placed}


def test_history_knows_an_ended_request_beside_a_template_of_its_name(
    overspill: Terminal, fleet: Remote, see: See
) -> None:
    fleet.commit("main", {"asked.yaml": ASKED.replace("name: bookinfo", "name: vllm")})
    see(missing=0)
    overspill.done("once")
    assert len(overspill.answer("history", "vllm")["placements"]) == 1


def test_revert_of_one_placement_leaves_the_other_and_does_not_come_back(
    overspill: Terminal, fleet: Remote, see: See, placed: list[str]
) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "needed elsewhere")
    assert fleet.subjects("placements")[0] == "request(llm/bookinfo): changed"
    see(missing=0)
    assert overspill.answer("once")["commits"] == []
    assert ended(fleet) is None


def test_revert_of_the_last_placement_completes_it_in_the_name_of_who_asked(
    overspill: Terminal, fleet: Remote, see: See, placed: list[str]
) -> None:
    overspill.done("revert", *placed, "--author", ANN)
    assert ended(fleet) == f"{Provisioning.COMPLETED}: by Ann"
    assert set(fleet.git("log", "-4", "--format=%an", "placements").splitlines()) == {"Ann"}
    see(missing=0)
    assert overspill.answer("once")["commits"] == []


def test_extend_moves_the_end_of_all_that_it_has(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    overspill.done("extend", placed[0], "--by", "30m", "--author", ANN)
    rows = overspill.answer("status")
    assert len({one["placement"]["expiresAt"] for one in rows["placements"]}) == 1
    assert rows["requests"][0]["endsAt"] == rows["placements"][0]["placement"]["expiresAt"]
    kept = read_request(fleet.files("placements", RECORD)[RECORD], RECORD)
    assert str(kept.request.spec.burst_duration) == "0:45:00"


def test_plan_for_the_moment_of_its_end_shows_that_it_is_closed(overspill: Terminal, placed: list[str]) -> None:
    (moment,) = {one["placement"]["expiresAt"] for one in overspill.answer("status")["placements"]}
    changes = [one["change"]["action"] for one in overspill.answer("plan", "--at", moment)["commits"]]
    assert changes == ["Revert", "Revert", "Close"]
