"""The offline optimum: the least that could have been unserved, and what it would have cost, with all known beforehand.

A linear programme over intervals of time, solved by HiGHS: for each interval and cluster the replicas that run there,
not in whole numbers. A replica serves once it has run for its start-up, so it may be started before it is missing; it
is paid for from its start. Owners and outages take their GPUs at once. Unserved replicas weigh most, then money, then
starts. Workloads with replicas of the same size and model are one: fairness is no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reconciler.lab.accounts import HOUR
from reconciler.lab.scenario import ClusterScenario, Scenario
from reconciler.lab.world import free_gpus

_INTERVALS = 4000
"""The intervals of a run, about."""
_LEAST_INTERVAL = 5
_UNSERVED, _START = 1e4, 1e-2
"""Dollars for an unserved replica-hour, and for a start."""
_DEFAULT_PRICE = 1.0
"""Dollars for a GPU and hour of a cluster that has no price: what is not needed is not run."""

Kind: TypeAlias = tuple[str, int]
"""The model and the GPUs of a replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimum:
    """What the best plan would have come to."""

    unmet: float
    gpu_hours: float
    money: float
    starts: float
    interval: int
    """Seconds of one interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Option:
    """The replicas of one kind in one cluster: the first of their variables, one an interval."""

    kind: Kind
    cluster: ClusterScenario
    running: int
    serving: int
    starts: int


def optimum(scenario: Scenario) -> Optimum:
    """Work out the optimum of a scenario. Needs the packages of the extra ``lab``."""
    interval = _interval(scenario)
    steps = -(-scenario.length // interval)
    hours = interval / HOUR
    kinds = list(dict.fromkeys((demand.model, demand.gpus) for demand in scenario.demands))
    missing = {kind: _missing(scenario, kind, interval, steps) for kind in kinds}
    programme = _Programme()
    options = [
        _option(programme, kind, cluster, steps, hours)
        for kind in kinds
        for cluster in scenario.clusters
        if kind[0] in ("", cluster.model)
    ]
    for cluster in scenario.clusters:
        _hold_capacity(programme, [option for option in options if option.cluster is cluster], scenario, interval)
    for option in options:
        _follow_start_up(programme, option, interval, steps)
    for kind in kinds:
        columns = [option.serving for option in options if option.kind == kind]
        for step, replicas in enumerate(missing[kind]):
            programme.row([(column + step, 1.0) for column in columns], most=replicas)
    return _figures(programme.solve(), options, sum(map(sum, missing.values())), interval, steps)


def _option(programme: _Programme, kind: Kind, cluster: ClusterScenario, steps: int, hours: float) -> _Option:
    price = _DEFAULT_PRICE if cluster.price is None else cluster.price
    return _Option(
        kind=kind,
        cluster=cluster,
        running=programme.variables(steps, kind[1] * price * hours),
        serving=programme.variables(steps, -_UNSERVED * hours),
        starts=programme.variables(steps, _START),
    )


def _hold_capacity(programme: _Programme, options: Sequence[_Option], scenario: Scenario, interval: int) -> None:
    """Replicas have GPUs: those that are free for the whole interval, and those that the autoscaler may add."""
    if not options:
        return
    cluster = options[0].cluster
    free = free_gpus(cluster)
    more = cluster.added.most * cluster.gpus if cluster.added is not None else 0
    for step in range(-(-scenario.length // interval)):
        ends = (step * interval, min(scenario.length, (step + 1) * interval) - 1)
        row = [(option.running + step, float(option.kind[1])) for option in options]
        programme.row(row, most=min(free.at(moment) for moment in ends) + more)


def _follow_start_up(programme: _Programme, option: _Option, interval: int, steps: int) -> None:
    """Let a replica serve once it has run for its start-up; it starts where there are more than before."""
    span = -(-option.cluster.start_up // interval)
    for step in range(steps):
        if step < span:
            programme.row([(option.serving + step, 1.0)], most=0)
        else:
            for before in range(step - span, step + 1):
                programme.row([(option.serving + step, 1.0), (option.running + before, -1.0)], most=0)
        earlier = [(option.running + step - 1, -1.0)] if step else []
        programme.row([(option.running + step, 1.0), *earlier, (option.starts + step, -1.0)], most=0)


def _figures(values: Sequence[float], options: Sequence[_Option], missing: float, interval: int, steps: int) -> Optimum:
    hours = interval / HOUR
    gpu_hours = money = served = starts = 0.0
    for option in options:
        used = sum(values[option.running : option.running + steps]) * option.kind[1] * hours
        gpu_hours += used
        money += used * (option.cluster.price or 0.0)
        served += sum(values[option.serving : option.serving + steps])
        starts += sum(values[option.starts : option.starts + steps])
    unmet = max(0.0, 1 - served / missing) if missing else 0.0
    return Optimum(unmet=unmet, gpu_hours=gpu_hours, money=money, starts=starts, interval=interval)


def _interval(scenario: Scenario) -> int:
    """Choose the seconds of an interval: within the shortest start-up, and few enough of them to be solved soon."""
    shortest = min(cluster.start_up for cluster in scenario.clusters)
    return max(_LEAST_INTERVAL, min(shortest, -(-scenario.length // _INTERVALS)))


def _missing(scenario: Scenario, kind: Kind, interval: int, steps: int) -> list[float]:
    """Return the missing replicas of a kind in each interval, on average."""
    seconds = [0] * steps
    for demand in scenario.demands:
        if (demand.model, demand.gpus) == kind:
            for begin, end, replicas in _stretches(demand.wanted.points, scenario.length):
                above = max(0, replicas - demand.home)
                for step in range(begin // interval, -(-end // interval)):
                    within = min(end, (step + 1) * interval) - max(begin, step * interval)
                    seconds[step] += above * within
    return [count / interval for count in seconds]


def _stretches(points: Sequence[tuple[int, int]], length: int) -> Iterable[tuple[int, int, int]]:
    """Yield each time in which a number stays the same: its begin, its end and the number."""
    ends = (*(second for second, _ in points[1:]), length)
    return (
        (begin, min(end, length), value) for (begin, value), end in zip(points, ends, strict=True) if begin < length
    )


class _Programme:
    """A linear programme with variables from 0 and rows that are at most a number."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._rows: list[Sequence[tuple[int, float]]] = []
        self._most: list[float] = []

    def variables(self, number: int, cost: float) -> int:
        """Add variables of one cost, and return the first."""
        first = len(self._costs)
        self._costs += [cost] * number
        return first

    def row(self, entries: Sequence[tuple[int, float]], *, most: float) -> None:
        """Add a row: the sum of these variables, weighed, is at most a number."""
        self._rows.append(entries)
        self._most.append(most)

    def solve(self) -> Sequence[float]:
        """Return the variables of the least cost."""
        import highspy  # noqa: PLC0415 - of the extra `lab`
        import numpy as np  # noqa: PLC0415 - of the extra `lab`

        model: Any = highspy.HighsLp()
        model.num_col_, model.num_row_ = len(self._costs), len(self._rows)
        model.col_cost_ = np.array(self._costs)
        model.col_lower_ = np.zeros(len(self._costs))
        model.col_upper_ = np.full(len(self._costs), highspy.kHighsInf)
        model.row_lower_ = np.full(len(self._rows), -highspy.kHighsInf)
        model.row_upper_ = np.array(self._most)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.cumsum([0, *(len(row) for row in self._rows)])
        model.a_matrix_.index_ = np.array([column for row in self._rows for column, _ in row])
        model.a_matrix_.value_ = np.array([weight for row in self._rows for _, weight in row])
        solver: Any = highspy.Highs()  # type: ignore[no-untyped-call] # it ships no types
        solver.setOptionValue("output_flag", False)
        solver.passModel(model)
        solver.run()
        status = solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS found no optimum: {solver.modelStatusToString(status)}")
        return list(solver.getSolution().col_value)
