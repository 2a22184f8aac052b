"""Replicas that claim devices fit where their devices are free, and never where anybody could doubt it."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.devices import requests_with_devices
from reconciler.core.ledger.replica_record import read_shape, write_shape
from reconciler.model.capacity import (
    CLASS_PREFIX,
    ClusterObservation,
    DeviceKind,
    DeviceOption,
    DeviceRequest,
    DeviceStock,
    Node,
    Pool,
    ReplicaShape,
)
from reconciler.model.ids import ClusterName
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.text.wording import amounts
from tests.builders.examples import examples
from tests.builders.inputs import NOW

D = "gpu.nvidia.com"
GPUS = {D: (f'device.driver == "{D}"',)}
PRODUCT = f'device.attributes["{D}"].productName'


def kind(product: str = "H100", driver: str = D) -> DeviceKind:
    return DeviceKind(driver=driver, attributes=((f"{driver}/productName", product),))


def stock(free: int, total: int = 8, product: str = "H100", **fields: str) -> DeviceStock:
    return DeviceStock(kind=kind(product), free=free, total=total, **fields)


def option(count: int = 1, *selectors: str, **fields: object) -> DeviceOption:
    return DeviceOption(**{"device_class": D, "selectors": selectors, "count": count, **fields})


def claiming(*options: DeviceOption, **fields: object) -> ReplicaShape:
    """Make the shape of a replica with a request for each of these options."""
    requests = tuple(DeviceRequest(options=(one,)) for one in options)
    return ReplicaShape(**{"requests": Resources(), "devices": requests, **fields})


def room(
    *nodes: tuple[DeviceStock, ...], classes: dict[str, tuple[str, ...]] | None = None, cpu: int = 100
) -> ClusterCapacity:
    free = Resources(amounts={"cpu": Quantity(cpu * ONE)})
    made = tuple(Node(name=f"n{index}", free=free, devices=devices) for index, devices in enumerate(nodes))
    return ClusterCapacity(
        ClusterObservation(
            cluster=ClusterName("c"),
            observed_at=NOW,
            pools=(Pool(name="p", nodes=made),),
            device_classes=GPUS if classes is None else classes,
        )
    )


def test_devices_are_counted_node_by_node() -> None:
    assert room((stock(1),), (stock(1),)).count(claiming(option(2)), 9) == 0
    assert room((stock(5),), (stock(4),), ()).count(claiming(option(2)), 9) == 4


def test_other_resources_have_to_fit_as_well() -> None:
    wanted = claiming(option(), requests=Resources(amounts={"cpu": Quantity(60 * ONE)}))
    assert room((stock(8),), (stock(8),)).count(wanted, 9) == 2


def test_devices_that_were_handed_out_are_gone() -> None:
    full = room((stock(3),), (stock(2),))
    full.take(claiming(option(2)), 1)
    assert full.count(claiming(option()), 9) == 3
    assert full.free(claiming(option())).amounts == {f"{CLASS_PREFIX}{D}": 3 * ONE}


def test_devices_handed_out_under_one_class_are_gone_for_every_other() -> None:
    full = room((stock(2),), classes={D: GPUS[D], "all": ()})
    full.take(claiming(option(device_class="all")), 1)
    assert full.count(claiming(option()), 9) == 1


def test_selectors_choose_among_kinds() -> None:
    mixed = room((stock(2, product="H100"), stock(4, product="A100")))
    assert mixed.count(claiming(option(1, f'{PRODUCT} == "A100"')), 9) == 4
    assert mixed.count(claiming(option(1, f'{PRODUCT} == "B200"')), 9) == 0


def test_one_device_meets_one_request_of_a_pod() -> None:
    both = claiming(option(), option(1, f'{PRODUCT} == "H100"'))
    assert room((stock(1),)).count(both, 9) == 0
    assert room((stock(4),)).count(both, 9) == 2


def test_requests_that_could_get_into_each_others_way_are_counted_for_the_worse() -> None:
    picky = claiming(option(), option(1, f'{PRODUCT} == "H100"'))
    assert room((stock(2, product="H100"), stock(2, product="A100"))).count(picky, 9) <= 2


def test_one_pod_finds_devices_where_there_are_any_whatever_its_requests_have_in_common() -> None:
    """The scheduler tries all of them for a pod; what it leaves for the next one is its choice."""
    picky = claiming(option(), option(1, f'{PRODUCT} == "H100"'))
    lucky = room((stock(1, product="H100"), stock(1, product="A100")))
    assert lucky.count(picky, 9) == 1
    lucky.take(claiming(option()), 1)
    assert lucky.count(picky, 9) == 0


def test_first_option_that_can_be_met_is_taken() -> None:
    either = DeviceRequest(options=(option(1, f'{PRODUCT} == "H100"'), option(2, f'{PRODUCT} == "A100"')))
    wanted = ReplicaShape(requests=Resources(), devices=(either,))
    assert room((stock(1), stock(5, product="A100"))).count(wanted, 9) == 3


def test_claim_for_all_devices_of_a_node_needs_all_of_them() -> None:
    whole = claiming(option(every=True))
    assert room((stock(8),), (stock(7),), ()).count(whole, 9) == 1


def test_devices_that_several_nodes_reach_are_there_once() -> None:
    shared = stock(3, shared="fabric 0")
    assert room((shared,), (shared,)).count(claiming(option()), 9) == 3
    full = room((shared,), (shared,))
    full.take(claiming(option()), 2)
    assert full.count(claiming(option()), 9) == 1


def test_hardware_that_is_cut_one_way_is_gone_for_the_other() -> None:
    small, large = stock(7, product="1g", family="gpu-0"), stock(1, product="7g", family="gpu-0")
    cut = room((small, large))
    assert cut.count(claiming(option(1, f'{PRODUCT} == "1g"')), 9) == 7
    cut.take(claiming(option(1, f'{PRODUCT} == "1g"')), 1)
    assert cut.count(claiming(option(1, f'{PRODUCT} == "7g"')), 9) == 0
    assert cut.count(claiming(option(1, f'{PRODUCT} == "1g"')), 9) == 6
    assert room((small, large)).count(claiming(option(every=True)), 9) == 0


@pytest.mark.parametrize(
    ("shape", "classes", "reason"),
    [
        (claiming(option(2)), None, f"needs 2 {D} devices on one node, largest has 1 {D} device free"),
        (
            claiming(option(1, f'{PRODUCT} == "B200"')),
            None,
            f"needs 1 {D} device on one node; its 2 eligible nodes have none free",
        ),
        (claiming(option()), {}, f"there is no DeviceClass {D}"),
        (
            claiming(option(1, f'{PRODUCT}.matches("^H")')),
            None,
            f'cannot count devices by the selector of the claim: {PRODUCT}.matches("^H")',
        ),
        (claiming(option()), {D: ("has(device.x)",)}, f"cannot count devices by the selector of DeviceClass {D}"),
        (
            claiming(option(1, f'device.attributes["{D}"].profile == "1g"')),
            None,
            f"cannot tell which devices meet the selectors for DeviceClass {D}",
        ),
        (claiming(option(), obstacle="shares a claim"), None, "shares a claim"),
    ],
)
def test_what_does_not_fit_or_cannot_be_counted_says_why(shape, classes, reason) -> None:
    doubtful = room((stock(1),), (stock(1),), classes=classes)
    assert doubtful.count(shape, 9) == 0
    assert doubtful.shortfall(shape).startswith(reason)


def test_what_nobody_can_count_takes_nothing_from_others() -> None:
    doubtful = room((stock(1),))
    doubtful.take(claiming(option(), obstacle="shares a claim"), 5)
    assert doubtful.count(claiming(option()), 9) == 1


def test_workload_without_claims_is_not_troubled_by_classes() -> None:
    plain = ReplicaShape(requests=Resources(amounts={"cpu": ONE}))
    assert room((stock(1),), classes={D: ("has(device.x)",)}).count(plain, 3) == 3


def test_selector_that_fails_on_other_hardware_of_a_node_fits_nowhere() -> None:
    """Kubernetes gives up on a pod whose selector fails on any device that it is tried on."""
    nic = DeviceStock(kind=DeviceKind(driver="nic.example.com"), free=1, total=1)
    careless, careful = claiming(option(1, f'{PRODUCT} == "H100"', device_class="any")), claiming(option(1))
    both = room((stock(1), nic), classes={"any": (), **GPUS})
    assert both.count(careless, 1) == 0
    assert both.count(careful, 1) == 1


def test_devices_are_named_by_their_class() -> None:
    wanted = claiming(option(2), option(1), requests=Resources(amounts={"cpu": ONE}))
    assert amounts(requests_with_devices(wanted)) == [f"3 {D} devices", "1 cpu"]


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(1, 3), st.integers(0, 12), st.integers(0, 12))
def test_handing_out_in_parts_is_handing_out_at_once(nodes, each, first, second) -> None:
    stocks = [(stock(free),) for free in nodes]
    parts, whole = room(*stocks), room(*stocks)
    fits = sum(free // each for free in nodes)
    assert parts.count(claiming(option(each)), 99) == fits
    parts.take(claiming(option(each)), first)
    parts.take(claiming(option(each)), second)
    whole.take(claiming(option(each)), first + second)
    assert parts.count(claiming(option(each)), 99) == whole.count(claiming(option(each)), 99)
    assert parts.count(claiming(option(each)), 99) == max(0, fits - first - second)


def test_claims_survive_being_written_to_git() -> None:
    wanted = claiming(option(2, f'{PRODUCT} == "H100"'), option(every=True), obstacle="shares a claim")
    assert read_shape(write_shape(wanted)) == wanted


# whatever the scheduler happens to choose


@dataclass
class Scheduler:
    """Gives pods devices one by one, any that will do: it looks for some way for each pod, and never for the best."""

    devices: dict[tuple[str, str, int], str]
    """Products by node, which is empty for devices that every node can reach, and by stock and number."""
    rooms: dict[str, int]
    chance: random.Random

    def place(self, requests: list[tuple[set[str], int]]) -> bool:
        """Bind one pod, if any node will do."""
        nodes = [name for name, room in self.rooms.items() if room]
        for name in self.chance.sample(nodes, len(nodes)):
            reached = [one for one in self.devices if one[0] in {"", name}]
            taken = self._found(requests, self.chance.sample(reached, len(reached)))
            if taken is not None:
                self.rooms[name] -= 1
                for one in taken:
                    del self.devices[one]
                return True
        return False

    def _found(self, requests: list[tuple[set[str], int]], devices: list) -> list | None:
        if not requests:
            return []
        (products, count), *rest = requests
        fitting = [one for one in devices if self.devices[one] in products]
        for chosen in combinations(fitting, count):
            others = self._found(rest, [one for one in devices if one not in chosen])
            if others is not None:
                return [*chosen, *others]
        return None


PRODUCTS = ("A100", "B200", "H100")
STOCKS = st.dictionaries(st.sampled_from(PRODUCTS), st.integers(1, 3), max_size=3)
REQUESTS = st.lists(
    st.tuples(st.sets(st.sampled_from(PRODUCTS), min_size=1), st.integers(1, 2)), min_size=1, max_size=3
)


@examples(6)  # a search
@given(st.lists(st.tuples(STOCKS, st.integers(0, 3)), min_size=1, max_size=2), STOCKS, REQUESTS, st.integers(0, 99))
def test_never_more_fit_than_the_scheduler_places_whatever_it_chooses(nodes, fabric, requests, seed) -> None:
    shared = tuple(stock(free, free, product, shared=f"fabric {product}") for product, free in fabric.items())
    own = [tuple(stock(free, free, product) for product, free in each.items()) for each, _ in nodes]
    made = tuple(
        Node(name=f"n{index}", free=Resources(amounts={"cpu": Quantity(cpu * ONE)}), devices=devices + shared)
        for index, (devices, (_, cpu)) in enumerate(zip(own, nodes, strict=True))
    )
    pools = (Pool(name="p", nodes=made),)
    there = ClusterCapacity(
        ClusterObservation(cluster=ClusterName("c"), observed_at=NOW, pools=pools, device_classes=GPUS)
    )
    options = [option(count, f"{PRODUCT} in {json.dumps(sorted(products))}") for products, count in requests]
    promised = there.count(claiming(*options, requests=Resources(amounts={"cpu": ONE})), 99)
    devices = {("", product, index): product for product, free in fabric.items() for index in range(free)}
    for number, (each, _) in enumerate(nodes):
        devices |= {(f"n{number}", product, index): product for product, free in each.items() for index in range(free)}
    rooms = {f"n{number}": cpu for number, (_, cpu) in enumerate(nodes)}
    scheduler = Scheduler(devices, rooms, random.Random(seed))
    placed = 0
    while scheduler.place(requests):
        placed += 1
    assert promised <= placed
