"""What tenants, clusters and other people wrote orders no terminal about, whichever command shows it."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import click.testing
import pytest

from reconciler.text.targets import TextTarget, escape
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal

PACKAGE = Path(__file__).parents[2] / "reconciler"
HOSTILE = (
    "\x1b]8;;https://evil.example\x07link\x1b[2J\x1b[48;5;9m\x1b[8m \x9b1m\u202egpj.exe \u2066x\u200b\u2060\ufeff"
    "\r\nvllm-0a1b2c3d  llm/vllm  worker-2\u2028\x85\x08 fixes"
)
OURS = re.compile(r"\r\x1b\[K|\x1b\[(?:[012]|3[0-7])m")
"""The line of progress, and the styles of tables and labels, among which none conceals."""
ORDERS = re.compile(r"[^\S \n]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
COMMANDS = (
    "status", "status -o wide", "status -o json", "status -o yaml", "status -o name", "plan", "plan --diff",
    "plan -o markdown", "plan -o json", "plan --what-if worker-2=down", "explain llm/vllm", "explain llm/vllm -o yaml",
    "history", "history llm/vllm", "cost", "gprs", "wait-time", "inventory", "placements list", "revert vllm --dry-run",
    "release llm/vllm --dry-run", "rebalance llm/vllm --dry-run", "sweep --dry-run", "approve llm/vllm",
    "doctor", "check fleet", "check fleet -o markdown", "check fleet --observations observations",
)  # fmt: skip # a list of commands


@pytest.fixture
def hostile(overspill: Terminal, fleet: Remote, see: See, observations: Path, tmp_path: Path) -> Terminal:
    """Burst once in a fleet in which every free text of a cluster, and words of people, hold orders for terminals."""
    fleet.commit("main", {"notes.txt": HOSTILE}, message=f"Edit {HOSTILE}", author="A\x1bnn <a@b>")
    see()
    _spoil(observations)
    assert overspill("once").exit_code == 0
    tip = {"note.txt": HOSTILE}
    fleet.commit("placements", tip, message=f"burst(llm/vllm): {HOSTILE}", author=f"{HOSTILE[:9]}Bob <b@c>")
    broken = {"bro\x1b[2Jken\u202e.yaml": f"kind: {json.dumps(HOSTILE)}\n", "odd.yaml": f"a: {HOSTILE}\n"}
    annotated = SOURCE_FILES["template.yaml"].replace(
        "metadata: {name: vllm,", f"metadata: {{annotations: {{note: {json.dumps(HOSTILE)}}}, name: other,"
    )
    more = {"annotated.yaml": annotated.replace("{name: server, image", f"{{name: {json.dumps(HOSTILE)}, image")}
    fleet.commit("main", {**broken, **more}, message=HOSTILE)
    directory = tmp_path / "fleet"
    directory.mkdir()
    for name, text in {**SOURCE_FILES, **broken, **more}.items():
        (directory / name).write_text(text)
    return overspill


def _spoil(observations: Path) -> None:
    """Put the text into each field of the observations that holds a free one."""
    for path in observations.iterdir():
        seen = json.loads(path.read_text())
        for workload in seen["workloads"]:
            workload["unschedulable"][0]["cause"] = HOSTILE
            since = workload["unschedulable"][0]["since"]
            workload["signals"] = [{"name": HOSTILE, "replicas": 1, "since": since, "cause": HOSTILE}]
            workload["containers"] = [{"name": HOSTILE, "image": HOSTILE}]
        pool = seen["pools"][0]
        pool["name"] = pool["nodes"][0]["name"] = HOSTILE
        pool["labels"] = {"nvidia.com/gpu.product": HOSTILE}
        if seen["cluster"] == "worker-3":
            seen |= {"healthy": False, "message": HOSTILE}
        path.write_text(json.dumps(seen))


def _orders(shown: str) -> list[str]:
    return [repr(order) for order in ORDERS.findall(OURS.sub("", shown))]


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_foreign_text_orders_no_terminal_about(
    hostile: Terminal, terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: terminal, raising=False)
    spoilt, quoted = {}, 0
    for command in COMMANDS:
        if command == "plan --diff" and not terminal:
            continue  # byte for byte, for `git apply`
        result = hostile(*command.split())
        assert result.exit_code in (0, 1, 2), (command, result.output)
        shown = result.stdout + result.stderr
        if "markdown" in command and not terminal:
            shown = re.sub("(?<=[@:wW])\u200b", "", shown)  # what parts links
        quoted += "gpj.exe" in shown or "evil.example" in shown
        if orders := _orders(shown):
            spoilt[command] = orders
    assert spoilt == {}
    assert quoted > 5  # the texts are shown indeed


@pytest.mark.parametrize("target", [TextTarget.TERMINAL, TextTarget.LOG, TextTarget.METRIC_LABEL, TextTarget.LINE])
def test_escapes_of_lines_leave_no_order(target: TextTarget) -> None:
    shown = escape(HOSTILE, target)
    assert _orders(shown) == []
    assert ("\n" in shown) == (target is TextTarget.TERMINAL)


def test_one_module_writes_to_streams() -> None:
    """Any other names the escape of terminals where it writes; the demo tells of clusters of its own."""
    writers = {"echo", "secho", "print", "print_exception", "print_exc"}
    named = re.compile(rf"\b(?:{'|'.join(writers)}|std(?:out|err))\b")
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        text = path.read_text()
        if name == "cli/printing.py" or name.startswith("demo/") or not named.search(text):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            written = called.rpartition(".")[2] in writers and called.split(".")[0] in {*writers, "click", "traceback"}
            if (written or re.search(r"\bstd(out|err)(\.buffer)?\.write", called)) and not _escaped(node):
                found.append(f"{name}:{node.lineno}: {called}")
    assert found == ["cli/commands/completion.py:36: click.echo"]  # a script of click's own


def _escaped(call: ast.Call) -> bool:
    return all(isinstance(part, ast.Constant) or "TextTarget.TERMINAL" in ast.unparse(part) for part in call.args)
