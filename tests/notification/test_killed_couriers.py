"""A daemon that is killed while it tells receivers; `make chaos` does so a hundred times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders.notifications import fleet
from tests.fakes.killed_courier import couriers_of, kill_at_random


@pytest.mark.exhaustive(one_in=None)
def test_each_event_is_told_once_and_in_order_through_kills(tmp_path: Path) -> None:
    with fleet(tmp_path) as one:
        kill_at_random(one, 6, couriers_of(one))
