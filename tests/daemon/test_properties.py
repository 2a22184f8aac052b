"""Whatever demand, capacity, time and people do: what was burst comes back, on time, and never more than was needed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.engines import engine
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

FOREIGN = {
    "clusters/worker-2/NOTES.md": "somebody's",
    "clusters/worker-9/other/app.yaml": "kind: Other\n",
    "README": "x",
}

STEP = st.fixed_dictionaries(
    {
        "seconds": st.sampled_from([1, 10, 31, 61, 200, 601, 5000]),
        "missing": st.integers(0, 8),
        "waited": st.sampled_from([0, 10, 31, 300]),
        "worker-2": st.integers(0, 6),
        "worker-3": st.integers(0, 6),
        "blind": st.sampled_from([frozenset(), frozenset(), frozenset({"worker-1"}), frozenset({"worker-2"})]),
        "person": st.sampled_from(["nothing", "nothing", "nothing", "delete", "edit", "add"]),
        "restart": st.booleans(),
    }
)

IN_ORDER = "clusters: [{name: worker-2}, {name: worker-3}]"
SHARED = st.sampled_from(
    [
        IN_ORDER,
        "clusters: [{name: worker-2, minReplicas: 1}, {name: worker-3, minReplicas: 2}]",
        "clusters: [{name: worker-2}, {name: worker-3, weight: 3}]\n  distribution: {strategy: Weighted}",
        f"{IN_ORDER}\n  distribution: {{strategy: Balanced, minClusters: 2}}",
        f"{IN_ORDER}\n  distribution: {{strategy: Aggregated, maxClusters: 1}}",
    ]
)
"""Ways in which a policy has its replicas shared out."""


def act(passes: Passes, person: str) -> None:
    """Do by hand what people do on the output branch."""
    placements = passes.placements()
    if person == "add":
        passes.repository.person("output", {f"clusters/worker-2/note-{passes.moment:%H%M%S}": "x"}, at=passes.moment)
    elif placements and person == "delete":
        passes.repository.person("output", removes=(placements[0].path,), at=passes.moment)
    elif placements and person == "edit":
        last = placements[-1]
        path = f"clusters/{last.cluster}/{engine(last.engine).marker_path(last)}"
        passes.repository.person("output", {path: "kind: Broken\n"}, at=passes.moment)


@pytest.mark.parametrize("applied_by", ["manifests", "flux"])
@given(st.lists(STEP, min_size=1, max_size=12), SHARED)
def test_everything_lent_comes_back_and_never_more_than_was_needed(
    applied_by: str, steps: list[dict], shared: str
) -> None:
    fleet = SOURCE_FILES["fleet.yaml"].replace("manifests", applied_by)
    policy = SOURCE_FILES["policies.yaml"].replace(IN_ORDER, shared)
    passes = Passes(MemoryRepository(SOURCE_FILES | {"fleet.yaml": fleet, "policies.yaml": policy}))
    passes.repository.person("output", FOREIGN, at=passes.moment)
    passes.run()  # a cluster with Flux begins with a file of its own
    notes: dict[str, bytes] = passes.repository.tree(under="clusters")
    for step in steps:
        passes.advance(step["seconds"])
        passes.missing, passes.blind = step["missing"], step["blind"]
        passes.free = {name: step[name] for name in ("worker-2", "worker-3")}
        passes.since = passes.moment - (passes.moment - passes.moment.replace(microsecond=0))
        passes.since = passes.moment - type(passes.moment - passes.moment)(seconds=step["waited"])
        if step["restart"]:
            passes.restart()
        act(passes, step["person"])
        notes = {path: data for path, data in passes.repository.tree(under="clusters").items() if "vllm-" not in path}
        before = {one.name: one.replicas for one in passes.placements()}
        bound = dict(passes.bound)
        passes.run()
        after = passes.placements()
        placed = sum(one.replicas for one in after)
        assert placed <= max(passes.missing, sum(before.values()))
        for name, gpus in passes.free.items():
            grown = sum(max(0, one.replicas - before.get(one.name, 0)) for one in after if one.cluster == name)
            held = sum(
                max(before.get(one.name, 0), bound.get(one.name, 0))
                for one in after
                if one.cluster == name and one.name in before
            )
            assert not grown or grown + held <= max(gpus, held)
        assert all(one.expires_at > passes.moment for one in after)
    passes.missing, passes.blind = 0, frozenset()
    for _ in range(4):
        passes.advance(700)
        passes.run()
    assert passes.repository.tree(under="clusters") == notes
