"""Programs beside the daemon are told by their versions, and helm only where a chart is rendered."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.readiness.check import Readiness
from reconciler.core.readiness.programs import DaemonAnswer, daemon_results, git_result, program_results
from tests.builders.deploy_specs import chart, spec
from tests.builders.inputs import VLLM, desired, template


@pytest.mark.parametrize(
    ("version", "readiness", "seen"),
    [
        ("git version 2.39.5", Readiness.OK, "2.39.5"),
        ("git version 2.34.1.windows.1", Readiness.OK, "2.34.1.windows.1"),
        ("git version 2.33.8", Readiness.MISSING, "2.33.8, and 2.34 or newer is needed"),
        ("", Readiness.MISSING, "not installed"),
    ],
)
def test_git_has_to_be_new_enough(version: str, readiness: Readiness, seen: str) -> None:
    told = git_result(version)
    assert (told.readiness, told.seen) == (readiness, seen)


def test_what_answers_otherwise_is_no_daemon() -> None:
    (told,) = daemon_results("https://overspill.example.com", DaemonAnswer(status=404))
    assert (told.readiness, told.seen) == (Readiness.MISSING, "answers 404, and is no daemon")


def test_helm_is_needed_where_a_chart_is_rendered() -> None:
    plain = desired()
    assert [told.subject for told in program_results(plain, {"git": "2.40"})] == ["git"]
    charts = replace(plain, templates={VLLM: replace(template(), spec=spec(chart()))})
    helm = program_results(charts, {"git": "2.40"})[1]
    assert (helm.readiness, helm.seen) == (
        Readiness.MISSING,
        f"not installed, and charts of {VLLM} are rendered here",
    )
    assert program_results(charts, {"git": "2.40", "helm": "v3.16.1"})[1].readiness is Readiness.OK
