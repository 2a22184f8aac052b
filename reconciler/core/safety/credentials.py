"""Credentials in the texts of a document: found in any field, in metadata and in JSON inside a text as well.

Every text that goes to git is checked here: whole files when they are read (`fleet.read_file`), and objects once more
when they are rendered (`rules`). `text.redaction` knows the forms of credentials.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.safety.json_texts import json_inside
from reconciler.model.workload import Json
from reconciler.text import redaction
from reconciler.text.findings import Finding, Loc
from reconciler.text.json_input import JsonTooDeep, JsonTooLarge

_SHORTEST_KEY = 20
"""Characters of a token; names of fields are shorter as a rule."""


def check_document(value: Json, loc: Loc = (), name: str = "") -> Iterator[Finding]:
    """Find credentials in every text below a value; `name` is the key of a text at this place."""
    if isinstance(value, str):
        yield from check_text(value, loc, name)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from check_key(key, loc)
            yield from check_document(item, (*loc, key), name_of_value(value, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from check_document(item, (*loc, index), name)


def check_text(text: str, loc: Loc, name: str = "") -> Iterator[Finding]:
    """Find a credential in a text; of JSON, as in an annotation of kubectl's, in the texts inside of it."""
    if what := redaction.credential(text, name) or _inside(text):
        yield leaked(loc, what)


def check_key(key: str, loc: Loc) -> Iterator[Finding]:
    """Find a credential in the name of a field; `loc` is the place of its owner, which does not repeat it."""
    if may_leak(key) and (what := redaction.credential(key)):
        yield leaked(loc, what)


def may_leak(key: str) -> bool:
    """Return whether the name of a field is long enough to be a credential."""
    return len(key) >= _SHORTEST_KEY


def name_of_value(owner: Json, key: str) -> str:
    """Return the name that a value stands under: of an environment variable its own."""
    variable = owner.get("name")
    return variable if key == "value" and isinstance(variable, str) else key


def leaked(loc: Loc, what: str) -> Finding:
    """Report a credential, which is never repeated."""
    hint = "refer to a Secret in the cluster, or write <...> where people fill it in"
    return Finding(loc=loc, message=f"this looks like {what}, which may not lie in git", hint=hint)


def _inside(text: str) -> str:
    """Return the kind of the first credential in a text that is JSON; an empty text without one."""
    try:
        return next(_kinds(json_inside(text)), "")
    except (JsonTooLarge, JsonTooDeep):  # searched as one text beforehand
        return ""


def _kinds(value: Json, name: str = "") -> Iterator[str]:
    """Yield the kinds of the credentials below a value of JSON."""
    waiting = [(value, name)]
    while waiting:
        item, name = waiting.pop()
        if isinstance(item, str):
            if what := redaction.credential(item, name):
                yield what
        elif isinstance(item, dict):
            waiting += [(below, name_of_value(item, key)) for key, below in item.items()]
        elif isinstance(item, list):
            waiting += [(below, name) for below in item]
