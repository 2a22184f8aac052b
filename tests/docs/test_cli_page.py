"""The examples of docs/reference/cli.md are what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from reconciler.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
DEPLOYMENT = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: cache}\n"


def test_example_of_check_is_what_it_says_of_the_layout_with_two_slips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    assert runner.invoke(main, ["init", "fleet"]).exit_code == 0
    policy = Path("fleet/policies/serving.yaml")
    policy.write_text(policy.read_text().replace("hold: 1h", "hold: 1 hour"))
    Path("fleet/templates/cache.yaml").write_text(DEPLOYMENT)
    shown = re.search(r"^\$ overspill check fleet\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    assert runner.invoke(main, ["check", "fleet"]).stdout == shown[1]
