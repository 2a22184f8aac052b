"""Replicas that find their devices: DRA claims counted against the devices of nodes.

The scheduler searches among single devices. Here they are counted by kind, greedily, and the count is the lower bound
where the two could differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from reconciler.core.capacity.device_selectors import parse_selector
from reconciler.model.capacity import CLASS_PREFIX, DeviceKind, DeviceOption, DeviceRequest, DeviceStock, ReplicaShape
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.text.wording import sanitize

_StockKey: TypeAlias = tuple[str, str, DeviceKind]
"""A stock: its shared name or its node, its family, and its kind."""


@dataclass(slots=True)
class DeviceAllocation:
    """Devices allocated from stocks so far, step by step."""

    used: Counter[_StockKey] = field(default_factory=Counter)
    """Allocated devices of each stock."""
    cut: dict[str, DeviceKind] = field(default_factory=dict)
    """The kind that each family of devices has been partitioned into."""
    steps: list[tuple[_StockKey, int, str]] = field(default_factory=list)
    """Allocations in order, for `back_to`: the stock, the devices, and the family if this step fixed its kind."""

    def copy(self) -> DeviceAllocation:
        """Return a copy, for a trial."""
        return DeviceAllocation(self.used.copy(), dict(self.cut))

    def take(self, node: str, stock: DeviceStock, count: int) -> None:
        """Allocate devices of a stock."""
        place = _stock_key(node, stock)
        self.used[place] += count
        first = stock.family if stock.family not in self.cut else ""
        if first:
            self.cut[first] = stock.kind
        self.steps.append((place, count, first))

    def back_to(self, step: int) -> None:
        """Undo all steps but the first `step`."""
        while len(self.steps) > step:
            place, count, first = self.steps.pop()
            self.used[place] -= count
            if first:
                del self.cut[first]


class ClusterDevices:
    """The devices of one cluster, matched against DeviceClasses and requests."""

    def __init__(self, classes: Mapping[str, tuple[str, ...]]) -> None:
        self._classes = classes
        self._verdicts: dict[tuple[DeviceOption, DeviceKind], bool | None] = {}

    def obstacle(self, shape: ReplicaShape, stocks: Iterable[DeviceStock]) -> str:
        """Return why the devices of a replica cannot be counted here; empty if they can."""
        if not shape.devices:
            return ""
        options = [option for request in shape.devices for option in request.options]
        for option in options:
            if option.device_class not in self._classes:
                return f"there is no DeviceClass {sanitize(option.device_class, 80)}"
            for whose, expressions in (
                (f"DeviceClass {option.device_class}", self._classes[option.device_class]),
                ("the claim", option.selectors),
            ):
                for expression in expressions:
                    if parse_selector(expression) is None:
                        return f"cannot count devices by the selector of {whose}: {sanitize(expression, 120)}"
        kinds = {stock.kind for stock in stocks}
        for option in options:
            if any(self._meets(option, kind) is None for kind in kinds):
                return f"cannot tell which devices meet the selectors for DeviceClass {option.device_class}"
        return ""

    def hand_out(
        self,
        node: str,
        stocks: tuple[DeviceStock, ...],
        requests: tuple[DeviceRequest, ...],
        most: int,
        handed: DeviceAllocation,
    ) -> int:
        """Count the pods, up to `most`, whose claims a node meets one after another, and allocate their devices."""
        first = False
        if len(requests) > 1:
            sure = min(self._sure(node, stocks, request, requests, handed) for request in requests)
            # The scheduler tries all devices for a pod; which of them it takes from the next ones is its choice.
            first = not any(handed.used[_stock_key(node, stock)] for stock in stocks)
            most = min(most, max(sure, int(first)))
        for count in range(most):
            step = len(handed.steps)
            if not all(self._meet(node, stocks, request, requests, handed) for request in requests):
                handed.back_to(step)
                return 1 if first and not count and self._meet_alone(node, stocks, requests, handed) else count
            if len(handed.steps) == step:  # they take no device, and no number of pods ever does
                return most
        return most

    def free(self, node: str, stocks: tuple[DeviceStock, ...], option: DeviceOption, handed: DeviceAllocation) -> int:
        """Count the devices of a node that match an option."""
        return sum(_free(node, stock, handed) for stock in stocks if self._meets(option, stock.kind))

    def _meet_alone(
        self,
        node: str,
        stocks: tuple[DeviceStock, ...],
        requests: tuple[DeviceRequest, ...],
        handed: DeviceAllocation,
    ) -> bool:
        """Allocate for the first pod of a node, as the scheduler does that finds its devices if there are any.

        Which ones is unknown: all that any of its requests could take are gone.
        """
        matching = {
            request: [stock for stock in stocks if any(self._meets(option, stock.kind) for option in request.options)]
            for request in requests
        }
        choosy = sorted(requests, key=lambda request: sum(_free(node, stock, handed) for stock in matching[request]))
        step = len(handed.steps)
        if not all(self._meet(node, stocks, request, requests, handed, spare=True) for request in choosy):
            handed.back_to(step)
            return False
        for stock in stocks:
            left = _free(node, stock, handed)
            if left and any(stock in reached for reached in matching.values()):
                handed.take(node, stock, left)
        return True

    def _meet(
        self,
        node: str,
        stocks: tuple[DeviceStock, ...],
        request: DeviceRequest,
        among: tuple[DeviceRequest, ...],
        handed: DeviceAllocation,
        *,
        spare: bool = False,
    ) -> bool:
        """Allocate the devices of one request by its first option that can be met; `spare` those of other requests."""
        for option in request.options:
            matching = [stock for stock in stocks if self._meets(option, stock.kind)]
            if option.every:
                if matching and all(
                    not device_stock.family and _free(node, device_stock, handed) == device_stock.total
                    for device_stock in matching
                ):
                    for stock in matching:
                        handed.take(node, stock, stock.total)
                    return True
                continue
            # The scheduler may well take what another request, or another node, needs more; so does this.
            sign = 1 if spare else -1
            matching.sort(key=lambda stock: (sign * self._count_requests(stock, among), not stock.shared))
            step = len(handed.steps)
            if _take(node, matching, option.count, handed):
                return True
            handed.back_to(step)
        return False

    def _sure(
        self,
        node: str,
        stocks: tuple[DeviceStock, ...],
        request: DeviceRequest,
        among: tuple[DeviceRequest, ...],
        handed: DeviceAllocation,
    ) -> int:
        """Count the pods for which a request finds devices even if all others take theirs from the same stocks."""
        most = 0
        for option in request.options:
            matching = [stock for stock in stocks if self._meets(option, stock.kind)]
            free = sum(_free(node, stock, handed) for stock in matching)
            families = Counter[str]()
            for stock in matching:
                if stock.family:
                    families[stock.family] += _free(node, stock, handed)
            taken = option.count + sum(
                max(self._loss(rival, stocks, matching, families) for rival in other.options)
                for other in among
                if other is not request
            )
            most = max(most, 1 if option.every and free else free // taken)
        return most

    def _loss(
        self,
        rival: DeviceOption,
        stocks: tuple[DeviceStock, ...],
        matching: list[DeviceStock],
        families: Mapping[str, int],
    ) -> int:
        """Count the devices of matching stocks that one pod could leave nobody by an option.

        `families` are the free devices of matching stocks by family: hardware that is cut for a rival is gone.
        """
        cutting = [stock for stock in stocks if stock.family in families and self._meets(rival, stock.kind)]
        if all(stock in matching for stock in cutting):
            return self._reach(rival, matching)
        return max(families.values()) * (sum(stock.total for stock in cutting) if rival.every else rival.count)

    def _reach(self, option: DeviceOption, stocks: list[DeviceStock]) -> int:
        """Count the devices of these stocks that one pod could take by an option."""
        matching = [stock for stock in stocks if self._meets(option, stock.kind)]
        return sum(stock.total for stock in matching) if option.every else option.count if matching else 0

    def _count_requests(self, stock: DeviceStock, among: tuple[DeviceRequest, ...]) -> int:
        return sum(any(self._meets(option, stock.kind) for option in request.options) for request in among)

    def _meets(self, option: DeviceOption, kind: DeviceKind) -> bool | None:
        """Return whether a device kind is of the class and meets the selectors, evaluated one by one."""
        key = (option, kind)
        if key not in self._verdicts:
            verdict: bool | None = option.device_class in self._classes
            for expression in (*self._classes.get(option.device_class, ()), *option.selectors):
                read = parse_selector(expression)
                verdict = None if read is None else read(kind)
                if not verdict:
                    break
            self._verdicts[key] = verdict
        return self._verdicts[key]


def with_extended_resources(
    shape: ReplicaShape, extended: Mapping[str, str], classes: Mapping[str, tuple[str, ...]]
) -> ReplicaShape:
    """Turn requests for extended resources behind which a cluster has a DeviceClass into requests for its devices.

    A class whose selectors cannot be counted is left out: its resource is there where a device plugin has it.
    """
    behind = {
        name: extended[name]
        for name, amount in shape.requests.amounts.items()
        if amount
        and name in extended
        and all(parse_selector(expression) is not None for expression in classes[extended[name]])
    }
    if not behind:
        return shape
    requests = tuple(
        DeviceRequest(
            options=(DeviceOption(device_class=behind[name], count=-(-shape.requests.amounts[name] // ONE)),),
            resource=name,
        )
        for name in sorted(behind)
    )
    rest = {name: amount for name, amount in shape.requests.amounts.items() if name not in behind}
    return replace(shape, requests=Resources(amounts=rest), devices=(*shape.devices, *requests))


def requests_with_devices(shape: ReplicaShape) -> Resources:
    """Add to a replica's requests its claimed devices, each class under its resource name in Kubernetes."""
    if not shape.devices:
        return shape.requests
    sums = dict(shape.requests.amounts)
    for request in shape.devices:
        first = request.options[0]
        name = f"{CLASS_PREFIX}{first.device_class}"
        sums[name] = Quantity(sums.get(name, 0) + first.count * ONE)
    return Resources(amounts=sums)


def _take(node: str, stocks: list[DeviceStock], count: int, handed: DeviceAllocation) -> bool:
    """Take `count` devices from the first stocks that have any; False if there are too few."""
    for stock in stocks:
        taken = min(count, _free(node, stock, handed))
        if taken:
            handed.take(node, stock, taken)
            count -= taken
    return not count


def _free(node: str, stock: DeviceStock, handed: DeviceAllocation) -> int:
    if stock.family and handed.cut.get(stock.family, stock.kind) != stock.kind:
        return 0
    return max(0, stock.free - handed.used[_stock_key(node, stock)])


def _stock_key(node: str, stock: DeviceStock) -> _StockKey:
    return (stock.shared or f"node {node}", stock.family, stock.kind)
