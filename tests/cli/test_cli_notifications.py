"""`run` tells receivers of Notifications, `notify` lists and tries them, and `doctor` looks at them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.builders.ready_fleet import FILES, ReadyFleet
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal
from tests.cli.test_cli_doctor import ready, results
from tests.cli.test_cli_grant import grant
from tests.cli.test_cli_passes import Daemon, daemon
from tests.fakes.event_receiver import SECRET, Receiver, receiving

__all__ = ["daemon", "ready"]


def notifications(url: str) -> str:
    head = "apiVersion: overspill.dev/v1alpha1\nkind: Notification\n"
    return "---\n".join(
        f"{head}metadata: {{name: {name}}}\nspec: {spec}\n"
        for name, spec in (
            ("chat", "{workspaces: [llm], apprise: {urlFrom: chat}}"),
            ("pager", f"{{webhook: {{url: '{url}', secretFrom: pager}}}}"),
        )
    )


@pytest.fixture
def receiver(overspill: Terminal, fleet: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Serve a receiver that the fleet names, with its secrets in a directory."""
    monkeypatch.setenv("no_proxy", "*")
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    overspill.env["OVERSPILL_NOTIFICATION_SECRETS"] = str(secrets)
    with receiving() as receiver:
        (secrets / "pager").write_text(SECRET)
        (secrets / "chat").write_text(receiver.url.replace("http", "json", 1).replace("events", "chat"))
        fleet.commit("main", {"notifications/all.yaml": notifications(receiver.url)})
        yield receiver


def test_run_tells_receivers_of_a_burst_and_goes_on_after_a_restart(
    daemon: Callable[..., Daemon], overspill: Terminal, fleet: Remote, see: See, receiver: Receiver
) -> None:
    see(missing=0)
    overspill.done("once")
    first = daemon("--poll-interval", "1s")
    first.wait_for("watching")
    while len(fleet.git("for-each-ref", "refs/overspill").splitlines()) < 4:
        with receiver.changed:
            receiver.changed.wait(0.05)
    see()
    receiver.until(lambda: len(receiver.ids_of("/events")) == 2)
    receiver.until(lambda: any(request.path == "/chat" for request in receiver.taken))
    assert first.end(signal.SIGTERM) == 0
    see(missing=0)
    overspill.done("once")
    daemon("--poll-interval", "1s")
    receiver.until(lambda: len(receiver.ids_of("/events")) >= 4)
    commits = fleet.git("rev-list", "--reverse", "placements").split()
    told = receiver.ids_of("/events")
    assert told == [commit for commit in commits if commit in told]
    types = [request.json["type"] for request in receiver.taken if request.path == "/events"]
    assert types[:2] == ["dev.overspill.placed"] * 2
    assert "dev.overspill.ended" in types
    assert "2 events of llm/vllm" in next(
        request.json["title"] for request in receiver.taken if request.path == "/chat"
    )


def test_list_tells_what_waits_for_each_receiver(
    overspill: Terminal, fleet: Remote, see: See, receiver: Receiver
) -> None:
    see(missing=0)
    overspill.done("once")
    assert [(row["name"], row["told"]) for row in overspill.answer("notify", "list")] == [
        ("chat", None),
        ("pager", None),
    ]
    begun = fleet.tip("placements")
    for mark in ("told", "sending"):
        fleet.git("update-ref", f"refs/overspill/notified/pager/{mark}", str(begun))
    see()
    overspill.done("once")
    rows = {row["name"]: row for row in overspill.answer("notify", "list")}
    assert (rows["pager"]["told"], rows["pager"]["waiting"]) == (begun, 2)
    table = overspill.done("notify", "list")
    assert "Apprise, secret chat" in table
    assert receiver.requests == []


def test_trial_tells_the_receiver_whatever_it_hears_of(overspill: Terminal, receiver: Receiver) -> None:
    before = overspill.done("notify", "test", "pager")
    assert before == f"pager (webhook {receiver.url}) has taken a test event.\n"
    assert overspill.done("notify", "test", "chat") == "chat (Apprise, secret chat) has taken a test event.\n"
    event, message = (request.json for request in receiver.taken)
    assert event["type"] == "dev.overspill.test"
    assert "A test of Notification chat" in message["message"]


