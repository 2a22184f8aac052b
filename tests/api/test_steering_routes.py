"""Reverts and extensions that callers of the API order: commits in their name, or drafts of them."""

from __future__ import annotations

import re
import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from datetime import datetime, timedelta

import pytest

from reconciler.api.redact import SOMEBODY
from reconciler.daemon.answers.history import HistorySelection
from reconciler.daemon.snapshot import Snapshot
from tests.builders.daemon import EDITOR, OWNER, PATH, STRANGER, VIEWER, Daemon, small

REVERT, EXTEND = "/api/v1/revert", "/api/v1/extend"


@pytest.fixture
def burst(running: Daemon) -> str:
    """Let llm/vllm burst, and return the name of its placement."""
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: running.call("GET", "/api/v1/status").body["data"]["placements"])
    return placements(running)[0]


def placements(daemon: Daemon) -> list[str]:
    return [row["placement"]["name"] for row in daemon.call("GET", "/api/v1/status").body["data"]["placements"]]


def tip(daemon: Daemon, what: str) -> str:
    return daemon.remote.git("log", "-1", f"--format={what}", "placements")


def test_revert_is_committed_in_the_name_of_the_caller_and_holds_the_workload(running: Daemon, burst: str) -> None:
    body = {"placements": [burst], "reason": "the audit"}
    draft = running.call("POST", REVERT, body | {"dryRun": True}, token=STRANGER).body["data"]
    assert [commit["row"]["action"] for commit in draft["commits"]] == ["Revert"]
    assert draft["commits"][0]["author"] == {"name": "Sam", "email": "sam@example.com"}
    assert "pushed" not in draft
    assert placements(running) == [burst]
    running.sight.missing = 0
    reply = running.call("POST", REVERT, body, token=STRANGER)
    done = reply.body["data"]
    assert done["pushed"] == [tip(running, "%H")]
    assert done["lines"] == [f"{tip(running, '%s')} (requested: the audit)"]
    assert [commit["subject"] for commit in done["commits"]] == [tip(running, "%s")]
    assert tip(running, "%an <%ae>") == "Sam <sam@example.com>"
    assert placements(running) == []
    assert "Held" in str(running.call("GET", "/api/v1/explain?workload=llm/vllm").body["data"]["assessments"])
    again = running.call("POST", REVERT, body, token=STRANGER)
    assert again.status == 404
    assert re.fullmatch(rf"placement llm/{burst} ended at \S+Z: Requested: the audit", again.body["message"])


def test_extension_moves_the_end_by_a_duration_or_to_a_moment(running: Daemon, burst: str) -> None:
    def end() -> datetime:
        (row,) = running.call("GET", "/api/v1/status").body["data"]["placements"]
        return datetime.fromisoformat(row["placement"]["expiresAt"])

    before = end()
    reply = running.call("POST", EXTEND, {"placement": f"llm/{burst}", "by": "30m"})
    assert (reply.status, end() - before) == (200, timedelta(minutes=30))
    assert tip(running, "%an <%ae>") == "Ada <ada@example.com>"
    until = (before + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert running.call("POST", EXTEND, {"placement": burst, "until": until}).status == 200
    assert end() - before == timedelta(minutes=5)
    passed = running.call("POST", EXTEND, {"placement": burst, "until": "2020-01-01T00:00:00Z"})
    assert (passed.status, "has passed (try" in passed.body["message"]) == (422, True)


def test_role_that_orders_need_is_needed_here(running: Daemon, burst: str) -> None:
    for path, body in ((REVERT, {"placements": [burst]}), (EXTEND, {"placement": burst, "by": "1h"})):
        for more in ({}, {"dryRun": True}):
            assert running.call("POST", path, body | more, token=EDITOR).status == 403
            unseen = running.call("POST", path, body | more, token=VIEWER)
            assert (unseen.status, unseen.body["message"]) == (404, f"no placement {burst!r}: nothing is bursting")
    assert placements(running) == [burst]


def test_end_of_a_placement_names_nothing_of_other_workspaces(running: Daemon, burst: str) -> None:
    assert running.call("POST", PATH, small("bookinfo")).status == 200
    (own,) = (name for name in placements(running) if name != burst)
    reason = f"its room goes to llm/vllm ({burst})"
    assert running.call("POST", REVERT, {"placements": [own], "reason": reason}).status == 200
    for path, body in ((REVERT, {"placements": [own]}), (EXTEND, {"placement": own, "by": "1h"})):
        ended = running.call("POST", path, body, token=VIEWER)
        assert ended.status == 404
        assert ended.body["message"].endswith(f"Requested: its room goes to {SOMEBODY} ({SOMEBODY})")


def test_caller_looks_for_one_end_at_a_time(running: Daemon) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def select(_: Snapshot) -> HistorySelection:
        begun.set()
        assert go_on.wait(60)
        return HistorySelection(limit=1)

    with ThreadPoolExecutor(max_workers=13) as pool:
        first = pool.submit(running.answers.history, select)
        assert begun.wait(60)
        calls = [pool.submit(running.call, "POST", REVERT, {"placements": ["typo"]}) for _ in range(12)]
        wait(calls, return_when=FIRST_COMPLETED)  # while others are answered, only one that is refused ends
        go_on.set()
        statuses = {call.result(60).status for call in calls}
    assert first.exception() is None
    assert statuses == {404, 429}


def test_all_placements_of_a_call_end_in_one_push_and_none_if_one_is_not_there(running: Daemon, burst: str) -> None:
    assert running.call("POST", PATH, small("bookinfo")).status == 200
    both = placements(running)
    assert len(both) == 2
    missing = running.call("POST", REVERT, {"placements": [*both, "nothing-0a4ff000"]})
    assert (missing.status, placements(running)) == (404, both)
    running.sight.missing, pushed = 0, running.pushed()
    done = running.call("POST", REVERT, {"placements": [*both, both[0]], "everywhere": True}).body["data"]
    assert (placements(running), running.pushed()) == ([], pushed + 1)
    assert len(done["pushed"]) == len(done["commits"]) == len(done["lines"]) == 3
    assert {commit["row"]["action"] for commit in done["commits"]} == {"Revert", "Close"}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (REVERT, {}),
        (REVERT, {"placements": []}),
        (REVERT, {"placements": ["a"], "why": "x"}),
        (EXTEND, {"placement": "a"}),
        (EXTEND, {"placement": "a", "by": "1h", "until": "2026-11-20T10:15:00Z"}),
        (EXTEND, {"placement": "a", "until": "tomorrow"}),
        (EXTEND, {"placement": "a", "until": "9999-01-01T00:00:00Z"}),
        (EXTEND, {"placement": "a", "by": 30}),
        (EXTEND, {"placement": "a", "by": "100000d"}),
    ],
)
def test_wrong_body_is_refused(shared: Daemon, path: str, body: dict[str, object]) -> None:
    assert shared.call("POST", path, body, token=OWNER).status == 400
