"""What chats are sent of texts that a tenant or a cluster chose, as Apprise posts it."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import apprise
import pytest
import requests

from reconciler.core.notification.message import write_message
from reconciler.model.events.event import Event, Notice
from reconciler.model.events.event_kind import EventKind
from reconciler.model.events.notification import Importance

HOSTILE = (
    "<!channel> <@U024BE7LH> <https://evil.example|bank> @everyone @here <@&123> [click](https://evil.example)"
    " ![i](https://evil.example/x.png) **b** <b>h</b> <a href=https://evil.example>x</a> &lt;b&gt; ~town-square"
)
CHATS = {
    "discord": "discord://123456789012345678/abcdefghijklmnopqrstuvwxyz_abcdefghij",
    "mattermost": "mmost://localhost/abcdefghijklmnopqrstuvwxyz",
    "google chat": "gchat://workspace/key/token",
    "rocket.chat": f"rocket://abcdefghijklmnopqrst/{'u' * 40}@localhost/#c",
    "zulip": f"zulip://bot@acme/{'a' * 32}/general",
    "telegram": "tgram://123456789:abcdefghijklmnopqrstuvwxyzabcdefghi/123456",
    "slack": "slack://TAAAAAAAA/BBBBBBBBB/cccccccccccccccccccccccc",
    "webex": f"wxteams://{'a' * 80}",
    "teams": "workflows://prod-1.westeurope.logic.azure.com:443/643e69f83c8944438d68119179a10a64/mXWb8e7bOnb4T0Qsig",
    "program": "json://localhost/x",
}
LIVE = ("<!channel>", "<@", "@everyone", "@here", "](", "https://evil", "evil.example", "**b", "<b>h", "<a ", "~town")


@pytest.fixture
def posted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    bodies: list[str] = []

    def post(*args: object, **more: object) -> SimpleNamespace:
        bodies.append(str(more.get("data") or more.get("json")))
        return SimpleNamespace(status_code=200, content=b"ok", text="ok", headers={}, json=lambda: {"ok": True})

    for method in ("post", "request", "put"):
        monkeypatch.setattr(requests, method, post)
    return bodies


@pytest.mark.parametrize("chat", CHATS)
def test_chat_is_sent_no_mention_link_or_style(chat: str, posted: list[str]) -> None:
    event = Event(kind=EventKind.PLACED, at=datetime(2026, 11, 28, tzinfo=UTC), line=HOSTILE, reasons=(HOSTILE,))
    notice = Notice(id="1", event=event, importance=Importance.INFO)
    message = write_message("<@1> @everyone", [notice])
    receiver = apprise.Apprise()
    receiver.add(CHATS[chat])
    receiver.notify(body=message.body, title=message.title, body_format="text")
    assert posted
    body = posted[0].replace("\\\\u200b", "\u200b").replace("\\\\", "")
    assert [mark for mark in LIVE if mark in body] == []
