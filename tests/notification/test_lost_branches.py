"""While the output branch is lost no mark moves, and nothing that waits is lost with the branch or the repository."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.model.tree import Identity
from tests.builders.notifications import Fleet, fleet, message, webhook
from tests.fakes.event_receiver import SECRET, receiving
from tests.notification.test_couriers import settled


def _delete(one: Fleet) -> None:
    one.remote.move("placements", None)


def _swap(one: Fleet) -> None:
    """Put another repository behind the address, without marks."""
    main = one.remote.files("main")
    shutil.rmtree(one.remote.path)
    one.remote._begin()
    one.remote.commit("main", main or {"fleet.yaml": "a"})


@pytest.mark.parametrize("lose", [_delete, _swap])
def test_nothing_that_waits_is_lost_while_the_branch_is_lost(tmp_path: Path, lose: Callable[[Fleet], None]) -> None:
    with fleet(tmp_path) as one, receiving() as receiver:
        one.secret("pager", SECRET)
        told = webhook(receiver.url)
        with one.telling(told) as couriers:
            settled(one, couriers, receiver, told)
            expected = one.happen(message(1), message(2), message(3))
            receiver.answers += [200, 500, 500]
            lose(one)
            assert one.repository.fetch().losses
            refs = one.remote.git("for-each-ref")
            failed, deadline = one.counts.failed, time.monotonic() + 30
            while one.counts.failed < failed + 3:  # it has told, and tries to note that
                assert time.monotonic() < deadline, "no mark is tried to be moved"
                one.follow(couriers, told)
                time.sleep(0.01)
            assert one.remote.git("for-each-ref") == refs
            drafted = one.repository.draft_restoration(
                accept=False, now=datetime.now(UTC), person=Identity(name="Ada", email="ada@example.com")
            )
            one.repository.carry_out_restoration(drafted)
            assert not one.repository.fetch().losses
            expected += one.happen(message(4))
            settled(one, couriers, receiver, told)
        assert list(dict.fromkeys(receiver.ids)) == expected
