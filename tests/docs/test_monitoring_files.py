"""The rules and the dashboard of repo-layout/monitoring use metrics that exist, and lead to what the docs say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

CHECKOUT = Path(__file__).parents[2]
GUIDE = (CHECKOUT / "docs" / "how-to" / "monitoring.md").read_text()
METRICS = (CHECKOUT / "docs" / "reference" / "metrics.md").read_text()
MONITORING = CHECKOUT / "repo-layout" / "monitoring"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((MONITORING / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]  # fmt: skip # one rule after the other
TESTS = yaml.safe_load((MONITORING / "alerts.test.yaml").read_text())["tests"]
DASHBOARD: dict[str, Any] = json.loads((MONITORING / "dashboard.json").read_text())
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

ROWS = {
    name: {*filter(None, labels.split(", "))}
    for name, labels in re.findall(r"^\| `(overspill_\w+)` \| ?([\w, ]*?) ?\|", METRICS, re.MULTILINE)
}
"""The labels of each metric; tests/api/test_metrics.py holds the table against a daemon."""
HISTOGRAMS = {name for name in ROWS if name.endswith(("_duration_seconds", "_delay_seconds"))}
SERIES = ROWS | {f"{name}{end}": ROWS[name] for name in HISTOGRAMS for end in ("_bucket", "_sum", "_count")}


def queries() -> Iterator[str]:
    yield from (rule["expr"] for rule in RULES)
    yield from (target["expr"] for panel in PANELS for target in panel["targets"])
    yield from (each["query"]["query"] for each in DASHBOARD["templating"]["list"] if each["type"] == "query")
    yield from (series["series"] for test in TESTS for series in test["input_series"])


@pytest.mark.parametrize("query", sorted(set(queries())))
def test_every_query_uses_metrics_that_exist_by_labels_that_they_have(query: str) -> None:
    named = re.findall(r"(overspill_\w+)(?:\{([^}]*)\})?", query)
    assert named
    for metric, selector in named:
        assert metric in SERIES
        assert {*re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector)} <= SERIES[metric] | {"instance"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_alert_is_explained_and_leads_there(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page.endswith("/docs/how-to/monitoring.md")
    headings = {heading.lower(): heading for heading in re.findall(r"^### (\w+)$", GUIDE, re.MULTILINE)}
    assert headings[anchor] == rule["alert"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"].endswith(".")


def test_no_alert_is_explained_that_is_not_there() -> None:
    assert re.findall(r"^### (Overspill\w+)$", GUIDE, re.MULTILINE) == [rule["alert"] for rule in RULES]


def test_every_alert_is_tested_where_it_fires_and_where_it_does_not() -> None:
    cases = [(case["alertname"], bool(case["exp_alerts"])) for test in TESTS for case in test["alert_rule_test"]]
    assert {*cases} >= {(rule["alert"], fires) for rule in RULES for fires in (True, False)}


def test_panels_of_the_dashboard_lie_beside_each_other() -> None:
    """Grafana moves panels that overlap, and leaves out what lies beyond the 24 columns."""
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        columns, rows = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
        cells = {(column, row) for column in columns for row in rows}
        assert max(columns) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert sorted({*numbers}) == sorted(numbers)


def test_the_dashboard_asks_whichever_prometheus_it_is_told_to() -> None:
    variables = {each["name"] for each in DASHBOARD["templating"]["list"]}
    assert (DASHBOARD["uid"], DASHBOARD["schemaVersion"]) == ("overspill", 39)
    for panel in PANELS:
        assert panel["description"].endswith(".")
        letters = [target["refId"] for target in panel["targets"]]
        assert len({*letters}) == len(letters) > 0
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert {*re.findall(r"\$(?!__)(\w+)", target["expr"])} <= variables
