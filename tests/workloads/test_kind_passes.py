"""From a file with groups of pods, or with a kind that is declared, to the commits on the output branch."""

from __future__ import annotations

from datetime import timedelta

import pytest
import yaml

from reconciler.adapters.git.repository import GitRepository
from reconciler.core.explain.request import explain_request
from reconciler.model.plan import Reason
from reconciler.model.workload import Json
from tests.builders.passes import QUIET, Passes
from tests.builders.remote import Remote
from tests.builders.workload_kinds import GAME_SERVERS, SAMPLES, asked, game_servers, lws, template

KIND = GAME_SERVERS + "  podTemplates: [{path: spec.roles.*.template, counts: [{path: spec.size}]}]\n"
SERVERS = game_servers(2, roles=[{"template": template(4)}])
LABEL = "overspill.dev/placement"


def asks(made: Json) -> str:
    """Ask for an object on worker-2, else on worker-3."""
    return asked(made, "worker-2", "worker-3", numPlacements=1)


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Passes:
    """Watch a fleet in which nothing bursts, with one node of four GPUs on worker-2 and one of eight on worker-3."""
    remote.commit("main", QUIET)
    return Passes(repository)


def written(remote: Remote, passes: Passes) -> Json:
    """Read the object of the one placement as its engine gets it."""
    (placement,) = passes.placements()
    (data,) = (data for path, data in remote.files("placements", placement.path).items() if "/01-" in path)
    return yaml.safe_load(data)


def test_a_set_of_groups_goes_whole_to_the_cluster_that_holds_all_of_it(remote: Remote, passes: Passes) -> None:
    remote.commit("main", {"asked.yaml": asks(lws(2, 3, leader=2, worker=1))})
    passes.run()
    (placement,) = passes.placements()
    assert (placement.cluster, placement.replicas) == ("worker-3", 2)
    group = written(remote, passes)["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        assert group[part]["metadata"]["labels"][LABEL] == placement.name


def test_a_set_of_which_no_cluster_holds_all_is_placed_nowhere_until_one_does(remote: Remote, passes: Passes) -> None:
    passes.free = {"worker-2": 4, "worker-3": 7}
    remote.commit("main", {"asked.yaml": asks(lws(2, 3, leader=2, worker=1))})
    outcome = passes.run()
    assert passes.placements() == []
    (held,) = outcome.plan.suppressed
    assert "beside the rest of it" in held.message
    passes.free["worker-2"] = 8
    passes.run()
    assert [placement.cluster for placement in passes.placements()] == ["worker-2"]


def test_a_set_of_groups_leaves_nothing_behind_when_its_time_is_over(remote: Remote, passes: Passes) -> None:
    remote.commit("main", {"asked.yaml": asks(SAMPLES["RayCluster"][0] | {"spec": _small_cluster()})})
    passes.run()
    assert len(passes.placements()) == 1
    passes.advance(15 * 60 + 1)
    passes.run()
    assert not remote.files("placements", "clusters")


def _small_cluster() -> Json:
    return {
        "headGroupSpec": {"template": template(1)},
        "workerGroupSpecs": [{"groupName": "gpu", "replicas": 2, "template": template(2)}],
    }


def test_a_kind_that_is_declared_is_placed_by_what_its_pods_need(remote: Remote, passes: Passes) -> None:
    remote.commit("main", {"asked.yaml": asks(SERVERS), "kinds.yaml": KIND})
    passes.run()
    (placement,) = passes.placements()
    assert (placement.cluster, placement.replicas) == ("worker-3", 2)
    assert written(remote, passes)["spec"]["roles"][0]["template"]["metadata"]["labels"][LABEL] == placement.name


def test_a_kind_that_nobody_declares_any_more_is_unknown_room(remote: Remote, passes: Passes) -> None:
    passes.free = {"worker-2": 0, "worker-3": 0}
    remote.commit("main", {"asked.yaml": asks(SERVERS), "kinds.yaml": KIND})
    assert [held.reason for held in passes.run().plan.suppressed] == [Reason.NOTHING_FITS]
    remote.commit("main", {"kinds.yaml": None})
    assert [held.reason for held in passes.run().plan.suppressed] == [Reason.NO_SHAPE]
    assert passes.placements() == []


def test_a_daemon_that_goes_on_looking_says_since_when_a_set_is_on_a_lost_cluster(
    remote: Remote, passes: Passes
) -> None:
    remote.commit("main", {"asked.yaml": asks(lws(2, 3, leader=2, worker=1))})
    passes.run()
    passes.advance(60)
    passes.blind = frozenset({"worker-3"})

    def request_note() -> str:
        decision = passes.look()
        (record,) = decision.inputs.ledger.requests.values()
        ((note,),) = explain_request(record, decision.inputs, decision.plan).notes.values()
        return note

    assert "counted from when the daemon first missed it" in request_note()
    passes.moment += timedelta(minutes=1)
    assert request_note().startswith(
        "worker-3 has been lost since 2026-11-20T10:01:00Z: all of it moves at 2026-11-20T10:16:00Z"
    )
    passes.restart()
    assert "counted from when the daemon first missed it" in request_note()
