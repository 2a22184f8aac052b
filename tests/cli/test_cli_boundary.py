"""Exit codes, messages and help: what holds for every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import reconciler
from reconciler.cli import main
from reconciler.errors import Conflict, InvalidInput, Problem, Severity, Transient
from tests.cli.conftest import Terminal

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(main.commands)
PAGE = (ROOT / "docs" / "reference" / "cli.md").read_text()


def failing(error: BaseException) -> click.testing.Result:
    """Run a command that does nothing but raise, behind the boundary that every command has."""

    @click.command()
    def fail() -> None:
        raise error

    group = type(main)(name="overspill", commands={"fail": fail})
    return CliRunner().invoke(group, ["fail"])


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (InvalidInput("reading x: it is broken"), 1, "error: reading x: it is broken\n"),
        (Transient("fetching x: no answer"), 1, "error: fetching x: no answer (try again)\n"),
        (Conflict("pushing x: it moved"), 1, "error: pushing x: it moved (another push was first; try again)\n"),
        (InvalidInput("two lines\nthe second"), 1, "error: two lines\n  the second\n"),
        (click.UsageError("no such thing"), 2, "Error: no such thing"),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("of ours"), 3, f"this is a bug in Overspill {reconciler.__version__}: ZeroDivisionError"),
    ],
)
def test_error_becomes_one_message_and_an_exit_code(error: BaseException, code: int, told: str) -> None:
    result = failing(error)
    assert (result.exit_code, result.stdout) == (code, "")
    assert told in result.stderr
    assert ("Traceback" in result.stderr) == (code == 3)


def test_each_problem_is_one_message_and_none_is_told_twice() -> None:
    first = Problem(path="a.yaml", line=3, field="spec", message="is wrong", hint="try right")
    second = Problem(path="b.yaml", message="is odd", severity=Severity.WARNING)
    result = failing(InvalidInput(problems=(second, first, first)))
    assert result.stderr == "error: a.yaml:3: spec: is wrong (try right)\nwarning: b.yaml: is odd\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_ends_with_examples(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"], prog_name="overspill").stdout
    examples = shown.partition("\n  Examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith("    ") for line in examples)
    assert any(f"overspill {name}" in line for line in examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_help_use_options_that_exist(name: str) -> None:
    command = main.commands[name]
    several = [command, *(command.commands.values() if isinstance(command, click.Group) else ())]
    known = {option for one in several for parameter in one.params for option in parameter.opts} | {"--help"}
    for line in (command.epilog or "").splitlines():
        said = line.partition(f"overspill {name}")[2].partition("|")[0].partition("&&")[0]
        assert set(re.findall(r"(?<=\s)--?[a-z][-a-z]*", re.sub(r"'[^']*'", "", said))) <= known, line


def test_overview_shows_every_command_with_its_whole_first_sentence() -> None:
    shown = CliRunner().invoke(main, ["--help"], prog_name="overspill").stdout
    for name in COMMANDS:
        line = next(line for line in shown.splitlines() if line.startswith(f"  {name} "))
        assert line.endswith("."), line
        assert not line.endswith("..."), line


@pytest.mark.parametrize("name", COMMANDS)
def test_page_of_the_manual_has_every_command_with_its_options(name: str) -> None:
    section = PAGE.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert f"overspill {name}" in section
    shared = {
        "--repo",
        "--source-branch",
        "--output-branch",
        "--observations",
        "--kubeconfig",
        "--prometheus",
        "--slurm",
        "--server",
        "--watch",
        "--output",
        "--at",
        "--author",
        "--reason",
        "--dry-run",
    }
    own = {option for parameter in main.commands[name].params for option in parameter.opts if option.startswith("--")}
    missing = [option for option in own - shared if option not in section]
    missing += [option for option in own & shared if option not in PAGE]
    assert not missing


def test_version_is_told(overspill: Terminal) -> None:
    assert overspill.done("--version") == f"overspill {reconciler.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan", "--at", "tomorrow"), "'tomorrow' is not a time (try 2026-11-20T10:15:00Z, or +30m)"),
        (("cost", "--since", "30days"), "'30days' is not a time (try 30d)"),
        (("plan", "--at", "30min"), "'30min' is not a time (try +30m)"),
        (("plan", "--at", "2026-11-20T10:15:00"), "has no time zone (try 2026-11-20T10:15:00Z)"),
        (("run", "--poll-interval", "4 hours"), "--poll-interval: '4 hours' is not a duration (try '4h')"),
        (("run", "--listen", "everywhere"), "--listen: 'everywhere' is not host:port"),
        (("plan", "--output-branch", "../x"), "--output-branch: '../x' is not the name of a branch"),
        (("extend", "x", "--by", "a while"), "'a while' is not a duration"),
    ],
)
def test_wrong_option_is_a_usage_error_that_names_it(
    overspill: Terminal, arguments: tuple[str, ...], told: str
) -> None:
    result = overspill(*arguments)
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


def test_wrong_variable_is_refused_by_its_name(overspill: Terminal) -> None:
    overspill.env["OVERSPILL_POLL_INTERVAL"] = "4 hours"
    result = overspill("plan")
    assert (result.exit_code, "error: OVERSPILL_POLL_INTERVAL: " in result.stderr) == (1, True)


def test_flag_is_stronger_than_its_variable(overspill: Terminal, see: Callable[..., None]) -> None:
    see()
    overspill.env["OVERSPILL_OBSERVATIONS"] = "/nowhere"
    result = overspill("plan")
    assert (result.exit_code, "/nowhere does not exist" in result.stderr) == (1, True)
    assert "Place" in overspill.done("plan", "--observations", "observations")


def test_repository_that_is_gone_is_refused_without_its_password(overspill: Terminal, tmp_path: Path) -> None:
    overspill.env["OVERSPILL_REPO"] = str(tmp_path / "gone.git")
    result = overspill("plan")
    assert (result.exit_code, "the directory does not exist (try " in result.stderr) == (1, True)
    password = "hunter" + "2"
    overspill.env["OVERSPILL_REPO"] = f"https://ann:{password}@127.0.0.1:1/fleet.git"
    result = overspill("plan")
    assert (result.exit_code, "(try again)" in result.stderr) == (1, True)
    assert password not in result.output


def test_reader_that_has_had_enough_is_no_error(overspill: Terminal) -> None:
    env = {**os.environ, **overspill.env, "PYTHONUNBUFFERED": "1"}
    command = f"{sys.executable} -m reconciler schema WorkloadTemplate | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, env=env, capture_output=True, check=True)
    assert done.stdout.strip() in (b"0", b"1")
    assert not done.stderr


def test_piped_table_has_no_colour_and_cuts_nothing_off(overspill: Terminal, see: Callable[..., None]) -> None:
    see(missing=9, worker_2=0)
    shown = overspill.done("explain", "vllm")
    assert "\x1b" not in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) > 120


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_breaks_no_word_at_eighty_columns(name: str) -> None:
    command = main.commands[name]
    context = click.Context(command, info_name=name, parent=click.Context(main, info_name="overspill"))
    pieces = {word for piece in command.collect_usage_pieces(context) for word in piece.split()}
    formatter = click.HelpFormatter(width=80)
    command.format_usage(context, formatter)
    assert set(formatter.getvalue().split()) <= pieces | {"Usage:", "overspill", name}
