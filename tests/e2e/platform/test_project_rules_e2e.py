"""What the rules of a GPU platform's projects say of all that Overspill writes and reads, each as released.

An API server with the project's published kinds takes each object first and adds their defaults, as it would before
its webhooks. Where a project's functions cannot be built, its tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.core.workloads.api_kinds import group_kind
from tests.e2e.api_server import Json
from tests.e2e.components import Missing, find
from tests.e2e.control_plane import Cluster
from tests.e2e.judged_objects import of_kinds
from tests.e2e.platform.project_rules import RULES, Rules, refusals
from tests.e2e.published_kinds import Judge, kind_name, released


@pytest.fixture(scope="module")
def judge(start_cluster: Callable[[str], Cluster]) -> Judge:
    return Judge(start_cluster("judge"))


@pytest.fixture(params=RULES, ids=[each.project.name for each in RULES])
def rules(request: pytest.FixtureRequest, judge: Judge) -> tuple[Rules, Path, list[tuple[str, Json]]]:
    """A project's rules, the program that asks them, and the objects of its kinds, whose names are for messages."""
    rules: Rules = request.param
    definitions, program = released(rules.project), find(rules.component)
    if isinstance(definitions, Missing):
        pytest.skip(definitions.reason)
    if isinstance(program, Missing):
        pytest.skip(f"{rules.component}: {program.reason}")
    objects = [(name, made) for name, made in of_kinds(definitions) if rules.judge(made)]
    kinds = {group_kind(made) for _, made in objects}
    for definition in definitions:
        if kind_name(definition) in kinds:
            judge.serve(definition)
    return rules, program.path, objects


def test_no_rule_refuses_what_is_written_or_read(
    rules: tuple[Rules, Path, list[tuple[str, Json]]], judge: Judge
) -> None:
    _, program, objects = rules
    answers = refusals(program, [judge.completed(made) for _, made in objects])
    assert {name: refusal for (name, _), refusal in zip(objects, answers, strict=True) if refusal} == {}


def test_what_the_schema_takes_and_a_rule_forbids_is_refused(
    rules: tuple[Rules, Path, list[tuple[str, Json]]], judge: Judge
) -> None:
    asked, program, objects = rules
    broken = [each.made(dict(objects)) for each in asked.broken]
    answers = refusals(program, [judge.completed(made) for made in broken])
    for expected, answer in zip(asked.broken, answers, strict=True):
        assert expected.refusal in answer, expected
