"""The meter counts GPUs and dollars from the moments at which placements and prices change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

import pytest

from reconciler.core.cost.meter import CostMeter
from reconciler.core.cost.prices import price_at
from reconciler.core.cost.report import CostGroup, report
from reconciler.model.capacity import ReplicaShape
from reconciler.model.cluster import PriceWindow, SpotPrice
from reconciler.model.ids import ClusterName
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster
from tests.builders.inputs import placement, shape

NIGHT = datetime(2026, 11, 19, 22, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def priced(price: float | None, **fields: object) -> dict[ClusterName, Cluster]:
    name = ClusterName("worker-2")
    return {name: Cluster(name=name, price_per_gpu_hour=price, **fields)}


def burst(replicas: int, **fields: object) -> Placement:
    return replace(placement(replicas=replicas), **fields)


def dollars(meter: CostMeter, until: datetime) -> dict[date, float]:
    return {day: amount.dollars for (_, day), amount in meter.amounts(until).items()}


def test_each_size_counts_for_its_time_and_each_day_by_itself() -> None:
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0), NIGHT)
    meter.place("a", burst(1), NIGHT)
    meter.place("a", burst(3), NIGHT + HOUR)
    meter.place("a", None, NIGHT + 4 * HOUR)
    assert dollars(meter, NIGHT + 9 * HOUR) == {date(2026, 11, 19): 8.0, date(2026, 11, 20): 12.0}
    assert not meter.gpus()


def test_what_runs_counts_up_to_the_moment_that_is_asked_for_and_asking_changes_nothing() -> None:
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0), NIGHT)
    meter.place("a", burst(2), NIGHT)
    answers = [report(meter, NIGHT + hours * HOUR, [CostGroup.WORKSPACE]).total for hours in (1, 2, 1)]
    assert [(row.gpu_hours, row.dollars, row.gpus_now) for row in answers] == [(2, 4, 2), (4, 8, 2), (2, 4, 2)]


def test_a_slice_counts_as_its_part_of_a_gpu() -> None:
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0), NIGHT)
    for path, part in (("a", Fraction(1, 4)), ("b", Fraction(1, 7)), ("c", Fraction(6, 7))):
        meter.place(path, burst(2, shape=shape(1, gpu_share=part)), NIGHT)
    total = report(meter, NIGHT + HOUR, [CostGroup.WORKSPACE]).total
    assert (total.gpu_hours, total.dollars, total.gpus_now) == (2.5, 5.0, 2.5)
    for path in "abc":
        meter.place(path, None, NIGHT + HOUR)
    assert not meter.gpus()


def test_a_new_price_holds_from_its_moment_on() -> None:
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0), NIGHT)
    meter.place("a", burst(1), NIGHT)
    meter.price(priced(4.0), NIGHT + HOUR / 2)
    assert dollars(meter, NIGHT + HOUR) == {date(2026, 11, 19): 3.0}


def test_what_has_no_price_is_told_apart_from_what_is_free() -> None:
    meter = CostMeter(NIGHT)
    meter.place("a", burst(1), NIGHT)
    meter.price(priced(0.0), NIGHT + HOUR / 2)
    answer = report(meter, NIGHT + HOUR, [CostGroup.CLUSTER])
    (row,) = answer.rows
    assert (row.group, row.gpu_hours, row.unpriced_gpu_hours, row.dollars) == ({"cluster": "worker-2"}, 1, 0.5, 0)
    assert answer.unpriced == {"worker-2": 0.5}


def test_placements_without_a_count_of_gpus_are_told() -> None:
    meter = CostMeter(NIGHT)
    unknown = burst(1, shape=replace(shape(), obstacle="no requests"))
    meter.place("a", unknown, NIGHT)
    assert report(meter, NIGHT + HOUR, [CostGroup.WORKSPACE]).uncounted == (unknown.id,)


def test_a_copy_goes_on_by_itself() -> None:
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0), NIGHT)
    meter.place("a", burst(1), NIGHT)
    copy = meter.copy()
    copy.place("a", None, NIGHT + HOUR)
    assert (dollars(copy, NIGHT + 2 * HOUR), dollars(meter, NIGHT + 2 * HOUR)) == (
        {date(2026, 11, 19): 2.0},
        {date(2026, 11, 19): 4.0},
    )


def test_times_of_others_that_run_backwards_take_nothing_back() -> None:
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0), NIGHT)
    meter.place("a", burst(1), NIGHT + HOUR)
    meter.place("a", burst(2), NIGHT)
    meter.place("a", None, NIGHT - HOUR)
    assert not any(dollars(meter, NIGHT + HOUR).values())


CHEAP = PriceWindow(start="0 20 * * *", duration=timedelta(hours=10), zone="Europe/Berlin", price_per_gpu_hour=1.0)


@pytest.mark.parametrize(("at", "price"), [("18:59", 3.0), ("19:00", 1.0), ("04:59", 1.0), ("05:00", 3.0)])
def test_a_window_has_a_price_of_its_own_in_its_time_zone(at: str, price: float) -> None:
    (cluster,) = priced(3.0, prices=(CHEAP,)).values()
    assert price_at(cluster, (), datetime.fromisoformat(f"2026-11-20T{at}:00+00:00")) == price


def test_a_time_that_spans_windows_pays_each_its_price() -> None:
    meter, begin = CostMeter(NIGHT), datetime(2026, 11, 20, 4, 0, tzinfo=UTC)
    meter.price(priced(3.0, prices=(CHEAP,)), NIGHT)
    meter.place("a", burst(1), begin)
    assert dollars(meter, begin + 3 * HOUR) == {date(2026, 11, 20): 7.0}


def test_pods_that_require_spot_nodes_pay_the_spot_price() -> None:
    spot = SpotPrice(labels={"capacity": "spot"}, price_per_gpu_hour=0.5)
    meter = CostMeter(NIGHT)
    meter.price(priced(2.0, spot=spot), NIGHT)
    on_spot = ReplicaShape(requests=shape().requests, node_selector={"capacity": "spot", "zone": "a"})
    meter.place("a", burst(1, shape=on_spot), NIGHT)
    meter.place("b", burst(1), NIGHT)
    assert dollars(meter, NIGHT + HOUR) == {date(2026, 11, 19): 2.5}
