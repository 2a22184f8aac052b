"""What nodes hold is kept while capacity is taken and given back, and is what counting each node anew comes to."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.node import admits, pods_fitting
from reconciler.core.capacity.node_columns import NodeColumns, node_kinds
from reconciler.core.capacity.node_fit import NodeFit
from reconciler.model.capacity import ReplicaShape
from tests.builders.examples import examples
from tests.builders.inputs import free, shape

MOST = 10**6
SHAPES = tuple(
    replace(shape(gpus), group_size=size, apart=apart)
    for gpus, size, apart in ((1, 1, False), (2, 1, False), (3, 2, True), (1, 2, False))
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["take", "release", "copy", "count"]), st.sampled_from(SHAPES), st.integers(1, 3)),
    max_size=12,
)


def agree(room: ClusterCapacity, wanted: ReplicaShape) -> bool:
    columns = NodeColumns(room._nodes, node_kinds(room._nodes))
    anew = NodeFit(wanted, columns, frozenset())
    known = room.count(wanted, MOST), room.node_count(wanted), room.free(wanted)
    by_node = [pods_fitting(node, wanted) if admits(node, wanted) else 0 for node in room._nodes]
    assert dict(anew.holding()) == {position: pods for position, pods in enumerate(by_node) if pods}
    return known == (anew.count(MOST), anew.node_count(), anew.free(columns))


@given(st.lists(st.sampled_from([0, 1, 2, 4, 8]), min_size=1, max_size=6), STEPS)
@examples(20)
def test_nodes_that_have_not_changed_need_not_be_counted_again(
    nodes: list[int], steps: list[tuple[str, ReplicaShape, int]]
) -> None:
    rooms = [ClusterCapacity(free("worker-2", *nodes))]
    for step, wanted, replicas in steps:
        room = rooms[-1]
        if step == "copy":
            rooms.append(room.copy())
        elif step == "take":
            room.take(wanted, replicas)
        elif step == "release":
            room.release(wanted, replicas)
        assert agree(room, wanted)
    assert all(agree(room, wanted) for room in rooms for wanted in SHAPES)
