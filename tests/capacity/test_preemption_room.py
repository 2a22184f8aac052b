"""What is counted as free when pods go is free wherever they were."""

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.model.capacity import ClusterObservation, Node, Pool, ReplicaShape
from reconciler.model.ids import ClusterName
from reconciler.model.units import ONE, Quantity, Resources
from tests.builders.examples import examples
from tests.builders.inputs import GPU, NOW

SIZES = st.tuples(st.integers(1, 8), st.integers(0, 4))
"""GPUs and CPUs of a pod."""


def amount(size: tuple[int, int]) -> Resources:
    named = zip((GPU, "cpu", "pods"), (*size, 1), strict=True)
    return Resources(amounts={name: Quantity(number * ONE) for name, number in named if number})


def asking(size: tuple[int, int], *, group: int = 1) -> ReplicaShape:
    named = {name: number for name, number in amount(size).amounts.items() if name != "pods"}
    return ReplicaShape(requests=Resources(amounts=named), group_size=group, apart=group > 1)


def room(nodes: list[tuple[Resources, Resources]]) -> ClusterCapacity:
    made = tuple(Node(name=f"n{index}", free=free, allocatable=of) for index, (free, of) in enumerate(nodes))
    return ClusterCapacity(
        ClusterObservation(cluster=ClusterName("c"), observed_at=NOW, pools=(Pool(name="p", nodes=made),))
    )


@examples(10)
@given(st.data())
def test_no_more_is_counted_than_there_is_once_they_are_gone(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    nodes = st.integers(0, count - 1)
    whole = Resources(amounts={GPU: Quantity(8 * ONE), "cpu": Quantity(8 * ONE), "pods": Quantity(6 * ONE)})
    before, later = [whole] * count, [whole] * count
    leaving = data.draw(st.lists(st.tuples(SIZES, st.lists(nodes, min_size=1, max_size=4)), min_size=1, max_size=3))
    others = data.draw(st.lists(st.tuples(SIZES, nodes), max_size=4))
    for size, at in others:
        if before[at].holds(amount(size)):
            before[at] = later[at] = before[at].minus(amount(size))
    gone = []
    for size, wished in leaving:
        had = 0
        for at in wished:
            if before[at].holds(amount(size)):
                before[at] = before[at].minus(amount(size))
                had += 1
        gone.append((size, had))
    newcomer = asking(data.draw(SIZES), group=data.draw(st.integers(1, 2)))
    counted = room(list(zip(before, [whole] * count, strict=True)))
    for size, had in gone:
        counted.release_evicted(asking(size), had, newcomer)
    sure = counted.count(newcomer, 50)
    assert sure <= room(list(zip(later, [whole] * count, strict=True))).count(newcomer, 50)
    assert sure >= room(list(zip(before, [whole] * count, strict=True))).count(newcomer, 50)
