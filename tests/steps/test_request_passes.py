"""A request from its file to its end, pass by pass on a real bare repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.ledger.request_record import read_request, write_request
from reconciler.model.capacity import Observed
from reconciler.model.request import Asker, Provisioning, RequestRecord
from reconciler.model.rollout import EngineReport, EngineState
from tests.builders.passes import QUIET, START, Passes, seconds
from tests.builders.remote import Remote
from tests.builders.requests import gpus, record, request

RECORD = "ledger/llm/requests/a8/bookinfo.yaml"
ASKED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: bookinfo, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  clusterNames: [worker-2]
  burstDuration: 15m
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: bookinfo, namespace: demo}
        spec:
          replicas: "{{ replicas }}"
          selector: {matchLabels: {app: bookinfo, of: "{{ template.name }}"}}
          template:
            metadata: {labels: {app: bookinfo, of: "{{ template.name }}"}}
            spec:
              containers:
                - name: server
                  image: registry.example.com/bookinfo:1.0
                  resources: {limits: {nvidia.com/gpu: "1"}}
  steps: [{name: server, type: manifest}]
"""


class Reported(Passes):
    """Passes in which the engines say which placements they have given up."""

    reports: Mapping[str, EngineReport] = MappingProxyType({})

    def observe(self) -> Observed:
        return replace(super().observe(), reports=self.reports)

    def give_up(self) -> None:
        """Let engines give up all that stands, and run what follows."""
        self.reports = {
            placement.path: EngineReport(
                cluster=placement.cluster,
                placement=placement.name,
                digest=placement.digest,
                revision=self.repository.tips().output or "",
                state=EngineState.FAILED,
                message="the image cannot be pulled",
            )
            for placement in self.placements()
        }
        self.run()
        self.reports = {}


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Reported:
    """Watch a fleet in which nothing bursts, with four GPUs on worker-2 and eight on worker-3."""
    remote.commit("main", QUIET)
    return Reported(repository)


@pytest.fixture
def asked(remote: Remote, passes: Reported) -> Reported:
    """Ask for bookinfo on worker-2 by a file, and run what follows."""
    remote.commit("main", {"asked.yaml": ASKED})
    passes.run()
    return passes


def recorded(remote: Remote) -> RequestRecord | None:
    data = remote.files("placements", RECORD).get(RECORD)
    return None if data is None else read_request(data, RECORD)


def status(remote: Remote) -> Provisioning | None:
    kept = recorded(remote)
    return kept.ended.status if kept is not None and kept.ended is not None else None


def working_plan(remote: Remote) -> list[str]:
    """Name the clusters that have a placement."""
    return sorted(
        path.split("/")[1] for path in remote.files("placements", "clusters") if path.endswith("/placement.yaml")
    )


def test_a_file_is_received_and_placed_in_one_push(remote: Remote, asked: Reported) -> None:
    assert remote.subjects("placements")[:2] == [
        "request(llm/bookinfo): 1 replica on worker-2 for 15m",
        "request(llm/bookinfo): received",
    ]
    kept = recorded(remote)
    assert kept is not None
    assert (kept.asker, kept.received_at, kept.began_at) == (Asker.FILE, START, START)
    deployed = [data for path, data in remote.files("placements", "clusters").items() if "deployment" in path]
    assert b"of: bookinfo" in deployed[0]


def test_it_ends_when_its_time_is_over_and_leaves_its_record_alone(remote: Remote, asked: Reported) -> None:
    asked.advance(15 * 60)
    asked.run()
    assert remote.subjects("placements")[:2] == [
        "request(llm/bookinfo): completed",
        'Revert "request(llm/bookinfo): 1 replica on worker-2 for 15m"',
    ]
    assert not remote.files("placements", "clusters")
    assert status(remote) is Provisioning.COMPLETED


def test_neither_a_restart_nor_a_month_begins_it_again(remote: Remote, asked: Reported) -> None:
    asked.advance(15 * 60)
    asked.run()
    tip = remote.tip("placements")
    for days in (0, 1, 31, 400):
        asked.restart()
        asked.advance(days * 86400)
        asked.run()
    assert remote.tip("placements") == tip


def test_it_runs_on_through_a_restart(remote: Remote, asked: Reported) -> None:
    tip = remote.tip("placements")
    asked.restart()
    asked.advance(5 * 60)
    asked.run()
    assert remote.tip("placements") == tip


