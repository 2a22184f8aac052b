"""Texts that may stand nowhere in what is deployed: credentials, and what engines and files cannot take."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reconciler.core.safety import credentials
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc

SKIP_MARKER = "+argocd:skip-file-rendering"
"""Argo CD skips a file that contains this text anywhere, even in a value."""

_SURROGATE = re.compile(r"[\ud800-\udfff]")

_SKIP = f"the text {SKIP_MARKER!r} would make Argo CD leave the whole file out"


def check_texts(value: Json, loc: Loc, name: str = "") -> Iterator[Finding]:
    """Check every text below a value; `name` is the key of a text at this place."""
    # Every text of every object comes through here: nothing is made for what has nothing to report.
    if isinstance(value, str):
        if _is_unusual(value):
            yield from _text(value, loc)
        yield from credentials.check_text(value, loc, name)
    elif isinstance(value, dict):
        for key, item in value.items():
            if _is_unusual(key):
                yield from _text(key, (*loc, key))
            if credentials.may_leak(key):
                yield from credentials.check_key(key, loc)
            if isinstance(item, str | dict | list):
                yield from check_texts(item, (*loc, key), credentials.name_of_value(value, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check_texts(item, (*loc, index), name)


def _is_unusual(text: str) -> bool:
    return SKIP_MARKER in text or not text.isascii()


def _text(text: str, loc: Loc) -> Iterator[Finding]:
    """Check a key or a value for content that no text may have."""
    if SKIP_MARKER in text:
        yield Finding(loc=loc, message=_SKIP)
    if not text.isascii() and _SURROGATE.search(text):
        yield Finding(loc=loc, message="the text holds half a character (a lone surrogate), which no file can")
