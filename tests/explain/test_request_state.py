"""How a request stands on EGS's two axes: whether it has its GPUs, and how what it deploys is doing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.explain.request_state import suppressed_by_request
from reconciler.daemon.item_status import ItemStatus, request_status
from reconciler.model.capacity import Observed
from reconciler.model.placement import Phase
from reconciler.model.request import Provisioning
from reconciler.model.rollout import EngineReport, EngineState
from tests.builders.passes import QUIET, START, Passes
from tests.builders.remote import Remote
from tests.builders.requests import BOOKINFO
from tests.steps.test_request_passes import ASKED


class Told(Passes):
    """Passes in which the engine of one cluster says the same of everything it has."""

    reports: Mapping[str, EngineReport] = MappingProxyType({})

    def observe(self) -> Observed:
        return replace(super().observe(), reports=self.reports)

    def say(self, state: EngineState, message: str = "", on: str = "worker-2") -> None:
        tip = self.repository.tips().output or ""
        self.reports = {
            one.path: EngineReport(
                cluster=one.cluster, placement=one.name, digest=one.digest, revision=tip, state=state, message=message
            )
            for one in self.placements()
            if one.cluster == on
        }

    def status(self) -> ItemStatus:
        """Tell how the request stands now."""
        decision = self.look()
        held = suppressed_by_request(decision.plan).get(BOOKINFO, ())
        return request_status(decision, decision.inputs.ledger.requests[BOOKINFO], held)


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Told:
    remote.commit("main", {**QUIET, "asked.yaml": ASKED})
    return Told(repository)


def test_what_waits_for_room_is_queued_and_says_why(passes: Told) -> None:
    passes.free["worker-2"] = 0
    passes.run()
    told = passes.status()
    assert (told.provisioning, told.phase) == (Provisioning.QUEUED, Phase.PENDING)
    (condition,) = told.conditions
    assert (condition.type, condition.status, condition.reason) == ("Provisioned", "False", "NothingFits")
    assert condition.since == START
    assert condition.message in told.message
    assert (
        "worker-2: needs 1 GPU on one node; its only eligible node has none free (free or add nodes there)"
        in told.message
    )


def test_what_was_placed_is_pending_until_all_of_its_replicas_have_a_node(passes: Told) -> None:
    passes.run()
    told = passes.status()
    assert (told.provisioning, told.phase, told.updated_at) == (Provisioning.PENDING, Phase.PENDING, START)
    assert told.message == "on worker-2 until 2026-11-20T10:15:00Z"
    (condition,) = told.conditions
    assert (condition.status, condition.message) == ("Unknown", "worker-2: 1 replica, pending")


def test_what_its_engine_calls_healthy_is_running(passes: Told) -> None:
    passes.run()
    passes.say(EngineState.HEALTHY)
    passes.advance(30)
    passes.run()
    told = passes.status()
    assert (told.provisioning, told.phase) == (Provisioning.SUCCESSFUL, Phase.RUNNING)
    (condition,) = told.conditions
    assert (condition.status, condition.reason) == ("True", "Healthy")


def test_of_two_clusters_the_worse_one_tells_the_phase(remote: Remote, passes: Told) -> None:
    remote.commit("main", {"asked.yaml": ASKED.replace("[worker-2]", "[worker-2, worker-3]")})
    passes.run()
    passes.say(EngineState.HEALTHY)
    passes.run()
    told = passes.status()
    assert (told.provisioning, told.phase) == (Provisioning.PENDING, Phase.PENDING)
    assert [one.status for one in told.conditions] == ["True", "Unknown"]


def test_r18_it_may_have_its_gpus_and_have_failed(passes: Told) -> None:
    passes.run()
    passes.say(EngineState.HEALTHY)
    passes.advance(30)
    passes.run()
    passes.say(EngineState.FAILED, "the image cannot be pulled")
    passes.advance(30)
    passes.run()
    told = passes.status()
    assert (told.provisioning, told.phase) == (Provisioning.SUCCESSFUL, Phase.FAILED)
    (condition,) = told.conditions
    assert (condition.status, condition.reason) == ("False", "Failed")
    assert "the image cannot be pulled" in condition.message


def test_what_its_engine_has_given_up_lets_its_gpus_go(passes: Told) -> None:
    passes.run()
    passes.say(EngineState.FAILED, "the image cannot be pulled")
    passes.advance(30)
    passes.run()
    passes.reports = {}
    told = passes.status()
    assert (told.provisioning, told.phase) == (Provisioning.FAILED, Phase.FAILED)
    assert told.message == "failed on worker-2: the image cannot be pulled"
    (condition,) = told.conditions
    assert (condition.type, condition.status, condition.message) == ("Failed", "True", told.message)
    assert (condition.reason, condition.since) == ("PlacementFailed", told.updated_at)
    assert passes.placements() == []


def test_what_is_over_is_completed_on_both_axes(passes: Told) -> None:
    passes.run()
    passes.advance(15 * 60)
    passes.run()
    told = passes.status()
    assert (told.provisioning, told.phase, told.message) == (
        Provisioning.COMPLETED,
        Phase.COMPLETED,
        "its 15m are over",
    )
