"""A pass in which nothing has changed takes over the plan of the pass before, which is the plan it would make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.unchanged import LONGEST, DecidedPass, decide_again
from reconciler.core.observe.demand import Demands, Measured, measure, next_history
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName
from tests.builders.examples import examples
from tests.builders.inputs import desired, free, inputs, ordering, seconds, short
from tests.candidates.test_burst_kinds import enrolled, later, situations


def decided(situation: PassInput) -> DecidedPass:
    return DecidedPass(inputs=situation, plan=decide(situation))


def waiting() -> PassInput:
    """Three replicas that no cluster has room for."""
    return enrolled(inputs(short(3), free("worker-2", 0), free("worker-3", 0)))


def after(before: PassInput, passed: timedelta) -> PassInput:
    """Show the same clusters again after some time, as watches do: the very same parts, seen later."""
    seen = {name: replace(own, observed_at=own.observed_at + passed) for name, own in before.observed.clusters.items()}
    now, observed = before.now + passed, Observed(clusters=seen)
    return replace(before, now=now, observed=observed, demands=measured_again(before, observed, now))


def measured_again(before: PassInput, observed: Observed, now: datetime) -> Demands:
    known = Measured(demands=before.demands, desired=before.desired, observed=before.observed, now=before.now)
    return measure(before.desired, observed, next_history(before.demands), now, before=known)


@given(situations(), st.data())
@examples(2)
def test_demand_that_is_taken_over_is_the_demand_that_would_be_measured(
    situation: PassInput, data: st.DataObject
) -> None:
    then = data.draw(later(situation))
    assert measured_again(situation, then.observed, then.now) == then.demands


@given(situations(), st.sampled_from([0, 1, 5, 14, 15, 16, 45, 119]))
@examples(3)
def test_a_plan_that_is_taken_over_is_the_plan_that_would_be_made(situation: PassInput, passed: int) -> None:
    before = decided(enrolled(situation))
    then = after(before.inputs, seconds(passed))
    assert decide_again(then, before).plan == decide(then)


@given(situations(), st.data())
@examples(2)
def test_a_plan_follows_whatever_has_changed(situation: PassInput, data: st.DataObject) -> None:
    before = decided(enrolled(situation))
    then = data.draw(later(before.inputs))
    assert decide_again(then, before).plan == decide(then)


def test_what_waits_is_not_decided_anew_until_something_changes() -> None:
    before = decided(waiting())
    again = decide_again(after(before.inputs, seconds(5)), before)
    assert again is before
    assert decide_again(after(before.inputs, seconds(9)), again) is before


CHANGES: dict[str, Callable[[PassInput], PassInput]] = {
    "a node": lambda then: seen(then, "worker-2", pools=free("worker-2", 1).pools),
    "health": lambda then: seen(then, "worker-3", healthy=False),
    "a cluster that was seen long ago": lambda then: seen(then, "worker-3", observed_at=then.now - timedelta(hours=1)),
    "a clock that is ahead": lambda then: seen(then, "worker-3", observed_at=then.now + seconds(1)),
    "the ledger": lambda then: replace(then, ledger=replace(then.ledger, blocked=frozenset(then.demands))),
    "the files": lambda then: replace(then, desired=desired(ordering("worker-3"))),
    "a cluster that is lost": lambda then: replace(then, lost={ClusterName("worker-2"): then.now}),
    "a clock that went back": lambda then: replace(then, now=then.now - seconds(60)),
    "much time": lambda then: replace(then, now=then.now + LONGEST),
    "a cluster less": lambda then: replace(
        then, observed=Observed(clusters={name: own for name, own in then.observed.clusters.items() if "2" not in name})
    ),
}


def seen(then: PassInput, cluster: str, **changes: object) -> PassInput:
    name = ClusterName(cluster)
    clusters = {**then.observed.clusters, name: replace(then.observed.clusters[name], **changes)}
    return replace(then, observed=Observed(clusters=clusters))


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_is_decided_anew(change: Callable[[PassInput], PassInput]) -> None:
    before = decided(waiting())
    then = change(after(before.inputs, seconds(5)))
    again = decide_again(then, before)
    assert again.inputs is then
    assert again.plan == decide(then)


def test_a_plan_ends_when_time_alone_decides_otherwise() -> None:
    fresh = short(3)
    fresh = replace(fresh, workloads=short(3, since=fresh.observed_at - seconds(20)).workloads)
    before = decided(enrolled(inputs(fresh, free("worker-2", 8))))
    assert not before.plan.changes
    assert before.plan.wake_at == before.inputs.now + seconds(10)
    assert decide_again(after(before.inputs, seconds(9)), before) is before
    assert decide_again(after(before.inputs, seconds(10)), before).plan.changes
