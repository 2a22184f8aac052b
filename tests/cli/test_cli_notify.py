"""`once` and `run` tell engines of what they push, and no other command does."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal
from tests.cli.test_cli_passes import Daemon, daemon
from tests.fakes.engine_webhooks import ARGOCD, FLUX, SECRET, Engine, Event, listening

__all__ = ["daemon"]

ADDRESS = "https://git.example.com/ml/fleet.git"


@pytest.fixture
def engine(overspill: Terminal, fleet: Remote, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """Serve an engine's webhooks, for a fleet that says where engines fetch it."""
    monkeypatch.setenv("no_proxy", "*")
    overspill.env["OVERSPILL_NOTIFY_SECRET"] = SECRET
    text = SOURCE_FILES["fleet.yaml"].replace("{engine: manifests}", f'{{engine: manifests, repoURL: "{ADDRESS}"}}')
    fleet.commit("main", {"fleet.yaml": text})
    with listening() as engine:
        yield engine


def changed(fleet: Remote, event: Event) -> tuple[set[str], set[str]]:
    """Return the files that differ between an event's commits, and those of them that it names, as itself or below."""
    files = set(fleet.git("diff", "--name-only", event["before"], event["after"]).splitlines())
    named = {path for commit in event["commits"] for path in commit["modified"]}
    return files, {file for file in files if any(file == path or file.startswith(f"{path}/") for path in named)}


def test_once_tells_each_engine_what_it_pushed(overspill: Terminal, fleet: Remote, see: See, engine: Engine) -> None:
    see(missing=0)
    overspill.done("once")
    begun = fleet.tip("placements")
    flags = ("--notify", f"argocd={engine.url}{ARGOCD}", "--notify", f"flux={engine.url}{FLUX}")
    see()
    overspill.done("once", *flags)
    grown = fleet.tip("placements")
    see(missing=0)
    overspill.done("once", *flags)
    assert [(event["before"], event["after"]) for event in engine.taken] == [
        *[(begun, grown)] * 2,
        *[(grown, fleet.tip("placements"))] * 2,
    ]
    for event in engine.taken:
        assert event["ref"] == "refs/heads/placements"
        assert event["repository"]["html_url"] == ADDRESS.removesuffix(".git")
        files, named = changed(fleet, event)
        assert len(files) >= 2
        assert named == files


def test_once_that_changes_nothing_tells_nobody(overspill: Terminal, see: See, engine: Engine) -> None:
    see()
    overspill.done("once")
    overspill.env["OVERSPILL_NOTIFY"] = f"argocd={engine.url}{ARGOCD}"
    assert overspill.done("once") == "Nothing to change.\n"
    assert engine.tries == []


def test_once_warns_of_an_engine_that_it_could_not_tell(overspill: Terminal, see: See, engine: Engine) -> None:
    see()
    engine.secret = "another-" * 3
    result = overspill("once", "--notify", f"flux={engine.url}{FLUX}")
    assert result.exit_code == 0
    assert "Pushed 3 commits" in result.stdout
    assert result.stderr == (
        f"warning: flux at {engine.url}/hook/***: was not told of the last push, and sees it when it polls: "
        "it answers 400 (is its secret the one that is given here?)\n"
    )


def test_commands_that_a_person_gives_tell_nobody(overspill: Terminal, fleet: Remote, see: See, engine: Engine) -> None:
    see()
    overspill.done("once")
    before = fleet.tip("placements")
    overspill.env["OVERSPILL_NOTIFY"] = f"argocd={engine.url}{ARGOCD}"
    (first, *_) = overspill.answer("status")["placements"]
    overspill.done("revert", first["placement"]["name"], "--author", "Ann <ann@example.com>")
    assert fleet.tip("placements") != before
    assert engine.tries == []


@pytest.mark.parametrize("name", ["once", "run"])
def test_a_wrong_flag_is_named_as_such(overspill: Terminal, engine: Engine, name: str) -> None:
    result = overspill(name, "--notify", "argocd=https://argocd.example.com")
    assert result.exit_code == 2
    assert "Error: --notify: the address for argocd has no path" in result.stderr


def test_run_tells_an_engine_of_each_push_and_says_when_it_cannot(
    daemon: Callable[..., Daemon], fleet: Remote, see: See, engine: Engine
) -> None:
    see(missing=0)
    engine.answers = [503, 503]
    where = f"{engine.url}{ARGOCD}"
    running = daemon("--poll-interval", "1h", "--notify", f"argocd={where}", OVERSPILL_NOTIFY_SECRET=SECRET)
    assert f"telling argocd at {where}" in running.wait_for("watching")
    running.wait_for(
        f"warning: argocd at {where} cannot be told of pushes, and sees them when it polls: it answers 503"
    )
    running.wait_for(f"argocd at {where} is told of pushes again failed_tries=2")
    see(missing=1)
    running.wait_for("burst(llm/vllm): 1 replica on worker-2")
    engine.until(lambda: len(engine.taken) == 2)
    assert engine.taken[1]["after"] == fleet.tip("placements")
    assert running.end(signal.SIGTERM) == 0


def test_run_ends_soon_though_an_engine_is_silent_and_says_what_it_left(
    daemon: Callable[..., Daemon], see: See, engine: Engine
) -> None:
    see(missing=0)
    engine.held.clear()
    running = daemon("--poll-interval", "1h", "--notify", f"flux={engine.url}{FLUX}", OVERSPILL_NOTIFY_SECRET=SECRET)
    running.wait_for("pushed 1 commit")
    engine.until(lambda: len(engine.tries) == 1)
    running.process.send_signal(signal.SIGTERM)
    try:
        running.process.wait(45)
    except subprocess.TimeoutExpired:
        pytest.fail("it waits for an engine for good")
    assert running.end(signal.SIGTERM) == 0
    assert any("was not told of the last push" in line for line in running.lines)
    assert not any("0f0f" in line for line in running.lines)
