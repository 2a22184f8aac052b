"""GPRs, wait times and the inventory, as callers see them, and the early release of GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders.daemon import EDITOR, LLM, PATH, STRANGER, VIEWER, Daemon, small

GPRS = "/api/v1/gpr"
WAIT = f"{GPRS}/waittime"
FOUR = {"numberOfGPUs": 4, "enableAutoGpuSelection": True}
TOO_MANY = {"numberOfGPUs": 64, "enableAutoGpuSelection": True}


STANDING = [
    ("both", "worker-1", "Provisioning"),
    ("both", "worker-2", "Provisioning"),
    ("one", "worker-1", "Provisioning"),
    ("vllm", "worker-2", "Provisioning"),
    ("waiting", None, "Queued"),
]
"""What stands on the daemon: each GPR with its cluster and its state."""


@pytest.fixture
def several(shared: Daemon) -> Daemon:
    """Have a burst, a request with GPUs on one cluster, one with some on two, and one that waits; nothing else."""
    if standing(shared) == STANDING:  # no test before has changed it
        return shared
    shared.clear()
    shared.sight.missing = 2
    shared.wake("observation")
    shared.until(lambda: shared.call("GET", f"{PATH}?origin=burst").body["data"])
    for body in (
        small("one", gprDetails={**FOUR, "priority": 150}),
        small("both", clusters=["worker-1", "worker-2"], gprDetails=FOUR),
        small("waiting", gprDetails=TOO_MANY),
    ):
        assert shared.call("POST", PATH, body).status == 200
    return shared


def standing(running: Daemon) -> list[tuple[str, str | None, str]]:
    seen = [(one["gprName"], one["clusterName"], one["status"]["provisioningStatus"]) for one in named(running)]
    return sorted(one for one in seen if one[2] != "EarlyReleased")


def named(running: Daemon, query: str = "", **more: Any) -> list[dict[str, Any]]:
    reply = running.call("GET", f"{GPRS}{query}", **more)
    assert reply.status == 200
    return reply.body["data"]


def gpr(running: Daemon, name: str) -> dict[str, Any]:
    return next(one for one in named(running) if one["gprName"] == name)


def test_gprs_are_listed_by_priority_with_what_they_have_and_wait_for(several: Daemon) -> None:
    found = named(several)
    assert found[0]["gprName"] == "one"
    assert sorted(one["gprName"] for one in found) == ["both", "both", "one", "vllm", "waiting"]
    one = gpr(several, "one")
    assert (one["workspaceName"], one["clusterName"], one["numberOfGPUs"], one["priority"]) == (
        "abc",
        "worker-1",
        4,
        150,
    )
    waits = gpr(several, "waiting")
    assert (waits["clusterName"], waits["status"]["provisioningStatus"]) == (None, "Queued")
    assert "64 GPUs" in waits["status"]["message"]


def test_gpr_is_read_by_its_id(several: Daemon) -> None:
    one = gpr(several, "one")
    assert several.call("GET", f"{GPRS}/{one['gprId']}").body["data"]["gprName"] == "one"
    assert several.call("GET", f"{GPRS}/gpr-00000000").status == 404


def test_list_is_narrowed_and_paged(several: Daemon) -> None:
    assert [one["gprName"] for one in named(several, "?workspaceName=llm")] == ["vllm"]
    assert [one["gprName"] for one in named(several, "?provisioningStatus=Queued")] == ["waiting"]
    assert {one["clusterName"] for one in named(several, "?cluster=worker-1")} == {"worker-1"}
    seen: list[str] = []
    token = ""
    while True:
        page = several.call("GET", f"{GPRS}?limit=2&continue={token}").body
        seen += [one["gprId"] for one in page["data"]]
        token = page["metadata"]["continue"]
        if not token:
            break
    assert seen == [one["gprId"] for one in named(several)]
    assert several.call("GET", f"{GPRS}?continue=nonsense").status == 400


def test_only_gprs_of_ones_own_workspaces_are_seen(several: Daemon) -> None:
    assert {one["workspaceName"] for one in named(several, token=VIEWER)} == {"abc"}
    assert {one["workspaceName"] for one in named(several, token=STRANGER)} == {LLM}
    assert several.call("GET", f"{GPRS}/{gpr(several, 'one')['gprId']}", token=STRANGER).status == 404


@pytest.mark.parametrize("name", ["waiting", "both"])
def test_gpus_that_are_not_had_or_not_had_alone_are_not_given_back(several: Daemon, name: str) -> None:
    reply = several.call("PUT", GPRS, {"gprId": gpr(several, name)["gprId"], "earlyRelease": True})
    assert (reply.status, reply.body["error"]["errorKey"]) == (409, "InvalidUpdate")
    assert f"DELETE /api/v1/workload-placement/{name}" in reply.body["error"]["hint"]


@pytest.mark.parametrize("body", [{}, {"gprId": "gpr-1", "earlyRelease": False}, {"gprId": "gpr-1", "priority": 3}])
def test_nothing_but_an_early_release_is_taken(several: Daemon, body: dict[str, object]) -> None:
    reply = several.call("PUT", GPRS, body)
    assert reply.status == 400
    if "priority" in body:
        hints = {problem["field"]: problem["hint"] for problem in reply.body["error"]["problems"]}
        assert "gprDetails by PUT /api/v1/workload-placement/{name}" in hints["priority"]


def test_wait_is_estimated_by_cluster(shared: Daemon) -> None:
    waits = shared.call("POST", WAIT, {"workspaceName": "abc", **FOUR}).body["data"]
    assert {one["clusterName"] for one in waits} == {"worker-1", "worker-2"}
    assert waits[0]["estimatedWaitTime"] == "0h0m0s"
    (never,) = shared.call("POST", WAIT, {"sliceName": "abc", "clusterName": "worker-2", **TOO_MANY}).body["data"]
    assert (never["clusterName"], never["estimatedWaitTime"]) == ("worker-2", None)
    assert never["reasons"]


@pytest.mark.parametrize(
    ("body", "token", "status"),
    [
        ({**FOUR}, VIEWER, 400),
        ({"workspaceName": "abc", "sliceName": "llm", **FOUR}, VIEWER, 400),
        ({"workspaceName": "abc", "numberOfGPUs": 0}, VIEWER, 400),
        ({"workspaceName": "abc", **FOUR}, STRANGER, 404),
        ({"workspaceName": "abc", **FOUR}, VIEWER, 200),
    ],
)
def test_wait_that_makes_no_sense_is_not_estimated(
    shared: Daemon, body: dict[str, object], token: str, status: int
) -> None:
    assert shared.call("POST", WAIT, body, token).status == status


def test_inventory_shows_the_nodes_of_ones_own_clusters(several: Daemon) -> None:
    every = several.call("GET", "/api/v1/inventory/list").body["data"]
    assert {node["clusterName"] for node in every["managedNodes"]} == {"worker-1", "worker-2", "worker-3"}
    assert every["managedNodes"][0]["availableGPUs"] == 8
    mine = several.call("GET", "/api/v1/inventory/list", token=VIEWER).body["data"]
    assert {node["clusterName"] for node in mine["managedNodes"]} == {"worker-1", "worker-2"}
    assert {one["workspaceName"] for one in mine["allocations"]} == {"abc"}


def test_gpus_of_a_request_are_given_back_early(several: Daemon) -> None:
    release = {"gprId": gpr(several, "one")["gprId"], "earlyRelease": True}
    assert several.call("PUT", GPRS, release, VIEWER).status == 403
    assert several.call("PUT", GPRS, release, STRANGER).status == 404
    reply = several.call("PUT", GPRS, release, EDITOR)
    assert (reply.status, reply.body["data"]["name"]) == (200, "one")
    commit = several.remote.git("log", "-1", "--format=%an|%s|%b", reply.body["data"]["commit"])
    assert commit.startswith("Ed|request(abc/one): completed|Released early by Ed.")
    gone = several.call("GET", f"{GPRS}/{release['gprId']}").body["data"]["status"]
    assert (gone["provisioningStatus"], gone["message"]) == ("EarlyReleased", "released early by Ed")
    assert several.call("GET", f"{PATH}/one").body["data"]["status"]["provisioningStatus"] == "Completed"
    again = several.call("PUT", GPRS, release, EDITOR)
    assert (again.status, again.body["error"]["errorKey"]) == (409, "InvalidUpdate")
    assert "given back already" in again.body["error"]["hint"]


def test_gpus_of_a_burst_are_given_back_early(several: Daemon) -> None:
    burst = gpr(several, "vllm")
    reply = several.call("PUT", GPRS, {"gprId": burst["gprId"], "earlyRelease": True})
    assert (reply.status, reply.body["data"]["name"]) == (200, burst["placementName"])
    assert several.call("GET", f"{PATH}/{burst['placementName']}").status == 404
    over = several.call("GET", f"{GPRS}/{burst['gprId']}").body["data"]
    assert (over["placementName"], over["clusterName"], over["numberOfGPUs"]) == (
        burst["placementName"],
        burst["clusterName"],
        0,
    )
    assert over["status"]["provisioningStatus"] == "EarlyReleased"
    assert over["status"]["completionTimestamp"] is not None
    assert "was ended by" in over["status"]["message"]
    assert "released early by" in over["status"]["message"]
    again = several.call("PUT", GPRS, {"gprId": burst["gprId"], "earlyRelease": True})
    assert (again.status, again.body["error"]["errorKey"]) == (409, "InvalidUpdate")
    assert "`overspill history llm/vllm`" in again.body["error"]["hint"]
    unknown = several.call("GET", f"{GPRS}/gpr-00000000")
    assert unknown.status == 404
    assert "`overspill history`" in unknown.body["error"]["hint"]


def test_gpus_that_a_file_reserves_are_shown_and_are_given_back_by_a_pull_request(shared: Daemon) -> None:
    shared.edit({"reserved.yaml": RESERVED})
    shared.until(lambda: any(one["gprName"] == "reserved" for one in named(shared, "?provisioningStatus=Successful")))
    kept = gpr(shared, "reserved")
    assert (kept["clusterName"], kept["placementName"], kept["numberOfGPUs"]) == ("worker-2", None, 4)
    listed = shared.call("GET", f"{PATH}/reserved").body["data"]
    assert listed["status"]["provisioningStatus"] == "Successful"
    assert listed["status"]["message"].startswith("on worker-2 until ")
    reply = shared.call("PUT", GPRS, {"gprId": kept["gprId"], "earlyRelease": True})
    assert reply.status == 422
    assert "reserved.yaml:1" in reply.body["message"]
    shared.edit({"reserved.yaml": None})


RESERVED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: GPUProvisioningRequest
metadata: {name: reserved, namespace: kubeslice-avesha}
spec:
  sliceName: abc
  preferredClusters: [worker-2]
  numberOfGPUs: 4
  numberOfGPUNodes: 1
  enableAutoGpuSelection: true
  exitDuration: 1h
"""


