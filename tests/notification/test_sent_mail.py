"""A mail as it arrives: a subject in one header, and bodies that hold no link and no markup of other people."""

from __future__ import annotations

import email
import re
import socketserver
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from html.parser import HTMLParser
from typing import cast

import pytest

from reconciler.adapters.notification.apprise_message import AppriseSender
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName

HOSTILE = (
    "Held\r\nBcc: victim@evil.example\r\nContent-Type: text/html\r\n\r\n<h1>x</h1>\n.\r\nRCPT TO:<victim@evil.example>"
    " =?utf-8?q?=0D=0ABcc=3A_victim=40evil.example?= <a href=https://evil.example>bank</a> &lt;b&gt;"
    " https://evil.example/x www.evil.example <img src=https://evil.example/x.png> **b** [c](https://evil.example)"
    " <script>s</script> cid:x \x1b[31m\u202e"
)
HEADERS = {
    "content-transfer-encoding", "content-type", "date", "from", "message-id", "mime-version", "subject", "to",
    "x-application",
}  # fmt: skip # a list of words
LIVE = re.compile(r"[a-z]:/|www\.\w|[\w.]@\w|\w\.example|[\x00-\x08\x0e-\x1f\u202a-\u202e]|\]\(")


@dataclass
class Mailbox:
    """What an SMTP server was sent: the receivers and the bytes of each mail."""

    port: int = 0
    mails: list[tuple[list[str], bytes]] = field(default_factory=list)


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    box = Mailbox()

    class Session(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            receivers: list[str] = []
            self.wfile.write(b"220 mail\r\n")
            while line := self.rfile.readline():
                order = line.split()[0].upper()
                if order == b"RCPT":
                    receivers.append(line.decode().partition(":")[2].strip().strip("<>"))
                if order == b"DATA":
                    self.wfile.write(b"354 go on\r\n")
                    lines = []
                    while (text := self.rfile.readline()) != b".\r\n":
                        lines.append(text[1:] if text.startswith(b"..") else text)
                    box.mails.append((receivers, b"".join(lines)))
                    receivers = []
                self.wfile.write(b"221 bye\r\n" if order == b"QUIT" else b"250 ok\r\n")
                if order == b"QUIT":
                    return

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session) as server:
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield box
        server.shutdown()
        thread.join()


class Elements(HTMLParser):
    """Collects the elements of a document with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


def notice(number: int) -> Notice:
    workload = WorkloadId(WorkspaceName(HOSTILE), TemplateName(HOSTILE))
    event = Event(
        kind=EventKind.PLACED,
        at=datetime(2026, 11, 28, tzinfo=UTC),
        line=HOSTILE,
        reasons=(HOSTILE, HOSTILE),
        workload=workload,
    )
    return Notice(id=str(number), event=event, importance=Importance.ERROR)


@pytest.mark.parametrize("notices", [1, 2, 30])
@pytest.mark.parametrize("form", ["html", "text", "markdown"])
def test_mail_holds_no_header_link_or_markup_of_other_people(mailbox: Mailbox, form: str, notices: int) -> None:
    url = (
        f"mailto://127.0.0.1:{mailbox.port}/?from=overspill@acme.test&to=ann@acme.test&smtp=127.0.0.1&mode=insecure"
        f"&format={form}"
    )
    AppriseSender(lambda: url, fleet=HOSTILE).send("mail", [notice(number) for number in range(notices)])
    ((receivers, data),) = mailbox.mails
    assert receivers == ["ann@acme.test"]
    mail = cast("EmailMessage", email.message_from_bytes(data, policy=default))
    assert {name.lower() for name in mail} <= HEADERS
    assert not mail.defects
    assert len(mail.get_all("subject", [])) == 1
    assert LIVE.findall(mail["subject"]) == []
    parts = [part for part in mail.walk() if not part.is_multipart()]
    kinds = {part.get_content_type() for part in parts}
    assert kinds == ({"text/plain", "text/html"} if form == "html" else {"text/plain"})
    for part in parts:
        text = cast("EmailMessage", part).get_content()
        if part.get_content_type() == "text/html":
            elements = Elements(text)
            assert elements.elements <= {"br", "p", "html", "head", "body", "meta", "title"}
            text = elements.text
        assert LIVE.findall(text) == []
        assert "victim" in text  # the words stay
