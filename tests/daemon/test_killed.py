"""kill -9 at random moments of a real process with a real repository."""

from __future__ import annotations

import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import Transient
from reconciler.model.tree import LoggedCommit
from tests.conftest import Remote
from tests.passes import BRANCHES, SOURCE_FILES, START, Passes, seconds


def play(remote: Path, cache: Path, step: int, kills: int) -> None:
    """Be a daemon at one step of a story in which every step before the last kill has something to do."""
    with GitRepository(str(remote), cache=cache) as repository:
        passes = Passes(repository)
        passes.moment = START + seconds(70 * step)
        passes.since = passes.moment - seconds(60)
        passes.missing = (0, 3, 5, 1, 7, 0, 2)[step % 7] if step < kills else 0
        passes.steady_since = passes.moment - seconds(61)
        for _ in range(5):
            try:
                repository.fetch()
                passes.advance(0)
                passes.run()
            except Transient:
                continue  # a push of the one that was killed may still be going on
            break


def commits(remote: Remote, branch: str = "placements") -> list[str]:
    """List a branch's commits with their parents, oldest first."""
    return remote.git("log", "--reverse", "--format=%H %P", branch).splitlines() if remote.tip(branch) else []


@pytest.mark.parametrize(("more", "kills"), [({}, 200), (BRANCHES, 120)], ids=["one branch", "one a cluster"])
def test_killed_at_random_the_branch_is_whole_and_nothing_happens_twice(
    remote: Remote, tmp_path: Path, more: Mapping[str, str], kills: int
) -> None:
    remote.commit("main", SOURCE_FILES | more)
    clusters = [f"placements-by-cluster/worker-{number}" for number in (1, 2, 3)] if more else []
    cache, chance = tmp_path / "cache", random.Random(20261120)  # the same moments in every run
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.daemon.test_killed"])
    before: dict[str, list[str]] = {}
    # Processes are slow where others are at work: the moments lie within the time that an undisturbed one takes here.
    stretch = 0.0
    for step in (1, 2):  # the first one waits for what all of them are forked from
        began = time.monotonic()
        undisturbed = context.Process(target=play, args=(remote.path, cache, step, kills))
        undisturbed.start()
        undisturbed.join()
        stretch = time.monotonic() - began
    killed = 0
    for step in range(3, kills):
        process = context.Process(target=play, args=(remote.path, cache, step, kills))
        process.start()
        time.sleep(chance.uniform(0, stretch))
        killed += process.is_alive()
        process.kill()
        process.join()
        for branch in ("placements", *clusters):
            after, known = commits(remote, branch), before.get(branch, [])
            assert after[: len(known)] == known, "history is only ever added to"
            before[branch] = after
    assert killed > kills / 3, "the kills came too late to hit anything"
    for step in range(kills, kills + 3):
        play(remote.path, cache, step + 700 * (step - kills), kills)  # left alone, it puts everything right
    assert all(len(line.split()) <= 2 for line in commits(remote)), "a merge commit"
    counts = Counter(
        (commit.trailers["Overspill-Action"], commit.trailers.get("Overspill-Placement", ""))
        for commit in history(remote, tmp_path)
    )
    assert {action for action, _ in counts} >= {"Place", "Resize", "Revert"}
    assert [key for key, count in counts.items() if key[0] in ("Place", "Revert") and count > 1] == []
    remote.git("fsck", "--strict")
    assert [remote.files(branch, "clusters") for branch in ("placements", *clusters)] == [{}] * (1 + len(clusters))
    if clusters:
        assert followed(remote, clusters) == followed(remote, ["placements"]), "a commit is missing, doubled or made up"


def followed(remote: Remote, branches: list[str]) -> Counter[str]:
    """Count the subjects of commits that changed what is in a cluster."""
    return Counter(
        subject
        for branch in branches
        for subject in remote.git("log", "--format=%s", branch, "--", "clusters").splitlines()
    )


def history(remote: Remote, tmp_path: Path) -> list[LoggedCommit]:
    """Read the output branch's commits back."""
    with GitRepository(remote.url, cache=tmp_path / "reader") as repository:
        tip = repository.fetch().output
        assert tip is not None
        return repository.log(tip)
