"""From the first missing replica until a burst is applied and ready, as engines and pods tell."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.observe.rollouts import ClusterRollouts, Rollouts
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.metrics.rollout_delays import Milestone, RolloutDelays
from reconciler.model.capacity import PendingPods
from reconciler.model.events.event import Event
from reconciler.model.events.event_kind import EventKind
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.model.placement import Placement
from reconciler.model.rollout import EngineReport, EngineState
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, placement, seconds, short

COMMIT = CommitId("a" * 40)
PLACED = Event(
    kind=EventKind.PLACED, at=NOW, line="placed", workload=VLLM, clusters=(ClusterName("worker-2"),), replicas=3,
    commit=COMMIT, waited=timedelta(seconds=45),
)  # fmt: skip # an event
BURST = placement("worker-2", 3, created=NOW, digest="sha256-1")


def look(after: float, *there: Placement, bound: int = 0, ready: int = 0, pending: int = 0) -> PassInput:
    """Look so many seconds after the commit."""
    waiting = {BURST.name: PendingPods(replicas=pending, shape=None, since=NOW)} if pending else {}
    seen = free("worker-2", 8, bound={BURST.name: bound}, ready={BURST.name: ready}, pending_pods=waiting)
    return inputs(short(3), seen, there=ledger(*there), now=NOW + seconds(after))


def reported(situation: PassInput, state: EngineState, digest: str = BURST.digest) -> PassInput:
    report = EngineReport(cluster=BURST.cluster, placement=BURST.name, digest=digest, revision="b" * 40, state=state)
    observed = replace(situation.observed, reports={BURST.path: report})
    arrived = {BURST.path: BURST.digest} if state is EngineState.HEALTHY else {}
    rollouts = Rollouts.of({BURST.cluster: ClusterRollouts(arrived=arrived)})
    return replace(situation, observed=observed, rollouts=rollouts)


def told(delays: RolloutDelays, situation: PassInput) -> list[tuple[Milestone, float]]:
    return [(arrival.milestone, arrival.delay.total_seconds()) for arrival in delays.follow(situation)]


def placed() -> RolloutDelays:
    delays = RolloutDelays()
    delays.note((PLACED,))
    return delays


def test_delays_begin_with_the_first_missing_replica() -> None:
    delays = placed()
    assert told(delays, look(0)) == []  # the pass that wrote it
    assert told(delays, look(1, BURST)) == []
    assert told(delays, reported(look(5, BURST), EngineState.PENDING)) == []
    assert told(delays, reported(look(15, BURST), EngineState.PROGRESSING)) == [(Milestone.APPLIED, 60)]
    assert told(delays, reported(look(20, BURST), EngineState.PROGRESSING)) == []
    assert told(delays, reported(look(75, BURST), EngineState.HEALTHY)) == [(Milestone.READY, 120)]
    assert told(delays, reported(look(80, BURST), EngineState.HEALTHY)) == []


def test_pods_tell_where_no_engine_reports() -> None:
    delays = placed()
    assert told(delays, look(5, BURST, bound=1)) == []
    assert told(delays, look(10, BURST, bound=1, pending=2)) == [(Milestone.APPLIED, 55)]
    assert told(delays, look(20, BURST, bound=3, ready=2)) == []
    assert told(delays, look(30, BURST, bound=3, ready=3)) == [(Milestone.READY, 75)]


def test_a_burst_that_ends_before_is_forgotten() -> None:
    delays = placed()
    assert told(delays, look(60)) == []
    assert told(delays, look(90, BURST, bound=3, ready=3)) == []


def test_a_report_on_an_earlier_version_is_no_arrival() -> None:
    delays = placed()
    assert told(delays, reported(look(5, BURST), EngineState.PROGRESSING, digest="sha256-0")) == []


def test_what_nobody_missed_has_no_delay() -> None:
    delays = RolloutDelays()
    delays.note((replace(PLACED, waited=None),))
    assert told(delays, look(30, BURST, bound=3, ready=3)) == []


def test_exemplars_of_delays_name_the_commit() -> None:
    process = ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0)
    process.publish((PLACED,), ())
    process.follow(look(30, BURST, bound=3, ready=3))
    for name in ("commit", "apply", "ready"):
        (family,) = [each for each in process.registry.collect() if each.name == f"overspill_{name}_delay_seconds"]
        (exemplar,) = [each.exemplar for each in family.samples if each.exemplar]
        assert exemplar.labels == {"commit": COMMIT[:12]}


def test_calls_count_by_their_answers() -> None:
    process = ProcessMetrics(output_branch="placements", orders=lambda: 0, bugs=lambda: 0)
    read = process.registry.get_sample_value
    for call, code in (
        (OutwardCall(peer=Peer.GIT, verb="push"), "rejected"),
        (OutwardCall(peer=Peer.KUBERNETES, verb="list", target="worker-2"), "200"),
        (OutwardCall(peer=Peer.PROMETHEUS, verb="query"), "503"),
        (OutwardCall(peer=Peer.SLURM, verb="jobs"), "500"),
    ):
        with process.call(call) as note:
            note(code)
    with process.call(OutwardCall(peer=Peer.KUBERNETES, verb="list", target="worker-3")):
        pass
    assert read("overspill_git_calls_total", {"command": "push", "result": "rejected"}) == 1
    assert read("overspill_kubernetes_requests_total", {"cluster": "worker-2", "verb": "list", "code": "200"}) == 1
    assert read("overspill_kubernetes_requests_total", {"cluster": "worker-3", "verb": "list", "code": "none"}) == 1
    assert read("overspill_prometheus_queries_total", {"code": "503"}) == 1
    assert read("overspill_slurm_queries_total", {"code": "500"}) == 1
