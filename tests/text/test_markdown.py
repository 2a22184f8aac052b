"""Markdown that says what files say, and does nothing else."""

from __future__ import annotations

import pytest

from reconciler.text.markdown import code, escaped, table


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("worker-2", "worker-2"),
        ("a|b", r"a\|b"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("[click](http://x)", "\\[\u200bclick\\](http:\u200b//x)"),
        ("two\nlines", "two lines"),
        ("# title", r"\# title"),
        ("for @acme/platform", "for @\u200bacme/platform"),
        ("ann@example.com", "ann@\u200bexample.com"),
        ("see https://x.example and WWW.x.example", "see https:\u200b//x.example and WWW\u200b.x.example"),
        ("$x$ at 2.99 $/h", "$x&dollar; at 2.99 $/h"),
        ("&lt;b&gt; &commat;acme", r"\&lt;b\&gt; \&commat;acme"),
    ],
)
def test_no_text_is_markup(text: str, written: str) -> None:
    assert escaped(text) == written


@pytest.mark.parametrize(
    ("text", "written"), [("main", "`main`"), ("a`b", "``a`b``"), ("`", "`` ` ``"), ("a|b", r"`a\|b`")]
)
def test_code_holds_any_text(text: str, written: str) -> None:
    assert code(text) == written


def test_a_table_has_a_row_for_each() -> None:
    assert table(("", "b"), [("1", "2"), ("3", "")]) == "| | b |\n|---|---|\n| 1 | 2 |\n| 3 | |"
