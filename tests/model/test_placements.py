"""Placements are found the same way however the collection came about."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.ledger import Placements
from tests.builders.inputs import NOW, VLLM, placement

MADE = [
    placement(
        f"worker-{index % 3}", index, created=NOW + timedelta(minutes=index), lasting=timedelta(hours=1 + index % 2)
    )
    for index in range(12)
]
KEYED = {one.path: one for one in MADE}


def found(placements: Placements) -> tuple[object, ...]:
    return (
        list(placements.items()),
        {workload: placements.of(workload).placements for workload in placements.workloads()},
        {f"worker-{index}": placements.on(f"worker-{index}").placements for index in range(3)},
        [(it.replicas, it.clusters, it.most) for it in map(placements.of, placements.workloads())],
        [(it.replicas, it.clusters, it.most) for it in map(placements.on, sorted(placements.clusters()))],
        [it.on(name) for it in map(placements.of, placements.workloads()) for name in ("worker-0", "worker-1")],
        placements.lapsed(NOW + timedelta(minutes=65)),
        placements.next_expiry(NOW + timedelta(minutes=65)),
    )


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(sorted(KEYED))), max_size=40))
def test_a_followed_collection_equals_one_made_at_once(changes: list[tuple[bool, str]]) -> None:
    followed, expected = Placements(), {}
    for put, path in changes:
        if put:
            followed, expected[path] = followed.changed({path: KEYED[path]}), KEYED[path]
        else:
            followed = followed.changed({}, drop=(path,))
            expected.pop(path, None)
    assert found(followed) == found(Placements(expected))


def test_many_changes_at_once_come_to_the_same() -> None:
    many = {f"clusters/x/vllm-{index}": placement("worker-1", index) for index in range(100)}
    assert len(Placements(KEYED).changed(many, drop=KEYED)) == 100


def test_the_longest_overdue_comes_first() -> None:
    ends = [one.expires_at for one in Placements(KEYED).lapsed(NOW + timedelta(days=1))]
    assert ends == sorted(ends)
    assert len(ends) == len(MADE)


def test_nothing_is_found_where_nothing_is() -> None:
    assert Placements().of(VLLM).placements == ()
    assert Placements().next_expiry(NOW) is None
