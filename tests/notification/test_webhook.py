"""A webhook of a workspace leads to no address that only the daemon can reach, whatever its name."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Iterator

import pytest

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.notification.sender import ONLY, NotTaken
from reconciler.adapters.notification.webhook import WebhookSender
from reconciler.core.notification.notices import live_notice
from reconciler.http_exchange import Exchange, RefusedAddress
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


@pytest.fixture
def own() -> str:
    """The address by which others reach this machine."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            pytest.skip("this machine has no address beside loopback")
        return str(route.getsockname()[0])


def test_address_of_the_daemons_own_machine_is_refused_for_a_workspace(own: str) -> None:
    with (
        socket.create_server((own, 0)) as server,
        pytest.raises(NotTaken, match=f"its name leads to {own}, the daemon's"),
    ):
        send(f"http://{own}:{server.getsockname()[1]}/", confined=True)


def test_address_that_cannot_be_checked_for_want_of_descriptors_is_not_connected_to(own: str) -> None:
    """It counted as another machine's, and was connected to where a descriptor was free again by then."""
    exchange = Exchange(deadline=time.monotonic() + 20, host=own, refuse=lambda _, is_own: "own" if is_own else "")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            exchange.check_address(own, socket.AF_INET, (own, 9))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    with pytest.raises(RefusedAddress):
        exchange.check_address(own, socket.AF_INET, (own, 9))


def told_own(family: socket.AddressFamily, address: str) -> bool:
    """Return whether an address is told as the daemon's own."""
    told: list[bool] = []

    def refuse(_place: str, is_own: bool) -> str:
        told.append(is_own)
        return ""

    exchange = Exchange(deadline=time.monotonic() + 20, host="named", refuse=refuse)
    exchange.check_address("named", family, socket.getaddrinfo(address, 9, type=socket.SOCK_STREAM)[0][4])
    return told == [True]


@pytest.mark.parametrize(("family", "address"), [(socket.AF_INET6, "fe80::1"), (socket.AF_INET, "255.255.255.255")])
def test_address_that_no_route_leads_to_is_not_the_daemons_own(family: socket.AddressFamily, address: str) -> None:
    try:
        socket.socket(family, socket.SOCK_DGRAM).close()
    except OSError:
        pytest.skip("this machine has no addresses of this family")
    assert not told_own(family, address)


def test_own_address_that_the_kernel_does_not_send_from_is_the_daemons_own() -> None:
    """Like a secondary address of a subnet: what is sent to 127.0.0.2 begins at 127.0.0.1."""
    assert told_own(socket.AF_INET, "127.0.0.2")


def test_mapped_address_is_judged_as_its_ipv4_address(own: str) -> None:
    assert told_own(socket.AF_INET6, f"::ffff:{own}")
    assert told_own(socket.AF_INET6, "::ffff:127.0.0.2")
    assert not told_own(socket.AF_INET6, "::ffff:192.0.2.77")


class BindsAnything(socket.socket):
    """A socket of a machine with `ip_nonlocal_bind`."""

    def bind(self, address: object, /) -> None:
        del address


def test_machine_that_binds_any_address_takes_no_other_machine_for_itself(
    own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "socket", BindsAnything)
    assert told_own(socket.AF_INET, own)
    assert not told_own(socket.AF_INET, "192.0.2.77")


def test_proxy_on_the_daemons_own_machine_is_used_for_a_workspace_too(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", receiver.url.removesuffix("/events"))
    send("http://hooks.default.svc/events", confined=True)
    assert [request.path for request in receiver.taken] == ["http://hooks.default.svc/events"]
