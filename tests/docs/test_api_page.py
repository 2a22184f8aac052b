"""The page on the REST API tells of every route, every parameter and every error that there is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.backend import Backend
from reconciler.api.lookup import ItemFilters
from reconciler.api.paging import LIMIT, MOST
from reconciler.api.refusal import envelope
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.loop import Vitals
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.model.plan import Reason
from reconciler.model.request import Denial
from tests.builders.daemon import daemon
from tests.builders.desk import answer_desk
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "api.md").read_text()
DOCUMENTED = {
    (method, path.partition("?")[0])
    for methods, path in re.findall(r"^\| `([A-Z`, ]+) (/\S+?)`", PAGE, re.MULTILINE)
    for method in re.findall(r"[A-Z]+", methods)
}


def _vitals() -> Vitals:
    raise AssertionError("nobody is asked")


def _document() -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    repository = MemoryRepository()
    latest = LatestSnapshot(BranchReader(repository))
    backend = Backend(
        latest=latest,
        shelf=repository,
        queue=OrderQueue(lambda _: None),
        answers=answer_desk(latest, repository),
    )
    return create_app(
        pushed=PushedObservations(),
        wake=lambda _: None,
        clock=SystemClock(),
        vitals=_vitals,
        branches=("main",),
        backend=backend,
        process=ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0),
    ).openapi()


def _plain(path: str) -> str:
    """Put hosts of webhooks together, and leave out how a part of a path is called."""
    return re.sub(r"\{\w+\}", "{}", re.sub(r"webhooks/\w+$", "webhooks/{host}", path))


def test_every_call_it_shows_is_answered_as_it_says(remote: Remote, tmp_path: Path) -> None:
    """Make them in their order; GPRs and bursts of them are nobody's, since ids are made up."""
    workspace = SOURCE_FILES["workspaces.yaml"].replace("[demo]", "[demo, vllm-demo]")
    with daemon(remote, tmp_path / "cache") as running:
        running.edit({"workspaces.yaml": workspace})
        replies = [(method, path, running.call(method, path, body)) for method, path, body in calls()]
        asked = calls()[0]
        running.call(*asked)
        again = running.call(*asked)
    assert [(method, path, reply.status) for method, path, reply in replies if reply.status != 200] == [
        ("POST", "/api/v1/revert", 404),
        ("POST", "/api/v1/extend", 404),
        ("PUT", "/api/v1/gpr", 404),
    ]
    created, error = (
        json.loads(block) for block in re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    )
    first = replies[0][2].body
    assert created == first | {"data": first["data"] | {"commit": created["data"]["commit"]}}
    assert (again.status, again.body["message"]) == (error["statusCode"], error["message"])
    assert {**error["error"], "data": ""}.items() <= {**again.body["error"], "data": ""}.items()
    assert again.body["error"]["data"].startswith(error["error"]["data"].removesuffix(", ...}}"))
    (waits,) = [reply.body["data"] for _, path, reply in replies if path.endswith("/waittime")]
    assert waits


def calls() -> list[tuple[str, str, Any]]:
    """List the calls that the page shows: method, path and body."""
    found = []
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        for line in re.findall(r"^curl (?:.*\\\n)*?(?:.|\n(?!curl))*", block, re.MULTILINE):
            words = shlex.split(line.replace("\\\n", " ").replace("$API", "/api/v1"))
            (path,) = [word for word in words if word.startswith("/api/v1")]
            body = json.loads(words[words.index("-d") + 1]) if "-d" in words else None
            method = words[words.index("-X") + 1] if "-X" in words else "POST" if body is not None else "GET"
            found.append((method, path, body))
    return found


def test_the_length_of_a_page_is_told() -> None:
    assert f"| `limit` | entries of a page: {LIMIT}, at most {MOST} |" in PAGE


def test_every_route_is_in_the_table_and_no_other() -> None:
    routes = {
        (method.upper(), _plain(path)) for path, methods in _document()["paths"].items() for method in methods
    } - {("GET", "/readyz")}  # it stands beside /healthz
    assert {(method, _plain(path)) for method, path in DOCUMENTED} == routes


def test_every_reason_is_told_in_the_order_of_the_code() -> None:
    table = PAGE.partition("## Reasons")[2].partition("## Routes")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [reason.value for reason in Reason]


def test_every_filter_is_told() -> None:
    for name, field in ItemFilters.model_fields.items():
        assert f"| `{field.alias or name}` |" in PAGE


def test_every_status_and_key_that_can_come_is_in_the_table_of_errors() -> None:
    table = PAGE[PAGE.index("## Errors") :]
    told = set(re.findall(r"\b[45]\d\d\b", " ".join(re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE))))
    possible = {
        status
        for methods in _document()["paths"].values()
        for operation in methods.values()
        for status in operation["responses"]
        if status[0] in "45"
    }
    assert told == possible | {"405"}  # which is no answer of an operation
    for denial in (Denial.INVALID_UPDATE, Denial.DELETION_RESTRICTED, Denial.INVALID, Denial.KEY_REUSED):
        assert f"`{denial}`" in table
    assert f"`{Denial.EXISTS}`" in table


def test_every_status_of_pushed_observations_is_on_their_page() -> None:
    page = (
        (Path(__file__).parents[2] / "docs" / "how-to" / "observations.md").read_text().partition("\n## By HTTP\n")[2]
    )
    told = " ".join(re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE))
    assert set(told.replace(",", "").split()) == set(_document()["paths"]["/api/v1/observations"]["post"]["responses"])


def test_reference_of_an_error_is_a_heading_of_the_page() -> None:
    assert "/docs#errors" in envelope(404, "Not Found")["error"]["data"]
    assert "\n## Errors\n" in PAGE
