"""JSON inside of a text of a tenant's is read within the bounds of a file."""

from __future__ import annotations

import json

import pytest

from reconciler.core.safety.credentials import check_text
from reconciler.core.safety.json_texts import json_inside
from reconciler.model.bounds import FILE_DEPTH, FILE_VALUES
from reconciler.text.json_input import JsonTooDeep, JsonTooLarge


def test_json_beyond_the_bounds_of_a_file_is_not_parsed() -> None:
    with pytest.raises(JsonTooLarge):
        json_inside("[" + "[]," * FILE_VALUES.most + "[]]")
    with pytest.raises(JsonTooDeep):
        json_inside("[" * (FILE_DEPTH.most + 1) + "]" * (FILE_DEPTH.most + 1))


def test_other_texts_are_no_json() -> None:
    assert json_inside("{no json}") is None
    assert json_inside("text") is None
    assert json_inside(' {"a": [1]}') == {"a": [1]}


def test_credential_in_json_beyond_the_bounds_is_found_all_the_same() -> None:
    token = "sk-" + "aB3dE5gH7jK9mN1pQ3sT5vW7" * 2
    deep = "[" * 5000 + json.dumps(token) + "]" * 5000
    assert [finding.message for finding in check_text(deep, ())] == [
        "this looks like an API key, which may not lie in git"
    ]
