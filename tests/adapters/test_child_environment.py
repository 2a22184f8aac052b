"""No program of others is given our settings, among which are the logins of every service."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path

import pytest

from reconciler.adapters.notification.apprise_process import _AppriseProcess
from reconciler.adapters.notification.apprise_program import AppriseMessage
from reconciler.adapters.operating_system import foreign_environment

ADAPTERS = Path(__file__).parents[2] / "reconciler/adapters"
STARTS = {"subprocess.run", "subprocess.Popen", "Popen", "asyncio.create_subprocess_exec"}
OF_THEIR_OWN = {
    "git/run.py": "each git has what is taken out named, so that it can be given the login of its remote",
    "helm/rendering.py": "a list of what helm is to know",
    "operating_system.py": "the rule itself",
}
"""Modules that make the environment of their programs by another rule, and which."""


def test_every_program_is_started_with_an_environment_without_our_settings() -> None:
    started, missing = set(), []
    for path in sorted(ADAPTERS.rglob("*.py")):
        name, text = str(path.relative_to(ADAPTERS)), path.read_text()
        calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        for call in (call for call in calls if ast.unparse(call.func) in STARTS):
            started.add(name)
            if not any(word.arg == "env" for word in call.keywords):
                missing.append(f"{name}:{call.lineno}")
        if (
            name in started
            and name not in OF_THEIR_OWN
            and ("os.environ" in text or "foreign_environment(" not in text)
        ):
            missing.append(name)
    assert missing == []
    assert {"notification/apprise_process.py", "git/signing.py", "git/known_hosts.py", *OF_THEIR_OWN} <= started


def test_settings_of_ours_are_taken_out_and_all_else_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERSPILL_GIT_PASSWORD", "swordfish")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    assert {name for name in os.environ if name not in foreign_environment()} == {
        name for name in os.environ if name.startswith("OVERSPILL_")
    }
    assert "SSH_AUTH_SOCK" not in foreign_environment(without=("SSH_",))


@pytest.mark.skipif(sys.platform != "linux", reason="environments are read from /proc")
def test_process_that_reads_answers_of_receivers_knows_no_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERSPILL_GIT_PASSWORD", "swordfish")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    process = _AppriseProcess()
    try:
        process.exchange(AppriseMessage(url="nonsense"), 60)  # it runs: /proc has nothing of it a moment earlier
        known = Path(f"/proc/{process._process.pid}/environ").read_text()
    finally:
        process.end()
    assert "HTTPS_PROXY=" in known
    assert "OVERSPILL_" not in known
