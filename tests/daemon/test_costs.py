"""What placements cost is read from the two branches: sizes, ends, edits by hand, and prices that change."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.cost.meter import CostMeter
from reconciler.core.cost.report import CostGroup, CostReport, report
from reconciler.daemon.cost.costs import CostReader
from reconciler.ports import Repository
from tests.builders.passes import SOURCE_FILES, START, Passes, seconds
from tests.builders.remote import Remote
from tests.fakes.memory_repository import OURS, MemoryRepository

HOURLY = {
    **SOURCE_FILES,
    "policies.yaml": SOURCE_FILES["policies.yaml"].replace("scaleDown: {window: 1m}", "scaleDown: {window: 1h}"),
    "template.yaml": SOURCE_FILES["template.yaml"].replace("burstDuration: 10m", "burstDuration: 2h"),
}


def clusters(price: float | None) -> dict[str, str]:
    spec = "{}" if price is None else f"{{pricePerGPUHour: {price}}}"
    text = "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker-%d}\nspec: %s\n"
    return {"clusters.yaml": "---\n".join(text % (number, spec) for number in (1, 2, 3))}


def read(repository: Repository, until: float, since: float = 0, reader: CostReader | None = None) -> CostReport:
    reader, now = reader or CostReader(repository, OURS), START + seconds(until)
    return report(reader.meter(repository.tips(), START + seconds(since), now), now, [CostGroup.CLUSTER])


def figures(answer: CostReport) -> dict[str, tuple[float, float]]:
    return {row.group["cluster"]: (row.gpu_hours, row.dollars) for row in answer.rows}


@pytest.fixture
def memory() -> MemoryRepository:
    return MemoryRepository({**HOURLY, **clusters(2.0)})


def test_placements_count_from_their_commit_to_their_end(memory: MemoryRepository) -> None:
    passes = Passes(memory)
    passes.missing = 6
    passes.run_once()
    assert figures(read(memory, 3600)) == {"worker-2": (4, 8), "worker-3": (2, 4)}
    passes.advance(7200)
    passes.missing = 0
    passes.run_once()
    assert figures(read(memory, 10000)) == {"worker-2": (8, 16), "worker-3": (4, 8)}
    assert read(memory, 10000).total.gpus_now == 0


def test_what_stood_before_the_beginning_counts_from_there(memory: MemoryRepository) -> None:
    passes = Passes(memory)
    passes.missing = 2
    passes.run_once()
    passes.advance(1800)
    passes.missing = 4
    passes.run_once()
    assert figures(read(memory, 3600, since=900)) == {"worker-2": (2 * 0.25 + 4 * 0.5, 5.0)}


def test_what_comes_after_the_end_does_not_count(memory: MemoryRepository) -> None:
    passes = Passes(memory)
    passes.missing = 2
    passes.run_once()
    passes.advance(1800)
    passes.missing = 4
    passes.run_once()
    assert figures(read(memory, 900)) == {"worker-2": (0.5, 1.0)}


def test_a_deletion_and_an_edit_by_hand_count(memory: MemoryRepository) -> None:
    passes = Passes(memory)
    passes.missing = 4
    passes.run_once()
    (path,) = (path for path in memory.tree() if path.endswith("/placement.yaml"))
    edited = memory.tree()[path].replace(b'replicas: "4"', b'replicas: "2"')
    memory.person("output", {path: edited}, at=START + seconds(1800))
    memory.person("output", removes=[path.rpartition("/")[0]], at=START + seconds(3600))
    assert figures(read(memory, 7200)) == {"worker-2": (3, 6)}


def test_a_new_price_holds_from_the_moment_at_which_it_was_committed(memory: MemoryRepository) -> None:
    passes = Passes(memory)
    passes.missing = 4
    passes.run_once()
    memory.person("source", clusters(4.0), at=START + seconds(1800))
    # Before anything was decided on it, and after.
    assert figures(read(memory, 3600)) == {"worker-2": (4, 12)}
    passes.advance(3600)
    passes.missing = 6
    passes.run_once()
    assert figures(read(memory, 3600)) == {"worker-2": (4, 12), "worker-3": (0, 0)}


@pytest.mark.parametrize("at", [-90000, 90000])
def test_a_price_with_a_wrong_time_holds_between_the_decisions_without_and_with_it(
    memory: MemoryRepository, at: float
) -> None:
    passes = Passes(memory)
    passes.missing = 4
    passes.run_once()
    memory.heads["source"] = None
    memory.person("source", {**HOURLY, **clusters(4.0)}, at=START + seconds(at))
    passes.advance(3600)
    passes.missing = 6
    passes.run_once()
    # The branch was begun anew: what was decided on before has no price any more.
    answer = read(memory, 7200)
    assert figures(answer)["worker-3"] == (2, 8)
    assert answer.unpriced == ({} if at < 0 else {"worker-2": 4})


def test_a_broken_cluster_file_keeps_the_prices_before(memory: MemoryRepository) -> None:
    passes = Passes(memory)
    passes.missing = 4
    passes.run_once()
    memory.person("source", {"clusters.yaml": "kind: Cluster\napiVersion: overspill.dev/v1alpha1\nspec: ["}, at=START)
    assert figures(read(memory, 3600)) == {"worker-2": (4, 8)}


def test_clusters_without_a_price_are_told(memory: MemoryRepository) -> None:
    memory.person("source", clusters(None))
    passes = Passes(memory)
    passes.missing = 4
    passes.run_once()
    answer = read(memory, 3600)
    assert (answer.total.dollars, answer.unpriced) == (0, {"worker-2": 4})


def test_a_reader_that_follows_knows_what_one_that_begins_knows(memory: MemoryRepository) -> None:
    passes, reader = Passes(memory), CostReader(memory, OURS)
    for number, missing in enumerate((2, 6, 0, 3, 8, 1)):
        passes.missing = missing
        passes.run_once()
        if number == 3:
            memory.person("source", clusters(3.0), at=passes.moment)
        if number == 4:
            gone = next(path for path in memory.tree() if path.endswith("/placement.yaml"))
            memory.person("output", removes=[gone], at=passes.moment + seconds(100))
        until = (passes.moment - START).total_seconds() + 60
        assert read(memory, until, reader=reader) == read(memory, until)
        passes.advance(1700)


def test_a_price_from_the_future_is_the_same_to_a_reader_that_follows(memory: MemoryRepository) -> None:
    passes, reader = Passes(memory), CostReader(memory, OURS)
    passes.missing = 4
    passes.run_once()
    memory.person("source", clusters(4.0), at=START + seconds(7200))
    for until in (1800, 3600, 7200, 10800):
        assert figures(read(memory, until, reader=reader)) == figures(read(memory, until))
    assert figures(read(memory, 10800, reader=reader)) == {"worker-2": (12, 4 * (2 + 2 + 4))}


def test_an_edit_by_hand_with_a_time_in_the_future_costs_nothing_before(memory: MemoryRepository) -> None:
    passes, reader = Passes(memory), CostReader(memory, OURS)
    passes.missing = 4
    passes.run_once()
    (path,) = (path for path in memory.tree() if path.endswith("/placement.yaml"))
    memory.person("output", removes=[path], at=START + timedelta(days=400))
    for answer in (read(memory, 3600, reader=reader), read(memory, 3600)):
        assert figures(answer) == {"worker-2": (4, 8)}
    passes.advance(3600)
    passes.run_once()
    assert read(memory, 7200, reader=reader) == read(memory, 7200)
    assert read(memory, 7200).total.gpu_hours == 8


def test_commit_of_ours_that_has_inherited_a_far_date_stops_no_count(memory: MemoryRepository) -> None:
    """Earlier versions followed any date; the next one of ours says when it was made at the latest."""
    passes = Passes(memory)
    for missing in (4, 6, 8):
        passes.missing = missing
        passes.run_once()
        if missing == 6:
            second = memory.heads["output"]
        passes.advance(3600)
    assert second is not None
    stored = memory.commits[second]
    answers = []
    for at in (START + timedelta(days=400), START + seconds(7200)):
        memory.commits[second] = replace(stored, log=replace(stored.log, at=at))
        answers.append(figures(read(memory, 10800)))
    assert answers[0] == answers[1]
    assert sum(hours for hours, _ in answers[0].values()) == 16


def test_a_reader_that_follows_reads_what_is_new_alone(memory: MemoryRepository) -> None:
    passes, reader = Passes(memory), CostReader(memory, OURS)
    passes.missing = 4
    passes.run_once()
    first = reader.meter(memory.tips(), START, START)
    reads = len(memory.reads)
    assert reader.meter(memory.tips(), START, START + timedelta(hours=1)) is first
    assert len(memory.reads) == reads
    passes.advance(60)
    passes.missing = 6
    passes.run_once()
    memory.reads.clear()
    assert isinstance(reader.meter(memory.tips(), START, passes.moment), CostMeter)
    assert len(memory.reads) == 1


def test_a_branch_that_was_set_back_is_read_anew(memory: MemoryRepository) -> None:
    passes, reader = Passes(memory), CostReader(memory, OURS)
    passes.missing = 2
    first = passes.run_once().commits[-1]
    passes.advance(600)
    passes.missing = 4
    passes.run_once()
    read(memory, 600, reader=reader)
    memory.heads["output"] = first
    memory.give_up()
    assert figures(read(memory, 3600, reader=reader)) == {"worker-2": (2, 4)}


def test_without_an_output_branch_nothing_has_cost_anything(memory: MemoryRepository) -> None:
    assert read(memory, 3600).rows == ()


def test_git_tells_the_same_to_a_clone_of_the_last_commits(
    remote: Remote, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def opened() -> GitRepository:
        return GitRepository(remote.url, cache=tmp_path_factory.mktemp("cache"), committer=OURS)

    remote.commit("main", {**HOURLY, **clusters(2.0)}, at=START - timedelta(days=40))
    with opened() as repository:
        passes = Passes(repository)
        for missing in (2, 4):
            passes.missing = missing
            passes.run_once()
            passes.advance(1800)
    remote.commit("main", clusters(4.0), at=START + seconds(2700))
    for number in range(70):
        remote.commit("main", {"note": str(number)}, at=START + seconds(2700 + number))
    with opened() as repository:
        repository.fetch()
        assert figures(read(repository, 3600, since=900)) == {"worker-2": (2.5, 2 * 0.5 + 2 + 4)}


def test_prices_by_the_hour_and_for_spot_nodes_are_read_from_the_files(memory: MemoryRepository) -> None:
    prices = "prices: [{start: '30 11 * * *', duration: 1h, timeZone: Europe/Berlin, pricePerGPUHour: 8}]"
    spot = "spot: {matchLabels: {capacity: spot}, pricePerGPUHour: 1}"
    text = clusters(2.0)["clusters.yaml"].replace("2.0}", f"2.0, {prices}, {spot}}}")
    memory.person("source", {"clusters.yaml": text})
    passes = Passes(memory)
    passes.missing = 2
    passes.run_once()
    assert figures(read(memory, 3600)) == {"worker-2": (2, 2 * 0.5 * 2 + 2 * 0.5 * 8)}
