"""Every request and answer of EGS's page on its REST interface (seed 001)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders.daemon import ASKED, PATH, Daemon, Reply, daemon, small
from tests.builders.egs_samples import body
from tests.builders.remote import Remote

NAME = ASKED["name"]
ONE = f"{PATH}/{NAME}"


def refused(reply: Reply) -> tuple[int, str, str, str]:
    """Return status, message, key and inner message of an error, after a look at the envelope around them."""
    assert set(reply.body) == {"statusCode", "status", "message", "data", "error"}
    assert (reply.body["statusCode"], reply.body["status"], reply.body["data"]) == (reply.status, "Error", None)
    return reply.status, reply.body["message"], reply.body["error"]["errorKey"], reply.body["error"]["message"]


def inner(reply: Reply) -> dict[str, Any]:
    """Read the JSON within the JSON."""
    return json.loads(reply.body["error"]["data"])["error"]


@pytest.fixture
def running(shared: Daemon) -> Daemon:
    """Have a daemon without placements."""
    shared.clear()
    return shared


@pytest.fixture
def asked(shared: Daemon, request: pytest.FixtureRequest) -> Daemon:
    """Have the sample and no other placement: the one of the test before, if that has only read."""
    placements = shared.call("GET", PATH).body["data"]
    if [{name: placement.get(name) for name in ASKED} for placement in placements] != [ASKED]:
        running: Daemon = request.getfixturevalue("running")
        assert running.call("POST", PATH, ASKED).status == 200
    return shared


def test_sample_is_created(running: Daemon) -> None:
    reply = running.call("POST", PATH, ASKED)
    assert reply.body == {
        "statusCode": 200,
        "status": "OK",
        "message": "Success",
        "data": {
            "name": NAME,
            "workspaceName": "abc",
            "commit": reply.body["data"]["commit"],
            "warnings": ["the needs of chart cuda are unknown, so they count as nothing"],
        },
    }


def test_what_a_body_does_not_say_is_told_to_who_sends_it_and_when_they_send_it_again(running: Daemon) -> None:
    endless = {name: value for name, value in ASKED.items() if name != "burstDuration"}
    for _ in range(2):
        told = running.call("POST", PATH, endless, Idempotency_Key="once").body["data"]["warnings"]
        assert told[0] == "the needs of chart cuda are unknown, so they count as nothing"
        assert told[1].startswith("it does not say for how long: it ends after ")


def test_sample_that_is_there_already_is_refused(asked: Daemon) -> None:
    reply = asked.call("POST", PATH, ASKED)
    assert refused(reply) == (409, "Already Exists", "", "Already Exists")
    assert inner(reply) == {
        "Message": "Error registering WorkloadPlacement",
        "Status": 409,
        "DetailedError": {
            "Errormessage": f'workloadplacements.worker.kubeslice.io "{NAME}" already exists',
            "Reason": "AlreadyExists",
            "Details": "",
        },
        "StatusCode": 409,
        "ReferenceDocumentation": "/docs#errors",
    }


def test_sample_is_listed_as_it_was_asked_for(asked: Daemon) -> None:
    reply = asked.call("GET", PATH)
    (shown,) = reply.body["data"]
    assert {name: shown[name] for name in ASKED} == ASKED
    assert shown["status"]["provisioningStatus"] == "Pending"
    assert shown["createdAt"] <= shown["updatedAt"]
    assert reply.body["metadata"] == {"total": 1, "limit": 100, "continue": ""}


def test_sample_says_how_it_stands(asked: Daemon) -> None:
    shown = asked.call("GET", ONE).body["data"]
    status = shown["status"]
    assert list(status) == ["provisioningStatus", "phase", "message", "conditions", "lastUpdated"]
    assert (status["provisioningStatus"], status["phase"]) == ("Pending", "Pending")
    assert status["message"].startswith("on worker-1 until ")
    (condition,) = status["conditions"]
    assert set(condition) == {"type", "status", "lastTransitionTime", "reason", "message"}
    assert (condition["type"], condition["status"]) == ("Available", "Unknown")
    assert status["lastUpdated"] == condition["lastTransitionTime"] == shown["updatedAt"] == shown["createdAt"]


@pytest.mark.parametrize("path", [ONE, f"{PATH}/get/{NAME}", f"{ONE}?workspaceName=abc"])
def test_sample_is_read_by_its_name(asked: Daemon, path: str) -> None:
    (listed,) = asked.call("GET", PATH).body["data"]
    reply = asked.call("GET", path)
    assert (reply.status, reply.body["message"], reply.body["data"]) == (200, "Success", listed)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_sample_that_is_not_there_is_not_found(running: Daemon, method: str) -> None:
    reply = running.call(method, ONE, {"burstDuration": "30m"} if method == "PUT" else None)
    assert refused(reply) == (404, "Not Found", "", "Workload Placement not found")
    assert inner(reply) == {
        "Message": f"WorkloadPlacement with name '{NAME}' not found",
        "Status": 404,
        "DetailedError": {"Errormessage": "resource not found", "Reason": "NotFound", "Details": ""},
        "StatusCode": 404,
        "ReferenceDocumentation": "/docs#errors",
    }


def test_full_update_of_the_page_holds_while_it_waits(running: Daemon) -> None:
    waiting = {**ASKED, "gprDetails": {"numberOfGPUs": 64, "enableAutoGpuSelection": True}}
    assert running.call("POST", PATH, waiting).status == 200
    assert running.call("GET", ONE).body["data"]["status"]["provisioningStatus"] == "Queued"
    reply = running.call("PUT", ONE, body("update-waiting.json"))
    assert (reply.status, reply.body["message"]) == (200, "Workload Placement updated successfully")
    assert reply.body["data"]["name"] == NAME
    shown = running.call("GET", ONE).body["data"]
    assert (shown["clusters"], shown["burstDuration"]) == (["worker-1", "worker-2"], "20m")
    assert shown["helmConfigs"][0]["values"] == {"replicaCount": 3}


def test_limited_update_of_the_page_holds_once_it_is_placed(asked: Daemon) -> None:
    reply = asked.call("PUT", ONE, body("update-running.json"))
    assert (reply.status, reply.body["message"]) == (200, "Workload Placement updated successfully")
    shown = asked.call("GET", ONE).body["data"]
    assert (shown["burstDuration"], shown["deletionPolicy"]) == ("30m", "Retain")


@pytest.mark.parametrize("capital", ["WorkspaceName", "SecretRef"])
def test_name_in_capitals_of_a_table_of_the_page_is_told_as_its_samples_write_it(running: Daemon, capital: str) -> None:
    usual = capital[0].lower() + capital[1:]
    chart = {capital if name == usual else name: value for name, value in ASKED["helmConfigs"][0].items()}
    misspelt = {capital if name == usual else name: value for name, value in {**ASKED, "helmConfigs": [chart]}.items()}
    reply = running.call("POST", PATH, misspelt)
    assert reply.status == 400
    assert f"unknown field (try '{usual}')" in reply.body["error"]["message"]


def test_placement_names_its_workspace(running: Daemon) -> None:
    reply = running.call("POST", PATH, {name: value for name, value in ASKED.items() if name != "workspaceName"})
    assert reply.status == 400
    assert reply.body["error"]["problems"][0]["field"] == "workspaceName"


@pytest.mark.parametrize("name", ["burstDuration", "deletionPolicy", "manifestResources", "cmdExec", "helmConfigs"])
def test_field_that_the_page_calls_mandatory_may_be_left_out(running: Daemon, name: str) -> None:
    steps = {"manifestResources": "manifest", "cmdExec": "command", "helmConfigs": "helm"}
    shortened = {field: value for field, value in ASKED.items() if field != name}
    shortened["steps"] = [step for step in ASKED["steps"] if step["type"] != steps.get(name)]
    assert running.call("POST", PATH, shortened).status == 200


@pytest.mark.parametrize(
    "update",
    [
        {"clusters": ["worker-2"]},
        {"name": "another"},
        {"workspaceName": "llm"},
        {"helmConfigs": [{**ASKED["helmConfigs"][0], "values": {"replicaCount": 3}}]},
    ],
)
def test_update_of_what_is_fixed_is_refused(asked: Daemon, update: dict[str, object]) -> None:
    reply = asked.call("PUT", ONE, update)
    status, message, key, _ = refused(reply)
    assert (status, message, key) == (409, "Field update not allowed", "InvalidUpdate")
    detailed = inner(reply)["DetailedError"]
    assert inner(reply)["Message"] == "Invalid field update"
    assert (detailed["Reason"], detailed["Details"]) == ("Conflict", "Modification restricted")
    renames = not {"name", "workspaceName"}.isdisjoint(update)
    way_out = "delete it, and ask for it under " if renames else "ask for it under "
    assert reply.body["error"]["hint"].startswith(way_out)


@pytest.mark.parametrize(
    ("update", "field"),
    [
        ({"clusters": ["worker-2"]}, "clusters"),
        ({"clusterNames": ["worker-2"]}, "clusterNames"),
        ({"clusterName": "worker-2"}, "clusterName"),
        ({"helmConfigs": []}, "helmConfigs"),
    ],
)
def test_what_is_fixed_is_told_as_the_caller_spelt_it(asked: Daemon, update: dict[str, object], field: str) -> None:
    error = asked.call("PUT", ONE, {**update, "steps": ASKED["steps"][2:]}).body["error"]
    assert [problem["field"] for problem in error["problems"]] == [field, "steps"]


def test_placement_that_runs_is_deleted_and_gone(asked: Daemon) -> None:
    reply = asked.call("DELETE", ONE)
    assert (reply.status, reply.body["message"]) == (200, "Workload Placement deleted successfully")
    assert reply.body["data"]["name"] == NAME
    assert asked.call("GET", ONE).status == 404
    assert asked.remote.files("placements", "clusters/worker-1") == {}


def test_placement_that_runs_is_not_deleted_in_strict_mode(remote: Remote, tmp_path: Path) -> None:
    with daemon(remote, tmp_path / "cache", strict=True) as strict:
        assert strict.call("POST", PATH, ASKED).status == 200
        reply = strict.call("DELETE", ONE)
        said = "Cannot delete workload placement when phase is Successful, Completed, or Failed"
        assert refused(reply) == (409, "Deletion not permitted for completed workload", "DeletionRestricted", said)
        assert inner(reply)["DetailedError"] == {
            "Errormessage": "WorkloadPlacement cannot be deleted after completion",
            "Reason": "Conflict",
            "Details": "Deletion blocked by status phase",
        }
        assert strict.call("GET", ONE).status == 200


def test_placement_that_waits_is_deleted_in_strict_mode_too(remote: Remote, tmp_path: Path) -> None:
    with daemon(remote, tmp_path / "cache", strict=True) as strict:
        waiting = small("waiting", gprDetails={"numberOfGPUs": 64, "enableAutoGpuSelection": True})
        assert strict.call("POST", PATH, waiting).status == 200
        assert strict.call("DELETE", f"{PATH}/waiting").status == 200


def test_step_without_its_chart_is_refused_in_the_words_of_the_page(running: Daemon) -> None:
    wrong = {**ASKED, "steps": [{"name": "cuda-12", "type": "helm"}]}
    reply = running.call("POST", PATH, wrong)
    assert reply.status == 400
    (problem, *_) = reply.body["error"]["problems"]
    assert problem["message"] == "step cuda-12 references helm config cuda-12 that doesn't exist"
    assert problem["field"] == "steps[0].name"
