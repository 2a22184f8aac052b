"""The comment of a pull request: its money, and its length."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.cli.actions.plans.markdown import money
from reconciler.daemon.answers.plan_report import cost_of
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Choice
from reconciler.model.policy import Cluster
from reconciler.model.units import Resources
from reconciler.text.to_json import json_value
from tests.builders.inputs import placement
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal
from tests.text.host_references import rendered_references

NOW = datetime(2026, 11, 19, 12, 0, tzinfo=UTC)
PRICES = {"dear": 3.0, "cheap": 2.0, "near": 2.001, "unpriced": None, "unpriced-too": None}
CLUSTERS = {
    ClusterName(name): Cluster(name=ClusterName(name), price_per_gpu_hour=price) for name, price in PRICES.items()
}


def on(cluster: str, replicas: int = 2) -> Placement:
    return replace(placement(replicas=replicas), cluster=ClusterName(cluster))


def move(source: str, destination: str) -> Change:
    choice = Choice(cluster=ClusterName(destination), rank=1, fits=2, free=Resources())
    return Change(
        action=Action.MOVE, before=on(source), after=on(destination), why=EndReason.PREEMPTED, detail="", choice=choice
    )


def end(cluster: str, replicas: int) -> Change:
    return Change(action=Action.REVERT, before=on(cluster, replicas), why=EndReason.EXPIRED, detail="")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([move("dear", "cheap")], "**-$2.00 an hour** elsewhere"),
        ([move("cheap", "dear")], "**+$2.00 an hour** elsewhere"),
        ([move("near", "cheap")], ""),
        ([move("unpriced", "unpriced-too")], ""),
        ([move("unpriced", "cheap")], "**+$4.00 an hour** elsewhere; -2 GPUs without a price"),
        (
            [move("near", "cheap"), end("unpriced", 3)],
            "**-3 GPUs** elsewhere, $0.00 an hour; -3 GPUs without a price",
        ),
        ([end("unpriced", 3)], "**-3 GPUs** elsewhere; their clusters have no price"),
        ([end("cheap", 3)], "**-3 GPUs** elsewhere, -$6.00 an hour"),
    ],
)
def test_money_is_told_where_gpus_or_cents_change(changes: list[Change], words: str) -> None:
    assert money(json_value(cost_of(changes, CLUSTERS, NOW))) == words


def test_a_comment_of_many_long_problems_fits_and_counts_the_rest(overspill: Terminal, fleet: Remote) -> None:
    name = "window_" * 100
    broken = SOURCE_FILES["policies.yaml"].replace("window: 30s", f"{name}: 30s")
    fleet.commit("main", {f"policies-{number}.yaml": broken for number in range(70)})
    comment = overspill("plan", "-o", "markdown").stdout
    assert len(comment) < 60_000
    shown = [line for line in comment.splitlines() if line.startswith("- error: ")]
    (rest,) = [line for line in comment.splitlines() if line.startswith("- and ")]
    (summary,) = [line for line in comment.splitlines() if " error" in line and "<summary>" in line]
    number = int(summary.split(">")[2].split()[0])
    assert 0 < len(shown) < number
    warnings = int(summary.split(",")[1].split()[0])
    assert int(rest.split()[2]) == number + warnings - len(shown)


def test_refused_clusters_are_folded_below_what_is_held_back(overspill: Terminal, see: Callable[..., None]) -> None:
    see(missing=9, worker_2=0, worker_3=0)
    comment = overspill.done("plan", "-o", "markdown")
    _, folded = comment.split("<details><summary>Refused clusters</summary>")
    assert "| `llm/vllm` | `worker-2` | NoCapacity | " in folded


def test_words_of_tenants_and_clusters_refer_to_nothing_in_the_comment(
    overspill: Terminal, fleet: Remote, see: See, observations: Path
) -> None:
    words = "closes #12, acme/infra!4, GH-7, OPS-12 @everyone [skip ci] https://evil.example :tada: $x$ ~bug /merge"
    broken = SOURCE_FILES["policies.yaml"].replace("window: 30s", f"{json.dumps(words)}: 30s")
    fleet.commit("main", {"fixes #12 @acme.yaml": broken})
    see(missing=9, worker_2=0)
    for path in observations.glob("*.json"):
        seen = json.loads(path.read_text())
        if seen["cluster"] == "worker-3":
            path.write_text(json.dumps(seen | {"healthy": False, "message": words}))
    comment = overspill("plan", "-o", "markdown").stdout
    assert comment.count("evil.example") == 2, "the refusal and the problem"
    assert rendered_references(comment) == set()