@pytest.mark.parametrize(
    ("name", "answer", "words"),
    [
        ("pager", 401, "was not told: it answers 401 (is its secret the one that the receiver has?)"),
        ("pager", 302, "was not told: it redirects (302): name the address that this leads to"),
        (
            "chat",
            500,
            "chat (Apprise, secret chat) was not told: Apprise could not deliver it: Failed to send JSON POST",
        ),
        ("pagr", 200, "no Notification 'pagr' (try 'pager')"),
    ],
)
def test_trial_that_fails_says_why(overspill: Terminal, receiver: Receiver, name: str, answer: int, words: str) -> None:
    receiver.answers.append(answer)
    done = overspill("notify", "test", name)
    assert done.exit_code == 1
    assert words in done.stderr
    # The address of a webhook stands in the Notification; that of a chat is in a secret.
    assert (receiver.url.removeprefix("http://") in done.stderr) == (name == "pager")


def test_trial_of_a_receiver_that_is_down_names_it_and_a_way_out(
    overspill: Terminal, fleet: Remote, receiver: Receiver
) -> None:
    down = "http://127.0.0.1:1/events"
    fleet.commit("main", {"notifications/all.yaml": notifications(down)})
    done = overspill("notify", "test", "pager")
    assert done.exit_code == 1
    said = " ".join(done.stderr.split())
    assert f"pager (webhook {down}) was not told: " in said
    assert said.endswith("(see that the receiver runs, and that this machine reaches it)")


def test_trial_without_secrets_says_where_they_are_wanted(overspill: Terminal, receiver: Receiver) -> None:
    del overspill.env["OVERSPILL_NOTIFICATION_SECRETS"]
    done = overspill("notify", "test", "chat")
    assert done.exit_code == 1
    assert "its secret 'chat' cannot be read (OVERSPILL_NOTIFICATION_SECRETS names no directory" in done.stderr
    assert receiver.requests == []


def test_list_of_a_fleet_without_receivers_says_how_to_add_one(overspill: Terminal, fleet: Remote) -> None:
    assert overspill.done("notify", "list") == (
        "No Notification in the fleet repository (add one in notifications/).\n"
    )


def test_doctor_says_which_receivers_could_not_be_told(
    overspill: Terminal, ready: ReadyFleet, fleet: Remote, receiver: Receiver, tmp_path: Path
) -> None:
    assert ready
    (tmp_path / "secrets" / "chat").unlink()
    rows = [row for row in results(overspill) if row[0] == "notifications"]
    assert [row[1:2] for row in rows] == [("missing",), ("ok",)]
    assert f"notification chat: its secret cannot be read from {tmp_path}/secrets/chat: No such file" in rows[0][2]
    assert rows[0][3] == "overspill notify test chat"
    del overspill.env["OVERSPILL_NOTIFICATION_SECRETS"]
    rows = [row for row in results(overspill, exit_code=0) if row[0] == "notifications"]
    assert [row[1] for row in rows] == ["unknown", "unknown"]
    assert receiver.requests == []


def test_right_to_write_events_is_granted_where_it_is_asked_for(ready: ReadyFleet, tmp_path: Path) -> None:
    (tmp_path / "granted").mkdir()
    for name, text in FILES.items():
        (tmp_path / "granted" / name).write_text(text)
    for cluster in ready.clusters:
        for plural in ("clusterroles", "clusterrolebindings"):
            cluster.objects[plural] = {}
    terminal = Terminal(env={"HOME": str(tmp_path), "KUBECONFIG": str(ready.kubeconfig)})
    (tmp_path / "fleet").symlink_to(tmp_path / "granted")
    assert grant(terminal, "--context", "worker-1", "--yes").exit_code == 0
    assert "/overspill-events" not in ready.primary.objects["clusterroles"]
    assert grant(terminal, "--context", "worker-1", "--events", "--yes").exit_code == 0
    (rule,) = ready.primary.objects["clusterroles"]["/overspill-events"]["rules"]
    assert rule == {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]}
    layout = Path(__file__).parents[2] / "repo-layout" / "bootstrap" / "rbac-events.yaml"
    role, binding = yaml.safe_load_all(layout.read_text())
    assert role["rules"] == [rule]
    assert binding["subjects"] == ready.primary.objects["clusterrolebindings"]["/overspill-events"]["subjects"]
