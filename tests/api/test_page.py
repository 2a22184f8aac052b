"""The page that tells every call: complete, harmless, and with nothing from anywhere else."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api import page
from reconciler.api.app import create_app
from reconciler.api.reference import FieldRow, chapters
from reconciler.daemon.loop import Vitals

WELL = Vitals(passes=1, bugs=0, idle=timedelta(seconds=5), stuck_after=timedelta(minutes=5))


class Elements(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def application() -> FastAPI:
    return create_app(
        pushed=PushedObservations(), wake=lambda _: None, clock=SystemClock(), vitals=lambda: WELL, branches=("main",)
    )


def page_of(document: dict[str, Any]) -> str:
    app = FastAPI(openapi_url=None)
    app.include_router(page.router(lambda: document))
    return TestClient(app).get("/docs").text


def document(**operation: Any) -> dict[str, Any]:
    return {"info": {"title": "Overspill", "version": "1"}, "paths": {"/api/v1/things": {"post": operation}}}


def body(schema: dict[str, Any], **content: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {"application/json": {"schema": schema, **content}}}}


def fields_of(schema: dict[str, Any], **rest: Any) -> list[FieldRow]:
    ((call,),) = [chapter.operations for chapter in chapters({**document(**body(schema)), **rest})]
    assert call.body is not None
    return list(call.body.fields)


def test_every_call_of_the_daemon_is_told_with_its_way_and_its_answers() -> None:
    app = application()
    text = Elements(TestClient(app).get("/docs").text).text
    operations = [
        (path, method, told) for path, item in app.openapi()["paths"].items() for method, told in item.items()
    ]
    assert len(operations) > 5
    for path, method, told in operations:
        assert re.search(rf"{method.upper()}\s*{re.escape(path)}", text), path
        assert f'$OVERSPILL_SERVER{path}"' in text
        for status in told["responses"]:
            assert status in text


def test_page_needs_nothing_from_anywhere_and_may_load_nothing() -> None:
    answer = TestClient(application()).get("/docs")
    policy = answer.headers["content-security-policy"]
    style = re.search(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'sha256-{digest}'" in policy
    elements = Elements(answer.text).found
    assert not {"script", "link", "img", "iframe", "base", "form"} & {tag for tag, _ in elements}
    assert not [attrs for _, attrs in elements if "style" in attrs or any(name.startswith("on") for name in attrs)]
    links = {str(attrs["href"]) for tag, attrs in elements if tag == "a"}
    assert {link for link in links if not link.startswith("#")} == {"api/v1/openapi.json"}
    assert not re.search(r"https?://|@import|url\(", style[1])


def test_links_lead_to_calls_that_are_on_the_page() -> None:
    elements = Elements(TestClient(application()).get("/docs").text).found
    ids = [attrs["id"] for _, attrs in elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {str(attrs["href"])[1:] for tag, attrs in elements if tag == "a" and str(attrs["href"])[0] == "#"} <= set(
        ids
    )


KNOWN = {"lang", "charset", "name", "content", "href", "class", "id", "tabindex", "aria-label", "open"}
HOSTILE = st.text(st.sampled_from("<>&\"'`{}%/ab \n"), max_size=20)


@given(HOSTILE, HOSTILE, HOSTILE)
def test_words_of_the_document_stay_words(title: str, name: str, example: str) -> None:
    told = document(
        operationId=f"x{name}",
        description=title,
        parameters=[{"name": name, "in": "query", "description": title, "schema": {"type": "string", "default": name}}],
        responses={"200": {"description": example}, "409": {"description": title}},
        **body({"properties": {name: {"description": title}}}, examples={name: {"value": example}}),
    )
    plain = Elements(page_of(document(operationId="x", description="a", responses={}))).found
    allowed = {tag for tag, _ in plain} | {"dl", "dt", "dd", "div", "details", "summary", "code", "h4", "strong"}
    page = Elements(page_of(told))
    assert {tag for tag, _ in page.found} <= allowed
    for _, attrs in page.found:
        assert set(attrs) <= {
            "lang",
            "charset",
            "name",
            "content",
            "href",
            "class",
            "id",
            "tabindex",
            "aria-label",
            "open",
        }
    assert example.replace("\r", "") in page.text


def test_fields_are_listed_by_their_path_with_what_they_hold() -> None:
    step = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "description": "What it is called"},
            "type": {"enum": ["helm", "command"]},
        },
    }
    schema = {
        "type": "object",
        "properties": {"steps": {"type": "array", "items": {"$ref": "#/components/schemas/Step"}}},
    }
    assert fields_of(schema, components={"schemas": {"Step": step}}) == [
        FieldRow(name="steps", kind="list of object", required=False, description=""),
        FieldRow(name="steps[].name", kind="string", required=True, description="What it is called."),
        FieldRow(name="steps[].type", kind='"helm" | "command"', required=False, description=""),
    ]


@pytest.mark.parametrize(
    ("schema", "kind", "told"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string", ""),
        (
            {"type": "integer", "minimum": 1, "maximum": 300, "default": 101},
            "integer",
            "At least 1, at most 300, by default 101.",
        ),
        ({"type": "string", "format": "date-time"}, "string (date-time)", ""),
        ({"const": "Error"}, '"Error"', ""),
        ({"type": ["string", "object"]}, "string or object", ""),
        ({}, "any", ""),
        ({"$ref": "#/nowhere"}, "any", ""),
    ],
)
def test_kinds_are_told_in_words(schema: dict[str, Any], kind: str, told: str) -> None:
    (field,) = fields_of({"properties": {"it": schema}})
    assert (field.kind, field.description) == (kind, told)


def test_field_that_only_one_form_of_an_object_requires_is_not_called_required() -> None:
    whole = {
        "type": "object",
        "required": ["manifest", "kind"],
        "properties": {"manifest": {"type": "object"}, "kind": {"type": "string"}},
    }
    flat = {"type": "object", "required": ["kind"], "properties": {}}
    told = fields_of({"anyOf": [whole, flat, {"type": "string"}]})
    assert [(field.name, field.required) for field in told] == [("manifest", False), ("kind", True)]


def test_schema_that_refers_to_itself_is_told_once() -> None:
    node = {"type": "object", "properties": {"child": {"$ref": "#/components/schemas/Node"}}}
    told = fields_of({"$ref": "#/components/schemas/Node"}, components={"schemas": {"Node": node}})
    assert [field.name for field in told] == ["child"]


def test_schema_that_two_fields_have_is_told_at_the_first() -> None:
    flags = {"type": "object", "properties": {"wait": {"type": "boolean"}}}
    ref = {"$ref": "#/components/schemas/Flags"}
    fields = {"one": {"type": "array", "items": ref}, "two": {"anyOf": [ref, {"type": "null"}], "description": "Else"}}
    told = fields_of({"properties": fields}, components={"schemas": {"Flags": flags}})
    assert [(field.name, field.description) for field in told] == [
        ("one", ""),
        ("one[].wait", ""),
        ("two", "Else. The same as `one`."),
    ]


def test_command_line_bears_a_token_and_sends_a_body_where_the_call_needs_them() -> None:
    told = document(security=[{"bearer": []}], responses={}, **body({"type": "object"}))
    ((call,),) = [chapter.operations for chapter in chapters(told)]
    assert call.curl == (
        "curl -X POST \\\n"
        '  -H "Authorization: Bearer $OVERSPILL_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' --data-binary @body.json \\\n"
        '  "$OVERSPILL_SERVER/api/v1/things"'
    )
