"""The tests of rendering, which are skipped where helm is not installed, with the helm that is pinned here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import CHECKOUT
from tests.e2e.control_plane import missing, program


def test_charts_render_with_the_pinned_helm() -> None:
    if reason := missing(["helm"]):
        pytest.skip(reason)
    directory = Path(program("helm")).parent
    env = os.environ | {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/adapters/test_helm.py"]
    done = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout
