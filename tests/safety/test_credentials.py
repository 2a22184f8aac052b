"""A credential is found wherever it stands in a file, and told without being repeated."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.fleet.read_file import parse_file
from reconciler.core.safety.credentials import check_document
from reconciler.text.findings import dotted
from reconciler.text.redaction import without_secrets
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load
from tests.safety.test_rules import HUGGING_FACE

WHOLE = yaml.safe_load(TEMPLATE)


def marked(annotation: str) -> str:
    """Write the fleet's template with this annotation, as kubectl leaves one behind."""
    made = {**WHOLE, "metadata": {**WHOLE["metadata"], "annotations": {"last-applied-configuration": annotation}}}
    return json.dumps(made)


@pytest.mark.parametrize(
    ("annotation", "what"),
    [
        (HUGGING_FACE, "a Hugging Face token"),
        (json.dumps({"spec": {"values": {"hf_token": HUGGING_FACE}}}), "a Hugging Face token"),
        (json.dumps({"spec": {"values": [{"dbPassword": "correct horse"}]}}), "a password"),
        (json.dumps({"env": [{"name": "DB_PASSWORD", "value": "hunter22"}]}), "a password"),
    ],
)
def test_a_credential_in_an_annotation_of_a_template_is_refused(annotation: str, what: str) -> None:
    desired = load({**FLEET, "templates/vllm.yaml": marked(annotation)})
    (error,) = errors(desired)
    assert f"metadata.annotations.last-applied-configuration: this looks like {what}, which may not lie in git" in error
    assert HUGGING_FACE not in error
    assert desired.templates == {}


def test_an_annotation_with_placeholders_passes() -> None:
    applied = json.dumps({"spec": {"values": {"hf_token": "<your-huggingface-token>", "replicas": 3}}})
    assert errors(load({**FLEET, "templates/vllm.yaml": marked(applied)})) == []


def test_the_name_of_a_field_is_looked_at_and_not_repeated() -> None:
    (finding,) = check_document({"metadata": {"labels": {HUGGING_FACE: "x"}}})
    assert dotted(finding.loc) == "metadata.labels"


def places(value: object, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List the paths of all texts of a document."""
    if isinstance(value, dict):
        return [one for key, item in value.items() for one in places(item, (*way, key))]
    if isinstance(value, list):
        return [one for index, item in enumerate(value) for one in places(item, (*way, index))]
    return [way]


DOCUMENTS = [yaml.safe_load(text) for text in FLEET.values()]
PLACES = [(document, way) for document in DOCUMENTS for way in places(document) if way[0] not in ("apiVersion", "kind")]


@given(place=st.sampled_from(PLACES), around=st.sampled_from(["{}", "token: {}", '{{"a": ["{}"]}}']))
def test_a_token_at_any_place_of_any_file_is_found(place: tuple[object, tuple[str | int, ...]], around: str) -> None:
    document, way = place
    text = json.dumps(document)
    made = json.loads(text)
    owner = made
    for part in way[:-1]:
        owner = owner[part]
    owner[way[-1]] = around.format(HUGGING_FACE)
    problems = parse_file(json.dumps(made).encode()).problems
    assert any("this looks like a Hugging Face token" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ssh://git@127.0.0.1:18122/fleet.git", "ssh://git@127.0.0.1:18122/fleet.git"),
        ("git+ssh://deploy@git.example.com/fleet.git", "git+ssh://deploy@git.example.com/fleet.git"),
        ("ssh://git:s3cret-w0rd@git.example.com/fleet.git", "ssh://git@git.example.com/fleet.git"),
        (f"ssh://ghp_{'a1B2' * 9}@git.example.com/fleet.git", "ssh://git.example.com/fleet.git"),
        ("https://bot:s3cret-w0rd@git.example.com/fleet.git", "https://git.example.com/fleet.git"),
        ("https://s3cret-w0rd@git.example.com/fleet.git", "https://git.example.com/fleet.git"),
        ("https://git.example.com/fleet.git?token=abc", "https://git.example.com/fleet.git"),
        ("https://git.example.com/~ann@home/fleet.git", "https://git.example.com/~ann@home/fleet.git"),
        ("git@git.example.com:acme/fleet.git", "git@git.example.com:acme/fleet.git"),
        ("/srv/git/fleet.git", "/srv/git/fleet.git"),
    ],
)
def test_address_on_a_command_line_has_no_secret_and_can_be_pasted(url: str, shown: str) -> None:
    assert without_secrets(url) == shown


def test_password_with_a_slash_is_on_no_command_line() -> None:
    assert "w0rd" not in without_secrets("https://bot:s3cret/w0rd@git.example.com/fleet.git")