def test_its_file_may_be_written_in_other_words(remote: Remote, asked: Reported) -> None:
    tip = remote.tip("placements")
    remote.commit("main", {"asked.yaml": ASKED.replace("[worker-2]", "\n    - worker-2"), "other/note.txt": "moved"})
    asked.run()
    assert remote.tip("placements") == tip


def test_a_longer_duration_moves_its_end(remote: Remote, asked: Reported) -> None:
    remote.commit("main", {"asked.yaml": ASKED.replace("15m", "1h")})
    asked.advance(60)
    asked.run()
    assert remote.subjects("placements")[:2] == [
        "extend(llm/bookinfo): 1 replica on worker-2 until 2026-11-20T11:00:00Z",
        "request(llm/bookinfo): changed",
    ]
    asked.advance(30 * 60)
    asked.run()
    assert working_plan(remote) == ["worker-2"]


def test_a_retained_request_is_written_so_that_its_engine_keeps_it(remote: Remote, asked: Reported) -> None:
    remote.commit("main", {"asked.yaml": ASKED.replace("burstDuration", "deletionPolicy: Retain\n  burstDuration")})
    asked.run()
    (placement,) = asked.placements()
    assert placement.deletion_policy.value == "Retain"


def test_a_file_that_is_removed_takes_all_of_it_along(remote: Remote, asked: Reported) -> None:
    remote.commit("main", {"asked.yaml": None})
    asked.run()
    assert remote.subjects("placements")[:2] == [
        "request(llm/bookinfo): forgotten",
        'Revert "request(llm/bookinfo): 1 replica on worker-2 for 15m"',
    ]
    assert list(remote.files("placements")) == ["README.md"]


def test_a_file_that_comes_back_after_that_is_a_new_request(remote: Remote, asked: Reported) -> None:
    remote.commit("main", {"asked.yaml": None})
    asked.run()
    asked.advance(3600)
    remote.commit("main", {"asked.yaml": ASKED})
    asked.run()
    assert working_plan(remote) == ["worker-2"]


def test_what_is_deleted_by_hand_is_completed(remote: Remote, asked: Reported) -> None:
    remote.commit("placements", {"clusters/worker-2": None})
    asked.run()
    assert status(remote) is Provisioning.COMPLETED
    asked.advance(60)
    asked.run()
    assert working_plan(remote) == []


def test_a_reverted_beginning_is_an_end(remote: Remote, asked: Reported) -> None:
    """`git revert` of the commit that placed it takes its beginning out of the record as well."""
    before = remote.git("rev-parse", "placements~1")
    files = dict.fromkeys(remote.files("placements", "clusters"))
    remote.commit("placements", {**files, RECORD: remote.run("cat-file", "blob", f"{before}:{RECORD}")})
    asked.run()
    assert status(remote) is Provisioning.COMPLETED
    assert working_plan(remote) == []


def test_two_clusters_get_one_each_and_end_together(remote: Remote, passes: Reported) -> None:
    remote.commit("main", {"asked.yaml": ASKED.replace("[worker-2]", "[worker-2, worker-3]")})
    passes.free["worker-3"] = 0
    passes.run()
    assert working_plan(remote) == ["worker-2"]
    passes.advance(60)
    passes.free["worker-3"] = 8
    passes.run()
    assert working_plan(remote) == ["worker-2", "worker-3"]
    passes.advance(14 * 60)
    passes.run()
    assert working_plan(remote) == []
    assert remote.subjects("placements")[0] == "request(llm/bookinfo): completed"


def test_it_waits_for_room_and_takes_it(remote: Remote, passes: Reported) -> None:
    passes.free = {"worker-2": 0, "worker-3": 8}
    remote.commit("main", {"asked.yaml": ASKED})
    passes.run()
    assert remote.subjects("placements")[0] == "request(llm/bookinfo): received"
    passes.advance(3600)
    passes.free["worker-2"] = 4
    passes.run()
    kept = recorded(remote)
    assert kept is not None
    assert (kept.received_at, kept.began_at) == (START, passes.moment)


def test_one_of_the_api_is_placed_without_any_file(remote: Remote, passes: Reported) -> None:
    passes.run()
    api = record(request("worker-2", "worker-3", ask=gpus(8), placements=1), asker=Asker.API, at=START)
    remote.commit("placements", {RECORD: write_request(api)})
    passes.run()
    assert working_plan(remote) == ["worker-3"]
    remote.commit("placements", {RECORD: None})
    passes.run()
    assert working_plan(remote) == []


