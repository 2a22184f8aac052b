"""What a pass decided reaches every sink once it is on the remote, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.daemon.reconcile import reconcile_once
from reconciler.errors import Conflict
from reconciler.model.events.event import Event, Push
from reconciler.model.events.event_kind import EventKind
from tests.builders.passes import SOURCE_FILES, Passes
from tests.builders.remote import Remote


class Chat:
    """A sink that writes a message an event, as one for a chat would, and checks that its commit can be read."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self.messages: list[str] = []
        self.kinds: list[EventKind] = []
        self.pushed: list[str] = []

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        self.pushed += [push.branch for push in pushes]
        for event in events:
            subject = self.remote.git("log", "-1", "--format=%s", str(event.commit))
            self.kinds.append(event.kind)
            self.messages.append(f"{subject} | {event.workload} on {', '.join(event.clusters)}: {event.replicas}")


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Passes:
    remote.commit("main", SOURCE_FILES)
    passes = Passes(repository)
    passes.run()
    return passes


def test_every_sink_gets_the_events_of_a_push_with_commits_that_are_on_the_remote(
    remote: Remote, passes: Passes
) -> None:
    chats = Chat(remote), Chat(remote)
    passes.missing = 3
    passes.run_once()
    passes.advance(600)
    passes.missing = 0
    passes.look()
    outcome = reconcile_once(replace(passes.world(), sinks=chats), passes.memory)
    for chat in chats:
        assert chat.pushed == ["placements"]
        assert chat.kinds == [EventKind.ENDED] * len(outcome.events)
        assert chat.messages
        assert all(message.startswith('Revert "burst(llm/vllm): ') for message in chat.messages)


def test_a_pass_without_changes_publishes_nothing(remote: Remote, passes: Passes) -> None:
    chat = Chat(remote)
    reconcile_once(replace(passes.world(), sinks=(chat,)), passes.memory)
    assert (chat.pushed, chat.messages) == ([], [])


def test_nothing_is_published_of_a_push_that_was_rejected(remote: Remote, passes: Passes) -> None:
    chat = Chat(remote)
    passes.missing = 3
    passes.look()
    remote.commit("placements", {"notes.txt": "by Ann"})
    with pytest.raises(Conflict):
        reconcile_once(replace(passes.world(), sinks=(chat,)), passes.memory, fetch=False)
    assert (chat.pushed, chat.messages) == ([], [])
