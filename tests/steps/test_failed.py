"""A placement that does not get well is taken back with its engine's words, and the next cluster is tried."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.observe import rollouts
from reconciler.core.observe.rollouts import Rollouts, RolloutSigns, stale_clusters
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, FailedObject, NonGpuPods, Observed, PendingPods
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, CommitId, PlacementName
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Phase, Placement, Restraint, RestraintKind
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import EngineName, Fleet
from reconciler.model.rollout import EngineReport, EngineState
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, shape, short

MINUTE = timedelta(minutes=1)
TIP = CommitId("7" * 40)
OTHER = CommitId("8" * 40)
OURS = "sha256-ours"
HELM = "Helm install failed for release demo/vllm with chart vllm-stack@0.1.7: context deadline exceeded"


def flux(cluster: str = "worker-2", *, minutes: float = 1, **fields: object) -> Placement:
    made = {"engine": EngineName.FLUX, "digest": OURS, "lasting": timedelta(hours=2), **fields}
    return placement(cluster, created=NOW - minutes * MINUTE, **made)


def report(
    of: Placement, state: EngineState = EngineState.FAILED, message: str = HELM, **fields: object
) -> EngineReport:
    said = EngineReport(cluster=of.cluster, placement=of.name, digest=OURS, revision=TIP, state=state, message=message)
    return replace(said, **fields)


def seen(
    *reports: EngineReport,
    at: datetime = NOW,
    clusters: Iterable[ClusterObservation] = (),
    reporting: str = "",
    by: EngineName = EngineName.FLUX,
) -> Observed:
    three = (short(3, at=at, since=NOW - timedelta(hours=1)), free("worker-2", 8, at=at), free("worker-3", 8, at=at))
    known = {one.cluster: one for one in (*three, *clusters)}
    return Observed(
        clusters=known,
        reports={one.path: one for one in reports},
        reporting=dict.fromkeys(map(ClusterName, reporting.split()), by),
    )


def followed(
    there: Ledger,
    observed: Observed,
    *,
    now: datetime = NOW,
    before: Rollouts | None = None,
    held: dict[rollouts.FileAtCommit, bool] | None = None,
) -> Rollouts:
    return next_rollouts(RolloutSigns.of(there, observed, Fleet(), now), before or Rollouts(), held or {}, now)


def next_rollouts(
    signs: RolloutSigns, before: Rollouts, held: dict[rollouts.FileAtCommit, bool], now: datetime = NOW
) -> Rollouts:
    return rollouts.follow(before, signs, stale_clusters(before, signs), held, now)


def doubts(before: Rollouts, signs: RolloutSigns) -> frozenset[rollouts.FileAtCommit]:
    return rollouts.files_to_read(before, signs, stale_clusters(before, signs))


def decided(there: Ledger, observed: Observed, known: Rollouts, *, now: datetime = NOW, **policy: object) -> Plan:
    wanted = desired(ordering("worker-2", "worker-3", **policy))
    made = inputs(*observed.clusters.values(), wanted=wanted, there=there, now=now)
    return decide(replace(made, observed=observed, rollouts=known))


def after(burst: Placement, *reports: EngineReport, now: datetime = NOW, **fields: object) -> Plan:
    there, observed = ledger(burst), seen(*reports, **fields)
    return decided(there, observed, followed(there, observed), now=now)


def test_what_its_engine_has_given_up_ends_at_once_and_the_next_cluster_is_tried_in_the_same_pass() -> None:
    burst = flux()
    ended, tried = after(burst, report(burst)).changes
    assert ended.action is Action.REVERT
    assert (ended.placement, ended.why, ended.phase, ended.detail) == (burst, EndReason.FAILED, Phase.FAILED, HELM)
    assert tried.action is Action.PLACE
    assert (tried.placement.cluster, tried.placement.replicas) == ("worker-3", 3)
    (refused,) = tried.refused
    assert refused.reason is Reason.COOLING_DOWN
    assert refused.message.startswith(f"{burst.name} on worker-2 ended: failed")


@pytest.mark.parametrize("state", [None, EngineState.HEALTHY, EngineState.PROGRESSING])
def test_a_burst_whose_pods_are_refused_is_not_healthy_and_says_why(state: EngineState | None) -> None:
    burst, words = flux(), "3 of 3 pods refused: webhook a.example.com denied them; do what the webhook says"
    here = free("worker-2", 8, refused={burst.name: words}, waiting_reasons={burst.name: words})
    reports = [] if state is None else [report(burst, state=state, message="")]
    there = ledger(burst)
    failure = followed(there, seen(*reports, clusters=[here])).ailing[burst.path]
    assert (failure.state, failure.message.endswith(words)) == (EngineState.PROGRESSING, True)
    before = followed(there, seen(*reports))
    signs = RolloutSigns.of(there, seen(*reports, clusters=[here]), Fleet(), NOW)
    assert "worker-2" in stale_clusters(before, signs)
    served = replace(here, ready={burst.name: 3})
    assert burst.path not in followed(there, seen(report(burst, state=EngineState.HEALTHY), clusters=[served])).ailing


def test_only_the_failed_cluster_is_held_back() -> None:
    burst = flux()
    ended = after(burst, report(burst)).changes[0]
    assert ended.action is Action.REVERT
    assert ended.restraint is not None
    assert (ended.restraint.cluster, ended.restraint.until) == ("worker-2", NOW + 5 * MINUTE)


def test_a_policy_without_a_cool_down_does_not_try_the_same_cluster_again_at_once() -> None:
    burst = flux()
    there, observed = ledger(burst), seen(report(burst))
    ended, tried = decided(there, observed, followed(there, observed), cool_down=timedelta()).changes
    assert ended.action is Action.REVERT
    assert ended.restraint is not None
    assert ended.restraint.until == NOW + 15 * MINUTE
    assert tried.action is Action.PLACE
    assert tried.placement.cluster == "worker-3"


def test_what_has_failed_on_every_cluster_waits_for_its_cool_downs_and_says_so() -> None:
    burst = flux("worker-3")
    cooling = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=ClusterName("worker-2"),
        since=NOW - MINUTE,
        until=NOW + 4 * MINUTE,
        reason="vllm-1 on worker-2 ended: failed",
        placement=PlacementName("vllm-1"),
    )
    there, observed = ledger(burst, restraints={VLLM: (cooling,)}), seen(report(burst))
    made = decided(there, observed, followed(there, observed))
    assert [change.action for change in made.changes] == [Action.REVERT]
    (left,) = made.suppressed
    assert (left.reason, left.until) == (Reason.COOLING_DOWN, NOW + 4 * MINUTE)
    assert {one.reason for one in left.refusals} == {Reason.COOLING_DOWN}


def test_a_failure_counts_once_its_cluster_was_seen_after_it() -> None:
    burst = flux()
    said = report(burst, since=NOW - MINUTE / 2)
    assert after(burst, said, clusters=(free("worker-2", 8, at=NOW - MINUTE),)).changes == ()
    assert after(burst, said).changes[0].action is Action.REVERT


def test_what_is_at_it_has_until_the_rollout_timeout() -> None:
    there = ledger(burst := flux(minutes=15))
    watched = followed(there, seen(at=burst.changed_at), now=burst.changed_at)
    observed = seen(report(burst, EngineState.PROGRESSING, "waiting", since=burst.changed_at))
    known = followed(there, observed, before=watched)
    early = decided(there, observed, known, now=NOW - MINUTE)
    assert early.changes == ()
    assert early.wake_at == NOW == burst.changed_at + 15 * MINUTE
    late = decided(there, observed, known)
    assert [change.action for change in late.changes] == [Action.REVERT, Action.PLACE]
    assert late.changes[0].action is Action.REVERT
    assert late.changes[0].detail == "not healthy for 15m: waiting"


@pytest.mark.parametrize("state", [EngineState.FAILED, EngineState.PROGRESSING])
def test_after_a_restart_what_is_older_than_the_rollout_timeout_has_its_full_time(state: EngineState) -> None:
    there = ledger(burst := flux(minutes=60))
    said = report(burst, state, since=NOW - 30 * MINUTE)
    known = followed(there, seen(said))
    assert known.ailing[burst.path].since == NOW
    assert decided(there, seen(said), known).changes == ()
    later = NOW + 15 * MINUTE
    observed = seen(said, at=later)
    ended = decided(there, observed, followed(there, observed, now=later, before=known), now=later).changes[0]
    assert ended.action is Action.REVERT
    assert ended.detail == f"not healthy for 15m: {HELM}"


@pytest.mark.parametrize("lost", ["its cluster", "its engine"])
def test_what_fell_ill_out_of_sight_is_ill_since_it_was_seen(lost: str) -> None:
    there = ledger(burst := flux(minutes=60))
    away = NOW - 40 * MINUTE
    first = followed(there, seen(at=away, reporting="worker-2"), now=away)
    blind = (free("worker-2", 8, at=NOW - timedelta(hours=1)),) if lost == "its cluster" else ()
    reporting = "worker-2" if lost == "its cluster" else ""
    dark = followed(there, seen(at=away, clusters=blind, reporting=reporting), now=away + MINUTE, before=first)
    observed = seen(report(burst, EngineState.PROGRESSING, since=away), reporting="worker-2")
    assert followed(there, observed, before=dark).ailing[burst.path].since == NOW


def test_no_time_is_up_while_the_policy_that_gives_it_cannot_be_read() -> None:
    there = ledger(burst := flux(minutes=20))
    said = report(burst, EngineState.PROGRESSING, since=burst.changed_at)
    watched = followed(there, seen(at=burst.changed_at), now=burst.changed_at)
    known = followed(there, seen(said), before=watched)
    broken = replace(desired(ordering("worker-2")), policies={})
    for incomplete in (True, False):
        wanted = replace(broken, incomplete=incomplete)
        made = inputs(*seen().clusters.values(), wanted=wanted, there=there, now=NOW)
        ended = [one for one in decide(replace(made, rollouts=known)).changes if one.action is Action.REVERT]
        assert [one.why for one in ended] == ([] if incomplete else [EndReason.FAILED])


def test_time_counts_from_the_last_change_and_not_from_before_it() -> None:
    burst = flux(minutes=60, changed_at=NOW - MINUTE)
    said = report(burst, EngineState.PROGRESSING, since=NOW - timedelta(hours=1))
    assert after(burst, said).changes == ()


def test_an_engine_that_tries_again_and_again_does_not_begin_anew_each_time() -> None:
    there = ledger(burst := flux(minutes=60))
    first = followed(there, seen(report(burst, EngineState.PROGRESSING, since=NOW)))
    later = NOW + 15 * MINUTE
    observed = seen(report(burst, EngineState.PROGRESSING, "again", since=later), at=later)
    known = followed(there, observed, now=later, before=first)
    assert known.ailing[burst.path].since == NOW
    assert decided(there, observed, known, now=later).changes[0].action is Action.REVERT


def test_what_was_healthy_gets_its_time_to_come_back_even_where_its_engine_has_given_up() -> None:
    there = ledger(burst := flux(minutes=60))
    first = followed(there, seen(report(burst, EngineState.HEALTHY)))
    observed = seen(report(burst))
    known = followed(there, observed, before=first)
    assert decided(there, observed, known).changes == ()
    later = NOW + 15 * MINUTE
    observed = seen(report(burst), at=later)
    (ended, _) = decided(there, observed, followed(there, observed, now=later, before=known), now=later).changes
    assert ended.action is Action.REVERT
    assert ended.detail == f"no longer healthy for 15m: {HELM}"


def test_what_was_healthy_a_moment_ago_is_unwell_since_now_whatever_its_engine_says() -> None:
    there = ledger(burst := flux(minutes=60))
    first = followed(there, seen(report(burst, EngineState.HEALTHY)))
    observed = seen(report(burst, EngineState.PROGRESSING, "looks again", since=NOW - 50 * MINUTE))
    known = followed(there, observed, before=first)
    assert known.ailing[burst.path].since == NOW
    assert decided(there, observed, known).changes == ()


@pytest.mark.parametrize("blind", ["worker-2", "worker-1"])
def test_nothing_is_taken_back_because_somebody_cannot_be_seen(blind: str) -> None:
    burst = flux()
    unseen = free(blind, 8, at=NOW - timedelta(hours=1))
    assert after(burst, report(burst), clusters=(unseen,)).changes == ()


def test_a_cluster_that_comes_into_sight_again_has_its_full_time() -> None:
    there = ledger(burst := flux(minutes=60))
    said = report(burst, EngineState.PROGRESSING)
    first = followed(there, seen(said))
    dark = followed(there, seen(said, clusters=(free("worker-2", at=NOW - timedelta(hours=1)),)), before=first)
    assert dark.ailing == {}
    later = NOW + 20 * MINUTE
    back = followed(there, seen(said, at=later), now=later, before=dark)
    assert back.ailing[burst.path].since == later


@pytest.mark.parametrize("state", [EngineState.FAILED, EngineState.HEALTHY])
def test_a_report_on_another_version_only_says_that_this_one_is_not_there_yet(state: EngineState) -> None:
    there = ledger(burst := flux())
    for said, held in (
        (report(burst, state, "", digest="sha256-theirs"), {}),
        (report(burst, state, "", revision=OTHER), {(OTHER, f"{burst.path}/placement.yaml"): False}),
    ):
        known = followed(there, seen(said), held=held)
        assert known.ailing[burst.path].state is EngineState.PENDING
        assert not known.has_arrived(burst)


def test_a_later_commit_that_left_the_files_alone_is_as_good() -> None:
    there = ledger(burst := flux())
    signs = RolloutSigns.of(there, seen(report(burst, EngineState.HEALTHY, revision=OTHER)), Fleet(), NOW)
    (asked,) = doubts(Rollouts(), signs)
    assert asked == (OTHER, f"{burst.path}/placement.yaml")
    assert next_rollouts(signs, Rollouts(), {asked: True}).has_arrived(burst)


def test_a_commit_that_nobody_knows_here_proves_nothing() -> None:
    there = ledger(burst := flux(minutes=60))
    for said in EngineState:
        known = followed(there, seen(report(burst, said, revision=OTHER)))
        assert known.ailing == {}
        assert not known.has_arrived(burst)


def test_what_has_arrived_is_asked_no_more() -> None:
    there = ledger(burst := flux())
    before = followed(there, seen(report(burst, EngineState.HEALTHY)))
    signs = RolloutSigns.of(there, seen(report(burst, EngineState.HEALTHY, revision=OTHER)), Fleet(), NOW)
    assert doubts(before, signs) == frozenset()
    assert next_rollouts(signs, before, {}).has_arrived(burst)


def test_an_engine_that_cannot_say_makes_nothing_unhealthy() -> None:
    there = ledger(burst := flux(minutes=60))
    for before in (Rollouts(), followed(there, seen(report(burst, EngineState.HEALTHY)))):
        known = followed(there, seen(report(burst, EngineState.PENDING, "source is away")), before=before)
        assert known.ailing == {}


def test_engine_that_reached_nobody_ends_what_is_new_in_its_time_and_leaves_what_runs_well() -> None:
    for minutes, well in ((1, False), (60, True)):
        there = ledger(burst := flux(minutes=minutes))
        known = followed(there, seen(report(burst, EngineState.HEALTHY))) if well else Rollouts()
        for now in (NOW, NOW + 15 * MINUTE):
            observed = seen(report(burst, EngineState.PENDING, "connection refused", revision=""), at=now)
            known = followed(there, observed, now=now, before=known)
        assert (decided(there, observed, known, now=now).changes == ()) is well


def test_what_runs_well_stays_while_its_engine_cannot_get_a_new_version_of_it() -> None:
    old = {"digest": "sha256-old", "revision": OTHER}
    burst = flux(minutes=60, changed_at=NOW)
    before = followed(ledger(replace(burst, digest="sha256-old")), seen(report(burst, EngineState.HEALTHY, "", **old)))
    there, known = ledger(burst), before
    for minutes, state in ((0, EngineState.HEALTHY), (20, EngineState.PENDING), (40, EngineState.HEALTHY)):
        now = NOW + minutes * MINUTE
        observed = seen(report(burst, state, "", **old), at=now)
        known = followed(there, observed, now=now, before=known)
        assert decided(there, observed, known, now=now).changes == ()
        assert known.ailing[burst.path].message == (
            "its engine has not taken this version up; the version before it is well and stays"
        )
    got = NOW + 60 * MINUTE
    observed = seen(report(burst, EngineState.PROGRESSING), at=got)
    known = followed(there, observed, now=got, before=known)
    assert known.ailing[burst.path].since == got, "only now it has had a chance"
    late = got + 15 * MINUTE
    for state, revision in ((EngineState.PENDING, OTHER), (EngineState.PROGRESSING, TIP)):
        observed = seen(report(burst, state, revision=revision), at=late)
        held = {(OTHER, f"{burst.path}/placement.yaml"): False}
        known = followed(there, observed, now=late, before=known, held=held)
        assert decided(there, observed, known, now=late).changes[0].action is Action.REVERT, "looking again is no delay"


@pytest.mark.parametrize(("bound", "ready", "stays"), [(3, 3, True), (2, 2, True), (3, 2, False), (0, 0, False)])
def test_after_a_restart_its_pods_tell_whether_it_runs_well_while_its_engine_lacks_the_next_version(
    bound: int, ready: int, stays: bool
) -> None:
    there, known = ledger(burst := flux(minutes=60)), Rollouts()
    for minutes in (0, 15):
        now = NOW + minutes * MINUTE
        here = pods(at=now, bound={burst.name: bound}, ready={burst.name: ready})
        observed = seen(report(burst, EngineState.PENDING, "no git", digest="sha256-old"), at=now, clusters=(here,))
        known = followed(there, observed, now=now, before=known)
    assert (decided(there, observed, known, now=now).changes == ()) is stays
    assert known.ailing[burst.path].behind is stays


def test_pods_that_are_ready_prove_nothing_of_a_version_that_nobody_names() -> None:
    there = ledger(burst := flux(minutes=60))
    here = pods(bound={burst.name: 2}, ready={burst.name: 2})
    known = followed(there, seen(report(burst, EngineState.PENDING, digest=""), clusters=(here,)))
    assert not known.ailing[burst.path].behind


@pytest.mark.parametrize("lost", ["its cluster", "its engine", "all that is said of it"])
def test_what_runs_well_stays_when_it_comes_into_sight_again_and_its_engine_still_lacks_the_next_version(
    lost: str,
) -> None:
    there = ledger(burst := flux(minutes=60))
    old = ledger(replace(burst, digest="sha256-old"))
    without = report(burst, EngineState.PENDING, "no git", digest="sha256-old", revision=OTHER)
    well = report(burst, EngineState.HEALTHY, digest="sha256-old")
    known = followed(there, seen(without), before=followed(old, seen(well)))
    blind = (free("worker-2", 8, at=NOW - timedelta(hours=1)),) if lost == "its cluster" else ()
    counted = (pods(bound={burst.name: 2}, ready={burst.name: 2}),) if lost == "its engine" else ()
    said = (without,) if lost == "its cluster" else ()
    for minutes in (1, 2):
        now = NOW + minutes * MINUTE
        observed = seen(*said, clusters=(*blind, *counted))
        known = followed(there, observed, now=now, before=known)
        assert decided(there, observed, known, now=now).changes == ()
    for minutes in (3, 20, 40):
        now = NOW + minutes * MINUTE
        observed = seen(without, at=now)
        known = followed(there, observed, now=now, before=known)
        assert decided(there, observed, known, now=now).changes == ()
    got = NOW + 60 * MINUTE
    known = followed(there, seen(report(burst, EngineState.PROGRESSING), at=got), now=got, before=known)
    assert (known.ailing[burst.path].since, known.ailing[burst.path].behind) == (got, False), "only now it has its time"


def test_what_was_not_well_does_not_stay_because_its_engine_has_not_got_the_next_version() -> None:
    old = {"digest": "sha256-old", "revision": OTHER}
    there = ledger(burst := flux(minutes=60))
    said = report(burst, EngineState.PROGRESSING, **old)
    known = followed(there, seen(said))
    later = NOW + 15 * MINUTE
    for state in (EngineState.PROGRESSING, EngineState.PENDING, EngineState.FAILED):
        observed = seen(replace(said, state=state), at=later)
        ended = decided(there, observed, followed(there, observed, now=later, before=known), now=later).changes[0]
        assert ended.action is Action.REVERT


def test_a_watched_engine_that_has_nothing_of_a_placement_has_failed_it_in_the_end() -> None:
    there = ledger(burst := flux(minutes=60))
    assert followed(there, seen()).ailing == {}, "nobody watches the engine"
    known = followed(there, seen(reporting="worker-2"))
    assert known.ailing[burst.path].message == "its engine has nothing of it"
    later = NOW + 15 * MINUTE
    observed = seen(at=later, reporting="worker-2")
    ended = decided(there, observed, followed(there, observed, now=later, before=known), now=later).changes[0]
    assert ended.action is Action.REVERT
    assert ended.detail == "not healthy for 15m: its engine has nothing of it"


@pytest.mark.parametrize(("old", "new"), [(EngineName.FLUX, EngineName.ARGOCD), (EngineName.ARGOCD, EngineName.FLUX)])
@pytest.mark.parametrize("count", [{"bound": {"vllm-2090500": 3}, "ready": {"vllm-2090500": 3}}, {}])
def test_what_runs_well_stays_when_its_cluster_gets_another_engine(
    old: EngineName, new: EngineName, count: dict[str, object]
) -> None:
    there = ledger(burst := flux(minutes=60, engine=old))
    known = followed(there, seen(report(burst, EngineState.HEALTHY), reporting="worker-2", by=old))
    for minutes in (1, 20):
        now = NOW + minutes * MINUTE
        observed = seen(at=now, clusters=(pods(at=now, **count),), reporting="worker-2", by=new)
        known = followed(there, observed, now=now, before=known)
        assert decided(there, observed, known, now=now).changes == ()
        assert known.ailing == {}


def test_pods_tell_of_what_another_engine_of_its_cluster_had() -> None:
    there = ledger(burst := flux(minutes=60, engine=EngineName.FLUX))
    stuck = pods(bound={burst.name: 3}, ready={burst.name: 1})
    known = followed(there, seen(clusters=(stuck,), reporting="worker-2", by=EngineName.ARGOCD))
    assert known.ailing[burst.path].message == "1 of 3 ready"


def test_a_cluster_with_another_engine_has_been_watched_since_then() -> None:
    there = ledger(burst := flux(minutes=60))
    before = followed(there, seen(reporting="worker-2", by=EngineName.ARGOCD))
    later = NOW + 5 * MINUTE
    said = report(burst, EngineState.PROGRESSING, since=NOW)
    known = followed(there, seen(said, at=later, reporting="worker-2"), now=later, before=before)
    assert (known.watched[burst.cluster], known.ailing[burst.path].since) == (later, later)


@pytest.mark.parametrize("count", [3, 2])
@pytest.mark.parametrize("forgotten", [False, True])
def test_what_is_ready_stays_and_is_told_though_its_engine_has_nothing_of_it(count: int, forgotten: bool) -> None:
    there = ledger(burst := flux(minutes=60))
    before = (
        Rollouts() if forgotten else followed(there, seen(report(burst, EngineState.HEALTHY), reporting="worker-2"))
    )
    known, told_of = before, []
    for minutes in (1, 20):
        now = NOW + minutes * MINUTE
        ready = pods(at=now, bound={burst.name: count}, ready={burst.name: count})
        observed = seen(at=now, clusters=(ready,), reporting="worker-2")
        earlier, known = known, followed(there, observed, now=now, before=known)
        told_of += known.new_failures(earlier)
        assert decided(there, observed, known, now=now).changes == ()
        assert known.ailing[burst.path].message == "its engine has nothing of it; all its pods are ready, and it stays"
    assert [path for path, _ in told_of] == ([] if forgotten else [burst.path]), "once"
    late = NOW + 40 * MINUTE
    for now in (late, late + 15 * MINUTE):
        observed = seen(
            at=now, clusters=(pods(at=now, bound={burst.name: 3}, ready={burst.name: 2}),), reporting="worker-2"
        )
        known = followed(there, observed, now=now, before=known)
        assert known.ailing[burst.path].since == late
    assert decided(there, observed, known, now=now).changes[0].action is Action.REVERT, (
        "not all of it is ready any more"
    )


def pods(**fields: object) -> ClusterObservation:
    return free("worker-2", 8, **fields)


def test_without_an_engines_word_the_pods_tell() -> None:
    there = ledger(burst := flux(engine=EngineName.MANIFESTS))
    trouble = "2 of 3 pods ImagePullBackOff: image registry.example.com/vllm:2"
    stuck = pods(bound={burst.name: 3}, ready={burst.name: 1}, waiting_reasons={burst.name: trouble})
    known = followed(there, seen(clusters=(stuck,)))
    assert known.ailing[burst.path].message == f"1 of 3 ready; {trouble}"
    later = NOW + 15 * MINUTE
    observed = seen(at=later, clusters=(replace(stuck, observed_at=later),))
    ended, tried = decided(there, observed, followed(there, observed, now=later, before=known), now=later).changes
    assert ended.action is Action.REVERT
    assert ended.detail == f"not healthy for 15m: 1 of 3 ready; {trouble}"
    assert tried.action is Action.PLACE
    assert tried.placement.cluster == "worker-3"


def test_router_that_is_ready_is_no_replica() -> None:
    there = ledger(burst := flux(engine=EngineName.MANIFESTS, replicas=1))
    here: dict[str, object] = {"bound": {burst.name: 1}, "ready": {burst.name: 1}}
    router = pods(**here, non_gpu_pods={burst.name: NonGpuPods(bound=1, ready=1)})
    assert not followed(there, seen(clusters=(router,))).has_arrived(burst)
    assert followed(there, seen(clusters=(pods(**here),))).has_arrived(burst)


def test_pods_that_are_ready_are_enough() -> None:
    there = ledger(burst := flux(engine=EngineName.MANIFESTS))
    known = followed(there, seen(clusters=(pods(bound={burst.name: 3}, ready={burst.name: 3}),)))
    assert known.has_arrived(burst)


@pytest.mark.parametrize("ready", [{}, {"few": 1}])
def test_pods_that_are_not_there_prove_nothing(ready: dict[str, int]) -> None:
    there = ledger(burst := flux(engine=EngineName.MANIFESTS))
    few = dict.fromkeys([burst.name], 1) if ready else {}
    known = followed(there, seen(clusters=(pods(bound=few, ready=few),)))
    assert known.ailing == {}
    assert not known.has_arrived(burst)


def test_what_its_engine_calls_healthy_is_not_in_flight_though_its_pods_cannot_be_told_apart() -> None:
    there = ledger(burst := flux())
    full = seen(clusters=(short(6, since=NOW - timedelta(hours=1)), free("worker-2", 3)))
    (placed,) = decided(there, full, Rollouts()).changes
    assert placed.action is Action.PLACE
    assert placed.placement.cluster == "worker-3", (
        "worker-2 has three GPUs free, and three replicas on their way to them"
    )
    healthy = followed(there, seen(report(burst, EngineState.HEALTHY)))
    (grown,) = decided(there, full, healthy).changes
    assert grown.action is Action.RESIZE
    assert (grown.after.cluster, grown.after.replicas) == ("worker-2", 6)


def test_pods_without_a_node_of_what_has_ended_take_room_until_they_are_gone() -> None:
    gone = {PlacementName("vllm-gone"): PendingPods(replicas=6, shape=shape())}
    there = ledger()
    crowded = seen(clusters=(free("worker-2", 8, pending_pods=gone),))
    first, second = decided(there, crowded, Rollouts()).changes
    assert first.action is Action.PLACE
    assert second.action is Action.PLACE
    assert [(one.placement.cluster, one.placement.replicas) for one in (first, second)] == [
        ("worker-2", 2),
        ("worker-3", 1),
    ]


def test_what_has_ended_and_is_still_there_is_told() -> None:
    burst = flux()
    known = followed(ledger(), seen(report(burst, leaving=True)))
    assert [one.path for one in known.leaving] == [burst.path]


def test_what_has_ended_and_stays_is_overdue_after_ten_minutes() -> None:
    burst, before = flux(), Rollouts()
    overdue = []
    for minutes in (0, 9, 10):
        at = NOW + minutes * MINUTE
        observed = seen(report(burst, state=EngineState.PENDING), at=at)
        before = followed(ledger(), observed, now=at, before=before)
        overdue += [before.is_overdue(one, at) for one in before.leaving]
    assert overdue == [False, False, True]
    there = followed(ledger(burst), seen(report(burst)), now=NOW + 11 * MINUTE, before=before)
    assert there.cluster(burst.cluster).leaving_since == {}


def test_signs_that_are_the_same_objects_are_no_news() -> None:
    there, observed = ledger(flux()), seen()
    signs = RolloutSigns.of(there, observed, Fleet(), NOW)
    assert signs.same_as(RolloutSigns.of(there, replace(observed, problems=()), Fleet(), NOW))
    assert not signs.same_as(RolloutSigns.of(ledger(flux()), observed, Fleet(), NOW))
    assert not signs.same_as(RolloutSigns.of(there, observed, Fleet(), NOW + timedelta(hours=1))), (
        "nobody is seen any more"
    )
    assert not signs.same_as(None)


def test_the_time_of_a_burst_that_waited_for_nodes_begins_when_its_pods_get_some() -> None:
    burst, hour = placement(created=NOW - 5 * MINUTE, digest=OURS, lasting=timedelta(hours=9)), 60 * MINUTE
    there, before, since = ledger(burst), Rollouts(), []
    for at, bound, ready in ((NOW, 3, 3), (NOW + MINUTE, 1, 1), (NOW + hour, 3, 1), (NOW + hour + MINUTE, 3, 1)):
        waiting = PendingPods(replicas=3 - bound, shape=shape(), since=NOW + MINUTE)
        pods = {"bound": {burst.name: bound}, "ready": {burst.name: ready}}
        pending = {"pending_pods": {burst.name: waiting}} if bound < 3 else {}
        observed = seen(at=at, clusters=[free("worker-2", at=at, **pods, **pending)])
        before = followed(there, observed, now=at, before=before)
        failure = before.ailing.get(burst.path)
        since.append(failure and (failure.waits, failure.since))
    assert since == [None, (True, NOW + MINUTE), (False, NOW + hour), (False, NOW + hour)]


def test_burst_that_is_resized_while_it_waits_for_nodes_goes_on_waiting() -> None:
    burst = placement(created=NOW - 5 * MINUTE, digest=OURS, lasting=timedelta(hours=9))
    smaller = replace(burst, replicas=2, changed_at=NOW + 2 * MINUTE, digest="sha256-smaller")
    before, waits = Rollouts(), []
    for at, version, bound in ((NOW, burst, 3), (NOW + MINUTE, burst, 0), (NOW + 60 * MINUTE, smaller, 0)):
        waiting = PendingPods(replicas=version.replicas - bound, shape=shape(), since=NOW + MINUTE)
        pods = {"bound": {burst.name: bound}, "ready": {burst.name: bound}}
        pending = {} if bound else {"pending_pods": {burst.name: waiting}}
        before = followed(
            ledger(version), seen(at=at, clusters=[free("worker-2", at=at, **pods, **pending)]), now=at, before=before
        )
        failure = before.ailing.get(burst.path)
        waits.append(failure and failure.waits)
    assert waits == [None, True, True]


WORDS = "TrainJob llm has failed: jobset failed due to one or more job failures"


def failing(burst: Placement) -> ClusterObservation:
    """Observe an object of a placement whose status says that it has failed; its pods are gone."""
    said = FailedObject(message=WORDS, since=NOW - MINUTE / 2)
    return free(burst.cluster, 8, failed={burst.name: said})


@pytest.mark.parametrize("healthy", [True, False], ids=["its engine calls it healthy", "no engine is seen"])
def test_what_says_itself_that_it_has_failed_ends_with_its_words(healthy: bool) -> None:
    burst = flux()
    reports = [report(burst, EngineState.HEALTHY, "")] * healthy
    ended, tried = after(burst, *reports, clusters=(failing(burst),)).changes
    assert ended.action is Action.REVERT
    assert (ended.why, ended.phase, ended.detail) == (EndReason.FAILED, Phase.FAILED, WORDS)
    assert tried.action is Action.PLACE
    assert tried.placement.cluster == "worker-3"


def test_what_ran_and_says_itself_that_it_has_failed_is_given_the_rollout_timeout() -> None:
    burst = flux()
    there, well = ledger(burst), seen(report(burst, EngineState.HEALTHY, ""))
    before = followed(there, well, now=NOW - MINUTE)
    now_failed = seen(*well.reports.values(), clusters=(failing(burst),))
    assert [*stale_clusters(before, RolloutSigns.of(there, now_failed, Fleet(), NOW))] == ["worker-2"]
    known = followed(there, now_failed, before=before)
    assert decided(there, now_failed, known).changes == ()
    later = NOW + 15 * MINUTE
    again = seen(*well.reports.values(), at=later, clusters=(replace(failing(burst), observed_at=later),))
    known = followed(there, again, before=known, now=later)
    ended = decided(there, again, known, now=later).changes[0]
    assert ended.action is Action.REVERT
    assert ended.detail == f"no longer healthy for 15m: {WORDS}"


KUEUE = "kueue queue-a evicted it (Preempted): Preempted to accommodate a workload"


def queued_on(burst: Placement, at: datetime, *, since: datetime = NOW) -> ClusterObservation:
    """Observe that Kueue has ended the pods of a burst."""
    waiting = PendingPods(replicas=burst.replicas, shape=shape(), since=since)
    there = {"unadmitted": {burst.name: KUEUE}, "waiting_reasons": {burst.name: KUEUE}}
    return free("worker-2", 8, at=at, pending_pods={burst.name: waiting}, **there)


@pytest.mark.parametrize("engine", [EngineName.FLUX, EngineName.MANIFESTS])
def test_a_burst_that_kueue_has_evicted_is_not_healthy_whatever_its_engine_said_before(engine: EngineName) -> None:
    there = ledger(burst := flux(engine=engine))
    healthy = [report(burst, EngineState.HEALTHY, "")] if engine is EngineName.FLUX else []
    serving = free("worker-2", 8, bound={burst.name: burst.replicas}, ready={burst.name: burst.replicas})
    known = followed(there, seen(*healthy, clusters=(serving,)))
    assert known.has_arrived(burst)
    evicted_at = NOW + MINUTE
    gone = seen(*healthy, at=evicted_at, clusters=(queued_on(burst, evicted_at),))
    after_it = followed(there, gone, now=evicted_at, before=known)
    failure = after_it.ailing[burst.path]
    assert KUEUE in failure.message
    assert (failure.since, failure.waits, failure.state) == (evicted_at, True, EngineState.PROGRESSING)
    assert [path for path, _ in after_it.new_failures(known)] == [burst.path]
    back = evicted_at + MINUTE
    recovered = seen(*healthy, at=back, clusters=(replace(serving, observed_at=back),))
    assert not followed(there, recovered, now=back, before=after_it).ailing


def test_a_burst_that_kueue_has_never_admitted_has_not_arrived_though_its_engine_has_applied_it() -> None:
    there = ledger(burst := flux())
    applied = seen(report(burst, EngineState.HEALTHY, ""), clusters=(queued_on(burst, NOW),))
    known = followed(there, applied)
    assert not known.has_arrived(burst)
    assert known.ailing[burst.path].message == KUEUE
    assert not list(known.new_failures(Rollouts())), "it is on its way"


def test_the_engines_failure_and_an_older_version_are_told_before_the_queue() -> None:
    there = ledger(burst := flux())
    failed = followed(there, seen(report(burst), clusters=(queued_on(burst, NOW),)))
    assert failed.ailing[burst.path].state is EngineState.FAILED
    other = replace(report(burst, EngineState.HEALTHY, ""), digest="sha256-other")
    assert followed(there, seen(other, clusters=(queued_on(burst, NOW),))).ailing[burst.path].behind


def test_what_runs_once_and_was_evicted_ends_after_the_rollout_timeout_in_kueues_words() -> None:
    there = ledger(burst := flux())
    serving = free("worker-2", 8, bound={burst.name: burst.replicas}, ready={burst.name: burst.replicas})
    known = followed(there, seen(report(burst, EngineState.HEALTHY, ""), clusters=(serving,)))
    late = NOW + 15 * MINUTE
    for now in (NOW + MINUTE, late + MINUTE):
        observed = seen(report(burst, EngineState.HEALTHY, ""), at=now, clusters=(queued_on(burst, now),))
        known = followed(there, observed, now=now, before=known)
    wanted = desired(ordering("worker-2", "worker-3"))
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], runs_once=True)})
    made = inputs(*observed.clusters.values(), wanted=wanted, there=there, now=late + MINUTE)
    ended = decide(replace(made, observed=observed, rollouts=known)).changes[0]
    assert ended.action is Action.REVERT
    assert ended.detail == f"no longer healthy for 15m: {KUEUE}"
