"""What the tests of several pages share: somebody who types what they say."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tests.fakes.warm_command import overspill

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    """Be somebody with an empty home directory, who has told git a name, and has Overspill installed."""
    home, bin_ = tmp_path / "home", tmp_path / "bin"
    home.mkdir()
    bin_.mkdir()
    command = bin_ / "overspill"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(overspill())} "$@"\n')
    command.chmod(0o755)
    (home / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.com\n")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "OVERSPILL_"))}
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    return {**inherited, "HOME": str(home), "PATH": path, "PYTHONPATH": str(CHECKOUT)}
