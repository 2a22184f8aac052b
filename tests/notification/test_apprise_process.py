"""A message by Apprise ends in time and within its memory, whatever its receiver answers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from reconciler.adapters.notification.apprise_process import AppriseMessage, deliver
from reconciler.adapters.notification.sender import NotTaken
from reconciler.model.bounds import MESSAGE_MEMORY, MESSAGE_TIME
from tests.fakes.faulty_servers import Reply, serving


def message(url: str) -> AppriseMessage:
    return AppriseMessage(url=url.replace("http://", "json://"), title="Title", body="Body")


def test_message_is_taken_and_an_address_of_another_form_is_not_known() -> None:
    with serving(Reply()) as server:
        assert deliver(message(server.url)).taken
        assert [asked for asked, _ in server.asked] == ["POST /"]
    assert not deliver(AppriseMessage(url="nonsense")).known


@contextmanager
def dripping() -> Iterator[str]:
    """Answer with the 100s for as long as somebody listens."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    while not over.wait(0.05):
                        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            over.set()
            with suppress(OSError):  # nobody may have connected
                socket.create_connection(server.getsockname()).close()
            thread.join()


def test_receiver_that_drips_is_left_at_the_deadline() -> None:
    with dripping() as url, pytest.raises(NotTaken, match="in time"):
        deliver(message(url), seconds=2)


def test_bounds_are_those_of_the_table() -> None:
    assert MESSAGE_TIME.most < 60
    assert MESSAGE_MEMORY.most <= 1 << 30
