"""Groups whose pods have to run in one topology domain fit where one domain holds all pods of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.shared_topology import DomainShortage, SharedDomain, assign_shared_domains, largest_domain
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.request import explain_request
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, DeviceKind, DeviceStock, Node, Pool
from reconciler.model.ids import ClusterName
from reconciler.model.plan import Plan
from reconciler.model.workload import Json
from tests.builders.examples import examples
from tests.builders.group_bursts import fleet, lacks
from tests.builders.inputs import NOW, free, gpus, inputs, plan, shape
from tests.builders.platform_objects import obj
from tests.builders.requests import BOOKINFO, deployment, holds, manifests, placed, record, request, wants
from tests.builders.workload_kinds import SAMPLES, lws, pod, template
from tests.capacity.test_exclusive_topology import decided, fits, marked, named, racks
from tests.capacity.test_gangs import refused

POD_SET = "kueue.x-k8s.io/podset-required-topology"
GROUP = "kueue.x-k8s.io/podset-group-name"
SLICE, SLICE_SIZE = "kueue.x-k8s.io/podset-slice-required-topology", "kueue.x-k8s.io/podset-slice-size"
KAI = "kai.scheduler/topology-required-placement"


def job(pods: int = 4, each: int = 8, **annotations: str) -> Json:
    template = {"metadata": {"annotations": annotations}, "spec": pod(each)}
    return obj("batch/v1", "Job", spec={"parallelism": pods, "completions": pods, "template": template})


def annotated(made: Json, **annotations: str) -> Json:
    return {**made, "metadata": {**made["metadata"], "annotations": annotations}}


def groups(leader: dict[str, str], worker: dict[str, str], number: int = 2, size: int = 4) -> Json:
    """Make a LeaderWorkerSet whose leaders and workers carry annotations; a leader takes 2 GPUs, a worker 8."""
    made = lws(number, size, leader=2)
    for role, written in (("leaderTemplate", leader), ("workerTemplate", worker)):
        made["spec"]["leaderWorkerTemplate"][role]["metadata"]["annotations"] = written
    return made


@pytest.mark.parametrize(
    ("seen", "fit"),
    [
        (racks((8, 8, 8, 8)), True),
        (racks((8, 8), (8, 8, 8, 8)), True),
        (racks((8, 16, 8)), True),
        (racks((8, 8, 8), (8, 8, 8), (8, 8)), False),
        (free("worker-2", 8, 8, 8, 8), False),
    ],
    ids=["one rack", "the larger rack", "two pods on a node", "no rack is large enough", "no labels"],
)
@pytest.mark.parametrize("made", [job(**{POD_SET: "rack"}), annotated(job(), **{KAI: "rack"})], ids=["Kueue", "KAI"])
def test_a_job_fits_where_one_domain_holds_all_of_its_pods(made: Json, seen: ClusterObservation, fit: bool) -> None:
    assert fits(seen, made) is fit


def test_the_domain_that_holds_most_is_named_with_how_many_it_holds() -> None:
    made = decided(racks((8, 8), (8, 8, 8), (8, 8)), job(**{POD_SET: "rack"}))
    assert refused(made) == "wants its 4 pods in one domain of rack: the largest of 3 domains, r1, holds 3 of 4"
    (held,) = made.suppressed
    assert held.refusals[0].remedy == "free or add nodes in one domain there"


def test_of_pods_of_several_shapes_the_largest_domain_holds_most_of_all() -> None:
    unit = SharedDomain(key="rack", pods=((shape(8), 1), (shape(1), 4)))
    room = ClusterCapacity(racks((8,), (8, 2), (8, 1)))
    assert largest_domain(room, unit) == ("r1", 3, 3)
    assert largest_domain(ClusterCapacity(free("worker-2", 8)), unit) is None


def test_nodes_without_the_label_are_in_no_domain_and_a_label_of_none_is_told() -> None:
    made = decided(free("worker-2", 8, 8, 8, 8), job(**{POD_SET: "rack"}))
    assert refused(made) == "wants its 4 pods in one domain of rack, and no node there has that label"
    assert made.suppressed[0].refusals[0].remedy == "label its nodes with rack, or ask for another label"
    seen = racks((8, 8))
    bare = tuple(Node(name=f"bare-{number}", free=gpus(8), pods=()) for number in range(4))
    mixed = replace(seen, pools=(*seen.pools, Pool(name="bare", nodes=bare)))
    assert "holds 2 of 4" in refused(decided(mixed, job(**{POD_SET: "rack"})))


@pytest.mark.parametrize(
    ("each", "fit"),
    [
        ([(2, 8, 8, 8), (2, 8, 8, 8)], True),
        ([(10, 8, 8, 8, 8, 8, 8)], True),  # one rack holds both groups
        ([(2, 2), (8, 8, 8), (8, 8, 8)], True),  # the leaders are pod sets of their own
        ([(2, 2, 8, 8), (8, 8, 8, 8)], False),  # one domain for each group's workers: 2 + 4
    ],
)
def test_each_group_of_a_set_needs_one_domain_for_its_workers(each: list[tuple[int, ...]], fit: bool) -> None:
    assert fits(racks(*each), groups({POD_SET: "rack"}, {POD_SET: "rack"})) is fit


def set_of_one_template(annotations: dict[str, str], number: int = 2, size: int = 3) -> Json:
    """Make a LeaderWorkerSet without a leaderTemplate, whose pods take 8 GPUs each."""
    made = lws(number, size)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"] = annotations
    return made


@pytest.mark.parametrize(
    ("each", "fit"),
    [
        ([(8, 8, 8), (8, 8, 8)], True),
        ([(8,) * 6], True),
        ([(8, 8), (8, 8), (8, 8)], False),
        ([(8, 8, 8), (8, 8)], False),
    ],
)
def test_a_group_without_a_leader_template_needs_one_domain_for_all_of_its_pods(
    each: list[tuple[int, ...]], fit: bool
) -> None:
    assert fits(racks(*each), set_of_one_template({POD_SET: "rack"})) is fit


@pytest.mark.parametrize(
    ("each", "fit"),
    [([(8, 8), (8, 8)], True), ([(8, 8, 8, 8)], True), ([(8,), (8, 8, 8)], False), ([(8, 8, 8), (8,)], False)],
)
def test_slices_of_a_group_without_a_leader_template_count_its_leader(each: list[tuple[int, ...]], fit: bool) -> None:
    assert fits(racks(*each), set_of_one_template({SLICE: "rack", SLICE_SIZE: "2"}, number=1, size=4)) is fit


def test_slices_divide_the_pods_of_one_group() -> None:
    made = set_of_one_template({SLICE: "rack", SLICE_SIZE: "2"}, number=2, size=3)
    assert "which cannot be counted here" in refused(decided(racks((8,) * 6), made))


def test_a_label_of_single_nodes_wants_all_pods_of_a_group_on_one_node() -> None:
    made = lws(1, 3, worker=2)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"] = {POD_SET: "rack"}
    assert fits(racks((6,), (4,)), made)
    assert not fits(racks((4,), (2,)), made)


@pytest.mark.parametrize(
    ("kind", "alone"), [("ReplicationController", True), ("StatefulSet of OpenKruise", True), ("StatefulSet", False)]
)
def test_pods_of_kinds_that_kueue_has_no_integration_for_share_no_domain(kind: str, alone: bool) -> None:
    made, _ = SAMPLES[kind]
    bound = {**template(1), "metadata": {"labels": {"app": "model"}, "annotations": {POD_SET: "rack"}}}
    assert fits(racks((1,), (1,), (1,)), {**made, "spec": {**made["spec"], "template": bound}}) is alone


def test_pod_sets_of_one_group_name_go_to_one_domain() -> None:
    together = {POD_SET: "rack", GROUP: "all"}
    made = groups(together, together, number=1)
    assert fits(racks((2, 8, 8, 8)), made)
    assert not fits(racks((2,), (8, 8, 8)), made)


def test_kais_domain_holds_the_whole_group() -> None:
    made = annotated(groups({}, {}, number=1), **{KAI: "rack"})
    assert fits(racks((2, 8, 8, 8)), made)
    assert not fits(racks((2,), (8, 8, 8)), made)


def test_slices_need_a_domain_each_within_that_of_all() -> None:
    slices = {SLICE: "block", SLICE_SIZE: "2"}
    made = job(**slices)
    assert fits(racks((8, 8, 8, 8), within=2), made)
    assert fits(racks((8, 8), (8, 8), within=2), made)
    assert not fits(racks((8, 8, 8), (8,), within=2), made)
    both = job(**slices, **{POD_SET: "rack"})
    assert fits(racks((8, 8, 8, 8), within=2), both)
    assert not fits(racks((8, 8), (8, 8), within=2), both)
    assert refused(decided(racks((8, 8, 8, 8), within=1), both)) == (
        "wants its 4 pods in one domain of rack with each part in one of block: none of 1 domain holds them"
    )


def test_slices_of_a_job_set_are_its_jobs() -> None:
    template = {"metadata": {"annotations": {SLICE: "rack"}}, "spec": pod(8)}
    replicated = {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2, "template": template}}}
    made = obj("jobset.x-k8s.io/v1alpha2", "JobSet", spec={"replicatedJobs": [replicated]})
    assert fits(racks((8, 8), (8, 8)), made)
    assert not fits(racks((8, 8, 8), (8,)), made)


@pytest.mark.parametrize(
    "annotations",
    [
        {SLICE: "rack"},
        {SLICE: "rack", SLICE_SIZE: "3"},
        {SLICE: "rack", SLICE_SIZE: "two"},
        {SLICE: "rack", SLICE_SIZE: "2", GROUP: "all"},
        {"kueue.x-k8s.io/podset-slice-required-topology-constraints": "[]"},
        {"kai.scheduler/segment-topology-required-placement": "rack"},
    ],
)
def test_slices_that_cannot_be_counted_fit_nowhere_and_say_why(annotations: dict[str, str]) -> None:
    made = decided(racks((8, 8, 8, 8)), job(**annotations))
    assert "which cannot be counted here" in refused(made)


@pytest.mark.parametrize(
    "made",
    [
        job(1, **{POD_SET: "rack"}),
        job(4, **{"kueue.x-k8s.io/podset-preferred-topology": "rack"}),
        annotated(job(4), **{"kai.scheduler/topology-preferred-placement": "rack"}),
        annotated(job(4), **{POD_SET: "rack"}),
        annotated(deployment(4, 8), **{KAI: "rack"}),
    ],
    ids=["one pod", "preferred", "preferred by KAI", "Kueue reads templates", "each pod is a group of its own"],
)
def test_a_topology_that_binds_no_two_pods_decides_nothing(made: Json) -> None:
    assert fits(free("worker-2", 8, 8, 8, 8), made)


def test_other_pods_need_room_beside_those_that_share_a_domain() -> None:
    made = job(2, **{POD_SET: "rack"})
    assert fits(racks((8, 8), (8,)), made, deployment(1, 8))
    assert fits(racks((8, 8, 8)), made, deployment(1, 8))
    assert not fits(racks((8, 8), (2, 2, 2, 2)), made, deployment(1, 4))


def test_groups_of_their_own_domain_share_no_other() -> None:
    made = marked(lws(1, 4), group="rack")
    made["metadata"]["annotations"][KAI] = "block"
    assert refused(decided(racks((8, 8, 8, 8), within=4), made)) == (
        "wants domains of rack for each group alone, and one of block to share: both together cannot be counted"
    )


def waiting(seen: ClusterObservation, *made: Json) -> Plan:
    """Decide on a second request, whose first one has been placed and whose pods have no node yet."""
    first, second = made
    one = request("worker-2", name="one", spec=manifests(named(first, "one")))
    two = request("worker-2", name="two", spec=manifests(named(second, "two")))
    there = replace(placed(replicas=4, shape=shape(8)), workload=one.workload)
    return plan(seen, wanted=wants(one, two), there=holds(record(one, began_at=NOW), record(two), placed=[there]))


def test_pods_on_their_way_keep_the_room_of_one_domain() -> None:
    made = job(**{POD_SET: "rack"})
    # The first Job goes to the second rack, which leaves no rack with room for four pods.
    assert waiting(racks((8, 8), (8,) * 6), made, made).changes == ()
    assert len(waiting(racks((8, 8, 8, 8), (8,) * 6), made, made).changes) == 1


def test_two_requests_of_one_pass_do_not_share_the_room_of_a_domain() -> None:
    asked = [request("worker-2", name=name, spec=manifests(named(job(**{POD_SET: "rack"}), name))) for name in "ab"]
    there = holds(*map(record, asked))
    for each, number in (([(8, 8), (8,) * 6], 1), ([(8, 8), (8,) * 8], 2)):
        assert len(plan(racks(*each), wanted=wants(*asked), there=there).changes) == number


def test_a_burst_of_groups_counts_by_domain_and_says_so() -> None:
    made = lws("{{ replicas }}", 4)
    made["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]["annotations"] = {KAI: "rack"}
    made = annotated(made, **{KAI: "rack"})
    seen = [lacks(4), racks((8, 8, 8), (8, 8, 8)), racks((8, 8, 8, 8), name="worker-3")]
    (place,) = plan(*seen, wanted=fleet(made)).changes
    assert place.action is Action.PLACE
    assert place.placement.cluster == "worker-3"
    assert place.choice is not None
    assert place.choice.because == "one domain of rack for its 4 pods"
    (refusal,) = place.refused
    assert refusal.message == "wants its 4 pods in one domain of rack: the largest of 2 domains, r0, holds 3 of 4"


def test_explain_names_the_label_and_what_the_largest_domain_holds() -> None:
    asked = request("worker-2", spec=manifests(job(**{POD_SET: "rack"})))
    open_ = record(asked)

    def told(seen: ClusterObservation) -> tuple[str, str]:
        there: PassInput = inputs(seen, wanted=wants(asked), there=holds(open_)).with_requests({BOOKINFO: open_})
        (one,) = explain_request(open_, there, plan(seen, wanted=wants(asked), there=holds(open_))).assessments
        return one.start, one.refusal.message if one.refusal is not None else ""

    assert told(racks((8, 8), (8, 8, 8))) == (
        "",
        "wants its 4 pods in one domain of rack: the largest of 2 domains, r1, holds 3 of 4",
    )


def clique(*each: tuple[str, int], channels: int = 1, known: bool = True) -> ClusterObservation:
    """Observe nodes in NVLink domains, each with GPUs and the channels of the ComputeDomain driver."""
    stock = DeviceStock(kind=DeviceKind(driver="compute-domain.nvidia.com"), free=channels, total=channels)
    nodes = tuple(
        Node(name=f"n{index}", free=gpus(free_), pods=(), devices=(stock,), labels={"nvidia.com/gpu.clique": name})
        for index, (name, free_) in enumerate(each)
    )
    classes = {"compute-domain-default-channel.nvidia.com": ("device.driver == 'compute-domain.nvidia.com'",)}
    return ClusterObservation(
        cluster=ClusterName("worker-2"),
        observed_at=NOW,
        pools=(Pool(name="gpu", nodes=nodes),),
        device_classes=classes if known else {},
    )


def test_pods_of_a_compute_domain_need_one_nvlink_domain_and_a_channel_of_a_node_each() -> None:
    channel = {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "imex"}}}
    domain = obj("resource.nvidia.com/v1beta1", "ComputeDomain", "rack", channel)
    claims = {"resourceClaims": [{"name": "imex", "resourceClaimTemplateName": "imex"}]}
    made = job(2, 4)
    made["spec"]["template"]["spec"] |= claims
    assert fits(clique(("a", 4), ("b", 4), ("b", 4)), made, domain)
    assert not fits(clique(("a", 4), ("b", 4)), made, domain)
    assert not fits(clique(("a", 8), ("b", 2)), made, domain)  # one channel on a node
    told = refused(decided(clique(("a", 4), ("b", 4), known=False), made, domain))
    assert told == "there is no DeviceClass compute-domain-default-channel.nvidia.com"


nodes = st.lists(st.tuples(st.sampled_from("abc-"), st.integers(0, 5)), min_size=1, max_size=6)


def observed(nodes: Sequence[tuple[str, int]]) -> ClusterObservation:
    """Observe nodes in racks; those of ``-`` have no label."""
    made = tuple(
        Node(name=f"n{index}", free=gpus(number), pods=(), labels={} if rack == "-" else {"rack": rack})
        for index, (rack, number) in enumerate(nodes)
    )
    pool = Pool(name="gpu", nodes=made)
    return ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=(pool,))


def placeable(nodes: Sequence[tuple[str, int]], units: Sequence[tuple[tuple[int, int], ...]]) -> bool:
    """Tell by trying every rack for each unit and every node for each pod whether all units find one rack each."""

    @cache
    def search(left: tuple[int, ...], at_unit: int) -> bool:
        if at_unit == len(units):
            return True
        pods = [each for each, number in units[at_unit] for _ in range(number)]
        names = {rack for rack, _ in nodes if rack != "-"}
        return any(
            search(after, at_unit + 1)
            for name in names
            for after in states(left, tuple(pods), frozenset(i for i, (rack, _) in enumerate(nodes) if rack == name))
        )

    @cache
    def states(left: tuple[int, ...], pods: tuple[int, ...], rack: frozenset[int]) -> frozenset[tuple[int, ...]]:
        if not pods:
            return frozenset({left})
        first, *others = pods
        tried = ((*left[:index], left[index] - first, *left[index + 1 :]) for index in rack if left[index] >= first)
        return frozenset(state for after in tried for state in states(after, tuple(others), rack))

    return search(tuple(number for _, number in nodes), 0)


def assigned(nodes: Sequence[tuple[str, int]], units: Sequence[tuple[tuple[int, int], ...]]) -> bool:
    """Tell whether shared domains of these pods are counted as fitting."""
    wanted = [SharedDomain(key="rack", pods=tuple((shape(each), number) for each, number in unit)) for unit in units]
    parts = [pods for unit in wanted for pods in unit.pods]
    return not isinstance(assign_shared_domains(ClusterCapacity(observed(nodes)), wanted, parts), DomainShortage)


@given(nodes=nodes, each=st.integers(1, 3), size=st.integers(1, 4), number=st.integers(1, 3))
@examples(10)
def test_equal_groups_fit_exactly_where_trying_everything_finds_domains(
    nodes: list[tuple[str, int]], each: int, size: int, number: int
) -> None:
    units = [((each, size),)] * number
    assert assigned(nodes, units) is placeable(nodes, units)


@given(
    nodes=nodes,
    units=st.lists(
        st.lists(
            st.tuples(st.integers(1, 4), st.integers(1, 2)), min_size=1, max_size=2, unique_by=lambda pods: pods[0]
        ).map(lambda pods: tuple(sorted(pods, reverse=True))),
        min_size=1,
        max_size=2,
    ),
)
@examples(10)
def test_unequal_groups_never_fit_where_trying_everything_finds_no_domains(
    nodes: list[tuple[str, int]], units: list[tuple[tuple[int, int], ...]]
) -> None:
    assert not assigned(nodes, units) or placeable(nodes, units)
