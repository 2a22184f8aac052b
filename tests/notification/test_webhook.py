"""A webhook of a workspace leads to no address that only the daemon can reach, whatever its name."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.notification.sender import ONLY, NotTaken
from reconciler.adapters.notification.webhook import WebhookSender
from reconciler.core.notification.notices import live_notice
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from tests.fakes.event_receiver import SECRET, Receiver, receiving


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    for name in ("HTTP_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with receiving() as receiver:
        yield receiver


def send(url: str, *, confined: bool) -> None:
    event = Event(kind=EventKind.CLUSTER_LOST, at=SystemClock().now(), line="worker-2 is lost")
    sender = WebhookSender(url, lambda: SECRET, fleet="demo", clock=SystemClock(), timeout=20, confined=confined)
    sender.send(ONLY, (live_notice(event),))


def test_name_that_leads_to_the_daemons_own_machine_is_refused_for_a_workspace(receiver: Receiver) -> None:
    named = receiver.url.replace("127.0.0.1", "localhost")
    with pytest.raises(NotTaken, match=r"its name leads to 127\.0\.0\.1, the daemon's own machine or link"):
        send(named, confined=True)
    assert receiver.requests == []
    send(named, confined=False)
    assert len(receiver.taken) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "0", "[::ffff:7f00:1]", "localhost"])
def test_nothing_connects_to_the_daemons_own_machine_for_a_workspace(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        with pytest.raises(NotTaken):
            send(f"http://{host}:{server.getsockname()[1]}/", confined=True)
        with pytest.raises(BlockingIOError):  # nobody waits there
            server.accept()


def test_address_of_the_daemons_own_machine_is_refused_for_a_workspace() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address beside loopback")
        own = route.getsockname()[0]
    with (
        socket.create_server((own, 0)) as server,
        pytest.raises(NotTaken, match=f"its name leads to {own}, the daemon's"),
    ):
        send(f"http://{own}:{server.getsockname()[1]}/", confined=True)


def test_proxy_on_the_daemons_own_machine_is_used_for_a_workspace_too(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", receiver.url.removesuffix("/events"))
    send("http://hooks.default.svc/events", confined=True)
    assert [request.path for request in receiver.taken] == ["http://hooks.default.svc/events"]
