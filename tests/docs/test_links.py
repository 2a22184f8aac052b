"""No page points to a page, a heading or a file that is not there, and its lines fit on a screen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGES = sorted([*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("repo-layout/**/*.md")])
USER_PAGES = sorted(
    page for kind in ("tutorial", "how-to", "reference", "background") for page in CHECKOUT.glob(f"docs/{kind}/*.md")
)
LIVING = [page for page in PAGES if page.name != "CHANGELOG.md" and page.parent.name != "decisions"]
"""Pages that are not records of the past."""
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_TARGET = re.compile(r"^\[[\w-]+\]: \S+$")
LONGEST_LINE, LONGEST_ROW = 120, 200


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), f"{link} is not there"
        if anchor:
            assert anchor in {slug(heading) for heading in _HEADING.findall(target.read_text())}, f"{link}: no heading"


def test_every_page_of_docs_is_two_links_from_the_readme() -> None:
    assert len(USER_PAGES) > 20
    index = CHECKOUT / "docs" / "index.md"
    assert index in _named(CHECKOUT / "README.md")
    assert [page.name for page in USER_PAGES if page not in _named(index)] == []


def _named(page: Path) -> set[Path]:
    return {(page.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(page.read_text())}


@pytest.mark.parametrize("page", LIVING, ids=lambda page: page.relative_to(CHECKOUT).as_posix())
def test_lines_and_rows_of_tables_fit_on_a_screen(page: Path) -> None:
    lines = _CODE.sub("", page.read_text()).splitlines()
    assert [
        line
        for line in lines
        if len(line) > (LONGEST_ROW if line.startswith("|") else LONGEST_LINE) and not _TARGET.match(line)
    ] == []


def slug(heading: str) -> str:
    """Name a heading as GitHub does in links."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
