"""`placements`: from a laptop to a running daemon and its commits."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from reconciler.cli import main
from tests.builders.daemon import EDITOR, VIEWER, Daemon, small
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.fakes.warm_command import overspill as warm

ROOT = Path(__file__).parents[2]


def file(path: Path, *documents: object) -> str:
    (path / "asked.yaml").write_text("---\n".join(json.dumps(one) + "\n" for one in documents))
    return str(path / "asked.yaml")


def test_placement_goes_from_a_file_to_a_commit_and_back(laptop: Terminal, running: Daemon, tmp_path: Path) -> None:
    told = laptop.done("placements", "create", "-f", file(tmp_path, small("bookinfo")))
    tip = running.remote.git("log", "--format=%H", "--grep", "received", "placements")
    assert told.splitlines() == [
        f"abc/bookinfo: asked for, in commit {tip[:12]}.",
        "`overspill placements get NAME` tells when it has its GPUs, and what it waits for.",
    ]
    running.until(lambda: "on worker-1 until" in laptop.done("placements", "list"))
    (line,) = laptop.done("placements", "list").splitlines()[1:]
    assert line.split()[:5] == ["bookinfo", "abc", "request", "worker-1", "Pending"]
    assert laptop.done("placements", "delete", "bookinfo").startswith("abc/bookinfo: ended, in commit ")
    assert laptop.done("placements", "list") == "No placements.\n"


def test_what_a_file_does_not_say_is_a_warning_beside_the_answer(laptop: Terminal, tmp_path: Path) -> None:
    asked = {name: value for name, value in small("settings").items() if name != "burstDuration"}
    result = laptop("placements", "create", "-f", file(tmp_path, asked))
    assert result.exit_code == 0
    assert "warning: settings: it does not say for how long: it ends after " in result.stderr


def test_what_get_prints_may_be_asked_for_again(laptop: Terminal, tmp_path: Path) -> None:
    laptop.done("placements", "create", "-f", file(tmp_path, small("settings")))
    first = laptop.done("placements", "get", "settings", "-o", "yaml")
    laptop.done("placements", "delete", "settings")
    (tmp_path / "again.yaml").write_text(first)
    laptop.done("placements", "create", "-f", str(tmp_path / "again.yaml"))
    again = json.loads(laptop.done("placements", "get", "settings", "-o", "json"))
    before = yaml.safe_load(first)
    for changing in ("status", "createdAt", "updatedAt"):
        del again[changing], before[changing]
    assert again == before


def test_file_of_egs_is_asked_for_in_the_workspace_that_is_named(laptop: Terminal, tmp_path: Path) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "bookinfo"}}
    asked = {
        "apiVersion": "aiops.kubeslice.io/v1alpha1",
        "kind": "WorkloadPlacement",
        "metadata": {"name": "example"},
        "spec": {
            "clusterName": "worker-1",
            "duration": "15m",
            "manifestResources": [{"name": "config", "manifest": config}],
            "steps": [{"name": "config", "type": "manifest"}],
        },
    }
    laptop.done("placements", "create", "-f", file(tmp_path, asked), "--workspace", "abc")
    assert "config  manifest" in laptop.done("placements", "get", "example")


def test_one_that_is_refused_is_told_by_line_and_keeps_none_of_the_others(laptop: Terminal, tmp_path: Path) -> None:
    asked = file(tmp_path, small("a"), small("b", burstDuration="4 hours"), small("c"))
    result = laptop("placements", "create", "-f", asked, "-o", "json")
    assert result.exit_code == 1
    assert [one["name"] for one in json.loads(result.stdout)] == ["a", "c"]
    assert result.stderr.startswith(f"error: {asked}:3: burstDuration: '4 hours' is not a duration (try '4h')")
    again = laptop("placements", "create", "-f", asked)
    assert (again.exit_code, again.stderr.count("Already Exists")) == (1, 2)


def test_fields_are_changed_by_options_or_by_a_file(laptop: Terminal, tmp_path: Path) -> None:
    laptop.done("placements", "create", "-f", file(tmp_path, small("settings")))
    laptop.done("placements", "update", "settings", "--burst-duration", "1h30m", "--deletion-policy", "retain")
    item = json.loads(laptop.done("placements", "get", "settings", "-o", "json"))
    assert (item["burstDuration"], item["deletionPolicy"]) == ("1h30m", "Retain")
    laptop.done("placements", "update", "settings", "-f", file(tmp_path, {"burstDuration": "45m"}))
    assert json.loads(laptop.done("placements", "get", "settings", "-o", "json"))["burstDuration"] == "45m"
    result = laptop("placements", "update", "settings", "-f", file(tmp_path, small("another")))
    assert (result.exit_code, "a placement keeps its name" in result.stderr) == (1, True)
    assert laptop("placements", "update", "settings").exit_code == 2


def test_each_that_is_named_is_ended_though_one_is_missing(laptop: Terminal, tmp_path: Path) -> None:
    laptop.done("placements", "create", "-f", file(tmp_path, small("a"), small("b")))
    result = laptop("placements", "delete", "a", "missing", "b")
    assert (result.exit_code, result.stdout.count("ended, in commit")) == (1, 2)
    assert "error: missing: Workload Placement not found" in result.stderr


@pytest.mark.parametrize(("answer", "code", "left"), [(b"n\n", 130, 1), (b"y\n", 0, 0)])
def test_terminal_is_asked_before_an_end(laptop: Terminal, tmp_path: Path, answer: bytes, code: int, left: int) -> None:
    laptop.done("placements", "create", "-f", file(tmp_path, small("a")))
    typed, terminal = pty.openpty()
    command = [*warm(), "placements", "delete", "a"]
    try:
        os.write(typed, answer)
        done = subprocess.run(
            command, stdin=terminal, capture_output=True, cwd=ROOT, env={**os.environ, **laptop.env}, check=False
        )
    finally:
        os.close(typed)
        os.close(terminal)
    assert done.returncode == code, done.stderr
    assert b"End a? [y/N]" in done.stderr
    assert len(laptop.answer("placements", "list")) == left


def test_viewer_is_told_why_nothing_is_written(laptop: Terminal, tmp_path: Path) -> None:
    laptop.env["OVERSPILL_TOKEN"] = VIEWER
    result = laptop("placements", "create", "-f", file(tmp_path, small("a")))
    assert (result.exit_code, "Vi is not an Editor of the workspace abc" in result.stderr) == (1, True)


def test_token_may_come_from_a_file_and_an_unknown_one_is_told_without_it(laptop: Terminal, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(EDITOR + "\n")
    del laptop.env["OVERSPILL_TOKEN"]
    laptop.env["OVERSPILL_TOKEN_FILE"] = str(tmp_path / "token")
    assert laptop.done("placements", "list") == "No placements.\n"
    (tmp_path / "token").write_text("ovs_unknown-" * 4)
    result = laptop("placements", "list")
    assert result.exit_code == 1
    assert "ovs_unknown" not in result.output


@pytest.mark.parametrize(
    ("command", "way"),
    [
        (("create", "-f", "a.yaml"), "add the file to the fleet repository"),
        (("update", "a", "--burst-duration", "1h"), "overspill extend"),
        (("delete", "a"), "overspill revert"),
    ],
)
def test_write_without_a_daemon_says_how_else_it_is_done(command: tuple[str, ...], way: str) -> None:
    result = CliRunner().invoke(main, ["placements", *command])
    assert (result.exit_code, way in result.stderr) == (2, True)
    assert "OVERSPILL_SERVER" in result.stderr


def test_daemon_that_is_away_is_told_with_its_address(laptop: Terminal) -> None:
    laptop.env["OVERSPILL_SERVER"] = "http://127.0.0.1:9"
    result = laptop("placements", "list")
    assert (result.exit_code, "http://127.0.0.1:9: " in result.stderr) == (1, True)
    assert "(try again)" in result.stderr


REQUEST = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: settings, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  clusterNames: [worker-2]
  burstDuration: 15m
  manifestResources:
    - name: settings
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: demo}, data: {a: b}}
  steps: [{name: settings, type: manifest}]
"""


