"""Unix signals, handed to the loop.

Nothing is logged here: a handler may interrupt the very log call whose lock it would wait for.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from reconciler.daemon.loop import RELOAD, Loop


@contextmanager
def signals_for(loop: Loop[Any]) -> Iterator[None]:
    """Handle this process's signals with the loop, and restore the handlers at the end. Call it in the main thread.

    SIGTERM and SIGINT let the pass under way finish, its push included. A second SIGINT is a KeyboardInterrupt at once.
    SIGHUP runs a pass now.
    """
    interrupted = False

    def stop(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if number == signal.SIGINT:
            if interrupted:
                raise KeyboardInterrupt
            interrupted = True
        loop.stop()

    def reload(_number: int, _frame: FrameType | None) -> None:
        loop.wake(RELOAD)

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, stop),
        signal.SIGINT: signal.signal(signal.SIGINT, stop),
        signal.SIGHUP: signal.signal(signal.SIGHUP, reload),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