def test_who_is_ahead_from_another_workspace_is_not_named(shared: Daemon) -> None:
    config = {"name": "settings", "namespace": "demo", "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    urgent = {**TOO_MANY, "priority": 290}
    theirs = small("secret", workspaceName=LLM, manifestResources=[config], clusters=["worker-2"], gprDetails=urgent)
    assert shared.call("POST", PATH, theirs).status == 200
    asked = {"workspaceName": "abc", "clusters": ["worker-2"], **FOUR}
    (seen,) = shared.call("POST", WAIT, asked, EDITOR).body["data"]
    assert seen["ahead"] == ["llm/secret"]
    (veiled,) = shared.call("POST", WAIT, asked, VIEWER).body["data"]
    assert veiled["ahead"] == ["somebody of another workspace"]
    assert "secret" not in str(veiled)
    assert shared.call("DELETE", f"{PATH}/secret").status == 200


@pytest.mark.parametrize(("requeues", "state"), [(True, "Queued"), (False, "Failed")])
def test_who_evicted_a_request_from_another_workspace_is_not_named(running: Daemon, requeues: bool, state: str) -> None:
    running.sight.free["worker-2"] = 8
    eight = {"numberOfGPUs": 8, "enableAutoGpuSelection": True}
    low = {**eight, "priority": 50, "enableEviction": True, "requeueOnFailure": requeues}
    assert running.call("POST", PATH, small("low", clusters=["worker-2"], gprDetails=low)).status == 200
    config = {"name": "settings", "namespace": "demo", "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
    urgent = {**eight, "priority": 290}
    theirs = small("secret", workspaceName=LLM, manifestResources=[config], clusters=["worker-2"], gprDetails=urgent)
    assert running.call("POST", PATH, theirs).status == 200
    running.until(lambda: running.wake("observation") or gpr(running, "low")["evictedBy"] == "llm/secret")
    seen = running.call("GET", f"{PATH}/low", token=VIEWER).body["data"]
    assert seen["status"]["provisioningStatus"] == state
    (veiled,) = named(running, token=VIEWER)
    assert veiled["evictedBy"] == "somebody of another workspace"
    listed = running.call("GET", f"{PATH}?workspaceName=abc", token=VIEWER).body["data"]
    told = running.call("GET", "/api/v1/explain?workload=abc/low", token=VIEWER).body["data"]
    assert "secret" not in str([veiled, seen, listed, told])
    if not requeues:
        message = "evicted by {}, and no other cluster has room"
        assert seen["status"]["message"] == message.format("somebody of another workspace")
        known = running.call("GET", f"{PATH}/low", token=EDITOR).body["data"]
        assert known["status"]["message"] == message.format("llm/secret")


@pytest.mark.parametrize("name", ["worker-3", "worker-9"])
def test_cluster_of_others_is_like_one_that_does_not_exist(shared: Daemon, name: str) -> None:
    asked = {"workspaceName": "abc", "preferredClusters": [name], **FOUR}
    (wait,) = shared.call("POST", WAIT, asked, VIEWER).body["data"]
    assert (wait["estimatedWaitTime"], wait["ahead"]) == (None, [])
    assert wait["reasons"] == ["not a cluster of workspace abc"]
    refused = shared.call("POST", PATH, small("elsewhere", clusters=[name]), EDITOR)
    assert refused.body["message"] == f"clusters[0]: {name} is no cluster of workspace abc (try 'worker-2')"