POLICY = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkspacePolicy
metadata: {name: llm, namespace: kubeslice-avesha}
spec: {sliceRef: {name: llm}, priorityRange: high, maxExitDurationPerGPR: 1W, requeueOnFailure: true}
"""


def test_a_policy_of_the_workspace_changes_nothing_of_what_was_asked_before(remote: Remote, asked: Reported) -> None:
    tip = remote.tip("placements")
    remote.commit("main", {"policies.yaml": POLICY})
    outcome = asked.run()
    assert outcome.decision.inputs.desired.limits, "it is in force"
    assert (remote.tip("placements"), outcome.plan.suppressed) == (tip, ())
    remote.commit("main", {"asked.yaml": ASKED.replace("15m", "1h")})
    asked.run()
    assert remote.subjects("placements")[1] == "request(llm/bookinfo): changed"
    (placement,) = asked.placements()
    assert placement.expires_at == START + seconds(3600)
    assert asked.run().plan.suppressed == ()


def test_an_edit_of_a_record_is_taken_as_it_is(remote: Remote, asked: Reported) -> None:
    kept = remote.files("placements", RECORD)[RECORD].decode()
    remote.commit("placements", {RECORD: kept.replace("priority: 101", "priority: 250")})
    asked.run()
    read = recorded(remote)
    assert read is not None
    assert read.request.terms.priority == 250
    assert working_plan(remote) == ["worker-2"]


def test_a_broken_record_holds_its_own_request_up_and_no_other(remote: Remote, asked: Reported) -> None:
    remote.commit("placements", {RECORD: "kind: Nothing\n"})
    remote.commit("main", {"other.yaml": ASKED.replace("name: bookinfo", "name: other")})
    outcome = asked.run()
    assert "ledger/llm/requests/a8/bookinfo.yaml" in {problem.path for problem in outcome.problems}
    assert remote.subjects("placements")[0] == "request(llm/other): 1 replica on worker-2 for 15m"
    assert remote.files("placements", RECORD)[RECORD] == b"kind: Nothing\n"
    asked.advance(15 * 60)
    asked.run()
    assert working_plan(remote) == [], "its end is in its placement.yaml, and needs no record"


def test_a_record_that_a_person_moved_is_neither_lost_nor_begun_again(remote: Remote, asked: Reported) -> None:
    kept, elsewhere = remote.files("placements", RECORD)[RECORD], "ledger/llm/requests/bookinfo.yaml"
    remote.commit("placements", {RECORD: None, elsewhere: kept.decode()})
    tip = remote.tip("placements")
    outcome = asked.run()
    assert f"{elsewhere}:4: metadata.name: llm/bookinfo belongs in {RECORD}" in map(str, outcome.problems)
    assert (remote.tip("placements"), working_plan(remote)) == (tip, ["worker-2"])
    remote.commit("placements", {elsewhere: None, RECORD: kept.decode()})
    assert asked.run().problems == ()
    asked.advance(15 * 60)
    asked.run()
    assert (working_plan(remote), remote.subjects("placements")[0]) == ([], "request(llm/bookinfo): completed")


def test_what_fails_tries_the_next_cluster_where_it_may_choose(remote: Remote, passes: Reported) -> None:
    chosen = ASKED.replace("[worker-2]", "[worker-2, worker-3]\n  numPlacements: 1").replace("15m", "1h")
    remote.commit("main", {"asked.yaml": chosen})
    passes.run()
    assert working_plan(remote) == ["worker-2"]
    passes.advance(60)
    passes.give_up()
    kept = recorded(remote)
    assert working_plan(remote) == ["worker-3"]
    assert kept is not None
    assert (kept.avoids, kept.attempts, kept.began_at) == (("worker-2",), 1, passes.moment)
    passes.restart()
    passes.give_up()
    assert status(remote) is Provisioning.FAILED
    assert working_plan(remote) == []
    passes.advance(86400)
    passes.run()
    assert working_plan(remote) == []


def test_what_may_not_choose_fails_for_good(remote: Remote, asked: Reported) -> None:
    asked.give_up()
    kept = recorded(remote)
    assert kept is not None
    assert kept.ended is not None
    assert kept.ended.status is Provisioning.FAILED
    assert kept.ended.message == "failed on worker-2: the image cannot be pulled"


def test_no_restraint_of_a_request_is_ever_written(remote: Remote, asked: Reported) -> None:
    asked.advance(15 * 60)
    asked.run()
    assert list(remote.files("placements", "ledger")) == [RECORD]
