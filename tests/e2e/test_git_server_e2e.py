"""The daemon against a git server over HTTP that asks for a password, and that goes away and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Fleet

QUICK = {
    "fleet.yaml": {"engine: argocd": "engine: manifests"},
    "policies/serving.yaml": {
        "headroom: 1": "headroom: 0",
        "window: 10s": "window: 1s",
        "window: 15m": "window: 1s",
        "coolDown: 5m": "coolDown: 1s",
    },
}
PLACE_ON_WORKER_2 = "burst(llm/vllm): 3 replicas on worker-2 for 10m"


@pytest.fixture(autouse=True)
def described(fleet: Fleet) -> None:
    """Begin with the layout on the source branch."""
    fleet.describe(QUICK)


def test_burst_is_pushed_with_the_password_and_the_log_does_not_tell_it(fleet: Fleet) -> None:
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")
    assert fleet.subjects() == [PLACE_ON_WORKER_2]
    assert fleet.server.password not in fleet.last_words()


def test_wrong_password_is_told_and_mended_by_a_restart(fleet: Fleet) -> None:
    fleet.observe(missing=3)
    right, fleet.server.password = fleet.server.password, "wrong"
    with fleet.daemon():
        fleet.until(lambda: "set OVERSPILL_GIT_PASSWORD_FILE" in fleet.last_words(), "nothing about the password")
    assert fleet.subjects() == []
    fleet.server.password = right
    with fleet.daemon():
        fleet.until(fleet.subjects, "no burst")


def test_demand_that_comes_while_the_server_is_down_is_met_once_when_it_is_back(fleet: Fleet) -> None:
    fleet.observe(missing=0)
    with fleet.daemon() as process:
        fleet.until(fleet.log, "no first pass")
        fleet.server.kill()
        fleet.observe(missing=3)
        fleet.until(lambda: "backing off" in fleet.last_words(), "it has not noticed")
        assert process.poll() is None
        fleet.server.start()
        fleet.until(fleet.subjects, "no burst")
    assert fleet.subjects() == [PLACE_ON_WORKER_2]
    assert "working again" in fleet.last_words()


def test_server_killed_in_the_middle_of_a_push_leaves_one_burst_in_the_end(fleet: Fleet) -> None:
    marker, hook = slow(fleet, "pre-receive")
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(marker.exists, "no push")
        fleet.server.kill()
        assert fleet.subjects() == []
        hook.unlink()
        fleet.server.start()
        fleet.until(fleet.subjects, "no burst")
        fleet.give_back()
    assert fleet.subjects() == [PLACE_ON_WORKER_2, f'Revert "{PLACE_ON_WORKER_2}"']
    fleet.git("fsck", "--strict", at=fleet.bare)


def test_server_killed_after_the_push_was_taken_but_not_answered_adds_nothing(fleet: Fleet) -> None:
    marker, hook = slow(fleet, "post-receive")
    fleet.observe(missing=3)
    with fleet.daemon():
        fleet.until(marker.exists, "no push")
        fleet.server.kill()
        assert fleet.subjects() == [PLACE_ON_WORKER_2]
        hook.unlink()
        fleet.server.start()
        fleet.until(lambda: "working again" in fleet.last_words(), "it has not come back")
        fleet.give_back()
    assert fleet.subjects() == [PLACE_ON_WORKER_2, f'Revert "{PLACE_ON_WORKER_2}"']


def slow(fleet: Fleet, hook: str) -> tuple[Path, Path]:
    """Make the server take half a minute in a hook; returns the file that shows it has begun, and the hook."""
    marker, script = fleet.path / hook, fleet.bare / "hooks" / hook
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\ntouch '{marker}'\nsleep 30\n")
    script.chmod(0o755)
    return marker, script
