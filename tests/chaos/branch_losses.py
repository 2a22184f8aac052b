"""Somebody deletes, rewinds or rewrites the output branch; daemons stop, and a person restores it, who may be killed.

The branch is lost at a moment at which the mirror of the daemon knows its tip, so that all that the scene has seen of
the branch is to be on it again after the restore.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter

from reconciler.model.ids import CommitId
from tests.chaos.whole_daemon import Daemon, Scene

_KINDS = ("deleted", "rewound", "edited", "squashed")
_RESTORE = ("restore", "--author", "Ada <ada@example.com>")
_PERSON = ("-c", "user.name=Ben", "-c", "user.email=ben@example.com")
_PATIENCE = 120


class BranchLosses:
    """Loses the output branch of a scene again and again, and has a person restore it."""

    def __init__(self, one: Scene, chance: random.Random) -> None:
        """Begin with the guess that a restore takes a second."""
        self._one, self._chance = one, chance
        self._took = 1.0
        self._lost: Counter[str] = Counter()
        self._last = ""
        self._killed = 0

    def lose_and_restore(self, daemon: Daemon) -> Daemon:
        """Lose the branch around a living daemon, see that nothing is written, and restore; return what lives then.

        The daemon may be killed before the restore, and another one may be started.
        """
        one, chance = self._one, self._chance
        stands = self._lose()
        if chance.random() < 0.5:
            daemon.kill()
            daemon = one.start()
        if chance.random() < 0.5:
            self._see_it_stop(daemon)
        else:
            time.sleep(chance.uniform(0, 1))
        if chance.random() < 0.3:
            daemon.kill()
        assert one.tip() == stands, f"written while the branch was lost: {one.remote.subjects('placements')[:3]}"
        for _ in range(chance.randrange(3)):
            after = chance.uniform(0, self._took)
            self._killed += one.kill_while_it_runs(*_RESTORE, cache="cache", after=after)
        began = time.monotonic()
        done = one.run(*_RESTORE, cache="cache")
        self._took = time.monotonic() - began
        assert done.returncode == 0, f"restore: {done.stderr}"
        try:
            one.see_history()
        except AssertionError as error:
            raise AssertionError(f"{error}, where it was {self._last} and {done.stdout}") from error
        return daemon

    def figures(self) -> str:
        """Say what was done."""
        kinds = ", ".join(f"{self._lost[kind]} {kind}" for kind in _KINDS)
        return f"{self._lost.total()} lost branches ({kinds}) restored, {self._killed} restores killed"

    def _lose(self) -> CommitId | None:
        """Move or remove the branch once the daemon's mirror knows its tip; return where it stands then."""
        one = self._one
        kind = _KINDS[self._lost.total() % len(_KINDS)]
        deadline = time.monotonic() + _PATIENCE
        while True:
            assert time.monotonic() < deadline, f"the mirror knows {one.known_tip()}, and the branch has {one.tip()}"
            tip = one.tip()
            if tip is not None and tip == one.known_tip():
                one.see_history()
                stands = self._other_tip(kind, tip)
                if one.remote.swap("placements", tip, stands):
                    self._lost[kind] += 1
                    self._last = kind
                    return stands
            time.sleep(0.02)

    def _other_tip(self, kind: str, tip: CommitId) -> CommitId | None:
        """Return where somebody puts the branch."""
        git = self._one.remote.git
        if kind == "deleted":
            return None
        if kind == "squashed":
            return CommitId(git(*_PERSON, "commit-tree", f"{tip}^{{tree}}", "-m", "Squash"))
        back = self._chance.randint(1, min(5, len(self._one.known) - 1))
        earlier = CommitId(git("rev-parse", f"{tip}~{back}"))
        if kind == "rewound":
            return earlier
        return CommitId(git(*_PERSON, "commit-tree", f"{earlier}^{{tree}}", "-p", earlier, "-m", "Edit by hand"))

    def _see_it_stop(self, daemon: Daemon) -> None:
        """Wait until the daemon says that it has stopped, and see that it refuses requests."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            _, health = daemon.ask("GET", "/healthz")
            if health and json.loads(health)["status"] == "stopped":
                break
            assert daemon.process.poll() is None, f"the daemon ended: {daemon.said()[-2000:]}"
            assert time.monotonic() < deadline, f"it does not stop: {health!r} {daemon.said()[-2000:]}"
            time.sleep(0.02)
        assert daemon.call("GET", "/readyz") == 503
        receipts = len(self._one.accepted)
        self._one.ask(daemon)
        assert len(self._one.accepted) == receipts, "a receipt for a request while the branch was lost"
