"""A daemon that is killed at any moment loses nothing and does nothing twice; tests/e2e does the same for longer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders.passes import BRANCHES
from tests.builders.remote import Remote
from tests.fakes.killed_daemon import kill_at_random


@pytest.mark.parametrize(("more", "kills"), [({}, 40), (BRANCHES, 32)], ids=["one branch", "one a cluster"])
@pytest.mark.exhaustive(one_in=2)
def test_killed_at_random_the_branch_is_whole_and_nothing_happens_twice(
    remote: Remote, tmp_path: Path, more: Mapping[str, str], kills: int
) -> None:
    kill_at_random(remote, tmp_path, more, kills)
