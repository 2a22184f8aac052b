"""Whoever followed the branch all along and whoever starts now decide on the same ledger."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.ledger.placement_record import ledger_path, write_restraints
from reconciler.daemon.branch import BranchReader
from reconciler.model.ids import BlobId, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.tree import Commit
from tests.builders.examples import examples
from tests.builders.placement_records import START, files, placement, restraint
from tests.fakes.memory_repository import OURS, MemoryRepository

WORKLOADS = [WorkloadId(WorkspaceName("llm"), TemplateName(name)) for name in ("vllm", "tgi")]
VERSIONS = [
    files(placement(f"{workload.name}-1", cluster, workload=workload, replicas=replicas), app=f"replicas: {replicas}\n")
    for workload in WORKLOADS
    for cluster in ("worker-2", "worker-3")
    for replicas in (1, 2)
]
LEDGER_FILES = {ledger_path(workload): write_restraints(workload, (restraint(),)) for workload in WORKLOADS}
PATHS = sorted({path for _, written in VERSIONS for path in written} | LEDGER_FILES.keys() | {"notes.txt"})
DIRECTORIES = sorted({of.path for of, _ in VERSIONS})
GARBAGE = st.sampled_from([b"", b"a: [\n", b"- no\n", b"kind: Other\n"])

ours = st.tuples(
    st.just("ours"),
    st.lists(st.sampled_from([written for _, written in VERSIONS]), max_size=2),
    st.lists(
        st.sampled_from([*DIRECTORIES, *LEDGER_FILES, *(f"{one}/placement.yaml" for one in DIRECTORIES)]), max_size=2
    ),
)
edits = st.tuples(
    st.just("person"),
    st.lists(
        st.sampled_from([written for _, written in VERSIONS])
        | st.dictionaries(st.sampled_from(PATHS), GARBAGE, max_size=2)
        | st.sampled_from([{path: data} for path, data in LEDGER_FILES.items()]),
        max_size=2,
    ),
    st.lists(st.sampled_from(DIRECTORIES + PATHS), max_size=2),
)
jumps = st.tuples(st.just("jump"), st.integers(0, 9), st.none())


def committed(
    repository: MemoryRepository, step: tuple, tips: list[CommitId], told: Iterable[BranchReader] = ()
) -> None:
    """Move the branch: by the daemon, whose readers are `told`, by a person, or back to where it once was."""
    kind, what, removed = step
    head = repository.heads["output"]
    if kind == "jump":
        repository.heads["output"] = tips[what % len(tips)] if tips else head
        repository.give_up()
        return
    writes = {path: data for written in what for path, data in written.items()}
    if kind == "person":
        repository.person("output", writes, removes=removed)
    else:
        text = "burst: x\n\nOverspill-Action: Place\n"
        commit = Commit(message=text, author=OURS, at=START, removes=tuple(removed), writes=writes)
        new = repository.write(head, [commit])[0]
        repository.begin_push(new, old=head)()
        for reader in told:
            reader.wrote(head, new, [commit])


@examples(3)
@given(steps=st.lists(ours | edits | jumps, min_size=1, max_size=8), looks=st.lists(st.booleans(), max_size=8))
def test_a_ledger_depends_on_the_tip_alone(steps: list[tuple], looks: list[bool]):
    repository = MemoryRepository()
    follower = BranchReader(repository)
    tips: list[CommitId] = []
    for step, look in zip(steps, [*looks, *[True] * len(steps)], strict=False):
        committed(repository, step, tips, told=[follower])
        head = repository.heads["output"]
        tips += [head] if head else []
        if not look:
            continue
        anew = BranchReader(repository)
        followed, fresh = follower.ledger(head), anew.ledger(head)
        assert followed == fresh
        assert follower.blobs == anew.blobs
        assert list(followed.placements.items()) == list(fresh.placements.items())
        assert list(followed.restraints) == list(fresh.restraints)


@examples(2)
@given(before=st.lists(ours, min_size=1, max_size=3), after=st.lists(edits, max_size=3))
def test_what_people_do_never_adds_to_what_the_daemon_meant_by_a_placement(before: list[tuple], after: list[tuple]):
    repository = MemoryRepository()
    for step in before:
        committed(repository, step, [])
    meant = BranchReader(repository).ledger(repository.heads["output"])
    for step in after:
        committed(repository, step, [])
    ledger = BranchReader(repository).ledger(repository.heads["output"])
    removed = {change.placement.path for change in ledger.drifted if change.removed}
    assert removed == {path for path in meant.placements if f"{path}/placement.yaml" not in repository.tree()}
    for path, known in meant.placements.items():
        assert path in removed or ledger.placements[path] == known


@given(steps=st.lists(ours | edits, min_size=1, max_size=6))
def test_asking_for_the_same_tip_again_reads_nothing(steps: list[tuple]):
    repository = MemoryRepository()
    follower = BranchReader(repository)
    for step in steps:
        committed(repository, step, [])
        head = repository.heads["output"]
        follower.ledger(head)
        read: list[BlobId] = repository.reads.copy()
        follower.ledger(head)
        assert repository.reads == read


def test_what_the_daemon_wrote_on_top_of_what_it_knows_is_not_read():
    repository = MemoryRepository()
    follower = BranchReader(repository)
    follower.ledger(None)
    for written in (VERSIONS[0][1], LEDGER_FILES):
        committed(repository, ("ours", [written], []), [], told=[follower])
        follower.ledger(repository.heads["output"])
    assert repository.reads == []
    assert follower.ledger(repository.heads["output"]) == BranchReader(repository).ledger(repository.heads["output"])
