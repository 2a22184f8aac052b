"""Sweeps: all combinations, each run by itself, with the same table wherever it ran."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import pytest

from reconciler.errors import InvalidInput, Transient
from reconciler.lab.policy_file import parse_policy
from reconciler.lab.simulation import Result
from reconciler.lab.sweep import Task, in_order, on_this_machine, read_varied, run_task, summaries, tasks
from tests.lab.test_simulation import POLICY, SCENARIO

ON_TRIAL = parse_policy(POLICY, path="ours.yaml", name="ours")
TODO = tasks([SCENARIO], ON_TRIAL, {"scaleUp.window": ("0s", "60s"), "maxReplicas": ("2", "12")})


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
    (task,) = tasks([SCENARIO], ON_TRIAL, {"distribution.strategy": ("Balanced",)})
    assert b"strategy: Balanced" in task.policy
    with pytest.raises(InvalidInput, match=r"--vary maxReplicas\.window=5m: maxReplicas has no fields"):
        tasks([SCENARIO], ON_TRIAL, {"maxReplicas.window": ("5m",)})


@pytest.mark.parametrize(
    ("varied", "message"),
    [
        (("scaleDwn.window=5m",), "--vary scaleDwn.window=5m: spec.scaleDwn: unknown field (try 'scaleDown')"),
        (
            ("scaleDown.window=5m,5x", "headroom=0,1"),
            "--vary scaleDown.window=5x: spec.scaleDown.window: '5x' is not a duration (try '10m' or '1h30m')",
        ),
        (
            ("duration.default=2h", "duration.max=1h"),
            "--vary duration.default=2h --vary duration.max=1h: spec.duration: default 2h is longer than max 1h",
        ),
        (("headroom=[1",), "--vary headroom=[1: is not YAML"),
        (("headroom=0", "headroom=1"), "--vary headroom=1: headroom is varied already (try headroom=0,1)"),
        (("templates=vllm",), "--vary templates=vllm: a policy governs all workloads of a scenario"),
    ],
)
def test_value_that_its_field_does_not_take_is_refused_before_the_first_run(
    varied: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        tasks([SCENARIO], ON_TRIAL, read_varied(varied))
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)
