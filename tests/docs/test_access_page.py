"""docs/how-to/access.md: its file is one that the program reads, with all fields, and its roles are all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reconciler.access.rights import AccessRole
from reconciler.core.schema import access as access_file
from reconciler.core.schema.access import AccessFile, IssuerRuleFile, TokenFile

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "access.md").read_text()


def test_the_file_of_the_page_is_read() -> None:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    access = access_file.read_access(text.encode(), "access.yaml")
    assert ([token.name for token in access.tokens], len(access.rules)) == (["ci", "ada"], 2)


def test_every_field_is_listed_with_whether_it_is_required() -> None:
    def fields() -> Iterator[tuple[str, bool]]:
        for parent, model in (("tokens[]", TokenFile), ("oidc.roles[]", IssuerRuleFile)):
            for name, field in model.model_fields.items():
                yield f"{parent}.{field.alias or name}", field.is_required()

    rows = re.findall(r"^\| `((?:tokens|oidc)[^`]*)` \| (.*) \|$", PAGE, re.MULTILINE)
    assert [(name, told.startswith("required")) for name, told in rows] == list(fields())
    assert {*AccessFile.model_fields} == {"tokens", "oidc"}


def test_roles_are_in_their_order() -> None:
    assert re.findall(r"^\| `([A-Z][a-z]+)` \|", PAGE, re.MULTILINE) == [str(role) for role in AccessRole]
