"""Help, the version and completion import click and little else, so that they answer at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

import click
import pytest

from reconciler.cli import main
from reconciler.cli.commands import files, placements
from reconciler.cli.register import HELP
from reconciler.core.schema import KINDS
from reconciler.model.placement import Origin, Phase
from reconciler.model.request import Provisioning
from tests.builders.remote import Remote

ROOT = Path(__file__).parents[2]
HEAVY = re.compile(
    r"reconciler\.(core|daemon|api|client|demo|app|preview|settings|cli\.actions|cli\.printing"
    r"|model\.(capacity|policy))(\.|$)"
)
"""Modules of ours that import pydantic, git and the rest, or define most classes of the model."""

FORKS = """
import atexit, os, sys
from reconciler.cli import main
for call in sys.argv[1:]:
    if os.fork() == 0:
        atexit.register(lambda: print(f"{call}:", *sys.modules, file=sys.stderr))
        sys.argv = ["overspill", *call.split()]
        main()
    assert os.wait()[1] == 0
"""
"""Runs each call in a process of its own, which has imported no more than the command line before."""


def modules(*arguments: str, env: Mapping[str, str] | None = None) -> set[str]:
    """Run the program in a process of its own and return the names of the modules that it has imported in the end."""
    program = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
    program += "sys.argv[0] = 'overspill'; from reconciler.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
    )
    return set(done.stderr.split())


def completion(words: str, **env: str) -> dict[str, str]:
    """Write the environment in which bash asks for the completion of the last word."""
    return {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_OVERSPILL_COMPLETE": "bash_complete", **env}


def third_party(imported: set[str]) -> set[str]:
    """Name the packages that are neither Python's nor ours; those that begin with _ belong to the installation."""
    names = {name.partition(".")[0] for name in imported}
    return {name for name in names - {*sys.stdlib_module_names, "reconciler"} if not name.startswith("_")} - {
        "sitecustomize",
        "usercustomize",
    }


def test_version_and_help_import_no_library_but_click() -> None:
    calls = [("--version",), ("--help",), *((name, "--help") for name in HELP)]
    done = subprocess.run(
        [sys.executable, "-c", FORKS, *map(" ".join, calls)],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip # a call and what it needs
    imported = {
        call: set(names.split()) for call, _, names in (line.partition(": ") for line in done.stderr.splitlines())
    }
    assert [*imported] == [*map(" ".join, calls)]
    assert {library for names in imported.values() for library in third_party(names)} == {"click"}
    assert {name for names in imported.values() for name in names if HEAVY.match(name)} == set()


@pytest.mark.parametrize(
    "words", ["overspill re", "overspill plan --", "overspill revert ", "overspill explain ", "overspill gprs --cl"]
)
def test_completion_imports_no_library_but_click(words: str, fleet: Remote, tmp_path: Path) -> None:
    imported = modules(env=completion(words, OVERSPILL_REPO=fleet.url, OVERSPILL_CACHE_DIR=str(tmp_path)))
    assert third_party(imported) == {"click"}
    assert not {name for name in imported if HEAVY.match(name)}


@pytest.mark.parametrize("name", HELP)
def test_overview_has_the_first_sentence_of_each_command(name: str) -> None:
    assert main.commands[name].get_short_help_str(limit=200) == HELP[name]
    assert main.commands[name].name == name


def test_overview_fits_a_terminal_of_eighty_columns() -> None:
    assert max(map(len, HELP.values())) <= 66


def test_every_declaration_is_in_the_register() -> None:
    declared = set()
    for path in (ROOT / "reconciler" / "cli" / "commands").glob("[a-z]*.py"):
        module = import_module(f"reconciler.cli.commands.{path.stem}")
        declared |= {value.name for value in vars(module).values() if isinstance(value, click.Command)}
    assert declared == {*HELP, "create", "list", "get", "update", "delete", "replay", "compare", "test"}


def test_words_of_options_are_those_of_the_model() -> None:
    assert files.KINDS == KINDS
    assert tuple(map(str, Provisioning)) == placements.STATUSES
    assert tuple(map(str, Phase)) == placements.PHASES
    assert tuple(map(str, Origin)) == placements.ORIGINS
