"""`check`, `plan` and `lend` need nothing that Windows lacks; a daemon does not run there, and says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.builders.remote import Remote
from tests.cli.test_cli_lend import FLEET, Clusters
from tests.fakes import without_posix

ROOT = Path(__file__).parents[2]


def test_check_plan_and_lend_run_without_the_modules_of_posix(
    fleet: Remote, see: Callable[..., None], observations: Path, tmp_path: Path
) -> None:
    see(missing=3)
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "taskkill").write_text('#!/bin/sh\nkill -9 "$4"\n')  # taskkill /F /T /PID NUMBER
    (tools / "taskkill").chmod(0o755)
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "clusters.yaml").write_bytes(FLEET.replace("\n", "\r\n").encode())
    with ExitStack() as stack:
        calls = [
            ["lend", "deployment/vllm", "-n", "demo", "--fleet", "ours", "--primary", "worker-1"],
            ["check", "ours"],
            ["plan", "--repo", fleet.url, "--observations", str(observations), "--diff"],
            ["run", "--repo", fleet.url],
            ["demo"],
        ]
        calls[0] += ["--kubeconfig", str(Clusters(tmp_path, stack).kubeconfig)]
        env = os.environ | {"PYTHONPATH": str(ROOT), "OVERSPILL_CACHE_DIR": str(tmp_path / "cache"), "GIT_EDITOR": "vi"}
        env["PATH"] = os.pathsep.join((str(tools), os.environ["PATH"]))
        done = subprocess.run(
            [sys.executable, without_posix.__file__, json.dumps(calls)],
            check=False, capture_output=True, text=True, cwd=tmp_path, env=env,
        )  # fmt: skip # a call and what it needs
    lent, checked, planned, *daemons = done.stdout.split("exit code ")
    assert "Wrote ours/templates/vllm.yaml" in lent, done.stderr
    assert checked.startswith("0\n"), done.stderr
    assert "1 template, 1 policy: 0 errors" in checked
    assert "+++ b/clusters/worker-2/" in planned, done.stderr
    assert [code.split() for code in daemons] == [["0"], ["1"], ["1"]]
    assert "error: run: the daemon does not run on Windows (try it in WSL or in a container)" in done.stderr
    assert "error: demo: the daemon does not run on Windows" in done.stderr
