"""Commands that push name the branch of a cluster that the host refuses, and exit with 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.passes import BRANCHES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal

REFUSED = "placements-by-cluster/worker-2"


@pytest.fixture
def host(fleet: Remote, overspill: Terminal, see: See) -> Remote:
    """Begin the branches of clusters, and refuse one of them from then on."""
    fleet.commit("main", BRANCHES)
    see(missing=0)
    overspill.done("once")
    hook = Path(fleet.path) / "hooks" / "update"
    hook.write_text(f"#!/bin/sh\ntest $1 != refs/heads/{REFUSED} || {{ echo hands off >&2; exit 1; }}\n")
    hook.chmod(0o755)
    return fleet


def test_commands_that_push_go_on_and_name_the_refused_branch(host: Remote, overspill: Terminal, see: See) -> None:
    see(missing=6)
    before = host.tip(REFUSED)
    done = overspill("once")
    assert done.exit_code == 1
    assert f"branch {REFUSED}: " in done.output
    assert "hands off; " in done.output
    assert "(try: see which rule or hook of the host declines it" in done.output
    assert "and the branch of worker-3, now at" in done.output
    path = next(path for path in host.files("placements", "clusters/worker-2") if path.endswith("placement.yaml"))
    host.commit("placements", {"clusters/worker-2/mine.yaml": "kind: Mine\n"})
    done = overspill("revert", path.split("/")[-2], "--author", ANN)
    assert done.exit_code == 1
    assert f"branch {REFUSED}: " in done.output
    assert path not in host.files("placements")
    done = overspill("sweep")
    assert done.exit_code == 1
    assert f"branch {REFUSED}: " in done.output
    assert host.tip(REFUSED) == before
