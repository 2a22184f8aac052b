"""The reason why a workload waits, of what each cluster says."""

from __future__ import annotations

import pytest

from reconciler.core.decide.candidates.finder import why_not
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Reason, Refusal


def held(number: int) -> Refusal:
    name = ClusterName(f"worker-{number}")
    return Refusal(cluster=name, reason=Reason.HELD, message="deleted by hand", remedy="release it")


@pytest.mark.parametrize(
    ("number", "others"), [(1, ""), (2, "; so is 1 other cluster"), (3, "; so are 2 other clusters")]
)
def test_clusters_that_are_all_held_are_counted(number: int, others: str) -> None:
    reason, message = why_not(map(held, range(number)), "no room")
    assert (reason, message) == (Reason.HELD, f"worker-0 is held back: deleted by hand (release it){others}")
