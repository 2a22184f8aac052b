"""The play as a picture that a terminal shows, with keys to play along; lines of text where there is no terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.text import Text

from reconciler.demo.branch_log import OVERSPILL, LandedCommit
from reconciler.demo.keys import Key, Keyboard, keyboard
from reconciler.demo.narrator import PlainNarrator
from reconciler.demo.picture import Frame, draw_frame
from reconciler.demo.view import ClusterScene, DemoTime, View

_STDIN = 0
_ATTENTION = 4.0
"""Seconds for which the words of a person stay."""
_FLASH = 0.8
"""Seconds for which a key that was pressed stands out."""
_REFRESH = 0.25
"""Seconds between two frames."""


class Picture:
    """What the screen shows now, told event by event."""

    def __init__(self, clock: DemoTime, *, keys: bool = False, ascii_only: bool = False) -> None:
        """Begin with an empty screen."""
        self._clock, self._keys, self._ascii_only = clock, keys, ascii_only
        self._chapter, self._says, self._reason = "", "", ""
        self._voice = ("", "")
        self._clusters: tuple[ClusterScene, ...] = ()
        self._commits: list[tuple[LandedCommit, float]] = []
        self._checked = False
        self._heard_until = 0.0
        self._pressed: Key | None = None
        self._pressed_until = 0.0

    def frame(self) -> Frame:
        """Return the frame of this moment."""
        return Frame(
            chapter=self._chapter,
            says=self._says,
            lapse=self._clock.lapse(),
            now=self._clock.now().timestamp(),
            clusters=self._clusters,
            commits=tuple(self._commits),
            reason=self._reason,
            voice=self._voice,
            keys=self._keys,
            pressed=self._pressed if self._clock.lapse() < self._pressed_until else None,
            ascii_only=self._ascii_only,
        )

    def press(self, keys: Sequence[Key]) -> None:
        """Let the last of some keys stand out for a moment."""
        for key in keys:
            self._pressed, self._pressed_until = key, self._clock.lapse() + _FLASH

    def chapter(self, title: str, says: str = "") -> None:
        """Show a title, and its sentence if it has one."""
        first, _, _ = says.partition(" ")  # which may be the name of a cluster
        sentence = says[:1].upper() + says[1:] if first.isalpha() else says
        self._chapter, self._says = title, sentence or self._says

    def say(self, who: str, text: str) -> None:
        """Show what is checked above, and others below; what a person did is not talked over at once."""
        now = self._clock.lapse()
        if who == "check":
            self._says = " ".join(filter(None, (self._says if self._checked else "", text)))
            self._checked = True
        elif who == "Ann" or (who == "Overspill" and now >= self._heard_until):
            self._voice, self._heard_until = (who, text), now + (_ATTENTION if who == "Ann" else 0)

    def quote(self, who: str, command: str, run: Callable[[], str]) -> None:
        """Leave out the output of a command: the picture has no room for it."""

    def land(self, commit: LandedCommit) -> None:
        """Add a commit, and show why it was made."""
        self._commits.append((commit, self._clock.lapse()))
        by_hand = "" if commit.author == OVERSPILL else f"{commit.author} wrote this commit by hand."
        self._reason = " ".join(commit.reasons) or by_hand

    def show(self, clusters: Sequence[ClusterScene]) -> None:
        """Show the clusters as they are now."""
        self._clusters = tuple(clusters)


class LivePicture(Picture):
    """The picture on a terminal (a `View`)."""

    def __init__(self, clock: DemoTime, console: Console, keys: Keyboard | None) -> None:
        """Draw to a console, and take keys if there are any."""
        super().__init__(clock, keys=keys is not None, ascii_only=not _speaks_unicode(console))
        self._keyboard = keys
        self._live = Live(self, console=console, screen=True, auto_refresh=False)

    @property
    def interactive(self) -> bool:
        """Whether keys are taken."""
        return self._keyboard is not None

    @contextmanager
    def opened(self) -> Iterator[View]:
        """Take the screen, and give it back with the block."""
        with self._live:
            yield self

    def wait(self, seconds: float) -> tuple[Key, ...]:
        """Draw frame after frame, until a key is pressed or the time is over."""
        until = self._clock.lapse() + seconds
        while True:
            self._live.refresh()
            left = until - self._clock.lapse()
            if self._keyboard is None:
                self._clock.pause(max(0.0, min(left, _REFRESH)))
            elif keys := self._keyboard.wait(min(left, _REFRESH)):
                self.press(keys)
                return keys
            if left <= _REFRESH:
                return ()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the frame of this moment in the size of the terminal."""
        height = options.height or console.height
        yield Text("\n").join(draw_frame(self.frame(), options.max_width, height))


@contextmanager
def opened_view(clock: DemoTime, *, plain: bool) -> Iterator[View]:
    """Open a picture on a terminal that can show one, else lines of text."""
    console = Console()
    # FORCE_COLOR, as pipelines set it, makes rich take a file for a terminal.
    if plain or not sys.stdout.isatty() or not console.is_terminal or console.is_dumb_terminal:
        yield PlainNarrator(clock)
        return
    with keyboard(_STDIN) as keys, LivePicture(clock, console, keys).opened() as view:
        yield view


def _speaks_unicode(console: Console) -> bool:
    return console.encoding.lower().startswith("utf")
