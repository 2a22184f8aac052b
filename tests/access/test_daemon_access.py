"""The daemon as a process of its own, with the access, certificate and limits of its environment."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from reconciler.access.rights import AccessRole
from reconciler.core.schema.access import token_entry
from tests.builders.api_server import CI, LLM, Clock, SecuredApi, held
from tests.builders.certificates import write_pair
from tests.daemon.test_daemon_process import Fleet, until_told


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    told, _ = process.communicate(timeout=60)
    return process.returncode, told


def test_daemon_lets_in_whom_its_file_names_over_its_own_certificate(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = write_pair(tmp_path, "overspill")
    access = tmp_path / "access.yaml"
    access.write_text("tokens:\n" + token_entry(held(CI, "ci", llm=AccessRole.EDITOR)))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    variables = {
        "OVERSPILL_API_TOKENS_FILE": str(access),
        "OVERSPILL_TLS_CERT_FILE": str(certificate),
        "OVERSPILL_TLS_KEY_FILE": str(key),
    }
    with fleet.daemon("--listen", "127.0.0.1:0", **variables) as process:
        (address,) = re.findall(r"listening at (\S+) with TLS", until_told(process, "watching"))
        secured = SecuredApi(f"https://{address}", Clock())
        assert secured.call(token=CI).body["data"]["roles"] == {LLM: "Editor"}
        assert secured.call(token=CI[:-1]).status == 401
        access.write_text("{}\n")
        assert secured.call(token=CI).status == 401
        process.send_signal(signal.SIGTERM)
        code, told = ended(process)
    assert code == 0
    assert "request refused" in told
    assert CI[:20] not in told


def test_daemon_takes_the_tokens_from_its_environment_too(fleet: Fleet) -> None:
    tokens = "tokens:\n" + token_entry(held(CI, "ci", llm=AccessRole.EDITOR))
    with fleet.daemon("--listen", "127.0.0.1:0", OVERSPILL_API_TOKENS=tokens) as process:
        (address,) = re.findall(r"listening at ([\d.:]+)", until_told(process, "watching"))
        assert SecuredApi(f"http://{address}", Clock()).call(token=CI).body["data"]["name"] == "ci"
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("API_TOKENS", "tokens: [{name: ci}]", "OVERSPILL_API_TOKENS:1: tokens[0].sha256: is required"),
        ("API_TOKENS_FILE", "/nowhere/access.yaml", "/nowhere/access.yaml: cannot be read: No such file"),
    ],
)
def test_broken_door_stops_the_start(fleet: Fleet, name: str, value: str, told: str) -> None:
    with fleet.daemon("--listen", "127.0.0.1:0", **{f"OVERSPILL_{name}": value}) as process:
        code, said = ended(process)
    assert code == 1
    assert told in said
