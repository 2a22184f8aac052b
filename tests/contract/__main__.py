"""Run schemathesis over a whole daemon: `python -m tests.contract COMMAND...`, where the command is schemathesis.

The daemon is a process of its own over a fleet repository of one workspace, the one that EGS's samples name, so that
what the examples ask for is carried out and the links between the calls have something to lead to.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.builders.remote import Remote
from tests.cli.test_cli_passes import Daemon
from tests.contract.crowd import crowd
from tests.contract.fleet import FILES, observations

CONFIG = Path(__file__).parent / "schemathesis.toml"
HOOKS = Path(__file__).parent / "hooks.py"
SEED = os.environ.get("CONTRACT_SEED", "4")
EXAMPLES = os.environ.get("CONTRACT_EXAMPLES", "40")
"""How many calls are made up for each operation and each phase."""


@contextmanager
def serving(path: Path) -> Iterator[tuple[str, str]]:
    """Run a daemon below a directory; yield its address and the token of an Owner."""
    remote = Remote(path / "remote.git")
    remote.commit("main", FILES, message="Begin")
    seen = path / "observations"
    seen.mkdir()
    for name, text in observations(datetime.now(UTC)).items():
        (seen / name).write_text(text)
    token, entry = _token(path)
    access = path / "access.yaml"
    access.write_text("tokens:\n" + entry)
    daemon = Daemon(
        {
            "OVERSPILL_REPO": remote.url,
            "OVERSPILL_CACHE_DIR": str(path / "cache"),
            "OVERSPILL_OBSERVATIONS": str(seen),
            "OVERSPILL_API_TOKENS_FILE": str(access),
            "OVERSPILL_API_RATE": "100000/s",
            "OVERSPILL_PUSH_TOKEN": token,
            "OVERSPILL_WEBHOOK_SECRET": token,
            "OVERSPILL_LISTEN": "127.0.0.1:0",
        },
    )
    try:
        address = daemon.wait_for("listening at").rpartition("listening at ")[2].split(",")[0]
        daemon.wait_for("pushed")
        with crowd(int(address.rpartition(":")[2])) as port:
            yield f"http://127.0.0.1:{port}", token
    finally:
        daemon.process.terminate()
        rest, _ = daemon.process.communicate(timeout=60)
        daemon.lines += rest.decode().splitlines()
        _complain(daemon.lines)


def _token(path: Path) -> tuple[str, str]:
    """Make the token of somebody who may do everything, and the entry that lets them in."""
    file = path / "token"
    made = subprocess.run(
        [
            sys.executable, "-m", "reconciler", "token", "--name", "contract", "--workspace", "*", "--role", "Owner",
            "--out", str(file),
        ],
        check=True, capture_output=True, text=True,
    )  # fmt: skip # a command line, word by word
    return file.read_text().strip(), made.stdout


def _complain(lines: list[str]) -> None:
    """Show what the daemon logged of bugs, which a caller is not told."""
    bug = next((number for number, line in enumerate(lines) if "bug" in line), None)
    if bug is not None:
        sys.stderr.write("\n".join(lines[bug : bug + 200]) + "\n")


def main(command: list[str]) -> int:
    """Run it, and return how it ended."""
    with tempfile.TemporaryDirectory() as scratch, serving(Path(scratch)) as (address, token):
        return subprocess.run(
            [
                *command, "--config-file", str(CONFIG), "run", f"{address}/api/v1/openapi.json",
                "--header", f"Authorization: Bearer {token}", "--header", "Connection: close", "--checks", "all",
                "--phases", "examples,coverage,fuzzing,stateful", "--max-examples", EXAMPLES, "--seed", SEED,
                "--continue-on-failure", "--no-color",
            ],
            check=False, cwd=scratch, env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)},
        ).returncode  # fmt: skip # a command line, word by word


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
