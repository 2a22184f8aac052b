"""docs/real-fleet.md begins a repository that is true of its own fleet. tests/e2e runs it against real clusters."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "real-fleet.md").read_text()
ADDRESS = "https://git.example.com/acme/fleet.git"


def commands(number: int) -> str:
    """Find what one step of the page says to type."""
    (step,) = re.findall(rf"^## {number}\. .*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return "".join(re.findall(r"^```sh run\n(.*?)^```$", step, re.MULTILINE | re.DOTALL))


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """Be somebody with the commands of the page, whose clusters take all that they are given."""
    home, bin_ = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    bin_.mkdir()
    programs = {
        "overspill": f'exec {shlex.quote(sys.executable)} -m reconciler "$@"',
        "kubectl": "echo /hook/0",
        "openssl": "echo 0",
    }
    for name, does in programs.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{does}\n")
        (bin_ / name).chmod(0o755)
    (home / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.com\n")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "OVERSPILL_"))}
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    return {**inherited, "HOME": str(home), "PATH": path, "PYTHONPATH": str(CHECKOUT)}


def test_what_it_pushes_for_the_engines_is_printed_for_its_own_clusters(tmp_path: Path, person: dict[str, str]) -> None:
    remote = tmp_path / "fleet.git"

    def types(*lines: str) -> str:
        text = "\n".join(lines).replace(ADDRESS, str(remote))
        # The engines are told where the repository is for them, which is not on this disk.
        text = text.replace(f"repoURL: {remote}", f"repoURL: {ADDRESS}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=tmp_path, env=person, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def pushed() -> dict[str, str]:
        names = types("git -C fleet.git ls-tree --name-only main bootstrap/").split()
        return {name.removeprefix("bootstrap/"): types(f"git -C fleet.git show main:{name}") for name in names}

    types("git init --quiet --bare --initial-branch=main fleet.git", "echo 0 > git-read-password")
    types(commands(1), commands(3))
    assert not {"argocd.yaml", "flux.yaml"} & pushed().keys()
    here = f"export OVERSPILL_REPO={shlex.quote(str(remote))}"
    types(here, commands(5))
    assert pushed()["argocd.yaml"] == types(here, "overspill bootstrap argocd")
    assert pushed()["flux.yaml"] == types(here, "overspill bootstrap flux --cluster worker-2")
    assert "worker-3" in pushed()["argocd.yaml"]
