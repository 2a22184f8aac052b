"""A signal that cannot be heard brings nothing new and takes nothing away; those that can are named in the reason."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.core.commits.messages import line, message
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.workload import explain
from reconciler.core.ledger import lifecycle
from reconciler.core.observe.demand import measure, next_history
from reconciler.core.signals.prometheus import Query
from reconciler.model.action import Action
from reconciler.model.capacity import MissingReplicas, Observed
from reconciler.model.demand import Sample
from reconciler.model.plan import Reason
from reconciler.model.policy import BurstPolicy, Desired
from reconciler.model.signal import ReplicaRequest, SignalFreshness
from reconciler.preview import PreviewView
from tests.builders.inputs import NOW, SOURCE, VLLM, desired, free, inputs, ledger, ordering, placement, seconds, short

QUEUE = Query(name="queue", text="sum(waiting)", per_replica=10)
WATCHED = (Sample(at=NOW - timedelta(hours=1), missing=0, asked=True),)


def policy(**fields: object) -> BurstPolicy:
    return ordering("worker-2", signals=(QUEUE,), scale_down_window=seconds(60), **fields)


def ask(
    replicas: int, *, signal: str = QUEUE.label, cause: str = "is 40, and a replica takes 10", **fields
) -> ReplicaRequest:
    return ReplicaRequest(
        **{"signal": signal, "replicas": replicas, "since": NOW - seconds(50), "cause": cause, "beyond": False} | fields
    )


def answer(at: datetime | None = NOW, trouble: str = "") -> SignalFreshness:
    return SignalFreshness(signal=QUEUE.label, at=at, trouble=trouble)


def heard(
    *asks: ReplicaRequest,
    answers: tuple[SignalFreshness, ...] = (answer(),),
    missing: int = 0,
    history=WATCHED,
    there=None,
    wanted=None,
) -> PassInput:
    """Tell of a workload that so many pods of wait, and of what else is asked for it."""
    wanted = wanted or desired(policy())
    base = inputs(short(missing), free("worker-2", 8), wanted=wanted, there=there)
    seen = replace(base.observed, asks={VLLM: asks} if asks else {}, freshness={VLLM: answers})
    return replace(base, observed=seen, demands=measure(wanted, seen, {VLLM: history}, NOW))


def test_hold_outlasts_a_signal_that_is_not_heard() -> None:
    hold = lifecycle.hold(placement(), policy(), NOW - seconds(300))
    there = ledger(restraints={VLLM: (hold,)})
    assert decide(heard(answers=(answer(at=None),), there=there)).changes == ()
    (change,) = decide(heard(there=there)).changes
    assert change.action is Action.RELEASE


def test_what_prometheus_asks_for_is_placed_and_named_in_the_commit() -> None:
    made = decide(heard(ask(4)))
    place = made.changes[0]
    assert place.action is Action.PLACE
    assert place.placement.replicas == 4
    assert line(place) == (
        "burst(llm/vllm): 4 replicas on worker-2 for 10m"
        " (4 replicas missing on worker-1 for 50s: prometheus queue is 40, and a replica takes 10)"
    )
    told = message(place, source=SOURCE).replace("\n", " ")
    assert "for 50s (nvidia.com/gpu): prometheus queue is 40, and a replica takes 10. worker-2 chosen" in told


def test_pods_and_what_is_beyond_them_are_told_apart_in_the_commit() -> None:
    beyond = ask(1, signal="hpa llm/vllm", cause="stands at its maximum of 6", beyond=True)
    there = heard(missing=2)
    cluster = there.observed.clusters["worker-1"]
    waiting = (MissingReplicas(replicas=2, since=NOW - seconds(45), cause="insufficient nvidia.com/gpu"),)
    cluster = replace(cluster, workloads=(replace(cluster.workloads[0], waiting=waiting, asks=(beyond,)),))
    seen = replace(there.observed, clusters={**there.observed.clusters, "worker-1": cluster})
    there = replace(there, observed=seen, demands=measure(there.desired, seen, {}, NOW))
    told = message(decide(there).changes[0], source=SOURCE).replace("\n", " ")
    assert (
        "3 replicas missing on worker-1 for 50s (nvidia.com/gpu): 2 pods insufficient nvidia.com/gpu;"
        " hpa llm/vllm stands at its maximum of 6." in told
    )


def test_pods_and_prometheus_that_see_the_same_replicas_count_once() -> None:
    assert heard(ask(3), missing=3).demands[VLLM].missing == 3


def test_while_only_pods_wait_the_commit_speaks_of_pods() -> None:
    place = decide(heard(missing=3)).changes[0]
    assert "3 pods unschedulable on worker-1 for 45s" in message(place, source=SOURCE)


def test_an_answer_that_is_too_old_brings_nothing_new() -> None:
    old = answer(NOW - timedelta(minutes=3), trouble="connection refused")
    there = heard(ask(4), answers=(old,))
    assert decide(there).changes == ()
    assert there.demands[VLLM].stale == ("prometheus queue last answered 3m ago (connection refused)",)


def test_pods_still_burst_while_prometheus_is_away() -> None:
    made = decide(heard(ask(4), answers=(answer(None),), missing=2))
    assert [change.placement.replicas for change in made.changes] == [2]


def test_nothing_is_given_back_while_a_signal_cannot_be_heard() -> None:
    burst_before = ledger(placement(replicas=3))
    there = heard(answers=(answer(None, trouble="connection refused"),), there=burst_before)
    made = decide(there)
    assert made.changes == ()
    assert [(one.reason, one.message) for one in made.suppressed] == [
        (
            Reason.SIGNAL_UNHEARD,
            ("prometheus queue has not answered (connection refused); its 3 replicas elsewhere stay until they expire"),
        )
    ]
    assert any("has not answered" in one for one in explain(VLLM, there, made).conclusion)


def test_a_policy_that_asks_a_prometheus_that_is_not_there_keeps_what_is_lent() -> None:
    there = heard(answers=(), there=ledger(placement(replicas=3)))
    assert [one.reason for one in decide(there).suppressed] == [Reason.SIGNAL_UNHEARD]
    assert there.demands[VLLM].stale == ("prometheus queue is not asked (is a Prometheus configured?)",)


def test_what_lapses_ends_although_a_signal_cannot_be_heard() -> None:
    burst_before = ledger(placement(replicas=3, created=NOW - timedelta(hours=1)))
    assert [one.action for one in decide(heard(answers=(answer(None),), there=burst_before)).changes] == [Action.REVERT]


def test_a_time_in_which_a_signal_was_not_heard_does_not_count_as_watched() -> None:
    burst_before = ledger(placement(replicas=3))
    deaf = heard(answers=(answer(None),), there=burst_before)
    assert next_history(deaf.demands) == {}
    again = heard(history=next_history(deaf.demands).get(VLLM, ()), there=burst_before)
    assert [one.reason for one in decide(again).suppressed] == [Reason.SCALE_DOWN_WINDOW]


def test_a_signal_that_is_heard_and_asks_for_nothing_gives_back() -> None:
    assert [one.action for one in decide(heard(there=ledger(placement(replicas=3)))).changes] == [Action.REVERT]


# signals of the primary cluster

HPA = ask(3, signal="hpa demo/vllm", cause="stands at its maximum of 6", beyond=True)
FORBIDDEN = "forbids it"


def asked(*asks: ReplicaRequest, last: datetime | None, kind: str = "", signal: str = "hpa", there=None) -> PassInput:
    """Tell of a workload whose primary knows signals of a kind no longer, but what they asked for then."""
    wanted = desired(ordering("worker-2", scale_down_window=seconds(60)))
    base = inputs(short(0), free("worker-2", 8), wanted=wanted, there=there)
    cluster = base.observed.clusters["worker-1"]
    workload = replace(cluster.workloads[0], asks=asks, ref=replace(cluster.workloads[0].ref, kind=kind))
    stale = (SignalFreshness(signal=signal, at=last, trouble=FORBIDDEN),)
    cluster = replace(cluster, workloads=(workload,), stale=stale)
    seen = replace(base.observed, clusters={**base.observed.clusters, "worker-1": cluster})
    return replace(base, observed=seen, demands=measure(wanted, seen, {VLLM: WATCHED}, NOW))


def test_what_an_autoscaler_asked_for_last_holds_for_a_while() -> None:
    there = asked(HPA, last=NOW - seconds(60))
    assert (there.demands[VLLM].stale, there.demands[VLLM].missing) == ((), 3)
    assert [change.placement.replicas for change in decide(there).changes] == [3]


def test_nothing_new_comes_of_an_autoscaler_that_cannot_be_seen() -> None:
    there = asked(HPA, last=NOW - timedelta(minutes=3))
    assert decide(there).changes == ()
    assert there.demands[VLLM].stale == ("hpa of worker-1 last answered 3m ago (forbids it)",)


def test_other_signals_of_a_cluster_go_on_counting() -> None:
    queue = ask(2, signal="kueue queue-a", cause="waits for quota", beyond=True)
    assert asked(HPA, queue, last=NOW - timedelta(minutes=3)).demands[VLLM].missing == 2


def test_nothing_is_given_back_while_autoscalers_cannot_be_seen() -> None:
    burst_before = ledger(placement(replicas=3))
    for last in (NOW - timedelta(minutes=3), None):
        there = asked(last=last, there=burst_before)
        assert decide(there).changes == ()
        assert [one.reason for one in decide(there).suppressed] == [Reason.SIGNAL_UNHEARD]
        assert next_history(there.demands) == {}


def test_signal_that_a_workload_cannot_have_keeps_nothing_of_it() -> None:
    burst_before = ledger(placement(replicas=3))
    for kind, signal in (("Job", "hpa"), ("Deployment", "kueue")):
        there = asked(last=None, there=burst_before, kind=kind, signal=signal)
        assert there.demands[VLLM].stale == ()
        assert [one.action for one in decide(there).changes] == [Action.REVERT]
    assert asked(last=None, kind="Job", signal="kueue").demands[VLLM].stale


class Seen:
    """What was observed (a `ports.ClusterView`)."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed

    def follow(self, desired: Desired) -> None:
        """Know all."""

    def observe(self) -> Observed:
        return self.observed


