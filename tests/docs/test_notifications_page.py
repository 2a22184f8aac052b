"""The files and the secret of docs/how-to/notifications.md are taken as they are."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.notification.sender import ONLY, Secrets
from reconciler.adapters.notification.webhook import WebhookSender
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.notification.notices import live_notice
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import CommitId
from tests.builders.fleet_files import FLEET
from tests.fakes.event_receiver import Receiver, receiving

PAGE = (Path(__file__).parents[2] / "docs/how-to/notifications.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_files_of_the_page_are_in_force_as_they_are() -> None:
    files = {f"notifications/{number}.yaml": text for number, text in enumerate(blocks("yaml"))}
    desired = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in (FLEET | files).items()})
    assert {*desired.notifications} == {"llm-chat", "pager"}
    assert [str(problem) for problem in desired.problems if problem.path in files] == []
    assert desired.notifications["pager"].secret == "pager"


def test_secret_of_the_page_signs_what_a_receiver_with_the_same_secret_takes(tmp_path: Path) -> None:
    (command,) = (block for block in blocks("sh") if "whsec_" in block)
    (tmp_path / "secrets").mkdir()
    subprocess.run(["sh", "-ec", command], cwd=tmp_path, check=True)
    secret = Secrets(tmp_path / "secrets").read("pager")
    event = Event(kind=EventKind.CLUSTER_LOST, at=SystemClock().now(), line="worker-2 is lost")
    with receiving(Receiver(secret=secret)) as receiver:
        sender = WebhookSender(receiver.url, lambda: secret, fleet="demo", clock=SystemClock(), timeout=20)
        sender.send(ONLY, (live_notice(event),))
    assert len(receiver.taken) == 1
