"""The story of `make demo` by a clock of its own, as frames of its picture.

The play, its simulated clusters, git and the passes are those of the demo. What is otherwise is time: it goes on by
half seconds that nobody waits for, and the daemon's passes run in this process, one each second. So each run makes the
same commits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.text import Text

from reconciler.app.commands import connected
from reconciler.daemon.announce import Announcer
from reconciler.daemon.reconcile import reconcile_once
from reconciler.demo.branch_log import LandedCommit
from reconciler.demo.keys import Key
from reconciler.demo.live import Picture
from reconciler.demo.picture import draw_frame
from reconciler.demo.play import DemoPlay, commit_fleet
from reconciler.demo.stage import DemoDirectory, claimed, prepare
from reconciler.demo.story import Act, Timing
from reconciler.model.events.event import Event, Push
from reconciler.settings import Settings

_READING = 2.5
"""Seconds after a change for which the film goes on as time does."""
_HURRY = 4
"""How many times as fast it goes while nothing changes."""
MORNING = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)


class FilmTime:
    """A clock that goes on when somebody waits."""

    def __init__(self) -> None:
        self._lapse = 0.0

    def now(self) -> datetime:
        return MORNING + timedelta(seconds=int(self._lapse))

    def lapse(self) -> float:
        return self._lapse

    def pause(self, seconds: float) -> None:
        self._lapse += seconds


class FilmDirectory(DemoDirectory):
    """A demo's directory in which persons commit at a fixed time."""

    __slots__ = ()

    @property
    def environment(self) -> dict[str, str]:
        inherited = DemoDirectory.environment.__get__(self)
        date = MORNING.isoformat()
        return {**inherited, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}


class FilmDaemon:
    """The daemon's pass, once a second of the film; its lines are the events that it would log."""

    def __init__(self, stage: DemoDirectory, clock: FilmTime) -> None:
        self._settings = Settings(
            repo=str(stage.remote), observations=stage.observations, cache_dir=stage.out / "cache"
        )
        self._clock = clock
        self._lines: list[str] = []
        self._at = clock.now()
        self._open = ExitStack()
        self.restart()

    def restart(self) -> None:
        """Begin with nothing in memory."""
        world, self._memory = self._open.enter_context(connected(self._settings, self))
        self._world = replace(world, clock=self._clock)
        self._announcer = Announcer(source_branch=self._settings.source_branch, sinks=(self,))
        self._lives = True

    def kill(self) -> None:
        """Forget everything."""
        self._open.close()
        self._lives = False

    def publish(self, events: Sequence[Event], pushes: Sequence[Push]) -> None:
        """Log events (an `EventSink`)."""
        self._lines += [f"{self._clock.now():%H:%M:%S} {event.line}" for event in events]

    def work(self) -> None:
        """Run a pass, if a second has gone by since the last one."""
        if self._lives and self._clock.now() > self._at:
            self._at = self._clock.now()
            self._announcer.tell(reconcile_once(self._world, self._memory))

    def lines(self) -> Iterator[str]:
        lines, self._lines = self._lines, []
        yield from lines

    def ended(self) -> int | None:
        return None if self._lives else -9


class Film(Picture):
    """A camera before the picture (a `View`): a frame for each wait."""

    def __init__(self, clock: FilmTime, columns: int, lines: int, keys: Sequence[tuple[float, Key]]) -> None:
        super().__init__(clock, keys=True)
        self._time, self._size = clock, (columns, lines)
        self._to_press = list(keys)
        self._their_turn: float | None = None
        self._moved = 0.0
        self.interactive = bool(keys)
        self.daemon: FilmDaemon | None = None
        self.frames: list[tuple[float, list[Text]]] = []

    def chapter(self, title: str, says: str = "") -> None:
        """Begin a chapter; what a person does counts from theirs."""
        super().chapter(title, says)
        self._moved = self._time.lapse()
        if title.startswith("Your turn"):
            self._their_turn = self._moved

    def land(self, commit: LandedCommit) -> None:
        """Add a commit, by an id that does not change with every file of the layout."""
        known = f"{commit.at} {commit.author} {commit.subject}"
        super().land(replace(commit, id=hashlib.sha256(known.encode()).hexdigest()[: len(commit.id)]))
        self._moved = self._time.lapse()

    def wait(self, seconds: float) -> tuple[Key, ...]:
        """Take a frame, let the time go on, and the daemon work meanwhile."""
        now = self._time.lapse()
        quiet = now - self._moved > _READING
        if not quiet or now == int(now):
            self.frames.append((seconds / (_HURRY if quiet else 1), draw_frame(self.frame(), *self._size)))
        self._time.pause(seconds)
        if self.daemon is not None:
            self.daemon.work()
        return self._pressed_now()

    def _pressed_now(self) -> tuple[Key, ...]:
        """Return the keys whose time has come."""
        if self._their_turn is None:
            return ()
        lapse = self._time.lapse() - self._their_turn
        keys = tuple(key for at, key in self._to_press if at <= lapse)
        self._to_press = self._to_press[len(keys) :]
        self.press(keys)
        if keys:
            self._moved = self._time.lapse()
        return keys


def play(
    out: Path, script: Sequence[Act], timing: Timing, keys: Sequence[tuple[float, Key]], *, columns: int, lines: int
) -> tuple[Film, datetime]:
    """Play acts, then press keys at their seconds; return the film, and the time at its end."""
    stage, clock = FilmDirectory(out=out), FilmTime()
    film = Film(clock, columns, lines, keys)
    with claimed(stage):
        prepare(stage)
        commit_fleet(stage, film, timing)
        film.daemon = FilmDaemon(stage, clock)
        try:
            demo = DemoPlay(stage, film, clock, film.daemon)
            demo.perform(script)
            if film.interactive:
                demo.prove()
                demo.improvise()
            film.wait(1.0)
        finally:
            film.daemon.kill()
    return film, clock.now()
