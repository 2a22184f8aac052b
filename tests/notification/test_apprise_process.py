"""A message by Apprise ends in time and within its memory, whatever its receiver answers."""

from __future__ import annotations

import mmap
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from reconciler.adapters.notification.apprise_process import _AppriseProcesses, deliver
from reconciler.adapters.notification.apprise_program import AppriseMessage
from reconciler.adapters.notification.sender import NotTaken
from reconciler.adapters.operating_system import own_memory
from reconciler.model.bounds import MESSAGE_MEMORY, MESSAGE_TIME
from tests.adapters.test_http_exchange import OK, peer, pouring
from tests.fakes.faulty_servers import Reply, serving

LONG = 20.0
"""Seconds after which something never comes."""


def message(url: str) -> AppriseMessage:
    return AppriseMessage(url=url.replace("http://", "json://"), title="Title", body="Body")


def test_message_is_taken_and_an_address_of_another_form_is_not_known() -> None:
    with serving(Reply()) as server:
        assert deliver(message(server.url)).taken
        assert [asked for asked, _ in server.asked] == ["POST /"]
    assert not deliver(AppriseMessage(url="nonsense")).known


def children() -> set[str]:
    """List the processes that this one has started and that have not ended."""
    return {child for file in Path("/proc/self/task").glob("*/children") for child in file.read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="children are read from /proc")
def test_one_process_delivers_one_message_after_the_other() -> None:
    with serving(*(Reply() for _ in range(4))) as server:
        assert deliver(message(server.url)).taken
        begun = children()
        assert begun
        for _ in range(3):
            assert deliver(message(server.url)).taken
        assert children() == begun
        assert len(server.asked) == 4


@dataclass
class Dripping:
    """A receiver that answers with the 100s for as long as somebody listens."""

    url: str
    asked: threading.Event = field(default_factory=threading.Event)
    left: threading.Event = field(default_factory=threading.Event)


@contextmanager
def dripping() -> Iterator[Dripping]:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        receiver = Dripping(f"http://127.0.0.1:{server.getsockname()[1]}")

        def answer() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                receiver.asked.set()
                with connection:
                    while not over.wait(0.05):
                        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            receiver.left.set()

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            over.set()
            with suppress(OSError):  # nobody may have connected
                socket.create_connection(server.getsockname()).close()
            thread.join()


def test_receiver_that_drips_is_left_at_the_deadline_and_costs_its_own_message_alone() -> None:
    with dripping() as receiver:
        with pytest.raises(NotTaken, match="in time"):
            deliver(message(receiver.url), seconds=1.5)
        with serving(Reply()) as server:
            assert deliver(message(server.url)).taken


DAEMON = """\
import sys
from reconciler.adapters.notification.apprise_process import deliver
from reconciler.adapters.notification.apprise_program import AppriseMessage
deliver(AppriseMessage(url=sys.argv[1], body="Body"))
"""


def test_nobody_goes_on_delivering_for_a_daemon_that_was_killed() -> None:
    with dripping() as receiver, subprocess.Popen([sys.executable, "-c", DAEMON, message(receiver.url).url]) as daemon:
        try:
            assert receiver.asked.wait(LONG)
            assert not receiver.left.is_set()
        finally:
            daemon.kill()
        assert receiver.left.wait(LONG)


@pytest.mark.skipif(sys.platform != "linux", reason="its size is read from /proc")
def test_memory_that_is_bounded_is_the_memory_that_is_measured() -> None:
    before = own_memory()
    with mmap.mmap(-1, 256 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
        assert own_memory() >= before + (200 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds a process's heap")
def test_answer_without_an_end_costs_its_own_message_alone() -> None:
    first = OK + b"Content-Length: 100000000000\r\n\r\n"
    with peer(pouring(first, b"x" * (1 << 20))) as address:
        result = deliver(message(f"http://{address}"), seconds=LONG)
        assert (result.taken, result.last) == (False, True)
    with serving(Reply()) as server:
        assert deliver(message(server.url)).taken


def test_processes_at_once_are_bounded() -> None:
    processes = _AppriseProcesses(at_once=2)
    begun, go_on = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        with processes.borrow():
            begun.release()
            assert go_on.wait(LONG)

    threads = [threading.Thread(target=hold) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.acquire(timeout=LONG)
    assert begun.acquire(timeout=LONG)
    assert not begun.acquire(timeout=0.3)
    go_on.set()
    assert begun.acquire(timeout=LONG)
    for thread in threads:
        thread.join()
    processes.close()


def test_bounds_are_those_of_the_table() -> None:
    assert MESSAGE_TIME.most < 60
    assert MESSAGE_MEMORY.most * 2 <= 1 << 28
