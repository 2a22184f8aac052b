"""Every reason says what follows from it."""

from __future__ import annotations

from reconciler.model.plan import REASONS, Reason


def test_every_reason_says_what_follows_from_it() -> None:
    assert REASONS.keys() == {*Reason}
