"""A restart begins with what the last run has read, and ends with the same ledger as without it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from reconciler.adapters.git import GitRepository
from reconciler.adapters.ledger_file import LedgerFile
from reconciler.daemon.branch import BranchReader
from reconciler.model.ids import CommitId
from tests.builders.examples import examples
from tests.builders.placement_records import PLACEMENT, files, placement
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository
from tests.ledger.test_followed import committed, edits, jumps, ours


class KeptLedger:
    """A cache in memory."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data

    def read(self) -> bytes | None:
        return self.data

    def write(self, data: bytes) -> None:
        self.data = data


steps = st.lists(ours | edits | jumps, min_size=1, max_size=5)


@examples(3)
@given(before=steps, after=steps)
def test_ledger_is_the_same_with_a_cache_and_without(before: list[tuple], after: list[tuple]) -> None:
    repository = MemoryRepository()
    cache = KeptLedger()
    tips: list[CommitId] = []
    last_run = BranchReader(repository, cache)
    for step in before:
        committed(repository, step, tips)
        head = repository.heads["output"]
        tips += [head] if head else []
        last_run.ledger(head)
        last_run.keep(least=1)
    restarted = BranchReader(repository, cache)
    for step in [("jump", len(tips) - 1, None), *after]:
        committed(repository, step, tips, told=[restarted])
        head = repository.heads["output"]
        anew = BranchReader(repository)
        ledger, fresh = restarted.ledger(head), anew.ledger(head)
        assert ledger == fresh
        assert restarted.blobs == anew.blobs
        assert list(ledger.placements.items()) == list(fresh.placements.items())
        assert list(ledger.restraints) == list(fresh.restraints)


def branch(*names: str) -> MemoryRepository:
    repository = MemoryRepository()
    written = {path: data for name in names for path, data in files(placement(name), app="x")[1].items()}
    repository.person("output", written)
    return repository


def test_restart_reads_what_changed_since_and_what_was_broken_alone() -> None:
    repository = branch("a-1", "a-2")
    repository.person("output", {"clusters/worker-2/a-3/placement.yaml": b"a: [\n"})
    cache = KeptLedger()
    first = BranchReader(repository, cache)
    first.ledger(repository.heads["output"])
    first.keep(least=1)
    repository.person("output", files(placement("a-4"), app="x")[1])
    repository.reads.clear()
    again = BranchReader(repository, cache)
    ledger = again.ledger(repository.heads["output"])
    assert len(ledger.placements) == 3
    assert {problem.path for problem in ledger.problems} == {"clusters/worker-2/a-3/placement.yaml"}
    changed = {again.blobs[f"clusters/worker-2/{name}/placement.yaml"] for name in ("a-3", "a-4")}
    assert set(repository.reads) == changed


def test_few_changes_are_not_worth_keeping() -> None:
    repository, cache = branch("a-1"), KeptLedger()
    reader = BranchReader(repository, cache)
    reader.keep(least=1)
    assert cache.data is None
    reader.ledger(repository.heads["output"])
    reader.keep()
    assert cache.data is None
    reader.keep(least=1)
    assert cache.data is not None
    cache.data = None
    reader.keep(least=1)
    assert cache.data is None


def test_contents_that_nobody_wrote_are_a_bug_and_cost_nothing_else() -> None:
    repository = branch("a-1")
    head = repository.heads["output"]
    with capture_logs() as logged:
        ledger = BranchReader(repository, KeptLedger(b'{"blobs": []}')).ledger(head)
    assert ledger == BranchReader(repository).ledger(head)
    assert [entry["event"] for entry in logged] == ["bug"]


def test_second_daemon_on_a_cache_reads_what_the_first_has_kept_and_writes_nothing(
    remote: Remote, repository: GitRepository
) -> None:
    remote.commit("main", {"fleet.yaml": "kind: Fleet\n"})
    remote.commit("placements", files(PLACEMENT, app="x")[1])
    tip = repository.fetch().output
    path = repository.directory / "ledger"
    first = BranchReader(repository, LedgerFile(path, writable=repository.owns_directory))
    ledger = first.ledger(tip)
    first.keep(least=1)
    kept = path.read_bytes()
    with GitRepository(remote.url, cache=repository.directory.parent) as beside:
        assert (beside.directory, beside.owns_directory) == (repository.directory, False)
        file = LedgerFile(beside.directory / "ledger", writable=beside.owns_directory)
        assert file.read() is not None
        second = BranchReader(beside, file)
        assert second.ledger(beside.fetch().output) == ledger
        third = remote.commit("placements", files(placement("vllm-3"), app="x")[1])
        assert beside.fetch().output == third
        assert len(second.ledger(third).placements) == 2
        second.keep(least=1)
    assert path.read_bytes() == kept
