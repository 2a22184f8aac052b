"""Two branches on recorded passes: the same files change nothing, and a policy that may do less serves less."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import pytest

from reconciler.adapters.helm.rendering import Helm
from reconciler.core.observe.track_record import PlacementStart
from reconciler.core.recording.pass_record import PassRecord
from reconciler.daemon.branch import BranchReader
from reconciler.errors import InvalidInput
from reconciler.lab.branch_comparison import BranchComparison, BranchFiles, compare_branches
from reconciler.lab.recorded_run import RecordedRun, RunFigures, time_to_ready
from reconciler.model.action import Action
from reconciler.model.capacity import (
    ClusterObservation,
    FailedObject,
    GpuPod,
    NonGpuPods,
    PendingPods,
    SucceededPods,
)
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.text.timestamps import format_time
from tests.builders.passes import SOURCE_FILES, START
from tests.builders.recorded_passes import recorded
from tests.fakes.memory_repository import MemoryRepository

Run = tuple[MemoryRepository, list[PassRecord]]
LESS = SOURCE_FILES["policies.yaml"].replace(
    "[{name: worker-2}, {name: worker-3}]", "[{name: worker-2, maxReplicas: 1}]"
)


@pytest.fixture(scope="module")
def run() -> Run:
    return recorded()


def compared(run: Run, **changes: str) -> BranchComparison:
    repository, records = run
    base = {path: text.encode() for path, text in SOURCE_FILES.items()}
    head = base | {path.replace("_", "."): text.encode() for path, text in changes.items()}
    return compare_branches(
        BranchFiles(name="main", files=base),
        BranchFiles(name="head", files=head),
        records,
        repository=repository,
        output=BranchReader(repository),
        charts=Helm(),
    )


def test_same_files_change_nothing(run: Run) -> None:
    same = compared(run)
    assert same.before == same.after
    assert same.before.gpu_seconds > 0
    assert not same.only(same.after, same.before)
    assert "| commits |" in same.markdown()
    assert "Commits of" not in same.markdown()


def test_run_makes_the_bursts_that_were_recorded(run: Run) -> None:
    _, records = run
    first = next(record for record in records if any(change.action is Action.PLACE for change in record.plan.changes))
    bursts = [subject for at, subject in compared(run).before.commits if at == first.at]
    assert any("burst(llm/vllm): 3 replicas" in subject for subject in bursts)


def test_policy_that_may_place_less_serves_less_and_its_commits_are_listed(run: Run) -> None:
    less = compared(run, policies_yaml=LESS)
    assert less.after.unmet > less.before.unmet
    assert less.after.gpu_seconds < less.before.gpu_seconds
    assert less.after.missing_seconds == less.before.missing_seconds
    assert "Commits of `head` alone:" in less.markdown()
    assert any("1 replica on worker-2" in subject for _, subject in less.only(less.after, less.before))


def test_renewals_are_counted_and_not_listed() -> None:
    burst = (START, "burst(llm/vllm): 2 replicas on worker-2 for 10m")
    renewals = [(START, f"extend(llm/vllm): 2 replicas on worker-2 until {hour}:00") for hour in (12, 13)]
    comparison = BranchComparison(
        base="main", head="head", passes=1, begin=START, end=START, ready_after=timedelta(), measured=True,
        before=RunFigures(), after=RunFigures(commits=[burst, *renewals]),
    )  # fmt: skip # one comparison
    _, listed = comparison.markdown().split("Commits of `head` alone:\n\n")
    assert listed.splitlines()[:2] == [f"- {format_time(START)} {burst[1]}", "- and 2 renewals"]


def test_nothing_is_served_before_an_engine_and_a_start(run: Run) -> None:
    comparison = compared(run)
    burst = next(at for at, subject in comparison.before.commits if subject.startswith("burst("))
    assert comparison.ready_after >= timedelta(seconds=20)
    assert comparison.before.unserved_seconds >= 3 * min(
        comparison.ready_after.total_seconds(), (comparison.end - burst).total_seconds()
    )


def test_start_is_measured_where_the_next_pass_sees_a_ready_pod_already(run: Run) -> None:
    _, records = run
    unmeasured = [replace(record, starts={}) for record in records]
    assert time_to_ready(unmeasured) is None
    number, placement = next(
        (number, change.placement)
        for number, record in enumerate(unmeasured)
        for change in record.plan.changes
        if change.action is Action.PLACE
    )
    following = next(record for record in unmeasured[number:] if record.at > unmeasured[number].at)
    seen = replace(following.observed.clusters[placement.cluster], ready={placement.name: 1})
    observed = replace(following.observed, clusters={**following.observed.clusters, placement.cluster: seen})
    unmeasured[unmeasured.index(following)] = replace(following, observed=observed)
    assert time_to_ready(unmeasured) == following.at - placement.created_at


def test_start_that_the_daemon_has_measured_counts_once(run: Run) -> None:
    _, records = run
    start = PlacementStart(
        workload=WorkloadId(WorkspaceName("llm"), TemplateName("vllm")), took=timedelta(seconds=90), ready=True
    )
    late = replace(start, took=timedelta(seconds=300))
    starts = {ClusterName("worker-2"): (start, late)}
    assert time_to_ready([replace(record, starts=starts) for record in records]) == timedelta(seconds=195)


def test_files_with_errors_are_refused(run: Run) -> None:
    with pytest.raises(InvalidInput, match="the files of head have errors"):
        compared(run, policies_yaml=LESS.replace("30s", "soon"))


def test_recording_of_another_repository_is_refused(run: Run) -> None:
    _, records = run
    later = [record for record in records if record.output is not None]
    other = MemoryRepository(SOURCE_FILES)
    with pytest.raises(InvalidInput, match="try another --repo"):
        compared((other, later))


RECORDED = PlacementName("vllm-recorded")
OF_PLACEMENTS: dict[str, object] = {
    "bound": 1,
    "ready": 1,
    "non_gpu_pods": NonGpuPods(bound=1),
    "pending_pods": PendingPods(replicas=1, shape=None),
    "waiting_reasons": "1 of 1 pods wait",
    "unadmitted": "kueue queue-a evicted it (Preempted)",
    "evicted": "kueue queue-a evicted it (Preempted)",
    "refused": "refused: quota exceeded",
    "reserved": 1,
    "gpu_pods": (GpuPod(namespace="demo", name="a", gpus=1),),
    "unused": START,
    "succeeded": SucceededPods(pods=1, at=START),
    "failed": FailedObject(message="TrainJob llm has failed", since=START),
}
"""What an observation says of placements, by field."""


def test_what_became_of_recorded_placements_is_no_matter_of_the_runs_own(run: Run) -> None:
    types = {each.name: str(each.type) for each in fields(ClusterObservation)}
    assert OF_PLACEMENTS.keys() == {name for name, type_ in types.items() if type_.startswith("Mapping[PlacementName")}
    _, (first, *_) = run
    said = {name: {RECORDED: value} for name, value in OF_PLACEMENTS.items()}
    clusters = {name: replace(seen, **said) for name, seen in first.observed.clusters.items()}
    observed = replace(first.observed, clusters=clusters)
    files = {path: text.encode() for path, text in SOURCE_FILES.items()}
    played = RecordedRun("head", files, Helm(), first, timedelta())
    played.play(replace(first, observed=observed), Ledger(commit=None), first.at + timedelta(seconds=1))
    for seen in played.observe().clusters.values():
        assert [name for name in OF_PLACEMENTS if RECORDED in getattr(seen, name)] == []
