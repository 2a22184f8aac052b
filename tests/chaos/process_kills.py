"""kill -9 of whole daemons with approvals, renewals, requests, notifications and restores in flight."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

from tests.chaos.branch_losses import BranchLosses
from tests.chaos.whole_daemon import GPUS, Daemon, Scene, scene

_SETTLED = 50
"""Kills after which a daemon is left alone until all is quiet."""

_LOST = 8
"""One turn of so many in which the output branch is lost."""


def run(directory: Path, number: int) -> str:
    """Kill a daemon so often in a random moment of its life, and see what remains of what was in flight."""
    chance = random.Random(20261128)  # the same order of events in every run
    with scene(directory) as one:
        stretch = _undisturbed(one)
        losses = BranchLosses(one, chance)
        for turn in range(number):
            daemon = one.start()
            acting = threading.Thread(target=_act, args=(one, daemon, chance.randrange(8)))
            acting.start()
            one.missing = {name: chance.choice([0, 1, 3, 5]) for name in one.workloads}
            time.sleep(chance.uniform(0.1, 1.5) * stretch)
            if turn % _LOST == _LOST - 1:
                acting.join()
                daemon = losses.lose_and_restore(daemon)
            daemon.kill()
            acting.join()
            one.see_history()
            if turn % _SETTLED == _SETTLED - 1:
                _settle(one)
        _settle(one)
        figures = one.judge()
        return (
            f"{number} kills; {figures}; {len(one.accepted)} receipts for requests; {losses.figures()}; nothing lost,"
            " doubled or left"
        )


def _act(one: Scene, daemon: Daemon, what: int) -> None:
    """Do what people and programs do while a daemon lives, which may be killed meanwhile."""
    if what < 3:
        one.ask(daemon)
    elif what < 5:
        one.approve()
    elif what == 5:
        one.receiver.answers += [500, 503]
    elif what == 6:
        one.receiver.deaf += 1


def _undisturbed(one: Scene) -> float:
    """Let daemons begin, place and end bursts; return the seconds until one that is started now has placed."""
    daemon = one.start()
    one.begin(daemon)
    daemon.kill()
    took = 0.0
    for _ in range(2):
        began = time.monotonic()
        daemon = one.start()
        one.missing = dict.fromkeys(one.workloads, 3)
        daemon.ready()
        while not one.placements():
            assert time.monotonic() < began + 180, daemon.said()
            time.sleep(0.05)
        took = time.monotonic() - began
        one.settle(daemon)
        daemon.kill()
    return took


def _settle(one: Scene) -> None:
    """Let one daemon come to rest, undisturbed."""
    one.receiver.answers.clear()
    one.receiver.deaf = 0
    daemon = one.start()
    one.settle(daemon)
    assert daemon.end() == 0, daemon.said()[-2000:]
    assert len(one.placements()) <= GPUS
    assert "Traceback" not in daemon.said(), daemon.said()[-3000:]
