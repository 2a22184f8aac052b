"""Lists are narrowed and paged, and say how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.daemon import EDITOR, LLM, PATH, Daemon, daemon, small
from tests.builders.remote import Remote


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Have three placements that run, one that waits, one of another workspace, and a burst."""
    path: Path = tmp_path_factory.mktemp("lists")
    with daemon(Remote(path / "remote.git"), path / "cache") as one:
        one.sight.missing = 2
        one.wake("observation")
        one.until(lambda: one.call("GET", PATH).body["data"])
        config = {"name": "settings", "namespace": "demo", "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}
        waiting = {"numberOfGPUs": 64, "enableAutoGpuSelection": True}
        for body in (
            small("bookinfo-1"),
            small("bookinfo-2", clusters=["worker-2"]),
            small("cart"),
            small("queued", gprDetails=waiting),
            small("cart", workspaceName=LLM, clusters=["worker-3"], manifestResources=[config]),
        ):
            assert one.call("POST", PATH, body).status == 200
        yield one


def names(running: Daemon, query: str, token: str = "") -> list[str]:
    reply = running.call("GET", f"{PATH}{query}", **({"token": token} if token else {}))
    assert reply.status == 200
    assert reply.body["metadata"]["total"] == len(reply.body["data"])
    return [f"{item['workspaceName']}/{item['name']}" for item in reply.body["data"]]


def test_everything_stands_in_the_order_of_workspace_and_name(several: Daemon) -> None:
    *rest, burst = names(several, "")
    assert rest == ["abc/bookinfo-1", "abc/bookinfo-2", "abc/cart", "abc/queued", "llm/cart"]
    assert burst.startswith("llm/vllm-")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("?workspaceName=abc&name=book", ["abc/bookinfo-1", "abc/bookinfo-2"]),
        ("/workspace/llm?origin=request", ["llm/cart"]),
        ("?cluster=worker-2&origin=request", ["abc/bookinfo-2"]),
        ("?provisioningStatus=Queued", ["abc/queued"]),
        ("?provisioningStatus=Pending&name=cart", ["abc/cart", "llm/cart"]),
        ("?phase=Failed", []),
        ("?name=z", []),
    ],
)
def test_list_is_narrowed(several: Daemon, query: str, expected: list[str]) -> None:
    assert names(several, query) == expected


def test_bursts_are_listed_apart(several: Daemon) -> None:
    (burst,) = names(several, "?origin=burst")
    assert burst.startswith("llm/vllm-")


def test_pages_follow_each_other_until_nothing_follows(several: Daemon) -> None:
    seen: list[str] = []
    token = ""
    for _ in range(3):
        reply = several.call("GET", f"{PATH}?limit=2&continue={token}").body
        seen += [item["name"] for item in reply["data"]]
        assert reply["metadata"]["total"] == 6
        token = reply["metadata"]["continue"]
    assert token == ""
    assert seen[:5] == ["bookinfo-1", "bookinfo-2", "cart", "queued", "cart"]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?continue=nonsense", 400),
        ("?continue=%00", 400),
        ("?limit=0", 422),
        ("?limit=501", 422),
        ("?limit=many", 422),
        ("?phase=Dancing", 422),
        ("?clusters=worker-1", 422),
        ("?workspaceName=nowhere", 200),
    ],
)
def test_query_that_means_nothing_is_refused(several: Daemon, query: str, status: int) -> None:
    assert several.call("GET", f"{PATH}{query}").status == status
    assert several.call("GET", f"{PATH}?workspaceName=nowhere", token=EDITOR).status == 404


@pytest.mark.parametrize("path", [PATH, "/api/v1/gpr"])
def test_parameter_that_there_is_not_is_told_with_the_one_that_was_meant(several: Daemon, path: str) -> None:
    (problem,) = several.call("GET", f"{path}?workspace=abc").body["error"]["problems"]
    assert (problem["field"], problem["message"], problem["hint"]) == (
        "workspace",
        "unknown parameter",
        "try 'workspaceName'",
    )


def test_name_of_several_workspaces_is_asked_for_with_one(several: Daemon) -> None:
    reply = several.call("GET", f"{PATH}/cart")
    assert reply.status == 409
    assert "abc and llm" in reply.body["message"]
    assert reply.body["error"]["hint"] == "try ?workspaceName=abc"
    assert several.call("GET", f"{PATH}/cart?workspaceName=llm").body["data"]["clusters"] == ["worker-3"]
    assert several.call("DELETE", f"{PATH}/cart").status == 409
