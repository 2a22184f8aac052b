"""README.md as the long description of a package has no link that leads nowhere on a package index."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOME = "https://git.example.com/acme/overspill"
with_absolute_links = runpy.run_path(str(ROOT / "requirements" / "readme_links.py"))["with_absolute_links"]


@pytest.mark.parametrize("home", ["", HOME, f"{HOME}/"])
def test_no_relative_link_of_readme_is_left(home: str) -> None:
    text = with_absolute_links((ROOT / "README.md").read_text(), home)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r'\]\(([^)]*)\)|\b(?:href|src|srcset)="([^"]*)"', prose)
    assert not [target for pair in targets for target in pair if target and "://" not in target]
    assert home == "" or f"({HOME}/blob/HEAD/docs/" in text


@pytest.mark.parametrize(
    ("markdown", "absolute", "words"),
    [
        ("[a `b`](docs/a.md#c)", f"[a `b`]({HOME}/blob/HEAD/docs/a.md#c)", "a `b`"),
        ("[two\nlines](./LICENSE)", f"[two\nlines]({HOME}/blob/HEAD/LICENSE)", "two\nlines"),
        ("[here](#install)", f"[here]({HOME}#install)", "here"),
        ("[out](https://argo.example/x)",) * 3,
        ("![p](docs/p.svg)", f"![p]({HOME}/raw/HEAD/docs/p.svg)", "p"),
        ("[![p](p.svg)](docs/)", f"[![p]({HOME}/raw/HEAD/p.svg)]({HOME}/blob/HEAD/docs/)", "p"),
        ("[x]: docs/x.md", f"[x]: {HOME}/blob/HEAD/docs/x.md", "[x]: #"),
        ('<a href="a.md">a</a>', f'<a href="{HOME}/blob/HEAD/a.md">a</a>', "a"),
        ('<img src="a.png">', f'<img src="{HOME}/raw/HEAD/a.png">', ""),
        ('<picture><source srcset="a.svg"><img src="b.svg"></picture>.', None, "."),
        ('<a href="https://x.example">x</a>',) * 3,
        ("```sh\nless [x](y)\n```",) * 3,
    ],
)  # fmt: skip # a case a line
def test_relative_links_lead_to_the_repository_or_become_words(markdown: str, absolute: str | None, words: str) -> None:
    assert with_absolute_links(markdown, "") == words
    assert absolute is None or with_absolute_links(markdown, HOME) == absolute
