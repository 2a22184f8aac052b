"""Slices of GPUs under the name of whole ones: behind whole ones where home has those, told and paid for as slices."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from reconciler.core.capacity.gpu_slices import gpu_slices, has_whole_gpus
from reconciler.core.commits.messages import message
from reconciler.core.cost.rate import hourly_rate
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.explain.inventory import build_inventory
from reconciler.core.ledger.replica_record import read_shape, write_shape
from reconciler.model.action import Action
from reconciler.model.capacity import (
    ClusterObservation,
    DeviceOption,
    DeviceRequest,
    GpuSlices,
    Pool,
    ReplicaShape,
    SliceKind,
)
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.requirements import Requirement, Requirements
from reconciler.model.kubernetes.workload_spread import PreferredTerm
from reconciler.model.plan import Change
from reconciler.model.policy import ClusterPreference, Distribution, StrategyName
from reconciler.model.score import ScorerName, ScorerWeight
from tests.builders.gpu_nodes import H100, cluster_of, h100, nodes
from tests.builders.inputs import NOW, cluster, desired, inputs, ledger, ordering, placement, shape, short
from tests.builders.subsets import fleet, named, out, subset

SHARED = f"{H100}-SHARED"
PRICES = tuple(cluster(f"worker-{number}", price_per_gpu_hour=2.0) for number in (1, 2, 3))


def sliced(*free: int, of: int = 4, prefix: str = "shared", strategy: str = "time-slicing") -> Pool:
    """Make nodes with one GPU each, which `of` pods have at a time."""
    facts = {"count": "1", "replicas": str(of), "sharing-strategy": strategy, "product": SHARED}
    labels = {f"nvidia.com/gpu.{name}": fact for name, fact in facts.items()}
    return nodes(*free, of=of, labels=labels, prefix=prefix)


def home(*pools: Pool, missing: int = 2, replica: ReplicaShape | None = None) -> ClusterObservation:
    return replace(short(missing, replica=replica), pools=pools)


def situation(at_home: ClusterObservation, *others: ClusterObservation, **policy: object) -> PassInput:
    clusters = [replace(each, cluster=f"worker-{number}") for number, each in enumerate(others, start=2)]
    return inputs(at_home, *clusters, wanted=desired(ordering("worker-2", "worker-3", **policy), clusters=PRICES))


def placed(now: PassInput) -> dict[str, int]:
    return {change.placement.cluster: change.placement.replicas for change in decide(now).changes}


def one(now: PassInput) -> Change:
    (change,) = decide(now).changes
    return change


WHOLE_HOME, WHOLE = nodes(0, 0), cluster_of(nodes(2))


def test_whole_gpus_come_first_where_home_has_them_and_slices_follow() -> None:
    slices, whole = cluster_of(sliced(4)), cluster_of(nodes(2))
    assert placed(situation(home(WHOLE_HOME), slices, whole)) == {"worker-3": 2}
    assert placed(situation(home(WHOLE_HOME, missing=5), slices, whole)) == {"worker-3": 2, "worker-2": 3}


def test_slices_are_as_good_where_home_has_nothing_else() -> None:
    now = situation(home(sliced(0)), cluster_of(sliced(4)), cluster_of(nodes(2)))
    assert placed(now) == {"worker-2": 2}


def test_home_without_gpus_wants_whole_ones() -> None:
    assert placed(situation(home(), cluster_of(sliced(4)), cluster_of(nodes(2)))) == {"worker-3": 2}


def test_a_cluster_with_both_comes_between() -> None:
    both = cluster_of(sliced(4), nodes(1))
    assert placed(situation(home(WHOLE_HOME), both, cluster_of(nodes(2)))) == {"worker-3": 2}
    assert placed(situation(home(WHOLE_HOME), cluster_of(sliced(4)), both)) == {"worker-3": 2}


def test_pods_that_name_the_slices_get_them_in_the_order_of_the_policy() -> None:
    asked = replace(shape(), node_selector={"nvidia.com/gpu.product": SHARED})
    now = situation(home(WHOLE_HOME, replica=asked), cluster_of(sliced(4)), cluster_of(nodes(2), sliced(4)))
    assert placed(now) == {"worker-2": 2}


def test_pods_that_are_kept_off_slices_get_whole_gpus_of_a_cluster_with_both() -> None:
    off = Requirement(key="nvidia.com/gpu.product", operator="NotIn", values=(SHARED,))
    asked = replace(shape(), node_terms=(Requirements(labels=(off,)),))
    both = cluster_of(sliced(4), nodes(8))
    assert gpu_slices(both, asked) is None
    assert placed(situation(home(WHOLE_HOME, replica=asked), both, cluster_of(nodes(8)))) == {"worker-2": 2}


@pytest.mark.parametrize("chosen", [0, 1])
def test_a_label_of_some_nodes_of_a_pool_selects_their_slices(chosen: int) -> None:
    pool = sliced(4, 4)
    named = [replace(node, labels={"team": "a"} if index == chosen else {}) for index, node in enumerate(pool.nodes)]
    asked = replace(shape(), node_selector={"team": "a"})
    found = gpu_slices(cluster_of(replace(pool, nodes=tuple(named))), asked)
    assert found is not None
    assert found.kind is SliceKind.TIME


def test_a_price_does_not_bring_slices_before_whole_gpus() -> None:
    scoring = (ScorerWeight(name=ScorerName.PRICE),)
    now = situation(home(WHOLE_HOME), cluster_of(sliced(4)), cluster_of(nodes(2)), scoring=scoring)
    assert placed(now) == {"worker-3": 2}
    at_home = situation(home(sliced(0)), cluster_of(nodes(2)), cluster_of(sliced(4)), scoring=scoring)
    chosen = one(at_home).choice
    assert (chosen.cluster, [score.value for score in chosen.scores]) == ("worker-3", [100.0])


HEAVY = (ClusterPreference(name=ClusterName("worker-2"), weight=9), ClusterPreference(name=ClusterName("worker-3")))


@pytest.mark.parametrize("strategy", StrategyName)
def test_every_strategy_fills_whole_gpus_before_slices(strategy: StrategyName) -> None:
    clusters, policy = (cluster_of(sliced(4)), cluster_of(nodes(2))), {"candidates": HEAVY}
    policy["distribution"] = Distribution(strategy=strategy)
    assert placed(situation(home(WHOLE_HOME, missing=5), *clusters, **policy)) == {"worker-3": 2, "worker-2": 3}
    assert placed(situation(home(sliced(0), missing=1), *clusters, **policy)) == {"worker-2": 1}


@pytest.mark.parametrize("strategy", StrategyName)
def test_every_strategy_gives_slices_back_before_whole_gpus(strategy: StrategyName) -> None:
    policy = {"distribution": Distribution(strategy=strategy), "max_replicas": 2, "candidates": HEAVY}
    now = situation(home(WHOLE_HOME, missing=4), cluster_of(sliced(2)), cluster_of(nodes(0)), **policy)
    standing = ledger(placement("worker-2", replicas=2), placement("worker-3", replicas=2))
    (change,) = decide(replace(now, ledger=standing)).changes
    assert (change.action, change.placement.cluster) == (Action.REVERT, "worker-2")


@pytest.mark.parametrize("preferred", [(), (PreferredTerm(weight=10, term=named("worker-2", "worker-3")),)])
def test_clusters_of_a_subset_have_their_slices_filled_last(preferred: tuple[PreferredTerm, ...]) -> None:
    observations = (replace(each, cluster=f"worker-{n}") for n, each in ((2, cluster_of(sliced(8))), (3, WHOLE)))
    now = inputs(home(WHOLE_HOME, missing=3), *observations, wanted=fleet(subset("own", preferred=preferred)))
    assert out(decide(now)) == {"worker-3/own": 2, "worker-2/own": 1}


def test_a_commit_says_slices_and_a_placement_pays_for_its_part() -> None:
    now = situation(home(WHOLE_HOME), cluster_of(sliced(4)))
    change = one(now)
    said = " ".join(message(change, source=now.desired.commit).split())
    assert "worker-2 chosen: 4 time slices of 1 GPU free, 4 replicas fit, 2.00 $/GPU-h (0.50 a slice)." in said
    assert change.placement.shape.gpu_share == Fraction(1, 4)
    rate = hourly_rate([change.placement], now.desired.clusters, NOW)
    assert (rate.gpus, rate.dollars) == (0.5, 1.0)


@pytest.mark.parametrize(("strategy", "words"), [("mps", "8 MPS shares of 2 GPUs"), ("time-slicing", "8 time slices")])
def test_the_words_are_those_of_the_kind(strategy: str, words: str) -> None:
    now = situation(home(WHOLE_HOME), cluster_of(sliced(4, 4, strategy=strategy)))
    assert words in message(one(now), source=now.desired.commit)


def test_a_cluster_with_both_is_told_so_and_paid_for_as_whole() -> None:
    now = situation(home(WHOLE_HOME), cluster_of(sliced(4), nodes(2)))
    said = " ".join(message(one(now), source=now.desired.commit).split())
    assert "6 GPUs or time slices free, 6 replicas fit, 2.00 $/GPU-h." in said
    assert one(now).placement.shape.gpu_share == 1


def test_a_resize_pays_for_what_its_cluster_gives_then() -> None:
    now = situation(home(WHOLE_HOME), cluster_of(sliced(4)))
    before = replace(one(now).placement, replicas=1, shape=shape())
    assert one(replace(now, ledger=ledger(before))).placement.shape.gpu_share == Fraction(1, 4)


def test_the_record_of_a_placement_keeps_its_part() -> None:
    part = replace(shape(), gpu_share=Fraction(2, 7))
    assert '"gpuShare":"2/7"' in write_shape(part)
    assert read_shape(write_shape(part)) == part
    assert "gpuShare" not in write_shape(shape())


@pytest.mark.parametrize("text", ["0.25", "1/0", "-1", "x"])
def test_a_part_that_is_none_is_refused(text: str) -> None:
    written = write_shape(replace(shape(), gpu_share=Fraction(1, 4))).replace("1/4", text)
    with pytest.raises(ValueError, match="gpuShare"):
        read_shape(written)


def test_a_claimed_mig_slice_is_its_part_by_the_profile_that_it_selects() -> None:
    option = DeviceOption(
        device_class="mig.nvidia.com", selectors=('device.attributes["gpu.nvidia.com"].profile == "3g.40gb"',)
    )
    claims = ReplicaShape(requests=shape(0).requests, devices=(DeviceRequest(options=(option,)),))
    assert gpu_slices(cluster_of(nodes(1)), replace(claims, requests=shape().requests)) == GpuSlices(
        kind=SliceKind.MIG, share=Fraction(3, 7)
    )


def test_nodes_that_differ_in_labels_of_their_own_are_told_apart() -> None:
    """A pool of two nodes may have different models, which then are labels of the nodes."""
    labels = sliced(4).labels
    pool = nodes(4, 4, of=4, labels={})
    first, second = pool.nodes
    mixed = replace(pool, nodes=(replace(first, labels=h100()), replace(second, labels=labels)))
    assert gpu_slices(cluster_of(mixed), shape()) == GpuSlices(kind=SliceKind.TIME, share=Fraction(1, 4), mixed=True)
    assert has_whole_gpus(cluster_of(mixed), shape())


def test_the_inventory_says_how_gpus_are_sliced() -> None:
    (row,) = build_inventory(inputs(cluster_of(sliced(3)))).managed
    assert (row.count, row.slices, row.share) == (4, SliceKind.TIME, Fraction(1, 4))


def test_a_workload_without_gpus_knows_no_slices() -> None:
    assert gpu_slices(cluster_of(sliced(3)), shape(0)) is None
