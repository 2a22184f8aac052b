"""How many pods of a gang have to be there at once: those that it says, as a whole and of each role, else all."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_request, pods_of_spec, requirements_of
from reconciler.core.decide.candidates.gang_start import start
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, errors, load
from tests.builders.gangs import grove, torch, volcano
from tests.builders.inputs import (
    GPU,
    free,
    shape,
)
from tests.builders.requests import manifests, request
from tests.builders.workload_kinds import GAME_SERVERS, SAMPLES, game_servers, template


def starts(made: Json, of: Desired | None = None) -> dict[int, int]:
    """Count the pods that are enough to start with, by the GPUs of each."""
    parts = pods_of_request(request(spec=manifests(made)), of.kinds if of else {}).parts
    return {part.shape.requests.amounts.get(GPU, 0) // 10**9: part.start for part in parts}


@pytest.mark.parametrize(
    ("made", "enough"),
    [
        (volcano((1, 0, None), (4, 2, None), least=3), {0: 1, 2: 2}),
        (volcano((1, 0, None), (4, 2, 2)), {0: 1, 2: 2}),
        (volcano((2, 1, 1), (4, 2, 1), least=4), {1: 1, 2: 3}),
        (volcano((2, 1, 2), (4, 2, 3), least=2), {1: 2, 2: 3}),
        (volcano((2, 1, None), (4, 2, None), least=1), {1: 1, 2: 1}),
        (volcano((2, 1, 0), (4, 2, 2)), {1: 0, 2: 2}),
        (grove(workers=2), {0: 1, 4: 2, 8: 4}),
        (grove(decode=1), {0: 1, 4: 1, 8: 3}),
        (grove(2, workers=1, decode=1), {0: 2, 4: 2, 8: 2}),
        (torch(4, elastic=2), {8: 3}),
        (torch(4, least=2), {8: 2}),
        (torch(4, elastic=1, least=4), {8: 4}),
    ],
    ids=[
        "any three, with a master",
        "those of its tasks",
        "more than its tasks come to",
        "less than its tasks come to",
        "one of each task",
        "none of a task",
        "of a clique",
        "of a scaling group",
        "of both, for each replica of the set",
        "of an elastic job",
        "of its scheduling policy",
        "of both",
    ],
)
def test_a_minimum_is_that_of_the_whole_and_of_each_role(made: Json, enough: Mapping[int, int]) -> None:
    assert starts(made) == enough


@pytest.mark.parametrize("made", [volcano((1, 0, None), (4, 2, None)), torch(), grove(), SAMPLES["RayCluster"][0]])
def test_without_a_minimum_all_pods_have_to_be_there(made: Json) -> None:
    assert all(part.start == part.replicas for part in pods_of_request(request(spec=manifests(made))).parts)


SERVERS = game_servers(
    2, roles={"map": {"number": 3, "enough": 1, "template": template(1)}, "bot": {"template": template(2)}}
)
KIND = (
    GAME_SERVERS
    + """\
  podTemplates:
    - path: spec.roles.*.template
      counts: [{path: spec.size}, {path: spec.roles.*.number, minimumPath: spec.roles.*.enough}]
  groups: {called: room, counts: [{path: spec.size}]}
"""
)


def test_a_declared_kind_says_where_its_roles_have_their_minimums() -> None:
    of = load({**FLEET, "kinds.yaml": KIND})
    assert errors(of) == []
    assert starts(SERVERS, of) == {1: 2, 2: 2}
    (gang,) = pods_of_request(request(spec=manifests(SERVERS)), of.kinds).gangs
    assert (gang.groups, gang.size, gang.least) == (2, 4, 2)


def test_the_minimum_of_a_role_is_among_its_own_items() -> None:
    (found,) = errors(load({**FLEET, "kinds.yaml": KIND.replace("roles.*.enough", "others.*.enough")}))
    assert found == (
        "kinds.yaml:8: spec.podTemplates[0]: 'spec.others.*.enough' counts the items of another list than"
        " 'spec.roles.*.template' (try 'spec.roles.*.replicas')"
    )


@given(
    nodes=st.lists(st.integers(0, 8), max_size=6),
    tasks=st.lists(
        st.tuples(st.integers(1, 4), st.integers(1, 8), st.none() | st.integers(0, 4)), min_size=1, max_size=3
    ),
    least=st.none() | st.integers(1, 12),
)
@example(nodes=[6, 3], tasks=[(1, 2, None), (1, 3, 0), (2, 2, None)], least=None)
def test_what_starts_fits_beside_each_other_and_has_each_minimum(
    nodes: list[int], tasks: list[tuple[int, int, int | None]], least: int | None
) -> None:
    spec = manifests(volcano(*tasks, least=least))
    need, room = requirements_of(pods_of_spec(spec), spec), ClusterCapacity(free("worker-2", *nodes))
    found = start(room, need)
    if found is None:
        return
    fits = {own.likeness: number for own, number in found.fits}
    assert all(fits.get(part.shape.likeness, 0) >= part.start for part in need.parts)
    assert sum(fits.values()) >= min(least or 0, need.pods)
    for own, number in found.fits:
        room.take(own, number)
    gone = sum(own.requests.times(number).amounts[GPU] for own, number in found.fits)
    assert room.free(shape(1)).amounts[GPU] == sum(nodes) * 10**9 - gone
