"""A sweep: one policy with its fields varied, over scenarios, on the cores of this machine or on a Ray cluster.

Every run is a task by itself, made of values alone, so that the table is the same wherever it ran. A task whose worker
was killed is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import product
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from typing import Any

from reconciler.core.schema import yaml
from reconciler.errors import InvalidInput, Problem, Transient
from reconciler.lab.controllers import OverspillController
from reconciler.lab.fleet_files import LEFT_OUT, fleet_files
from reconciler.lab.policy_file import TrialPolicy, policy_findings
from reconciler.lab.scenario import Scenario
from reconciler.lab.simulation import Result, simulate
from reconciler.model.workload import Json
from reconciler.text.findings import dotted

_TRIES = 3
"""Times that a task is begun; a worker that is killed thrice at the same task is killed by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One run."""

    scenario: Scenario
    policy: bytes
    values: tuple[tuple[str, str], ...]
    """The varied fields with their values, which name the run."""

    @property
    def name(self) -> str:
        """The varied fields of the run: ``headroom=1 scaleUp.window=10s``."""
        return " ".join(f"{field}={value}" for field, value in self.values) or "as it is"


def run_task(task: Task) -> Result:
    """Run one task; its samples and commits are left out, since a table needs neither."""
    files = fleet_files(task.scenario, task.policy)
    result = simulate(task.scenario, lambda world: OverspillController(world, files, task.name))
    return replace(result, samples=(), history=())


def tasks(scenarios: Sequence[Scenario], policy: TrialPolicy, varied: Mapping[str, Sequence[str]]) -> tuple[Task, ...]:
    """Make a task for each scenario and combination of values.

    Raises InvalidInput for a policy that does not go with a scenario, and with all values that its fields do not take.
    """
    for scenario in scenarios:
        policy.check(scenario)
    combinations = [tuple(zip(varied, values, strict=True)) for values in product(*varied.values())]
    documents = {values: _with(policy.document.value, values) for values in combinations}
    problems = {problem for values, document in documents.items() for problem in _problems(document, values)}
    if problems:
        raise InvalidInput(problems=tuple(sorted(problems)))
    return tuple(
        Task(scenario=scenario, policy=yaml.emit(document).encode(), values=values)
        for values, document in documents.items()
        for scenario in scenarios
    )


def _problems(document: Json, values: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    """Yield the errors of a combination, each with the values that it comes from."""
    for finding in policy_findings(document):
        field = dotted(finding.loc).removeprefix("spec.")
        own = [(name, value) for name, value in values if f"{field}.".startswith(f"{name}.")]
        yield finding.problem(path=" ".join(_option(*pair) for pair in own or values), line=0)


def _option(field: str, value: str) -> str:
    """Write a varied value as on the command line."""
    return f"--vary {field}={value}"


def read_varied(texts: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Read ``scaleDown.window=5m,15m``.

    Raises InvalidInput for a text of another form, for a field that is given twice or has no effect here.
    """
    varied: dict[str, tuple[str, ...]] = {}
    for text in texts:
        field, equals, values = text.partition("=")
        if not field or not equals or not all(values.split(",")):
            raise InvalidInput(f"{text!r} varies nothing (try scaleDown.window=5m,15m)")
        if field in varied:
            raise InvalidInput(
                f"--vary {text}: {field} is varied already (try {field}={','.join(varied[field])},{values})"
            )
        if field in LEFT_OUT:
            raise InvalidInput(f"--vary {text}: a policy governs all workloads of a scenario (try another field)")
        varied[field] = tuple(values.split(","))
    return varied


def on_this_machine(
    todo: Sequence[Task], workers: int, run: Callable[[Task], Result] = run_task
) -> Iterator[tuple[Task, Result]]:
    """Run tasks in processes of this machine, and yield each when it is done.

    Raises Transient where workers are killed again and again.
    """
    tries: dict[Task, int] = dict.fromkeys(todo, 0)
    while tries:
        try:
            with ProcessPoolExecutor(workers, mp_context=_workers()) as pool:
                futures: dict[Future[Result], Task] = {pool.submit(run, task): task for task in tries}
                waiting = set(futures)
                while waiting:
                    done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    for future in done:
                        outcome = future.result()
                        tries.pop(futures[future])
                        yield futures[future], outcome
        except BrokenProcessPool as error:
            tries = {task: count + 1 for task, count in tries.items()}
            if max(tries.values()) >= _TRIES:
                raise Transient(f"workers of the sweep were killed {_TRIES} times (try fewer --workers)") from error


