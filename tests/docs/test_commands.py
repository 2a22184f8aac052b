"""Each command line and each variable on any page is one that the program takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from reconciler.cli import main
from reconciler.environment import VARIABLES

CHECKOUT = Path(__file__).parents[2]
PAGES = [CHECKOUT / "README.md", *sorted(CHECKOUT.glob("docs/*/*.md")), CHECKOUT / "repo-layout" / "README.md"]
_BLOCK = re.compile(r"^```(?:sh|text|console).*?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`(overspill [^`]+)`")
_END = re.compile(r"[|;&>)#]|\s{3,}|$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_command_on_a_page_is_there_with_its_options(page: Path) -> None:
    for line in commands(page.read_text()):
        _, *words = line.split()
        command: click.Command = main
        while words and isinstance(command, click.Group) and not re.match(r"-|[A-Z]", words[0]):
            assert words[0] in command.commands, line
            command = command.commands[words.pop(0)]
        known = {
            option
            for one in (command, main)
            for parameter in one.params
            for option in (*parameter.opts, *parameter.secondary_opts)
        }
        said = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert said <= known | {"--help"}, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_variable_on_a_page_is_a_setting(page: Path) -> None:
    named = set(re.findall(r"\bOVERSPILL_([A-Z_]+)\b", page.read_text()))
    assert named <= {*VARIABLES}


def test_there_are_such_lines_and_they_are_found() -> None:
    assert [*commands("`overspill plan --at +20m` and\n\n```sh\nx=$(overspill history | awk)\n```\n")] == [
        "overspill plan --at +20m",
        "overspill history ",
    ]
    assert len([line for page in PAGES for line in commands(page.read_text())]) > 100


def commands(text: str) -> Iterator[str]:
    """Yield the command lines in spans and blocks of a page, up to where the shell's own words begin."""
    yield from (span.replace("\n", " ") for span in _SPAN.findall(_BLOCK.sub("", text)))
    for block in _BLOCK.findall(text):
        for line in re.sub(r"\\\n\s*|'[^'\n]*'", " ", block).splitlines():
            for found in re.finditer(r"(?:^(?:\$ )?|&& |\| |\()(?=overspill [a-z-])", line):
                rest = line[found.end() :]
                yield rest[: _END.search(rest).start()]
