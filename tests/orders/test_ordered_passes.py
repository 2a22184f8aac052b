"""Orders of one batch that touch the same placement, and those that cannot be written, on a real bare repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from reconciler.adapters.git import GitRepository
from reconciler.core.decide.orders.steer import moved_end
from reconciler.core.decide.state.order import Order, Steering
from reconciler.core.schema.egs.placement import PlacementFile
from reconciler.core.schema.egs.request import placement_draft
from reconciler.daemon.orders.order_batches import join_outcomes
from reconciler.daemon.reconcile import Outcome, World, reconcile_once
from reconciler.errors import Bug, InvalidInput, Transient
from reconciler.model.capacity import Observed
from reconciler.model.ids import WorkspaceName
from reconciler.model.plan import Reason
from reconciler.model.request import Denial, Verb
from reconciler.model.workload import DeletionPolicy, HelmConfig, Json
from tests.builders.inputs import placement
from tests.builders.passes import QUIET, Passes
from tests.builders.remote import Remote
from tests.builders.requests import LASTING, request
from tests.fakes.memory_repository import MemoryRepository
from tests.orders.test_api_orders import change, creating, order


class Ordered(Passes):
    """Passes that carry orders out."""

    def carry_out(self, *orders: Order) -> Outcome:
        """Run one pass with these orders, and none of them may be denied."""
        numbered = tuple(replace(one, number=number) for number, one in enumerate(orders, start=1))
        outcome = reconcile_once(self.world(), self.memory, orders=numbered)
        assert [answer.denial for answer in outcome.plan.answers.values()] == [None] * len(orders)
        return outcome


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Ordered:
    """Have bookinfo on worker-2, asked for by the API."""
    remote.commit("main", QUIET)
    passes = Ordered(repository)
    passes.run()
    passes.carry_out(creating(request("worker-2")))
    passes.advance(60)
    return passes


def directories(remote: Remote) -> list[str]:
    return sorted({path.split("/")[2] for path in remote.files("placements", "clusters")})


def test_another_deletion_policy_and_the_end_in_one_batch_hold_up_nobody(remote: Remote, passes: Ordered) -> None:
    other = creating(request("worker-3", name="other"))
    outcome = passes.carry_out(order(Verb.UPDATE, draft=change(deletionPolicy="Retain")), order(Verb.DELETE), other)
    assert [one.action for one in outcome.rendered.changes] == [
        *("Amend", "Extend"),
        *("Revert", "Forget"),
        *("Receive", "Place"),
    ]
    (left,) = directories(remote)
    assert left.startswith("other-")


def test_another_deletion_policy_and_another_end_in_one_batch_are_both_kept(remote: Remote, passes: Ordered) -> None:
    passes.carry_out(
        order(Verb.UPDATE, draft=change(deletionPolicy="Retain")), order(Verb.UPDATE, draft=change(burstDuration="1h"))
    )
    (placement,) = passes.placements()
    assert placement.deletion_policy is DeletionPolicy.RETAIN
    files = b"".join(remote.files("placements", "clusters").values()).decode()
    assert set(re.findall(r"digest: (\S+)", files)) == {placement.digest}, "or no engine could ever be seen to have it"


class Registry:
    """Renders every chart as one object, while it is not `away`."""

    away = False

    def available(self) -> bool:
        return True

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[Mapping[str, Json], ...]:
        if self.away:
            raise Transient(f"rendering {chart.chart}: the registry does not answer")
        return ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cuda", "namespace": "demo"}},)


class Charted(Ordered):
    """Passes whose charts come from a registry."""

    def __init__(self, repository: GitRepository) -> None:
        self.registry = Registry()
        super().__init__(repository)

    def observe(self) -> Observed:
        return replace(super().observe(), helm=True)

    def world(self) -> World:
        return replace(super().world(), charts=self.registry)


CHART = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: bookinfo, namespace: kubeslice-demo}
spec:
  workspaceName: llm
  clusterNames: [worker-2]
  burstDuration: 15m
  gprDetails: {numberOfGPUs: 1}
  helmConfigs:
    - name: cuda
      chart: vaidio/cuda
      releaseName: cuda
      releaseNamespace: demo
      repoName: vaidio
      repoURL: https://charts.example.com
      version: 1.0.0
  steps: [{name: cuda, type: helm}]
"""


