"""The deficit, and the windows over it."""

from dataclasses import replace
from datetime import timedelta

from reconciler.core.observe import demand
from reconciler.core.observe.demand import UnseenPrimary
from reconciler.model.capacity import Observed
from reconciler.model.demand import Demand, Sample
from tests.builders.inputs import NOW, VLLM, desired, ordering, seconds, short

WINDOW = seconds(60)


def measured(observation, *, history=(), now=NOW, policy=None):
    policy = policy or ordering("worker-2", scale_down_window=WINDOW)
    seen = Observed(clusters={observation.cluster: observation})
    return demand.measure(desired(policy), seen, {VLLM: history} if history else {}, now)[VLLM]


def test_replicas_that_are_only_starting_are_not_missing() -> None:
    starting = short(0, running=2)
    assert measured(starting).missing == 0


def test_deficit_is_never_more_than_wanted_less_running() -> None:
    seen = short(4, running=3)
    workload = seen.workloads[0]
    fewer = type(workload)(**{name: getattr(workload, name) for name in workload.__slots__} | {"wanted": 5})
    seen = type(seen)(cluster=seen.cluster, observed_at=NOW, workloads=(fewer,))
    assert measured(seen).missing == 2


def test_a_workload_its_primary_does_not_report_is_missing_nothing() -> None:
    bare = short(0)
    gone = type(bare)(cluster=bare.cluster, observed_at=NOW)
    assert measured(gone).missing == 0


def test_a_stale_primary_is_blind() -> None:
    answer = measured(short(3, at=NOW - timedelta(minutes=3)))
    assert isinstance(answer, UnseenPrimary)
    assert answer.message == "worker-1 was last observed 3m ago, more than 2m"


def test_an_observation_from_the_future_counts_as_unseen() -> None:
    answer = measured(short(3, at=NOW + timedelta(hours=4)))
    assert isinstance(answer, UnseenPrimary)
    assert "4h in the future: compare the clocks" in answer.message


def test_only_replicas_that_waited_the_whole_window_have_matured() -> None:
    fresh = measured(short(3, since=NOW - seconds(10)))
    assert demand.replicas_due(fresh, seconds(30), NOW) == 0
    assert demand.next_due(fresh, seconds(30), NOW) == NOW + seconds(20)
    assert demand.replicas_due(fresh, seconds(10), NOW) == 3


def test_ceiling_is_unknown_until_somebody_has_watched_for_the_window() -> None:
    assert demand.peak_missing(measured(short(0)), WINDOW, NOW) is None


def test_ceiling_is_the_highest_deficit_within_the_window() -> None:
    history = (Sample(at=NOW - seconds(90), missing=5), Sample(at=NOW - seconds(30), missing=2))
    now = measured(short(0), history=history)
    assert demand.peak_missing(now, WINDOW, NOW) == 5
    assert demand.next_peak_change(now, WINDOW, NOW) == NOW + seconds(30)
    moment = NOW + seconds(31)
    later = measured(short(0, at=moment), history=now.history, now=moment)
    assert demand.peak_missing(later, WINDOW, moment) == 2
    assert demand.next_peak_change(later, WINDOW, moment) == NOW + seconds(60)


def test_an_old_observation_is_not_a_long_watch() -> None:
    stale = measured(short(0, at=NOW - seconds(100)), now=NOW)
    assert demand.peak_missing(stale, WINDOW, NOW - seconds(100)) is None
    again = measured(short(0, at=NOW - seconds(100)), history=stale.history, now=NOW + seconds(15))
    assert demand.peak_missing(again, WINDOW, NOW - seconds(100)) is None


def test_the_sources_own_word_of_how_long_stands_in_for_watching() -> None:
    told = measured(short(1, deficit_since=NOW - seconds(61)))
    assert demand.peak_missing(told, WINDOW, NOW) == 1


def test_what_was_higher_before_the_sources_word_still_counts() -> None:
    history = (Sample(at=NOW - seconds(100), missing=4),)
    told = measured(short(1, deficit_since=NOW - seconds(20)), history=history)
    assert demand.peak_missing(told, WINDOW, NOW) == 4


def test_a_clock_that_jumps_back_begins_the_record_anew() -> None:
    history = (Sample(at=NOW + seconds(300), missing=4),)
    jumped = measured(short(1), history=history)
    assert jumped.history == (Sample(at=NOW, missing=1),)


def test_a_blind_moment_forgets_what_was_watched() -> None:
    seen = {VLLM: measured(short(1, at=NOW - timedelta(minutes=3)))}
    assert demand.next_history(seen) == {}


def test_record_keeps_no_more_than_the_window_needs() -> None:
    history: tuple[Sample, ...] = ()
    for step in range(200):
        at = NOW + seconds(step)
        one = measured(short(step % 2 + 1, at=at), history=history, now=at)
        assert isinstance(one, Demand)
        history = one.history
    assert len(history) <= 62


def test_demand_that_went_while_another_watch_was_behind_is_gone_from_then_on() -> None:
    before = NOW - seconds(70)
    history = (Sample(at=NOW - seconds(100), missing=4),)
    behind = replace(short(0, at=before), changed_at=NOW - seconds(1))
    went = measured(behind, history=history)
    assert went.history[-1] == Sample(at=NOW - seconds(1), missing=0)
    caught_up = measured(short(0), history=went.history)
    assert demand.peak_missing(caught_up, WINDOW, NOW) == 4
    assert demand.next_peak_change(caught_up, WINDOW, NOW) == NOW + seconds(59)
    later = NOW + seconds(60)
    assert demand.peak_missing(measured(short(0, at=later), history=caught_up.history, now=later), WINDOW, later) == 0


def test_history_goes_on_while_a_watch_stays_behind() -> None:
    history = (Sample(at=NOW - seconds(100), missing=4), Sample(at=NOW - seconds(1), missing=0))
    behind = replace(short(0, at=NOW - seconds(70)), changed_at=NOW - seconds(1))
    assert measured(behind, history=history).history == history
