"""How tables fit a terminal: only prose is broken, and only between words."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli import printing
from reconciler.cli.columns import aligned, fitted
from reconciler.core.schema import yaml
from reconciler.model.plan import Reason
from tests.cli.conftest import Terminal
from tests.fakes.warm_command import overspill as warm

ROOT = Path(__file__).parents[2]
HEADERS = ("PLACEMENT", "CLUSTER", "UNTIL", "WHY", "WHAT WOULD CHANGE IT")
ROW = ("llm/vllm-0c62766f", "worker-2", "2026-11-20T09:16:03Z", "needs 1 GPU on one node, none is free", "free one")
WORDS = st.lists(st.text("abcxyz-", min_size=1, max_size=12), min_size=1, max_size=12).map(" ".join)
NAMES = st.text("abcxyz-/0123456789:", min_size=1, max_size=30)


def test_table_that_fits_looks_as_it_does_in_a_pipe() -> None:
    assert list(fitted(HEADERS, [ROW], 200)) == list(aligned(HEADERS, [ROW]))


def test_prose_wraps_between_words_beside_what_is_never_broken() -> None:
    headers, row = (*HEADERS[:3], "WHY"), ROW[:4]
    assert list(fitted(headers, [row], 80)) == [
        "PLACEMENT          CLUSTER   UNTIL                 WHY",
        "llm/vllm-0c62766f  worker-2  2026-11-20T09:16:03Z  needs 1 GPU on one node, none",
        "                                                   is free",
    ]


def test_prose_goes_below_its_row_rather_than_into_a_narrow_column() -> None:
    assert list(fitted(HEADERS, [ROW, (*ROW[:4], "-")], 60)) == [
        "PLACEMENT          CLUSTER   UNTIL",
        "llm/vllm-0c62766f  worker-2  2026-11-20T09:16:03Z",
        "    WHY: needs 1 GPU on one node, none is free",
        "    WHAT WOULD CHANGE IT: free one",
        "llm/vllm-0c62766f  worker-2  2026-11-20T09:16:03Z",
        "    WHY: needs 1 GPU on one node, none is free",
    ]


def test_columns_for_which_there_is_no_room_go_below_their_row_by_name() -> None:
    assert list(fitted(HEADERS, [ROW], 32)) == [
        "PLACEMENT          CLUSTER",
        "llm/vllm-0c62766f  worker-2",
        "    UNTIL: 2026-11-20T09:16:03Z",
        "    WHY: needs 1 GPU on one",
        "    node, none is free",
        "    WHAT WOULD CHANGE IT: free",
        "    one",
    ]


@given(rows=st.lists(st.tuples(NAMES, NAMES, NAMES, WORDS, WORDS), min_size=1, max_size=4), width=st.integers(44, 140))
def test_no_name_and_no_word_is_broken_at_any_width(rows: list[tuple[str, ...]], width: int) -> None:
    lines = list(fitted(HEADERS, rows, width))
    shown = sorted(word for line in lines[1:] for word in line.split())
    for row in rows:
        for word in (word for cell in row for word in cell.split() if cell != "-"):
            assert word in shown
    assert all(len(line) <= width for line in lines)


def on_terminal(overspill: Terminal, width: int, *arguments: str, plain: bool = True) -> str:
    """Run a command on a terminal of that width, and return what it showed there, without colours if `plain`.

    Errors, and the line of progress that a busy machine gets, go elsewhere.
    """
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    env = {**os.environ, **overspill.env, "TERM": "xterm", "NO_COLOR": "1" if plain else ""}
    env.pop("COLUMNS", None)
    subprocess.run(
        [*warm(), *arguments], cwd=ROOT, env=env, stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, check=True
    )
    return os.read(master, 65536).decode()


@pytest.mark.parametrize("command", ["status", "history", "plan", "explain vllm"])
def test_names_and_moments_stay_whole_on_a_terminal_of_eighty_columns(
    overspill: Terminal, see: Callable[..., None], command: str
) -> None:
    see(missing=9, worker_2=1)
    if command in ("status", "history"):
        overspill.done("once")
    piped, shown = overspill.done(*command.split()), on_terminal(overspill, 80, *command.split())
    assert max(map(len, shown.splitlines())) <= 80
    for whole in (r"vllm-[0-9a-f]{8}", r"worker-\d", r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"):
        assert len(re.findall(whole, shown)) == len(re.findall(whole, piped))


def test_terminal_gets_every_word_of_the_table(overspill: Terminal, see: Callable[..., None]) -> None:
    see(missing=9, worker_2=0)
    shown = on_terminal(overspill, 100, "explain", "vllm")
    table = shown.partition("Clusters")[2].partition("Conclusion")[0]
    for word in [
        "NoCapacity:",
        "needs",
        "on",
        "one",
        "node;",
        "only",
        "eligible",
        "has",
        "none",
        "free",
        "or",
        "add",
        "nodes",
        "there",
    ]:
        assert word in table


def test_headers_are_bold_and_states_have_their_colour(overspill: Terminal, see: Callable[..., None]) -> None:
    see()
    headers, start, place, *_ = on_terminal(overspill, 200, "plan", plain=False).splitlines()
    assert headers.startswith("\x1b[1mACTION")
    assert "\x1b" not in start
    assert place.startswith("\x1b[32mPlace\x1b[0m   llm/vllm  vllm-")
    assert place.count("\x1b") == 2
    assert "\x1b" not in on_terminal(overspill, 200, "plan")


@pytest.mark.parametrize("reason", Reason)
def test_reasons_have_the_colour_of_what_they_ask_for(reason: Reason) -> None:
    waits = {"AwaitingApproval", "CoolingDown", "Held", "NothingFits", "OverBudget", "ScaleUpWindow"}
    colour = "red" if reason in {"Bug", "Unhealthy", "Unseen"} else "yellow" if reason in waits else ""
    assert printing.coloured("REASON", reason) == (click.style(reason, fg=colour) if colour else reason)


def test_a_terminal_shows_no_empty_column_unless_asked_for_a_wide_table(
    overspill: Terminal, see: Callable[..., None]
) -> None:
    see(missing=9, worker_2=0)
    overspill.done("once")

    def headers(printed: str) -> list[str]:
        return printed.replace("\r", "").partition("Held back\n")[2].splitlines()[0].split()

    every = ["WORKLOAD", "REASON", "REPLICAS", "UNTIL", "WHY"]
    held = json.loads(overspill.done("plan", "-o", "json"))["suppressed"]
    shown = [header for header in every if header != "UNTIL" or any(entry["until"] for entry in held)]
    assert headers(overspill.done("plan")) == headers(on_terminal(overspill, 200, "plan", "-o", "wide")) == every
    assert headers(on_terminal(overspill, 200, "plan")) == shown


@given(rows=st.lists(st.tuples(NAMES, NAMES, NAMES, WORDS, WORDS), min_size=1, max_size=4), width=st.integers(44, 140))
def test_colours_move_nothing(rows: list[tuple[str, ...]], width: int) -> None:
    coloured = fitted(HEADERS, rows, width, lambda header, text: f"\x1b[32m{text}\x1b[0m")
    assert [re.sub(r"\x1b\[\d+m", "", line).rstrip() for line in coloured] == list(fitted(HEADERS, rows, width))


def test_yaml_is_the_json_of_an_answer(overspill: Terminal, see: Callable[..., None]) -> None:
    see(missing=3)
    overspill.done("once")
    (document,) = yaml.parse(overspill.done("history", "-o", "yaml").encode(), "history")
    assert document.value == overspill.answer("history")


def test_a_warning_on_a_terminal_is_broken_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    printing.warn("cluster worker-2: cannot be watched: could not be listed within 10 s")
    lines = click.unstyle(capsys.readouterr().err).splitlines()
    assert lines == ["warning: cluster worker-2: cannot be", "  watched: could not be listed within 10", "  s"]
