"""What POSIX systems and Windows do differently: owners and locks of files, and the end of processes.

`check`, `plan` and `lend` run on Windows as well, so nothing that it lacks is imported elsewhere; mypy holds that with
``--platform win32``. Windows protects a user's files by access lists, which `os.stat` does not show: there they
count as ours.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from reconciler.environment import PREFIX


def is_ours(status: os.stat_result) -> bool:
    """Return whether a file or directory belongs to the user of this process."""
    return sys.platform == "win32" or status.st_uid == os.geteuid()


def is_open_to_others(status: os.stat_result, rights: int = stat.S_IWGRP | stat.S_IWOTH) -> bool:
    """Return whether the group or others have one of some rights to a file or directory: by default to write."""
    return sys.platform != "win32" and bool(status.st_mode & rights)


def own_flags() -> int:
    """Return the flags with which `os.open` follows no link, waits for no pipe and translates no line ending."""
    if sys.platform == "win32":
        flags = os.O_BINARY
    else:
        flags = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    return flags


def bound_own_memory(size: int) -> None:
    """Let this process take no more than so many bytes for heap and private pages, where its system has the bound.

    A bound on its addresses beside that holds single large allocations, as in `bounded`.
    """
    if sys.platform != "win32":
        import resource  # noqa: PLC0415 - of POSIX alone

        for kind, most in ((resource.RLIMIT_DATA, size), (resource.RLIMIT_AS, size + _RESERVED)):
            hard = resource.getrlimit(kind)[1]
            if hard == resource.RLIM_INFINITY or hard > most:
                resource.setrlimit(kind, (most, hard))


def own_memory() -> int:
    """Return the bytes of heap and private pages, as `bound_own_memory` counts them; 0 outside of Linux."""
    return _memory(5)


def resident_memory() -> int:
    """Return the bytes of this process that are in memory now; 0 outside of Linux."""
    return _memory(1)


def _memory(field: int) -> int:
    """Return a field of /proc/self/statm (proc_pid_statm(5)) in bytes."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[field]) * os.sysconf("SC_PAGE_SIZE")


def memory_limit(controllers: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that this container may have, else those of the machine; a guess where nothing says either."""
    limits = [_LARGE]
    if sys.platform != "win32":
        limits[0] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for file in ("memory.max", "memory/memory.limit_in_bytes"):  # of cgroups v2 and v1
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            limits.append(int((controllers / file).read_text(encoding="ascii")))
    return min(limits)


_LARGE = 16 << 30


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, without waiting; return whether no other process holds it."""
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415 -- elsewhere there is none

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415 -- Windows has none

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # BlockingIOError where flock is refused, PermissionError where Windows refuses it.
        if isinstance(error, BlockingIOError | PermissionError):
            return False
        raise
    return True


def bring_to_disk(descriptor: int) -> None:
    """Wait until the disk has what was written to a file; what may be found without its times is enough on Linux."""
    if sys.platform == "linux":
        os.fdatasync(descriptor)
    else:
        os.fsync(descriptor)


def foreign_environment(without: tuple[str, ...] = ()) -> dict[str, str]:
    """Return our environment for a program of others: without our settings, among which are logins and passphrases.

    `without` are beginnings of further names to leave out.
    """
    return {name: value for name, value in os.environ.items() if not name.startswith((PREFIX, *without))}


def kill(process: int) -> None:
    """Kill a process that was started with ``start_new_session``, with all of its children; none may be left."""
    if sys.platform == "win32":
        command = ["taskkill", "/F", "/T", "/PID", str(process)]
        subprocess.run(command, env=foreign_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False)
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process, signal.SIGKILL)


_BOUNDED = 'ulimit -c 0 && ulimit -d "$1" && ulimit -v "$2" && ulimit -f "$3" && ulimit -t "$4" && shift 4 && exec "$@"'
_RESERVED = 1 << 30
"""Bytes of addresses that a program in Go reserves and does not use: helm does not start with 768 MiB of them."""


def bounded(argv: Sequence[str], *, memory: int, file_size: int, cpu_seconds: int) -> list[str]:
    """Return a command that runs another one within bounds, where the system has them; what that starts is bound too.

    `memory` is of its heap and private pages; a bound on its addresses beside that holds single large allocations, some
    of which pass the first. Beyond a bound an allocation fails, or a signal ends it. The shell sets the bounds before
    the program begins: set from here, they would come too late on a busy machine.
    """
    if sys.platform != "linux":
        return [*argv]
    # The units of POSIX: kilobytes, blocks of 512 bytes, seconds.
    bounds = (memory >> 10, (memory + _RESERVED) >> 10, file_size >> 9, cpu_seconds)
    return ["/bin/sh", "-c", _BOUNDED, "sh", *map(str, bounds), *argv]


def make_removable(directory: Path) -> None:
    """Let a directory's files be removed: Windows keeps files that are read-only, as those of git's objects are."""
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            path.chmod(stat.S_IRWXU)
