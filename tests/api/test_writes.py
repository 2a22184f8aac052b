"""A write is answered once it is on the remote, by whoever asked, once, whatever happens on the way."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.builders.daemon import ASKED, EDITOR, NAMELESS, PATH, Daemon, Reply, small


def at_once(number: int, call: Callable[[int], Reply]) -> list[Reply]:
    """Make so many calls, all of them begun at the same moment."""
    gate = threading.Barrier(number)

    def one(index: int) -> Reply:
        gate.wait(30)
        return call(index)

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(one, range(number)))


def test_commit_that_is_answered_is_on_the_remote_and_carries_the_request(running: Daemon) -> None:
    commit = running.call("POST", PATH, small("settings")).body["data"]["commit"]
    assert running.remote.git("merge-base", "--is-ancestor", commit, "placements") == ""
    assert running.remote.git("show", "--format=", "--name-only", commit).split() == [
        "ledger/abc/requests/cd/settings.yaml"
    ]
    assert running.remote.git("log", "-1", "--format=%s", commit) == "request(abc/settings): received"


def test_caller_is_the_author_of_the_commit_and_overspill_its_committer(running: Daemon) -> None:
    commit = running.call("POST", PATH, small("settings"), EDITOR).body["data"]["commit"]
    assert running.remote.git("log", "-1", "--format=%an <%ae>", commit) == "Ed <ed@example.com>"
    assert "Ed" not in running.remote.git("log", "-1", "--format=%cn", commit)


def test_caller_without_an_address_gets_one_where_nobody_reads(running: Daemon) -> None:
    commit = running.call("POST", PATH, small("settings"), NAMELESS).body["data"]["commit"]
    named = running.remote.git("log", "-1", "--format=%an <%ae>", commit)
    assert named == "Release Robot <release-robot@users.noreply.overspill.dev>"


def test_what_is_answered_is_read_at_once(running: Daemon) -> None:
    for number in range(5):
        name = f"settings-{number}"
        assert running.call("POST", PATH, small(name)).status == 200
        assert running.call("GET", f"{PATH}/{name}").status == 200
        assert running.call("GET", PATH).body["metadata"]["total"] == 1
        assert running.call("DELETE", f"{PATH}/{name}").status == 200
        assert running.call("GET", f"{PATH}/{name}").status == 404


def test_fifty_writers_of_one_name_are_one_winner_and_forty_nine_refusals(running: Daemon) -> None:
    replies = at_once(50, lambda _: running.call("POST", PATH, small("settings")))
    assert sorted(reply.status for reply in replies) == [200] + [409] * 49
    assert running.call("GET", PATH).body["metadata"]["total"] == 1


def test_fifty_writers_of_different_names_all_land_and_share_their_pushes(running: Daemon) -> None:
    before = running.pushed()
    replies = at_once(50, lambda index: running.call("POST", PATH, small(f"settings-{index}")))
    assert [reply.status for reply in replies] == [200] * 50
    names = {item["name"] for item in running.call("GET", PATH).body["data"]}
    assert names == {f"settings-{index}" for index in range(50)}
    assert len({reply.body["data"]["commit"] for reply in replies}) == 50
    assert running.pushed() - before < 25


def test_writers_and_readers_at_once_are_all_served(running: Daemon) -> None:
    def call(index: int) -> Reply:
        if index % 2:
            return running.call("GET", f"{PATH}?limit=5")
        return running.call("POST", PATH, small(f"settings-{index}"))

    assert {reply.status for reply in at_once(40, call)} == {200}


def test_write_lands_on_top_of_what_somebody_else_pushed_meanwhile(running: Daemon) -> None:
    running.call("POST", PATH, small("first"))
    theirs = running.remote.commit("placements", {"notes.txt": "looked at by Ann\n"}, message="Take notes")
    reply = running.call("POST", PATH, small("second"))
    assert reply.status == 200
    assert running.remote.git("merge-base", "--is-ancestor", theirs, reply.body["data"]["commit"]) == ""
    assert running.remote.files("placements")["notes.txt"] == b"looked at by Ann\n"


def test_outage_of_the_remote_is_told_and_a_retry_with_the_same_key_lands_once(running: Daemon) -> None:
    running.call("POST", PATH, small("first"))
    here = Path(running.remote.url)
    away = here.rename(here.with_name("away.git"))
    lost = running.call("POST", PATH, small("second"), Idempotency_Key="2f1c")
    assert (lost.status, lost.headers["Retry-After"]) == (503, "5")
    assert "nothing is known to have been written" in lost.body["message"]
    assert "Idempotency-Key" in lost.body["error"]["hint"]
    assert running.call("GET", PATH).status == 200
    away.rename(here)
    again = [running.call("POST", PATH, small("second"), Idempotency_Key="2f1c") for _ in range(3)]
    assert [reply.status for reply in again] == [200] * 3
    assert [item["name"] for item in running.call("GET", PATH).body["data"]] == ["first", "second"]
    assert running.remote.subjects("placements").count("request(abc/second): received") == 1


def test_call_that_is_made_again_has_the_commit_that_took_it_in(running: Daemon) -> None:
    calls = [running.call("POST", PATH, small("first"), Idempotency_Key="2f1c")]
    other = running.call("POST", PATH, small("second"), NAMELESS)
    running.call("PUT", f"{PATH}/first", {"burstDuration": "20m"})
    calls += [running.call("POST", PATH, small("first"), Idempotency_Key="2f1c") for _ in range(2)]
    first, *again = [reply.body["data"]["commit"] for reply in calls]
    assert again == [first, first]
    assert other.body["data"]["commit"] != first
    assert running.remote.git("log", "-1", "--format=%an: %s", first) == "Ada: request(abc/first): received"


def test_key_stands_for_one_body_even_when_that_is_placed(running: Daemon) -> None:
    assert running.call("POST", PATH, small("settings"), Idempotency_Key="2f1c").status == 200
    tip = running.remote.tip("placements")
    other = small("settings", burstDuration="9h", clusters=["worker-2"])
    reply = running.call("POST", PATH, other, Idempotency_Key="2f1c")
    assert (reply.status, reply.body["error"]["errorKey"]) == (422, "KeyReused")
    assert running.remote.tip("placements") == tip


@pytest.mark.parametrize(
    ("method", "body", "told"),
    [("PUT", {"burstDuration": "20m"}, "changes nothing more"), ("DELETE", None, "a 404 then says that it is gone")],
)
def test_outage_tells_how_a_change_or_an_end_is_tried_again(
    running: Daemon, method: str, body: object, told: str
) -> None:
    running.call("POST", PATH, small("settings"))
    here = Path(running.remote.url)
    away = here.rename(here.with_name("away.git"))
    lost = running.call(method, f"{PATH}/settings", body)
    away.rename(here)
    assert lost.status == 503
    assert told in lost.body["error"]["hint"]
    assert "Idempotency-Key" not in lost.body["error"]["hint"]
    running.until(lambda: running.call(method, f"{PATH}/settings", body).status == (404 if method == "DELETE" else 200))


def test_key_of_one_caller_is_not_that_of_another(running: Daemon) -> None:
    assert running.call("POST", PATH, small("settings"), Idempotency_Key="2f1c").status == 200
    assert running.call("POST", PATH, small("settings"), EDITOR, Idempotency_Key="2f1c").status == 409


@pytest.mark.parametrize("key", ["x" * 201, "caf\xe9"])
def test_key_that_is_too_long_or_no_plain_text_is_refused(shared: Daemon, key: str) -> None:
    reply = shared.call("POST", PATH, small("settings"), Idempotency_Key=key)
    assert reply.status == 422
    assert reply.body["error"]["problems"][0]["field"] == "Idempotency-Key"


def test_key_itself_stands_nowhere_in_git(running: Daemon) -> None:
    running.call("POST", PATH, small("settings"), Idempotency_Key="my-own-key-2f1c")
    assert b"my-own-key" not in running.remote.run("log", "-p", "placements")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (small("settings", burstDuration="hunter2hunter2"), "burstDuration"),
        ({**small("settings"), "name": "Hunter2hunter2"}, "name"),
        (small("settings", helmConfigs="hunter2hunter2"), "helmConfigs"),
        (small("settings", clusters=["hunter2hunter2"]), "clusters[0]"),
    ],
)
def test_log_tells_which_field_is_wrong_and_not_what_stands_there(
    running: Daemon, body: dict[str, object], field: str
) -> None:
    with capture_logs() as logs:
        assert running.call("POST", PATH, body).status in {400, 422}
    (entry,) = (entry for entry in logs if entry["event"] == "request refused")
    assert entry["why"].endswith(f": {field}")
    assert "hunter2" not in str(logs).lower()


def test_field_that_looks_like_a_token_is_not_logged(running: Daemon) -> None:
    token = "gh" + "p_" + "a1B2" * 9
    with capture_logs() as logs:
        reply = running.call("POST", PATH, {**small("settings"), token: 1, "x" * 270 + " " + token: 2})
    assert reply.status == 400
    assert "a1B2" not in str(logs)
    assert "unknown field" in reply.body["message"]


def test_burst_is_deleted_and_changed_like_a_placement_that_was_asked_for(running: Daemon) -> None:
    running.sight.missing = 2
    running.wake("observation")
    running.until(lambda: running.call("GET", PATH).body["data"])
    (burst,) = running.call("GET", PATH).body["data"]
    one = f"{PATH}/{burst['name']}"
    assert burst["origin"] == "burst"
    assert burst["manifestResources"][0]["manifest"]["spec"]["replicas"] == 2
    assert running.call("PUT", one, {"burstDuration": "30m"}).status == 200
    assert running.call("PUT", one, {"clusters": ["worker-3"]}).status == 409
    reply = running.call("DELETE", one)
    assert reply.status == 200
    author = running.remote.git("log", "-1", "--format=%an", reply.body["data"]["commit"])
    assert author == "Ada"
    assert running.call("GET", one).status == 404


def test_request_of_a_file_is_shown_and_is_changed_by_a_pull_request(running: Daemon) -> None:
    running.edit({"request.yaml": FILE})
    running.until(lambda: running.call("GET", f"{PATH}/from-a-file").status == 200)
    for method, body in (("PUT", {"burstDuration": "30m"}), ("DELETE", None)):
        reply = running.call(method, f"{PATH}/from-a-file", body)
        assert reply.status == 422
        assert "request.yaml" in json.dumps(reply.body) or "pull request" in json.dumps(reply.body)


@pytest.mark.parametrize(
    ("raw", "status", "told"),
    [
        (b"", 400, "is empty"),
        (b'{"name": "a",\n "name": "b"}', 400, "twice"),
        (b'{"name": "a"\n "clusters": []}', 400, "request:2: is not JSON"),
        (b'{"name": NaN}', 400, "NaN"),
        (b"[]", 400, ""),
        (b"\xff\xfe", 400, ""),
        (b'"' + b"x" * (10 << 20) + b'"', 413, "over 1 MiB"),
        (b"[" * 100_000, 400, ""),
    ],
)
def test_body_that_is_none_is_refused_with_its_place(shared: Daemon, raw: bytes, status: int, told: str) -> None:
    reply = shared.call("POST", PATH, raw=raw)
    assert reply.status == status
    assert told in reply.body["message"]


def test_every_field_that_is_wrong_is_told_at_once(shared: Daemon) -> None:
    reply = shared.call("POST", PATH, {**ASKED, "burstDuration": "4 hours", "clustres": ["worker-1"], "steps": {}})
    assert reply.status == 400
    assert {"burstDuration", "clustres", "steps"} <= {problem["field"] for problem in reply.body["error"]["problems"]}


def test_what_a_workspace_does_not_allow_is_refused_by_the_pass(shared: Daemon) -> None:
    before = shared.remote.tip("placements")
    reply = shared.call("POST", PATH, small("settings", clusters=["worker-3"]))
    assert reply.status == 422
    (problem,) = reply.body["error"]["problems"]
    assert (problem["field"], problem["message"]) == ("clusters[0]", "worker-3 is no cluster of workspace abc")
    assert shared.remote.tip("placements") == before


def test_body_of_another_type_is_refused(shared: Daemon) -> None:
    assert shared.call("POST", PATH, small("settings"), Content_Type="text/plain").status == 415


def test_slash_at_the_end_makes_no_difference(running: Daemon) -> None:
    assert running.call("POST", f"{PATH}/", small("settings")).status == 200


FILE = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: from-a-file, namespace: kubeslice-avesha}
spec:
  workspaceName: abc
  clusterNames: [worker-2]
  burstDuration: 15m
  manifestResources:
    - name: settings
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: bookinfo}, data: {a: b}}
  steps: [{name: settings, type: manifest}]
"""
