"""Replicas that are no gang and share a topology domain, as a StatefulSet in Kueue: one cluster takes all that go."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.capacity.gangs import shares_domain
from reconciler.core.decide.decide import decide
from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.explain.workload import explain
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, PendingPods
from reconciler.model.demand import Sample
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.group_bursts import fleet, grouped
from tests.builders.inputs import NOW, VLLM, inputs, ledger, ordering, placement, plan, seconds, shape, short
from tests.builders.platform_objects import obj
from tests.builders.workload_kinds import lws, pod, run, template, workload
from tests.capacity.test_exclusive_topology import named, racks
from tests.capacity.test_shared_topology import KAI, POD_SET, SLICE, SLICE_SIZE
from tests.decide.test_units import manifest, read

TWO_RACKS, ONE_RACK = ((8, 8), (8, 8)), ((8, 8, 8, 8),)


def annotated(made: Json, *, on: str = "template", **annotations: str) -> Json:
    """Add annotations to the pod template of an object, or to the object."""
    if on == "object":
        return {**made, "metadata": {**made["metadata"], "annotations": annotations}}
    pods = made["spec"]["template"]
    return {
        **made,
        "spec": {**made["spec"], "template": {**pods, "metadata": {**pods["metadata"], "annotations": annotations}}},
    }


def stateful(replicas: Json = "{{ replicas }}", *, kind: str = "StatefulSet", **annotations: str) -> Json:
    return annotated(workload("apps/v1", kind, {"replicas": replicas, "template": template(8)}), **annotations)


def work_queue(**annotations: str) -> Json:
    """Make a Job without completions, which several may work off."""
    return annotated(workload("batch/v1", "Job", {"parallelism": "{{ replicas }}", "template": run(8)}), **annotations)


def channel_claims() -> tuple[Json, Json]:
    """Make a Deployment whose pods claim the channel of a ComputeDomain, and that."""
    spec = {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": "imex"}}}
    claims = {"resourceClaims": [{"name": "imex", "resourceClaimTemplateName": "imex"}]}
    pods = {"metadata": {"labels": {"app": "model"}}, "spec": {**pod(8), **claims}}
    made = workload("apps/v1", "Deployment", {"replicas": "{{ replicas }}", "template": pods})
    return made, obj("resource.nvidia.com/v1beta1", "ComputeDomain", "rack", spec)


def places(decided: Plan) -> list[tuple[ClusterName, int]]:
    return [
        (change.placement.cluster, change.placement.replicas)
        for change in decided.changes
        if change.action is Action.PLACE
    ]


def refusals(decided: Plan) -> list[str]:
    return [refusal.message for held in decided.suppressed for refusal in held.refusals]


def lacks(replicas: int) -> ClusterObservation:
    return short(replicas, running=0, replica=shape(8))


@pytest.mark.parametrize(
    ("objects", "shares"),
    [
        ([stateful(**{POD_SET: "rack"})], True),
        ([stateful(**{SLICE: "rack", SLICE_SIZE: "2"})], True),
        ([stateful(on="object", **{KAI: "rack"})], True),
        ([work_queue(**{POD_SET: "rack"})], True),
        ([*channel_claims()], True),
        ([stateful()], False),
        ([stateful(kind="Deployment", **{POD_SET: "rack"})], False),
        ([stateful(on="object", **{POD_SET: "rack"})], False),
        ([stateful(**{"kueue.x-k8s.io/podset-preferred-topology": "rack"})], False),
        ([stateful(kind="Deployment"), stateful(3, **{POD_SET: "rack"})], False),
        ([annotated(lws("{{ replicas }}", 4), on="object", **{KAI: "rack"})], False),
    ],
    ids=[
        "a StatefulSet of Kueue",
        "slices",
        "a StatefulSet of KAI",
        "a work queue",
        "a ComputeDomain",
        "no topology",
        "pods that are admitted one by one",
        "Kueue reads templates",
        "preferred",
        "other pods of a fixed number",
        "a gang has domains for its groups",
    ],
)
def test_replicas_share_a_domain_where_more_of_them_need_a_larger_one(objects: list[Json], shares: bool) -> None:
    assert shares_domain(grouped(*objects), NO_KINDS) is shares


def test_a_template_of_files_says_that_its_replicas_share_a_domain() -> None:
    def share(annotation: str) -> bool:
        made = manifest("apps/v1", "StatefulSet", stateful(2, **{annotation: "rack"})["spec"])
        return read("StatefulSet", made).templates[VLLM].shares_domain

    assert share(POD_SET)
    assert not share("kueue.x-k8s.io/podset-preferred-topology")


@pytest.mark.parametrize(
    "objects",
    [[stateful(**{POD_SET: "rack"})], [work_queue(**{POD_SET: "rack"})], [stateful(on="object", **{KAI: "rack"})]],
    ids=["StatefulSet", "Job without completions", "KAI"],
)
def test_all_go_where_one_domain_holds_them(objects: list[Json]) -> None:
    seen = [lacks(4), racks(*TWO_RACKS), racks(*ONE_RACK, name="worker-3")]
    decided = plan(*seen, wanted=fleet(*objects))
    assert places(decided) == [("worker-3", 4)]
    (place,) = decided.changes
    assert place.action is Action.PLACE
    assert place.choice is not None
    assert place.choice.because == "one domain of rack for its 4 pods"
    assert [refusal.message for refusal in place.refused] == [
        "wants its 4 pods in one domain of rack: the largest of 2 domains, r0, holds 2 of 4"
    ]
    assert places(plan(*seen[:2], wanted=fleet(*objects))) == []


def test_the_part_that_a_maximum_allows_shares_a_domain_too() -> None:
    wanted = fleet(stateful(**{POD_SET: "rack"}), policy=ordering("worker-2", "worker-3", max_replicas=2))
    assert places(plan(lacks(4), racks(*TWO_RACKS), wanted=wanted)) == [("worker-2", 2)]


def test_slices_that_do_not_divide_the_replicas_fit_nowhere() -> None:
    wanted = fleet(stateful(**{SLICE: "rack", SLICE_SIZE: "3"}))
    decided = plan(lacks(4), racks(*ONE_RACK), wanted=wanted)
    assert places(decided) == []
    assert (
        refusals(decided)[0] == f"wants slices of its pods in topology domains ({SLICE}), which cannot be counted here"
    )


def placed(age: int = 300) -> Placement:
    return placement(replicas=4, shape=shape(8), created=NOW - seconds(age))


def test_more_replicas_have_a_domain_of_another_cluster() -> None:
    there, wanted = placed(), fleet(stateful(**{POD_SET: "rack"}))
    here = racks((8,) * 8, bound={there.name: 4})
    for seen, gone in (([here, racks(*TWO_RACKS, name="worker-3")], [("worker-3", 2)]), ([here], [])):
        decided = plan(lacks(6), *seen, wanted=wanted, there=ledger(there))
        assert places(decided) == gone
        assert len(decided.changes) == len(gone)
    assert refusals(decided)[0] == (
        "has 4 replicas in a topology domain that more would have to join, and nobody knows which"
    )


def test_replicas_on_their_way_keep_the_room_of_one_domain() -> None:
    there, second = placed(age=5), WorkloadId(VLLM.workspace, TemplateName("second"))
    wanted = fleet(stateful(**{POD_SET: "rack"}), policy=ordering("worker-2"))
    ref = WorkloadRef(namespace="demo", name="second")
    other = replace(grouped(named(stateful(**{POD_SET: "rack"}), "second")), name=second.name, ref=ref)
    wanted = replace(
        wanted,
        templates={**wanted.templates, second: other},
        policies={VLLM: ordering("worker-2"), second: ordering("worker-2")},
    )
    home, more = lacks(4), short(4, running=0, replica=shape(8), workload=second)
    home = replace(home, workloads=(*home.workloads, *more.workloads))
    for racked, number in (([(8, 8), (8,) * 6], 0), ([(8, 8), (8,) * 8], 1)):
        assert len(places(plan(home, racks(*racked), wanted=wanted, there=ledger(there)))) == number


@pytest.mark.parametrize("missing", [3, 1, 0])
def test_a_domain_is_given_back_whole(missing: int) -> None:
    there, wanted = placed(), fleet(stateful(**{POD_SET: "rack"}))
    history = {VLLM: (Sample(at=NOW - timedelta(hours=2), missing=missing, asked=False),)}
    seen = [lacks(missing), racks((8,) * 4, bound={there.name: 4})]
    decided = plan(*seen, wanted=wanted, there=ledger(there), history=history)
    assert [change.action for change in decided.changes] == ([] if missing else [Action.REVERT])


def test_replicas_without_a_node_move_where_one_domain_holds_all_of_them() -> None:
    there, wanted = placed(), fleet(stateful(**{POD_SET: "rack"}))
    waiting = PendingPods(replicas=4, shape=shape(8), since=NOW - seconds(200))
    stuck = racks((), pending_pods={there.name: waiting})

    def moves(*each: tuple[int, ...]) -> list[ClusterName]:
        decided = plan(lacks(4), stuck, racks(*each, name="worker-3"), wanted=wanted, there=ledger(there))
        return [change.after.cluster for change in decided.changes if change.action is Action.MOVE]

    assert moves(*ONE_RACK) == ["worker-3"]
    assert moves(*TWO_RACKS) == []


def test_a_rebalance_of_what_shares_a_domain_is_refused() -> None:
    there, wanted = placed(), fleet(stateful(**{POD_SET: "rack"}))
    with pytest.raises(InvalidInput, match="its replicas go together, since they share a topology domain"):
        rebalance(inputs(lacks(4), racks(*ONE_RACK), wanted=wanted, there=ledger(there)), VLLM, by="ada")


def test_explain_says_what_the_largest_domain_holds() -> None:
    wanted = fleet(stateful(**{POD_SET: "rack"}), policy=ordering("worker-2"))
    given = inputs(lacks(4), racks(*TWO_RACKS), wanted=wanted)
    assessed, *_ = explain(VLLM, given, decide(given)).assessments
    assert assessed.refusal is not None
    assert assessed.refusal.message == (
        "wants its 4 pods in one domain of rack: the largest of 2 domains, r0, holds 2 of 4"
    )
