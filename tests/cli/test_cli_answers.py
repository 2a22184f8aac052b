"""How values become JSON and rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from click.testing import CliRunner

from reconciler.cli import printing
from reconciler.errors import Problem, Severity
from reconciler.model.action import Action
from reconciler.model.demand import Demand
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Change
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.text.to_json import json_value
from tests.builders.placement_records import PLACEMENT, VLLM


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2.99, 2.99),
        (EndReason.DEMAND_GONE, "demand-gone"),
        (datetime(2026, 11, 20, 10, 15, tzinfo=UTC), "2026-11-20T10:15:00Z"),
        (timedelta(minutes=90), "1h30m"),
        (VLLM, "llm/vllm"),
        (Resources(amounts={"nvidia.com/gpu": ONE, "cpu": Quantity(ONE // 2)}), {"cpu": "500m", "nvidia.com/gpu": "1"}),
        ({"a": (1, VLLM)}, {"a": [1, "llm/vllm"]}),
        (b"text\n", "text\n"),
        (b"\xff\x00", {"base64": "/wA="}),
    ],
)
def test_value_as_json(value: object, plain: object) -> None:
    assert json_value(value) == plain


def test_fields_are_in_camel_case_and_complete() -> None:
    plain = json_value(PLACEMENT)
    assert plain["createdAt"] == "2026-11-20T10:05:00Z"
    assert set(plain) == {
        "name", "cluster", "workload", "replicas", "createdAt", "changedAt", "expiresAt", "engine", "policy",
        "deletionPolicy", "sourceCommit", "namespace", "targetNamespace", "shape", "origin", "templateVersion",
        "digest", "subset", "firstOrdinal", "fixedEnd", "madeFrom",
        "kept", "runsOnce",
    }  # fmt: skip # a list of words, filled line by line


def test_change_says_which_kind_it_is() -> None:
    revert = Change(action=Action.REVERT, before=PLACEMENT, why=EndReason.EXPIRED, detail="its 10m are over")
    extend = Change(action=Action.EXTEND, before=PLACEMENT, after=PLACEMENT, detail="asked for")
    assert [json_value(change)["action"] for change in (revert, extend)] == ["Revert", "Extend"]
    assert json.loads(json.dumps(json_value(revert)))["placement"]["name"] == PLACEMENT.name


def test_stale_signals_of_a_demand_are_published_as_unheard() -> None:
    demand = Demand(
        workload=VLLM,
        primary=ClusterName("worker-1"),
        wanted=2,
        running=2,
        missing=0,
        waiting=(),
        shape=None,
        history=(),
        stale=("prometheus queue has not answered",),
    )
    assert list(json_value(demand)) == [
        "workload", "primary", "wanted", "running", "deficit", "waiting", "shape", "history", "reported",
        "note", "unheard", "podsAtHome", "held", "started", "claimed", "unit", "forecasts",
        "blocked",
    ]  # fmt: skip # a list of words, filled line by line
    assert json_value(demand)["unheard"] == ["prometheus queue has not answered"]


def shown(*rows: tuple[object, ...], empty: str = "") -> list[str]:
    with CliRunner().isolation() as (stdout, _, _):
        printing.table(("NAME", "UNTIL", "WHY"), rows, empty=empty)
        return stdout.getvalue().decode().splitlines()


def test_columns_are_aligned_also_under_wide_characters() -> None:
    lines = shown(("機械", None, "x"), ("worker-22", timedelta(minutes=1), "y"))
    assert lines == ["NAME       UNTIL  WHY", "機械       -      x", "worker-22  1m     y"]


def test_cell_is_one_line_without_control_characters() -> None:
    assert shown(("a\nb", None, "\x1b[31mred")) == ["NAME  UNTIL  WHY", "a b   -      \\x1b[31mred"]


def test_empty_table_says_what_it_means() -> None:
    assert shown(empty="Nothing is bursting.") == ["Nothing is bursting."]


def test_warnings_alone_are_no_error() -> None:
    with CliRunner().isolation() as (_, stderr, _):
        assert not printing.problems([Problem(path="a", message="is odd", severity=Severity.WARNING)])
        assert printing.problems([Problem(path="a", message="is wrong")])
        assert stderr.getvalue().decode() == "warning: a: is odd\nerror: a: is wrong\n"


def test_password_in_an_error_is_not_shown() -> None:
    with CliRunner().isolation() as (_, stderr, _):
        printing.complain("fetching https://ada:sesame-2@git.example.com/fleet.git: denied")
        assert stderr.getvalue().decode() == "error: fetching https://<redacted>@git.example.com/fleet.git: denied\n"