def test_what_counts_now_counts_when_another_moment_is_looked_at() -> None:
    later = timedelta(hours=1)
    for last, missing in ((NOW - seconds(60), 3), (NOW - timedelta(minutes=3), 0)):
        there = asked(HPA, last=last)
        then = PreviewView(view=Seen(there.observed), now=NOW, fresh=timedelta(minutes=2), later=later).observe()
        demand = measure(there.desired, then, {}, NOW + later)[VLLM]
        assert (demand.missing, bool(demand.stale)) == (missing, not missing)


def test_how_long_pods_have_been_few_says_nothing_of_what_else_was_asked_for() -> None:
    wanted = desired(ordering("worker-2", scale_down_window=seconds(60)))
    seen = inputs(short(0, deficit_since=NOW - timedelta(hours=1)), wanted=wanted).observed
    asked = (Sample(at=NOW - timedelta(hours=2), missing=3, asked=True), Sample(at=NOW - seconds(20), missing=0))
    lately = measure(wanted, seen, {VLLM: asked}, NOW)[VLLM]
    assert [(sample.at, sample.missing) for sample in lately.history] == [
        (NOW - timedelta(hours=2), 3),
        (NOW - seconds(20), 0),
    ]
    alone = measure(wanted, seen, {}, NOW)[VLLM]
    assert [(sample.at, sample.missing) for sample in alone.history] == [(NOW - timedelta(hours=1), 0)]
