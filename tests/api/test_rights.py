"""Who may do what with placements: viewers read, editors and owners write, and strangers see nothing."""

from __future__ import annotations

import pytest

from tests.builders.daemon import ASKED, EDITOR, OWNER, PATH, STRANGER, VIEWER, Daemon, Reply, small

CALLERS = {"owner": OWNER, "editor": EDITOR, "viewer": VIEWER, "stranger": STRANGER, "nobody": ""}
THERE = f"{PATH}/there"

MATRIX = {
    #          owner editor viewer stranger nobody
    "list": (200, 200, 200, 200, 401),
    "list of it": (200, 200, 200, 404, 401),
    "read": (200, 200, 200, 404, 401),
    "create": (200, 200, 403, 404, 401),
    "update": (200, 200, 403, 404, 401),
    "delete": (200, 200, 403, 404, 401),
    "explain": (200, 200, 200, 404, 401),
    "templates": (200, 200, 200, 200, 401),
    "workspaces": (200, 200, 200, 200, 401),
}


@pytest.fixture
def there(shared: Daemon) -> Daemon:
    """Have a placement of the workspace abc there, and no other."""
    if [item["name"] for item in shared.call("GET", f"{PATH}?origin=request").body["data"]] != ["there"]:
        shared.clear()
        assert shared.call("POST", PATH, small("there")).status == 200
    return shared


def act(running: Daemon, action: str, token: str) -> Reply:
    match action:
        case "list":
            return running.call("GET", PATH, token=token)
        case "list of it":
            return running.call("GET", f"{PATH}/workspace/abc", token=token)
        case "read":
            return running.call("GET", THERE, token=token)
        case "create":
            return running.call("POST", PATH, small("another"), token)
        case "update":
            return running.call("PUT", THERE, {"burstDuration": "30m"}, token)
        case "delete":
            return running.call("DELETE", THERE, token=token)
        case "explain":
            return running.call("GET", "/api/v1/explain?workload=abc/there", token=token)
        case "templates":
            return running.call("GET", "/api/v1/workload-template", token=token)
        case _:
            return running.call("GET", "/api/v1/slice-workspace/list", token=token)


@pytest.mark.parametrize("action", MATRIX)
@pytest.mark.parametrize("caller", CALLERS)
def test_each_role_may_do_what_it_may(there: Daemon, action: str, caller: str) -> None:
    expected = MATRIX[action][list(CALLERS).index(caller)]
    assert act(there, action, CALLERS[caller]).status == expected


def test_lists_show_only_what_the_caller_may_see(there: Daemon) -> None:
    assert [item["name"] for item in act(there, "list", VIEWER).body["data"]] == ["there"]
    stranger = act(there, "list", STRANGER).body
    assert (stranger["data"], stranger["metadata"]["total"]) == ([], 0)
    assert [one["name"] for one in act(there, "workspaces", STRANGER).body["data"]["workspaces"]] == ["llm"]
    assert act(there, "templates", VIEWER).body["data"] == []
    assert [one["name"] for one in act(there, "templates", STRANGER).body["data"]] == ["vllm"]


def test_stranger_is_told_the_same_of_what_is_there_and_of_what_is_not(there: Daemon) -> None:
    for method, body in (("GET", None), ("PUT", {"burstDuration": "30m"}), ("DELETE", None)):
        found = there.call(method, THERE, body, STRANGER)
        missing = there.call(method, f"{PATH}/their", body, STRANGER)
        assert found.status == missing.status == 404
        assert str(found.body).replace("there", "their") == str(missing.body)
    asked = there.call("POST", PATH, {**ASKED, "workspaceName": "abc"}, STRANGER)
    unknown = there.call("POST", PATH, {**ASKED, "workspaceName": "xyz"}, STRANGER)
    assert str(asked.body).replace("abc", "xyz") == str(unknown.body)


def test_viewer_who_may_not_write_is_told_what_it_takes(there: Daemon) -> None:
    reply = act(there, "delete", VIEWER)
    assert reply.body["message"] == "Vi is not an Editor of the workspace abc"
    assert "ask whoever runs Overspill" in reply.body["error"]["hint"]
