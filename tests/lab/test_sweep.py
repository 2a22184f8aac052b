"""Sweeps: all combinations, each run by itself, with the same table wherever it ran."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from reconciler.errors import InvalidInput, Transient
from reconciler.lab.simulation import Result
from reconciler.lab.sweep import Task, in_order, on_this_machine, read_varied, run_task, summaries, tasks
from tests.lab.test_simulation import POLICY, SCENARIO

TODO = tasks([SCENARIO], POLICY, {"scaleUp.window": ("0s", "60s"), "maxReplicas": ("2", "12")})


def test_every_combination_is_a_task_with_its_fields_set() -> None:
    assert [task.name for task in TODO] == [
        "scaleUp.window=0s maxReplicas=2",
        "scaleUp.window=0s maxReplicas=12",
        "scaleUp.window=60s maxReplicas=2",
        "scaleUp.window=60s maxReplicas=12",
    ]
    assert b"maxReplicas: 2\n" in TODO[0].policy
    assert b'window: "0s"' in TODO[0].policy or b"window: 0s" in TODO[0].policy


def test_workers_give_the_figures_of_one_process() -> None:
    told: list[int] = []
    there = in_order(on_this_machine(TODO, 2), told.append)
    assert there == {task: run_task(task) for task in TODO}
    assert told == [1, 2, 3, 4]
    best, *_, worst = summaries(TODO, there)
    assert best.values == {"scaleUp.window": "0s", "maxReplicas": "12"}
    assert worst.values == {"scaleUp.window": "60s", "maxReplicas": "2"}
    assert (worst.worst, worst.worst_unmet) == ("hour", worst.unmet)


def die_once(marker: Path, task: Task) -> Result:
    """Kill the worker at the first try."""
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task)


def die(task: Task) -> Result:
    """Kill the worker at each try."""
    os.kill(os.getpid(), signal.SIGKILL)
    return run_task(task)


def test_run_of_a_killed_worker_is_done_again(tmp_path: Path) -> None:
    once = partial(die_once, tmp_path / "marker")
    assert in_order(on_this_machine(TODO[:1], 1, once), lambda _: None) == {TODO[0]: run_task(TODO[0])}


def test_sweep_ends_where_workers_are_killed_again_and_again() -> None:
    with pytest.raises(Transient, match="killed 3 times"):
        list(on_this_machine(TODO[:1], 1, die))


@pytest.mark.parametrize("text", ["headroom", "=1", "headroom=", "headroom=1,,2"])
def test_what_varies_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"try scaleDown.window=5m,15m"):
        read_varied([text])


def test_fields_may_be_new_and_must_have_a_place() -> None:
    (task,) = tasks([SCENARIO], POLICY, {"distribution.strategy": ("Balanced",)})
    assert b"strategy: Balanced" in task.policy
    with pytest.raises(InvalidInput, match="maxReplicas has no fields"):
        tasks([SCENARIO], POLICY, {"maxReplicas.window": ("5m",)})
