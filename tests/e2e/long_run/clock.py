"""A clock of the daemon's own, which can be put ahead and back while it runs: a small C library that is preloaded."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("shifted_clock.c")


def missing() -> str:
    """Say why clocks cannot be put apart here; empty if they can."""
    return "" if shutil.which("cc") else "no C compiler (cc)"


class ShiftedClock:
    """The time of day of those processes that get its `environment`, and of what they start."""

    def __init__(self, home: Path) -> None:
        """Compile the library; the clock is right until `put`."""
        home.mkdir(parents=True)
        self._file, self._library = home / "shift", home / "shifted_clock.so"
        self._file.write_bytes(struct.pack("=q", 0))
        done = subprocess.run(
            ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", str(self._library), str(_SOURCE)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a process that is to have this clock."""
        return {"LD_PRELOAD": str(self._library), "SHIFTED_CLOCK": str(self._file)}

    def put(self, ahead: int) -> None:
        """Put the clock so many seconds ahead of the true time, or back behind it."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("=q", ahead))
