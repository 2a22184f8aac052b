"""A line on the terminal that something is being done, from the second second on until the first word of the answer.

It stands on the error stream, and on no other than a terminal. Commands know nothing of it: whatever they print takes
its place.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO

DOING: Mapping[str, str] = {
    "init": "looking at the clusters of the kubeconfig",
    "lend": "reading the workload and its cluster",
    "check": "checking files",
    "plan": "reading git and clusters, and planning",
    "once": "reading git and clusters, and deciding",
    "sweep": "looking for placements that are over",
    "status": "reading git and clusters",
    "explain": "reading git and clusters",
    "history": "reading commits",
    "cost": "adding up commits",
    "gprs": "reading git and clusters",
    "wait-time": "reading git and clusters",
    "inventory": "reading git and clusters",
    "placements": "reading placements",
    "revert": "reading git",
    "release": "reading git",
    "extend": "reading git",
    "confirm": "reading git",
    "rebalance": "reading git and clusters",
    "lab": "running simulations",
    "doctor": "looking at git, clusters and webhooks",
    "grant": "looking at the cluster",
    "bootstrap": "looking at the fleet and its clusters",
}
"""What each command does before its first word. Others say something at once, or go on until Ctrl-C."""

_ASKING = "waiting for an answer"
_AFTER, _EVERY = 1.0, 0.1
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_FRAMES = "|/-\\"
_CLEAR = "\r\x1b[K"


@contextmanager
def shown(command: str, *, daemon: bool = False) -> Iterator[None]:
    """Show progress on the terminal while a command says nothing; none for a command that is not in `DOING`.

    With `daemon` the settings name one, which the command may ask in place of the repository.
    """
    if command not in DOING or not sys.stderr.isatty():
        yield
        return
    out, err = sys.stdout, sys.stderr
    line = ProgressLine(_ASKING if daemon else DOING[command], err)
    sys.stdout, sys.stderr = _Announced(out, line.end), _Announced(err, line.end)
    line.start()
    try:
        yield
    finally:
        line.end()
        sys.stdout, sys.stderr = out, err


class ProgressLine:
    """A line that is drawn over by a thread of its own, until its end."""

    def __init__(self, text: str, stream: TextIO, *, after: float = _AFTER, every: float = _EVERY) -> None:
        """Draw on a stream, `after` so many seconds, anew `every` so many."""
        self._text, self._stream, self._after, self._every = text, stream, after, every
        self._frames = _FRAMES if (stream.encoding or "").lower().replace("-", "") == "utf8" else _PLAIN_FRAMES
        self._over = threading.Event()
        self._drawn = False
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)

    def start(self) -> None:
        """Begin to count."""
        self._began = time.monotonic()
        self._thread.start()

    def end(self) -> None:
        """Remove the line; nothing is drawn from then on."""
        if self._over.is_set():
            return
        self._over.set()
        self._thread.join()
        if self._drawn:
            self._stream.write(_CLEAR)
            self._stream.flush()

    def _draw(self) -> None:
        wait = self._after
        while not self._over.wait(wait):
            wait = self._every
            lapse = time.monotonic() - self._began
            frame = self._frames[int(lapse / self._every) % len(self._frames)] if self._every else self._frames[0]
            self._drawn = True
            self._stream.write(f"{_CLEAR}{frame} {self._text} … {int(lapse)} s")
            self._stream.flush()


class _Announced:
    """A stream that announces the first use of it as one to write to."""

    def __init__(self, stream: TextIO, announce: Callable[[], None]) -> None:
        self._stream = stream
        self._announce = announce

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has."""
        if name in ("write", "writelines", "buffer", "detach"):
            self._announce()
        return getattr(self._stream, name)
