"""What browsers load and may do: files as their authors published them, and nothing inline or from elsewhere."""

from __future__ import annotations

import hashlib
import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.builders.browser import Browser
from tests.builders.daemon import OWNER, Daemon
from tests.web.conftest import signed_in

VENDOR = Path(str(files("reconciler.web") / "static" / "vendor"))
VIEWS = ("/", "/clusters", "/time", "/why", "/why?workload=llm/vllm", "/money", "/lab", "/do/request")


@pytest.fixture(scope="module")
def visitor(shared: Daemon) -> Browser:
    return signed_in(shared, OWNER)


def test_files_of_others_are_as_published_and_have_their_licence() -> None:
    lines = (VENDOR / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split("  ")) for line in lines)
    assert {name: hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() for name in sums} == sums
    assert {path.name for path in VENDOR.iterdir()} == {*sums, "SHA256SUMS", "README.md"}
    for name in ("htmx", "uplot"):
        assert "permi" in (VENDOR / f"{name}.LICENSE").read_text().lower()


@pytest.mark.parametrize("path", VIEWS)
def test_page_has_nothing_inline_and_loads_nothing_from_elsewhere(visitor: Browser, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status == 200, answer.text
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, attributes in answer.page.elements:
        assert "style" not in attributes, (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")], (tag, attributes)
        for name in ("src", "action", "formaction"):
            assert attributes.get(name, "/").startswith("/"), (tag, attributes)
        if tag == "link":
            assert attributes["href"].startswith("/")
        assert tag != "style"
        if tag == "script":
            assert attributes["src"]


@pytest.mark.parametrize("path", VIEWS)
def test_page_is_kept_by_nobody_and_framed_by_nobody(visitor: Browser, path: str) -> None:
    headers = visitor.get(path).headers
    assert headers["cache-control"] == "no-store"
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize("path", VIEWS)
def test_page_has_landmarks_one_heading_and_tables_with_captions(visitor: Browser, path: str) -> None:
    document = visitor.get(path).page
    tags = [tag for tag, _ in document.elements]
    assert tags.count("main") == 1
    assert tags.count("h1") == 1
    assert {"header", "nav", "footer"} <= {*tags}
    assert tags.count("caption") == tags.count("table")
    assert all(attributes.get("scope") for tag, attributes in document.elements if tag == "th")
    labels = {attributes["for"] for tag, attributes in document.elements if tag == "label"}
    inputs = {
        attributes.get("id")
        for tag, attributes in document.elements
        if tag in ("input", "select") and attributes.get("type") != "hidden"
    }
    assert inputs <= labels
    assert 'href="#main"' in document.source


def test_files_are_kept_by_browsers_under_an_address_that_changes_with_them(visitor: Browser) -> None:
    source = visitor.get("/time").page.source
    addresses = set(re.findall(r'(?:src|href)="(/static/[^"]+)"', source))
    assert {address.rsplit("/", 1)[1] for address in addresses} >= {"page.css", "htmx.js", "live.js", "uplot.js"}
    for address in addresses:
        answer = visitor.get(address)
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]
    assert visitor.get("/static/0000000000000000/page.css").status == 404
    assert visitor.get("/static/0000000000000000/%2e%2e%2fsite.py").status == 404
