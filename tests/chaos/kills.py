"""Kills within passes: the daemon dies at any call of its repository, before or after the call had its effect.

Restarts are in this process: what a process keeps in memory is thrown away. One kill in ten is over a real repository,
where git starts anew for every tenth; the others are over one in memory. `tests/daemon/test_killed.py` kills real
processes.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

from reconciler.adapters.git import GitRepository
from reconciler.core.commits.trailers import Trailer
from reconciler.errors import Conflict, Transient
from reconciler.ports import Repository
from tests.builders.passes import RENEWING, SOURCE_FILES, Passes, seconds
from tests.builders.remote import Remote
from tests.fakes.memory_repository import MemoryRepository
from tests.fakes.mortal_repository import Killed, Mortal

_MOST_CALLS = 25
"""Calls after which the daemon dies at the latest; a pass that writes makes about fifteen."""
_OVER_GIT = 10
"""One kill of so many is over a real repository."""
_FRESH = 200
"""Kills after which a repository in memory is followed by another one."""


def run(directory: Path, number: int) -> str:
    """Kill a daemon so often, and see after each kill that the next one does what is due, once.

    What is needed is placed, and lasts by renewals; what is not needed ends.
    """
    chance = random.Random(20261123)
    over_git, commits = _over_git(directory, number // _OVER_GIT, chance)
    in_memory = 0
    while over_git + in_memory < number:
        killed, made = _in_memory(min(_FRESH, number - over_git - in_memory), chance)
        in_memory, commits = in_memory + killed, commits + made
    return f"{over_git + in_memory} kills, {over_git} of them over git, {commits} commits, nothing lost or doubled"


def _over_git(directory: Path, number: int, chance: random.Random) -> tuple[int, int]:
    """Kill a daemon over a real repository; return how often, and the commits of the branch."""
    remote = Remote(directory / "remote.git")
    remote.commit("main", SOURCE_FILES | RENEWING)
    killed = checked = known = 0
    moment = None
    while killed < number:
        with GitRepository(remote.url, cache=directory / "cache") as repository:
            more, moment = _disturb(repository, chance, moment)
        killed += more
        if killed // 500 > checked:
            checked = killed // 500
            known = _check(remote, known)
    return killed, _check(remote, known)


def _in_memory(number: int, chance: random.Random) -> tuple[int, int]:
    """Kill a daemon over a repository in memory; return how often, and the commits of the branch."""
    repository = MemoryRepository(SOURCE_FILES | RENEWING)
    killed, moment = 0, None
    while killed < number:
        more, moment = _disturb(repository, chance, moment)
        killed += more
    subjects = repository.subjects()
    begun = sum(subject.startswith("burst(") for subject in subjects)
    ended = sum(subject.startswith('Revert "burst(') for subject in subjects)
    assert begun == ended, f"{begun} bursts began and {ended} ended"
    return killed, len(subjects)


def _disturb(repository: Repository, chance: random.Random, moment: datetime | None) -> tuple[int, datetime]:
    """Run ten passes of a daemon that may be killed in each; return the kills, and the moment at which all is quiet."""
    mortal = Mortal(repository)
    passes, killed = Passes(mortal), 0
    passes.moment = moment or passes.moment
    for _ in range(10):
        passes.restart()
        passes.advance(chance.choice([1, 20, 70, 130, 700]))
        missing = chance.choice([0, 0, 1, 3, 5, 7, 11])
        passes.missing = missing
        passes.since, passes.steady_since = passes.moment - seconds(60), passes.moment - seconds(61)
        mortal.fuse.left, mortal.fuse.after = chance.randint(1, _MOST_CALLS), chance.random() < 0.5
        try:
            passes.repository.fetch()
            passes.run_once()
        except Killed:
            killed += 1
        except (Conflict, Transient):
            pass
        mortal.fuse.left = 0
        passes.restart()
        _finish(passes)
        placed = sum(placement.replicas for placement in passes.placements())
        assert min(missing, 12) <= placed <= 12, f"{placed} of {missing} replicas on 12 GPUs"
    return killed, _calm(passes, steady_since=passes.moment)


def _calm(passes: Passes, steady_since: datetime) -> datetime:
    """Let the demand go, see that all bursts end, and return the moment at which they have."""
    passes.missing, passes.steady_since = 0, steady_since
    passes.advance(61)
    _finish(passes)
    assert not passes.placements(), "a burst outlives its demand"
    return passes.moment


def _finish(passes: Passes) -> None:
    """Run passes until nothing changes; the push of a killed pass may still be under way, so it is tried again."""
    for _ in range(20):
        try:
            passes.repository.fetch()
            passes.run()
        except Transient:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the repository does not come to rest")


def _check(remote: Remote, known: int) -> int:
    """Check the whole branch, and return the number of its commits."""
    remote.git("fsck", "--strict")
    fields = ("%P", *(f"%(trailers:key={key},valueonly,separator=)" for key in (Trailer.ACTION, Trailer.PLACEMENT)))
    lines = remote.git("log", f"--format={'|'.join(fields)}", "placements").splitlines()
    assert len(lines) >= known, "history was rewritten"
    assert all(len(line.split("|")[0].split()) <= 1 for line in lines), "a merge"
    counts = Counter(tuple(line.split("|")[1:]) for line in lines)
    doubled = [key for key, count in counts.items() if key[0] in {"Place", "Revert"} and count > 1]
    assert not doubled, f"done twice: {doubled[:3]}"
    return len(lines)
