"""An event tells all of a change: what, to whom, where, how many, why, and in which commit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.commits.events import of_push, with_commits
from reconciler.core.commits.messages import line, message
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.placement import Phase
from reconciler.model.plan import Change
from reconciler.model.tree import Advance
from tests.builders.changes import (
    ALL,
    EXTEND,
    HOLD,
    MOVE,
    PLACE,
    RELEASE,
    RESIZE,
    RESTORE,
    REVERT,
)
from tests.builders.placement_records import SOURCE, START, VLLM

START_COMMIT, COMMIT, NEXT = (CommitId(letter * 40) for letter in "abc")


def test_every_change_is_an_event_with_its_commit_time_and_line():
    commits = [CommitId(f"{number:040}") for number in range(len(ALL))]
    events = of_push(ALL, commits, (), START)
    assert [event.commit for event in events] == commits
    assert [event.line for event in events] == [line(change) for change in ALL]
    assert {event.at for event in events} == {START}
    assert len({event.kind for event in events}) == len({change.action for change in ALL})


@pytest.mark.parametrize("change", ALL, ids=lambda change: change.action)
def test_an_event_gives_the_reasons_that_its_commit_gives(change: Change):
    (event,) = of_push([change], [COMMIT], (), START)
    body = " ".join(message(change, source=SOURCE).split())
    assert event.reasons
    assert all(" ".join(reason.split()) in body for reason in event.reasons)


@pytest.mark.parametrize(
    ("change", "kind", "clusters", "replicas"),
    [
        (PLACE, EventKind.PLACED, ("worker-2",), (0, 3)),
        (RESIZE, EventKind.RESIZED, ("worker-2",), (3, 5)),
        (EXTEND, EventKind.EXTENDED, ("worker-2",), (5, 5)),
        (MOVE, EventKind.MOVED, ("worker-2", "worker-3"), (5, 5)),
        (REVERT, EventKind.ENDED, ("worker-2",), (5, 0)),
        (replace(REVERT, phase=Phase.FAILED), EventKind.FAILED, ("worker-2",), (5, 0)),
        (RESTORE, EventKind.RESTORED, ("worker-2",), (5, 5)),
        (HOLD, EventKind.DELETED, ("worker-2",), (5, 0)),
        (RELEASE, EventKind.RELEASED, ("worker-2",), (0, 0)),
    ],
)
def test_an_event_names_the_workload_its_clusters_and_its_replicas(
    change: Change, kind: EventKind, clusters: tuple[str, ...], replicas: tuple[int, int]
):
    (event,) = of_push([change], [COMMIT], (), START)
    assert (event.kind, event.workload, event.clusters) == (kind, VLLM, clusters)
    assert (event.before, event.replicas) == replicas


def test_commits_that_begin_the_branch_carry_no_event():
    events = of_push([PLACE, RESIZE], [START_COMMIT, COMMIT, NEXT], (), START)
    assert [event.commit for event in events] == [COMMIT, NEXT]
    assert list(with_commits([PLACE], [START_COMMIT, COMMIT])) == [(PLACE, COMMIT)]


def test_branches_that_are_put_right_alone_are_one_event():
    worker_2 = ClusterName("worker-2")
    advances = [Advance(cluster=worker_2, old=COMMIT, new=NEXT)]
    (event,) = of_push([], [], advances, START)
    assert (event.kind, event.workload, event.clusters) == (EventKind.BRANCHES_FOLLOWED, None, (worker_2,))
    assert of_push([PLACE], [COMMIT], advances, START)[0].kind is EventKind.PLACED
    assert of_push([], [], [], START) == ()
