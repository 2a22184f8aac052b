"""What the page about calls from Python says runs, and the calls and errors that it names are there."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import pytest

from reconciler import client
from tests.builders.daemon import EDITOR, daemon, small
from tests.builders.remote import Remote

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "client.md").read_text()


def test_program_of_the_page_asks_for_a_placement_and_ends_it(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".overspill-token").write_text(EDITOR + "\n")
    (tmp_path / "bookinfo.json").write_text(json.dumps(small("bookinfo")))
    with daemon(remote, tmp_path / "cache") as running:
        address = f"http://127.0.0.1:{running.port}"
        exec(compile(program.replace("https://overspill.example.com", address), "docs/how-to/client.md", "exec"), {})
    first, second = capsys.readouterr().out.splitlines()
    assert first.removeprefix("asked for in commit ") in remote.git("log", "--format=%H", "placements")
    assert second.split()[0] == "bookinfo"


def test_calls_of_the_page_are_those_of_the_client_with_their_arguments() -> None:
    rows = re.findall(r"^\| (`\w+\(.*?) \|", PAGE, re.MULTILINE)
    told = dict(call for row in rows for call in re.findall(r"`(\w+)\((.*?)\)`", row))
    calls = {
        name: list(inspect.signature(call).parameters)[1:]
        for name, call in vars(client.Client).items()
        if not name.startswith("_") and name != "close" and inspect.isfunction(call)
    }
    assert set(told) == set(calls)
    values = [name for name, value in vars(client.Client).items() if isinstance(value, property)]
    assert [name for name in values if f"`{name}`" not in PAGE] == []
    for name, arguments in told.items():
        if "..." not in arguments:
            assert re.findall(r"\w+", arguments) == calls[name]


def test_every_name_that_the_package_gives_is_on_the_page() -> None:
    assert [name for name in client.__all__ if f"`{name}" not in PAGE and f"{name}(" not in PAGE] == []
