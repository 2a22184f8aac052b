"""Workspaces, templates and explanations, as the fleet repository has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.builders.daemon import OWNER, PATH, VIEWER, Daemon, daemon, small
from tests.builders.remote import Remote

TEMPLATES = "/api/v1/workload-template"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    path: Path = tmp_path_factory.mktemp("fleet")
    with daemon(Remote(path / "remote.git"), path / "cache") as one:
        yield one


def test_workspaces_are_listed_as_egs_does(shared: Daemon) -> None:
    first, second = shared.call("GET", "/api/v1/slice-workspace/list").body["data"]["workspaces"]
    assert first == {
        "name": "abc",
        "overlayNetworkDeploymentMode": "no-network",
        "maxClusters": 2,
        "sliceDescription": "",
        "clusters": ["worker-1", "worker-2"],
        "namespaces": [{"namespace": "bookinfo", "clusters": ["worker-1", "worker-2"]}],
        "primaryCluster": "worker-1",
    }
    assert second["name"] == "llm"


def test_template_is_read_with_the_file_that_it_is_in(shared: Daemon) -> None:
    (listed,) = shared.call("GET", TEMPLATES).body["data"]
    template = shared.call("GET", f"{TEMPLATES}/vllm").body["data"]
    assert listed == template
    assert (template["name"], template["workspaceName"], template["burstDuration"]) == ("vllm", "llm", "10m")
    assert template["path"] == "template.yaml"
    assert template["steps"] == [{"name": "server", "type": "manifest"}]
    assert "clusters" not in template


def test_template_that_is_not_there_is_not_found(shared: Daemon) -> None:
    assert shared.call("GET", f"{TEMPLATES}/nothing").status == 404
    assert shared.call("GET", f"{TEMPLATES}/vllm?workspaceName=abc").status == 404


@pytest.mark.parametrize(("method", "path"), [("POST", ""), ("PUT", "/vllm"), ("DELETE", "/vllm"), ("PUT", "/nothing")])
def test_template_is_written_by_a_pull_request(shared: Daemon, method: str, path: str) -> None:
    reply = shared.call(method, f"{TEMPLATES}{path}", {} if method != "DELETE" else None)
    assert (reply.status, reply.headers["Allow"]) == (405, "GET")
    assert reply.body["message"] == "a template is changed by a pull request to the fleet repository"
    assert reply.body["error"]["hint"].endswith("on the branch main")
    assert ("template.yaml" in reply.body["error"]["hint"]) == (path == "/vllm")


def test_every_path_allows_the_methods_of_its_operations(shared: Daemon) -> None:
    paths = shared.call("GET", "/api/v1/openapi.json").body["paths"]
    for path, operations in paths.items():
        reply = shared.call("OPTIONS", re.sub(r"{\w+}", "x", path))
        assert (reply.status, reply.headers["Allow"].split(", ")) == (405, sorted(map(str.upper, operations))), path


def test_workload_is_explained(shared: Daemon) -> None:
    told = shared.call("GET", "/api/v1/explain?workload=llm/vllm").body["data"]
    assert (told["workload"], told["primary"], told["policy"]) == ("llm/vllm", "worker-1", "gpu")
    assert told["conclusion"] == ["Nothing is missing: worker-1 runs 4 of 4, 0 run elsewhere."]
    assert [one["cluster"] for one in told["assessments"]] == ["worker-2", "worker-3"]


def test_request_is_explained_under_its_name(shared: Daemon) -> None:
    body = small("queued", gprDetails={"numberOfGPUs": 64, "enableAutoGpuSelection": True})
    assert shared.call("POST", PATH, body).status == 200
    shared.wake("observation")
    shared.until(lambda: shared.call("GET", "/api/v1/explain?workload=abc/queued").status == 200)
    told = shared.call("GET", "/api/v1/explain?workload=abc/queued").body["data"]
    assert told["workload"] == "abc/queued"
    assert [one["cluster"] for one in told["assessments"] if one["refusal"]] == ["worker-1"]


@pytest.mark.parametrize(("query", "status"), [("workload=llm/nothing", 404), ("workload=llm", 404), ("", 422)])
def test_workload_that_is_not_there_is_not_explained(shared: Daemon, query: str, status: int) -> None:
    assert shared.call("GET", f"/api/v1/explain?{query}").status == status


def test_history_is_paged_and_takes_no_made_up_page(shared: Daemon) -> None:
    for name in ("first", "second", "third"):
        assert shared.call("POST", PATH, small(name)).status == 200
    rows: list[str] = []
    following = ""
    for _ in range(3):
        page = shared.call("GET", f"/api/v1/history?limit=1&continue={following}").body
        rows += [row["workload"] for row in page["data"]]
        following = page["metadata"]["continue"]
    assert rows[:3] == ["abc/third", "abc/second", "abc/first"]
    assert shared.call("GET", "/api/v1/history?continue=nonsense").status == 400
    for wrong in ("since=2026-13-01T00:00:00Z", "since=yesterday", "workload=abc/nothing", "limit=0", "other=1"):
        assert shared.call("GET", f"/api/v1/history?{wrong}").status == 422, wrong
    shared.clear()


def test_cluster_that_no_workspace_of_the_caller_has_is_not_in_its_status(shared: Daemon) -> None:
    clusters = {
        token: [row["cluster"] for row in shared.call("GET", "/api/v1/status", token=token).body["data"]["clusters"]]
        for token in (OWNER, VIEWER)
    }
    assert clusters == {OWNER: ["worker-1", "worker-2", "worker-3"], VIEWER: ["worker-1", "worker-2"]}
