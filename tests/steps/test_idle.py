"""GPUs that nobody uses are taken back after the time that the terms allow, where somebody looks and it is enforced."""

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.observation_file import read
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.end_reason import EndReason
from reconciler.model.gpr import GprTerms, GpuAsk
from reconciler.model.placement import Origin, Placement
from reconciler.model.request import Provisioning
from tests.builders.gprs import TRAIN, binding, gpr_template, record, request
from tests.builders.inputs import NOW, desired, free, inputs, ledger, placement, short

MINUTE = timedelta(minutes=1)
BEGAN = NOW - timedelta(hours=1)


def seen(there: Placement, unused: timedelta, **fields: object) -> ClusterObservation:
    return free(there.cluster, 8, bound={there.name: there.replicas}, unused={there.name: NOW - unused}, **fields)


def burst(unused: timedelta, *, enforced: bool = True, changed: timedelta = 59 * MINUTE, **fields: object) -> PassInput:
    """Let a burst have been unused for a while, of which half an hour is allowed."""
    there = placement(created=BEGAN, lasting=timedelta(hours=2), changed_at=NOW - changed)
    template = gpr_template(idle=30 * MINUTE, enforce_idle=enforced)
    wanted = desired(gpr_templates={"h100": template}, bindings=binding({"worker-2": "h100"}))
    return inputs(short(3), seen(there, unused, **fields), wanted=wanted, there=ledger(there))


def test_what_was_unused_for_as_long_as_is_allowed_ends() -> None:
    (change,) = decide(burst(30 * MINUTE)).changes
    assert change.action is Action.REVERT
    assert change.why is EndReason.IDLE
    assert change.detail == "its GPUs have not been used since 2026-11-20T09:35:00Z, and 30m are allowed"


@pytest.mark.parametrize(
    "kept",
    [
        burst(29 * MINUTE),
        burst(30 * MINUTE, enforced=False),
        burst(30 * MINUTE, changed=5 * MINUTE),
        burst(30 * MINUTE, at=NOW - 5 * MINUTE),
    ],
    ids=["not long enough", "not enforced", "changed since", "not seen now"],
)
def test_it_stays_when_it_is(kept: PassInput) -> None:
    assert decide(kept).changes == ()


def test_the_moment_at_which_it_will_be_too_long_is_looked_at() -> None:
    assert decide(burst(29 * MINUTE)).wake_at == NOW + MINUTE


def test_an_idle_request_is_completed_and_does_not_begin_again() -> None:
    asked = request(ask=GpuAsk(gpus=1), terms=GprTerms(idle=10 * MINUTE, enforce_idle=True))
    known = record(asked, began_at=BEGAN)
    there = placement(workload=TRAIN, replicas=1, created=BEGAN, lasting=timedelta(days=7), origin=Origin.REQUEST)
    made = decide(inputs(seen(there, 10 * MINUTE), there=ledger(there, requests={TRAIN: known})))
    revert, close = made.changes
    assert revert.action is Action.REVERT
    assert close.action is Action.CLOSE
    assert close.record.ended is not None
    assert close.record.ended.status is Provisioning.COMPLETED
    over = ledger(requests={TRAIN: close.record})
    assert decide(inputs(free("worker-2", 8), there=over)).changes == ()


def test_a_request_goes_on_where_it_is_used_and_not_where_it_was_idle() -> None:
    terms = GprTerms(idle=10 * MINUTE, enforce_idle=True)
    known = record(request(clusters=("worker-2", "worker-3"), ask=GpuAsk(gpus=1), terms=terms), began_at=BEGAN)
    idle, used = (
        placement(name, 1, workload=TRAIN, created=BEGAN, lasting=timedelta(days=7), origin=Origin.REQUEST)
        for name in ("worker-2", "worker-3")
    )
    there = ledger(idle, used, requests={TRAIN: known})
    busy = free("worker-3", 8, bound={used.name: 1})
    made = decide(inputs(seen(idle, 10 * MINUTE), busy, there=there))
    revert, amend = made.changes
    assert revert.action is Action.REVERT
    assert amend.action is Action.AMEND
    assert amend.record.avoids == ("worker-2",)
    later = ledger(used, requests={TRAIN: replace(amend.record)})
    assert decide(inputs(free("worker-2", 8), busy, there=later)).changes == ()


def test_an_observation_says_since_when() -> None:
    text = b"""
apiVersion: overspill.dev/v1alpha1
kind: Observation
cluster: worker-2
observedAt: "2026-11-20T10:05:00Z"
placements:
  - {name: used-1, bound: 1}
  - {name: idle-1, bound: 1, unusedSince: "2026-11-20T09:35:00Z"}
"""
    (one,) = read(text, "seen.yaml")
    assert one.unused == {"idle-1": NOW - 30 * MINUTE}