@pytest.fixture
def charted(remote: Remote, repository: GitRepository) -> Charted:
    """Watch a fleet in which nothing bursts."""
    remote.commit("main", QUIET)
    passes = Charted(repository)
    passes.run()
    return passes


def test_a_deletion_policy_that_cannot_be_written_is_refused_with_all_of_its_call(charted: Charted) -> None:
    file = PlacementFile.model_validate(yaml.safe_load(CHART))
    draft, _ = placement_draft(file)
    charted.carry_out(order(Verb.CREATE, draft=draft))
    charted.advance(60)
    (before,) = charted.placements()
    charted.registry.away = True
    both = replace(order(Verb.UPDATE, draft=change(burstDuration="30m", deletionPolicy="Retain")), number=1)
    outcome = reconcile_once(charted.world(), charted.memory, orders=(both,))
    answer = outcome.plan.answers[1]
    assert (answer.denial, outcome.commits) == (Denial.INVALID, ())
    assert "worker-2: rendering vaidio/cuda: the registry does not answer" in answer.message
    assert charted.placements() == [before]
    charted.carry_out(order(Verb.UPDATE, draft=change(burstDuration="30m")))
    charted.registry.away = False
    charted.carry_out(both)
    (after,) = charted.placements()
    assert (after.expires_at, after.deletion_policy) == (before.created_at + 2 * LASTING, DeletionPolicy.RETAIN)


def test_a_deletion_policy_of_a_file_waits_until_it_can_be_written(remote: Remote, charted: Charted) -> None:
    remote.commit("main", {"asked.yaml": CHART})
    charted.run()
    (before,) = charted.placements()
    charted.registry.away = True
    remote.commit("main", {"asked.yaml": CHART.replace("15m", "30m\n  deletionPolicy: Retain")})
    (told,) = charted.run().plan.suppressed
    assert (told.reason, "the registry does not answer" in told.message) == (Reason.NOT_RENDERED, True)
    (longer,) = charted.placements()
    assert (longer.expires_at, longer.deletion_policy) == (before.created_at + 2 * LASTING, DeletionPolicy.DELETE)
    charted.registry.away = False
    charted.run()
    (after,) = charted.placements()
    assert (after.expires_at, after.deletion_policy) == (longer.expires_at, DeletionPolicy.RETAIN)
    assert charted.run().plan.suppressed == ()


def test_placement_that_an_earlier_order_of_the_pass_ends_is_not_extended(passes: Ordered) -> None:
    (placement,) = passes.look().inputs.ledger.placements.values()
    steering = Steering(paths=(placement.path,), by=timedelta(minutes=5), reason="one more run")
    ended, extended = order(Verb.REVERT, steering=steering), order(Verb.EXTEND, steering=steering)
    numbered = tuple(replace(one, number=number) for number, one in enumerate((ended, extended), start=1))
    outcome = reconcile_once(passes.world(), passes.memory, orders=numbered)
    first, second = outcome.plan.answers.values()
    assert (first.denial, second.denial) == (None, Denial.INVALID)
    assert "has just been changed or ended (look at it" in second.message
    assert [change.action for change in outcome.rendered.changes] == ["Revert", "Close"]
    assert first.first is not None
    assert first.change == first.first + 1
    assert all(commit.author == ended.author for commit in outcome.rendered.commits)


def test_end_beyond_all_calendars_is_refused() -> None:
    late = replace(placement(), expires_at=datetime(2199, 6, 1, tzinfo=UTC))
    assert moved_end(late, timedelta(days=100)).year == 2199
    for days in (1_000, 3_000_000):
        with pytest.raises(InvalidInput, match=r"is not between the years 2000 and 2200 \(try a shorter one\)"):
            moved_end(late, timedelta(days=days))


def test_joined_outcomes_keep_the_bugs_of_each() -> None:
    outcome = Passes(MemoryRepository(QUIET)).run_once()
    bugs = tuple(Bug(item=item, task="writing the files", error="KeyError: 'x'") for item in ("llm/a", "llm/b"))
    outcomes = [replace(outcome, rendered=replace(outcome.rendered, bugs=(bug,))) for bug in bugs]
    assert join_outcomes(outcomes).bugs == bugs