@pytest.fixture
def working_plan(overspill: Terminal, fleet: Remote, see: Callable[..., None]) -> Terminal:
    """Let a request and a burst stand, for who has the repository at hand."""
    fleet.commit("main", {"request.yaml": REQUEST})
    see(missing=2)
    overspill.done("once")
    return overspill


def test_repository_tells_the_same_without_a_daemon(working_plan: Terminal) -> None:
    rows = [line.split() for line in working_plan.done("placements", "list").splitlines()[1:]]
    assert [row[:4] for row in rows] == [
        ["settings", "llm", "request", "worker-2"],
        [rows[1][0], "llm", "burst", "worker-2"],
    ]
    for narrowed, names in (
        (("--origin", "burst"), [rows[1][0]]),
        (("--cluster", "worker-3"), []),
        (("--workspace", "llm", "--origin", "request"), ["settings"]),
        (("--status", "failed"), []),
    ):
        assert [one["name"] for one in working_plan.answer("placements", "list", *narrowed)] == names
    text = working_plan.done("placements", "get", "settings")
    assert text.startswith("PLACEMENT ")
    assert "settings  manifest" in text
    assert yaml.safe_load(working_plan.done("placements", "get", "settings", "-o", "yaml"))["burstDuration"] == "15m"


def test_list_of_a_workspace_or_cluster_that_is_not_there_is_refused_with_those_that_are(
    working_plan: Terminal,
) -> None:
    for narrowed, message in (
        (("--workspace", "lim"), "looking for workspace 'lim': there is none of this name (try 'llm')"),
        (("--cluster", "gpu-eu"), "looking for cluster 'gpu-eu': there is none of this name (there are worker-1, "),
    ):
        result = working_plan("placements", "list", *narrowed)
        assert (result.exit_code, result.stdout, message in result.stderr) == (1, "", True)


def test_placement_that_is_not_there_is_told(working_plan: Terminal) -> None:
    for command in (("get", "missing"), ("get", "settings", "--workspace", "vision")):
        result = working_plan("placements", *command)
        assert (result.exit_code, "there is no such placement" in result.stderr) == (1, True)
