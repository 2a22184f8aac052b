"""Calls to a running daemon, and what they come to in git."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reconciler.client import Client, Refused
from tests.builders.daemon import ASKED, STRANGER, VIEWER, Daemon, small


def test_placement_that_is_asked_for_is_read_back_as_it_was_asked_for(running: Daemon, client: Client) -> None:
    receipt = client.create(ASKED)
    assert (receipt.name, receipt.workspace_name) == (ASKED["name"], "abc")
    assert receipt.commit in running.remote.git("log", "--format=%H", "placements").splitlines()
    item = client.placement(receipt.name)
    assert (item.name, item.workspace_name, item.clusters) == (ASKED["name"], "abc", ("worker-1",))
    assert (item.burst_duration, item.deletion_policy, item.origin) == ("15m", "Delete", "request")
    assert item.created_at is not None
    assert abs((datetime.now(UTC) - item.created_at).total_seconds()) < 60
    assert [step["name"] for step in item.document["steps"]] == ["create-namespace", "cuda", "sample-configmap"]


def test_commit_is_that_of_whoever_asks(running: Daemon, client: Client) -> None:
    commit = client.create(small("mine")).commit
    assert running.remote.git("log", "-1", "--format=%an <%ae>", commit) == "Ed <ed@example.com>"


def test_same_key_is_the_same_request_and_another_one_is_not(client: Client) -> None:
    first = client.create(small("once"), key="run-17")
    assert client.create(small("once"), key="run-17").name == first.name
    with pytest.raises(Refused) as caught:
        client.create(small("once"))
    assert (caught.value.status, str(caught.value)) == (
        409,
        "Already Exists (change or delete it, or take another name)",
    )


def test_change_and_end_are_commits_too(running: Daemon, client: Client) -> None:
    client.create(small("changing"))
    running.until(lambda: client.placement("changing").status.message.startswith("on "))
    client.update("changing", {"burstDuration": "30m", "deletionPolicy": "Retain"}, workspace="abc")
    assert client.placement("changing").burst_duration == "30m"
    with pytest.raises(Refused) as caught:
        client.update("changing", {"clusters": ["worker-2"]})
    assert (caught.value.status, caught.value.key) == (409, "InvalidUpdate")
    assert client.delete("changing").commit
    with pytest.raises(Refused) as caught:
        client.placement("changing")
    assert caught.value.status == 404


def test_body_that_is_wrong_is_refused_with_every_field(client: Client) -> None:
    with pytest.raises(Refused) as caught:
        client.create(small("wrong", burstDuration="4 hours", clustrs=["worker-1"]))
    fields = {problem.field: problem for problem in caught.value.problems}
    assert set(fields) == {"burstDuration", "clustrs"}
    assert "clusters" in fields["clustrs"].hint


def test_list_has_what_the_filters_let_through_on_all_its_pages(client: Client) -> None:
    for number in range(5):
        client.create(small(f"p{number}", clusters=["worker-2" if number % 2 else "worker-1"]))
    assert [item.name for item in client.placements()] == [f"p{number}" for number in range(5)]
    assert [item.name for item in client.placements(workspace="abc", cluster="worker-2")] == ["p1", "p3"]
    assert list(client.placements(origin="burst")) == []
    page = client.page(limit=2)
    assert ([item.name for item in page.items], page.total) == (["p0", "p1"], 5)
    assert [item.name for item in client.page(limit=2, after=page.following).items] == ["p2", "p3"]


def test_viewer_may_look_and_not_write_and_a_stranger_sees_nothing(running: Daemon, client: Client) -> None:
    client.create(small("seen"))
    address = f"http://127.0.0.1:{running.port}"
    with Client(address, token=VIEWER) as viewer:
        assert viewer.placement("seen").name == "seen"
        with pytest.raises(Refused, match="not an Editor"):
            viewer.delete("seen")
    with Client(address, token=STRANGER) as stranger, pytest.raises(Refused) as caught:
        stranger.placement("seen")
    assert caught.value.status == 404


def test_gpus_of_a_placement_are_listed_and_given_back(running: Daemon, client: Client) -> None:
    client.create(small("bookinfo"))
    running.until(lambda: [gpr.placement_name for gpr in client.gprs()] != [None])
    (gpr,) = client.gprs(workspace="abc")
    assert (gpr.gpr_name, gpr.cluster_name, gpr.nodes, gpr.priority_band) == ("bookinfo", "worker-1", 1, "medium")
    assert gpr.document["gprId"] == gpr.gpr_id
    assert client.release(gpr.gpr_id).name == "bookinfo"
    assert list(client.gprs(workspace="abc", status="Provisioning")) == []


def test_wait_and_inventory_are_values_of_each_cluster(client: Client) -> None:
    waits = client.wait_time({"workspaceName": "abc", "numberOfGPUs": 8})
    assert [(one.cluster_name, one.ahead) for one in waits] == [("worker-1", ()), ("worker-2", ())]
    inventory = client.inventory()
    assert sum(node.available_gpus for node in inventory.managed_nodes if node.cluster_name == "worker-2") == 40
    assert {sight.cluster_name for sight in inventory.clusters} == {"worker-1", "worker-2", "worker-3"}


def test_token_tells_who_bears_it_and_what_it_may_see(client: Client) -> None:
    bearer = client.whoami()
    assert (bearer.name, bearer.email, bearer.roles) == ("Ed", "ed@example.com", {"abc": "Editor", "llm": "Viewer"})
    assert [workspace["name"] for workspace in client.workspaces()] == ["abc", "llm"]
    assert [template["name"] for template in client.templates(workspace="llm")] == ["vllm"]
    assert client.explain("llm/vllm")["primary"] == "worker-1"