def _workers() -> BaseContext:
    """Return how workers are started: from a process that has imported all of it once, where the system can do that."""
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def on_ray(todo: Sequence[Task], address: str) -> Iterator[tuple[Task, Result]]:
    """Run tasks on a Ray cluster, and yield each when it is done; Ray itself does those of lost workers again.

    Needs the extra ``ray``. Raises Transient where no cluster answers at the address.
    """
    ray = _ray()
    try:
        ray.init(address=address, ignore_reinit_error=True, log_to_driver=False, configure_logging=False)
    except (ConnectionError, ValueError) as error:
        raise Transient(f"no Ray cluster answers at {address}: {error}") from error
    try:
        remote = ray.remote(max_retries=_TRIES)(run_task)
        waiting = {remote.remote(task): task for task in todo}
        while waiting:
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                yield waiting.pop(reference), ray.get(reference)
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 - of the extra `ray`
    except ImportError as error:
        raise InvalidInput("--ray needs a package that is not installed (pip install 'overspill[ray]')") from error
    return ray


def in_order(results: Iterable[tuple[Task, Result]], progress: Callable[[int], None]) -> Mapping[Task, Result]:
    """Collect results as they come; `progress` is told how many there are."""
    collected: dict[Task, Result] = {}
    for task, result in results:
        collected[task] = result
        progress(len(collected))
    return collected


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one combination over all scenarios."""

    values: Mapping[str, str]
    """The varied fields."""
    unmet: float
    """The mean of the scenarios."""
    gpu_hours: float
    """The sum of the scenarios, as are dollars, starts and commits."""
    money: float
    starts: int
    commits: int
    fairness: float
    """The lowest of the scenarios."""
    worst: str
    """The scenario with the greatest part unserved."""
    worst_unmet: float


def summaries(todo: Sequence[Task], results: Mapping[Task, Result]) -> tuple[Summary, ...]:
    """Sum up each combination: the one that leaves least unserved first, then the one with the fewest GPU-hours."""
    by_values: dict[tuple[tuple[str, str], ...], list[Result]] = {}
    for task in todo:
        by_values.setdefault(task.values, []).append(results[task])
    made = [_summary(values, several) for values, several in by_values.items()]
    return tuple(sorted(made, key=lambda summary: (round(summary.unmet, 6), summary.gpu_hours)))


def _summary(values: Sequence[tuple[str, str]], results: Sequence[Result]) -> Summary:
    worst = max(results, key=lambda result: result.unmet)
    return Summary(
        values=dict(values),
        unmet=sum(result.unmet for result in results) / len(results),
        gpu_hours=sum(result.gpu_hours for result in results),
        money=sum(result.money for result in results),
        starts=sum(result.starts for result in results),
        commits=sum(result.commits for result in results),
        fairness=min(result.fairness for result in results),
        worst=worst.scenario,
        worst_unmet=worst.unmet,
    )


def summary_row(summary: Summary) -> tuple[str, ...]:
    """Write a combination as a row: its values, then its figures."""
    return (
        *summary.values.values(),
        f"{100 * summary.unmet:.2f} %",
        f"{summary.gpu_hours:.1f} h",
        f"{summary.money:.1f} $",
        str(summary.starts),
        str(summary.commits),
        f"{summary.fairness:.3f}",
        f"{summary.worst} {100 * summary.worst_unmet:.2f} %",
    )


def _with(document: Json, values: Iterable[tuple[str, str]]) -> Json:
    """Return a policy with some fields of its spec set, by their dotted paths."""
    changed = deepcopy(document)
    for field, value in values:
        *parents, last = field.split(".")
        place = changed
        for parent in ("spec", *parents):
            if place.get(parent) is None:
                place[parent] = {}
            place = place[parent]
            if not isinstance(place, dict):
                raise InvalidInput(f"{_option(field, value)}: {parent} has no fields (try {parent}=...)")
        place[last] = _typed(field, value)
    return changed


def _typed(field: str, value: str) -> Json:
    """Read a value as YAML does: a number, true, or a text such as ``15m``."""
    try:
        return yaml.parse(f"value: {value}".encode(), "")[0].value["value"]
    except InvalidInput as error:
        problems = tuple(replace(problem, path=_option(field, value), line=0) for problem in error.problems)
        raise InvalidInput(problems=problems) from error
