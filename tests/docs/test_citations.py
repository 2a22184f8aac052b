"""Every page, heading and module that code and pages cite is in the repository, so that a reason can be followed."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
SOURCES = sorted((CHECKOUT / "reconciler").rglob("*.py"))
PAGES = {*(CHECKOUT / "docs").rglob("*.md")}
_PAGE = re.compile(r"(?<![\w/.-])(?:[\w-]+/)*[\w-]+\.md\b(?:#([\w-]+))?")
_CITED = re.compile(r'\s*(?:,|and|to)\s+(?:"([^"]+)"|(R\d+)\b)')
_RULE = re.compile(r"\bR\d+\b")
_UNFOUND = re.compile(r"\bseed \d+|\b[Pp]romise \d|\bEGS reference\b")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FOLD = re.compile(r"\n *(?:# )?")
_LABEL = re.compile(r"\]\[([\w-]+)\]")
PACKAGES = [CHECKOUT / "reconciler" / path for path in ("", "core", "core/decide")]
_ROOMS = "|".join(sorted({path.name for package in PACKAGES for path in package.iterdir() if path.is_dir()}))
_MODULE = re.compile(
    rf"`(?!fleet\.ya?ml`)((?:{_ROOMS})(?:\.\w+)+|(?:{_ROOMS})(?:/\w+)+(?:\.py|/)?|(?:\w+/)+test_\w+(?:\.py)?)`"
)
"""Modules as `room.module`, or by their paths below `reconciler/`; of tests, below `tests/`."""
_UPSTREAM = re.compile(
    r"^\[([\w-]+)\]: https://github\.com/[\w.-]+/[\w.-]+/blob/(v[\d.]+|[0-9a-f]{40})/\S+$", re.MULTILINE
)


@pytest.mark.parametrize(
    "text",
    [
        "(docs/no-such-page.md)",
        '(docs/reference/egs.md, "No such heading")',
        "(docs/reference/egs.md, R99)",
        "as seed 001 has it",
        "fails closed (promise 7)",
        "either form (R14)",
    ],
)
def test_a_citation_that_leads_nowhere_is_found(text: str) -> None:
    assert [*problems(text)]


def test_a_citation_may_run_over_lines_and_name_several_headings() -> None:
    assert [*problems('(docs/reference/egs.md, "REST: calls"\n    and R19; docs/reference/api.md#errors)')] == []


def test_citations_of_the_code_lead_to_a_page_and_a_heading() -> None:
    told = {path.relative_to(CHECKOUT).as_posix(): [*problems(prose(path))] for path in SOURCES}
    assert {path: lost for path, lost in told.items() if lost} == {}


def test_reference_pages_name_the_version_of_every_file_that_they_cite() -> None:
    for page in (CHECKOUT / "docs" / "background" / "upstream").glob("*.md"):
        text = page.read_text()
        files = {label for label, _ in _UPSTREAM.findall(text)}
        assert {*_LABEL.findall(text)} == files, page.name


@pytest.mark.parametrize(
    "module", ["core.sharing", "core/decide/rungs.py", "access.oidc.no_such_function", "access/test_nothing"]
)
def test_a_module_that_is_not_there_is_found(module: str) -> None:
    assert missing_modules(f"as `{module}` does") == [module]


def test_modules_that_code_and_pages_cite_exist() -> None:
    texts = {path: prose(path) for path in SOURCES} | {path: path.read_text() for path in PAGES}
    missing = {path.relative_to(CHECKOUT).as_posix(): missing_modules(text) for path, text in texts.items()}
    assert {path: modules for path, modules in missing.items() if modules} == {}


def missing_modules(text: str) -> list[str]:
    """List the modules, and names in modules, that a text cites and that do not exist."""
    return [module[1] for module in _MODULE.finditer(text) if not _exists(module[1])]


@cache
def _exists(module: str) -> bool:
    """Tell whether a module exists, or the longest beginning that does names what follows."""
    parts = module.removesuffix(".py").strip("/").replace("/", ".").split(".")
    if parts[-1].startswith("test_"):
        return (CHECKOUT / "tests").joinpath(*parts[parts[0] == "tests" :]).with_suffix(".py").exists()
    for package in PACKAGES:
        for length in range(len(parts), 0, -1):
            path = package.joinpath(*parts[:length])
            file = path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
            if file.exists() or path.is_dir():
                if length == len(parts) or (file.exists() and re.search(rf"\b{parts[length]}\b", file.read_text())):
                    return True
                break
    return False


@cache
def prose(module: Path) -> str:
    """Return the comments and docstrings of a module, and other strings that name a page of docs.

    Most modules cite nothing. Nothing is returned of those, which take ten times as long to read as tokens.
    """
    text = module.read_text()
    if not any(pattern.search(_FOLD.sub(" ", text)) for pattern in (_PAGE, _RULE, _UNFOUND, _MODULE)):
        return ""
    kept = []
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        stands_alone = before in {tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT}
        if token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and (stands_alone or "docs/" in token.string)
        ):
            kept.append(token.string)
        before = token.type
    return "\n".join(kept)


def problems(text: str) -> Iterator[str]:
    """Yield the citations of a source text that lead to no page of the repository, or to no heading of it."""
    text = _FOLD.sub(" ", text)
    yield from _UNFOUND.findall(text)
    placed: set[int] = set()
    for page in _PAGE.finditer(text):
        path = CHECKOUT / page.group().partition("#")[0]
        if path not in PAGES:
            yield f"{page.group()}: no such page"
            continue
        names, rules, anchors = headings(path)
        if page[1] and page[1] not in anchors:
            yield f"{page.group()}: no such heading"
        end = page.end()
        while cited := _CITED.match(text, end):
            end = cited.end()
            if cited[2]:
                placed.add(cited.start(2))
            if (cited[2] or cited[1]) not in (rules if cited[2] else names):
                yield f"{page.group()}: no heading {cited[1] or cited[2]}"
    yield from (f"{rule.group()} without its page" for rule in _RULE.finditer(text) if rule.start() not in placed)


@cache
def headings(page: Path) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """List the headings of a page, the rules that it numbers, and its anchors."""
    text = page.read_text()
    names = frozenset(_HEADING.findall(text))
    anchors = frozenset(re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in names)
    return names, frozenset(re.findall(r"^#+ (R\d+): ", text, re.MULTILINE)), anchors
