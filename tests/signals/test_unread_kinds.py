"""Workload objects that nobody can read: nothing is given back for that, and what runs once gets no copy."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.sources.observed_contents import observed_contents
from reconciler.core.observe.demand import Measured, measure, next_history
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.watch import Effect
from reconciler.model.action import Action
from reconciler.model.capacity import Observed, UnreadKind
from reconciler.model.demand import Sample
from reconciler.model.ids import ClusterName
from reconciler.model.ledger import Ledger
from reconciler.model.manifest_source import SourceKey, UnreadSource, WorkloadSource
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired
from reconciler.preview import PreviewView
from tests.builders.inputs import NOW, VLLM, desired, free, inputs, ledger, ordering, placement, seconds, short
from tests.decide.test_runs_once import INDEXED, made_of
from tests.signals.test_freshness import Seen

WATCHED = (Sample(at=NOW - timedelta(hours=1), missing=0, asked=False),)
LATELY, LONG_AGO = NOW - seconds(60), NOW - timedelta(minutes=3)
WHY = "forbids it (apply bootstrap/rbac.yaml there)"
SERVING = desired(ordering("worker-2", scale_down_window=seconds(60)))


def unread(kind: str = "TrainJob", group: str = "trainer.kubeflow.org", at: datetime | None = None) -> UnreadKind:
    return UnreadKind(kind=kind, group=group, title=f"{kind.lower()}s.{group}", why=WHY, at=at)


def lost(
    *kinds: UnreadKind,
    kind: str = "TrainJob",
    group: str = "",
    missing: int = 0,
    started: str = "",
    wanted: Desired = SERVING,
    there: Ledger | None = None,
) -> PassInput:
    """Tell of a workload of a kind, on a primary that does not let anybody read these kinds."""
    base = inputs(
        short(missing, running=0, held=True, started=started), free("worker-2", 8), wanted=wanted, there=there
    )
    primary = base.observed.clusters["worker-1"]
    seen = replace(primary.workloads[0], ref=replace(primary.workloads[0].ref, kind=kind, group=group))
    primary = replace(primary, workloads=(seen,), unread=kinds)
    observed = replace(base.observed, clusters={**base.observed.clusters, "worker-1": primary})
    return replace(base, observed=observed, demands=measure(wanted, observed, {VLLM: WATCHED}, NOW))


@pytest.mark.parametrize("at", [None, LATELY, LONG_AGO])
def test_what_runs_once_gets_no_copy_while_nobody_can_read_it(at: datetime | None) -> None:
    there = lost(unread(at=at), missing=6, wanted=made_of(INDEXED))
    (held,) = decide(there).suppressed
    assert (decide(there).changes, held.reason) == ((), Reason.RUNS_ONCE)
    assert held.message == (
        "on worker-1 its TrainJob cannot be read: it may begin there unseen (forbids it (apply bootstrap/rbac.yaml"
        " there)), and a copy elsewhere would do the same work again"
    )


def test_what_serves_bursts_by_its_pods_though_nobody_can_read_it() -> None:
    there = lost(unread(), missing=3)
    assert [each.action for each in decide(there).changes] == [Action.PLACE]
    assert there.demands[VLLM].note == (
        f"on worker-1 its TrainJob cannot be read: its pods alone tell what is missing ({WHY})"
    )
    assert there.demands[VLLM].claimed == ""


def test_nothing_is_given_back_while_an_object_cannot_be_read_any_more() -> None:
    there = lost(unread(at=LONG_AGO), there=ledger(placement(replicas=3)))
    assert (decide(there).changes, next_history(there.demands)) == ((), {})
    (kept,) = decide(there).suppressed
    assert kept.reason is Reason.SIGNAL_UNHEARD
    assert kept.message == (
        f"trainjobs.trainer.kubeflow.org of worker-1 last answered 3m ago ({WHY}); its 3 replicas elsewhere stay until"
        " they expire"
    )


@pytest.mark.parametrize("at", [None, LATELY], ids=["never allowed", "lately"])
def test_what_is_not_needed_is_given_back_by_its_pods(at: datetime | None) -> None:
    there = lost(unread(at=at), there=ledger(placement(replicas=3)))
    assert [each.action for each in decide(there).changes] == [Action.REVERT]


def test_a_copy_elsewhere_ends_where_kueue_has_begun_what_nobody_can_read() -> None:
    there = lost(
        unread(at=LONG_AGO),
        started="kueue queue-a has dispatched it to worker-9 by MultiKueue",
        wanted=made_of(INDEXED),
        there=ledger(placement("worker-2", 6)),
    )
    assert [each.action for each in decide(there).changes] == [Action.REVERT]


@pytest.mark.parametrize(
    ("kind", "group", "is_meant"),
    [
        ("Job", "", False),
        ("Job", "batch", False),
        ("Job", "batch.volcano.sh", True),
        ("TrainJob", "", False),
    ],
)
def test_kind_of_kubernetes_is_not_meant_by_another_of_its_name(kind: str, group: str, is_meant: bool) -> None:
    there = lost(unread("Job", "batch.volcano.sh", at=LONG_AGO), kind=kind, group=group)
    assert bool(there.demands[VLLM].stale) is is_meant


def test_demand_is_measured_anew_while_what_was_read_once_grows_old() -> None:
    there = lost(unread(at=LATELY), missing=0)
    before = Measured(demands=there.demands, desired=SERVING, observed=there.observed, now=NOW)
    later = NOW + seconds(90)
    cluster = replace(there.observed.clusters["worker-1"], observed_at=later)
    observed = replace(there.observed, clusters={**there.observed.clusters, "worker-1": cluster})
    assert not there.demands[VLLM].stale
    assert measure(SERVING, observed, next_history(there.demands), later, before=before)[VLLM].stale


def test_what_was_read_lately_counts_as_such_when_another_moment_is_looked_at() -> None:
    later = timedelta(hours=1)
    for at in (LATELY, LONG_AGO, None):
        view = PreviewView(view=Seen(lost(unread(at=at)).observed), now=NOW, fresh=timedelta(minutes=2), later=later)
        demand = measure(SERVING, view.observe(), {}, NOW + later)[VLLM]
        assert bool(demand.stale) is (at is LONG_AGO)


def test_source_that_cannot_be_read_names_the_right_that_is_missing() -> None:
    source = WorkloadSource(kind="TrainJob", group="trainer.kubeflow.org", namespace="demo", name="mnist")
    key = SourceKey(source, ClusterName("worker-1"))
    (content,) = observed_contents([key], lost(unread()).observed).values()
    assert isinstance(content, UnreadSource)
    assert content.message == f"TrainJob demo/mnist cannot be read on worker-1: {WHY}"
    (content,) = observed_contents([key], Observed(clusters=lost().observed.clusters)).values()
    assert isinstance(content, UnreadSource)
    assert content.message == "worker-1 reports no TrainJob demo/mnist"


def test_only_what_decides_nothing_by_its_absence_is_empty_where_it_is_not_served() -> None:
    named = {Effect.UNSEEN: set[str](), Effect.EMPTY: set[str](), Effect.UNKNOWN: set[str]()}
    for resource in Resource:
        named[resource.gap.absent].add(resource.plural)
    assert named == {
        Effect.UNSEEN: {"nodes", "pods", "deployments", "statefulsets", "replicasets", "jobs"},
        Effect.EMPTY: {
            "events",
            "horizontalpodautoscalers",
            "workloads",
            "localqueues",
            "clusterqueues",
            "cohorts",
            "resourceflavors",
            "namespaces",
            "resourcequotas",
            "priorityclasses",
            "resourceclaimtemplates",
            "trainingruntimes",
            "clustertrainingruntimes",
        },
        Effect.UNKNOWN: {
            "resourceslices",
            "resourceclaims",
            "deviceclasses",
            "runtimeclasses",
            "limitranges",
            "nodepools",
        },
    }
    assert not [resource for resource in Resource if resource.gap.forbidden is Effect.EMPTY]
