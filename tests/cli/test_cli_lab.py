"""`overspill lab run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from reconciler.cli import main
from reconciler.lab.runs import chosen_scenarios, left_out
from tests.lab.test_scenario_file import FILE
from tests.lab.test_simulation import POLICY

WORLD = FILE.replace("duration: 2h", "duration: 20m").replace("demand: {table: wanted.csv}", "demand: {steps: []}")
WORLD += "  - {name: worker-3, nodes: 1}\n"


def lab(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", "run", *arguments])


@pytest.fixture
def world(tmp_path: Path) -> str:
    (tmp_path / "ours.yaml").write_text(WORLD)
    return str(tmp_path / "ours.yaml")


def test_table_has_a_row_for_each_rule_and_the_optimum(world: str) -> None:
    done = lab(world)
    assert done.exit_code == 0, done.output
    header, *rows = done.stdout.splitlines()
    assert header.split()[:3] == ["SCENARIO", "RULE", "UNMET"]
    assert [row.split()[1] for row in rows] == ["overspill", "overflow", "window", "window,", "static", "optimum"]
    assert "ScaleUpWindow" in rows[0]


def test_optimum_is_left_out_where_its_packages_are_missing(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.cli.actions.lab.runs.find_spec", lambda _: None)
    done = lab(world, "--no-peers")
    assert done.exit_code == 0
    assert "pip install 'overspill[lab]'" in done.stderr
    assert [row.split()[1] for row in done.stdout.splitlines()[1:]] == ["overspill"]


def test_several_policies_are_run_beside_each_other(world: str) -> None:
    done = lab(world, "--policy", "steady-serving", "--policy", "init", "--no-peers", "--no-optimum", "-o", "json")
    (comparison,) = json.loads(done.stdout)
    assert [result["controller"] for result in comparison["results"]] == ["steady-serving", "overspill"]
    assert comparison["optimum"] is None
    slow, quick = (result["unmet"] for result in comparison["results"])
    assert slow > quick


def test_markdown_is_a_table_for_a_pull_request(world: str) -> None:
    done = lab(world, "--no-peers", "-o", "markdown")
    header, ruler, row, best = done.stdout.splitlines()
    assert header.startswith("| SCENARIO | RULE |")
    assert set(ruler) == {"|", "-"}
    assert row.startswith("| ours | overspill |")
    assert best.startswith("| ours | optimum |")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nix",), "no scenario 'nix' (there are: azure-conv, azure-code, plateau"),
        (
            ("azure-conv",),
            "scenario azure-conv needs its log AzureLLMInferenceTrace_conv.csv (try --traces DIRECTORY: it",
        ),
        (
            ("azure-conv", "--traces", "."),
            "needs its log: . holds no AzureLLMInferenceTrace_conv.csv (it is at https://",
        ),
        (("plateau", "--policy", "nix"), "no policy 'nix' (there are: init, batch-overnight"),
    ],
)
def test_what_is_not_there_is_told_with_what_is(arguments: tuple[str, ...], message: str) -> None:
    done = lab(*arguments)
    assert (done.exit_code, message in done.stderr) == (1, True), done.stderr


def test_list_names_the_standard_set_within_a_hundred_columns_and_where_logs_are() -> None:
    listed = lab("--list")
    assert "fifty workloads on two fifths of their need" in listed.stdout
    assert max(map(len, listed.stdout.splitlines())) <= 100
    assert "https://github.com/Azure/AzurePublicDataset (--traces DIR)" in listed.stderr


def test_scenarios_that_are_left_out_are_told_with_the_way_to_have_them(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_bytes(POLICY.replace(b"worker-3", b"gpu-eu"))  # refused before the first run
    done = lab("--policy", str(policy))
    assert done.stderr.splitlines()[0] == (
        "Left out: azure-conv and azure-code, whose logs are at https://github.com/Azure/AzurePublicDataset"
        " (--traces DIR)."
    )
    assert "Left out" not in lab("plateau", "--policy", str(policy)).stderr


@pytest.mark.parametrize("name", ["AzureLLMInferenceTrace_conv.csv", "copy_conv.csv"])
def test_log_is_found_by_its_published_name_or_its_ending(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:17:50.99,396,109\n"
    )
    assert left_out((), tmp_path) == ["azure-code"]
    first = next(chosen_scenarios((), tmp_path))
    assert first.name == "azure-conv"
