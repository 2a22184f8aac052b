"""Runs commands in this process as far as a Linux can be Windows: what Windows lacks is absent, and it says win32.

``python without_posix.py CALLS``, where CALLS is a JSON list of lists of arguments. The standard library and the
packages of others are imported first: what they need of Linux is not our business.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import json
import os
import signal
import ssl
import sys
import types

MODULES = ["fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty"]
MISSING = {
    os: ["fdatasync", "fork", "geteuid", "getuid", "killpg", "setsid", "O_CLOEXEC", "O_NOFOLLOW"],
    signal: ["SIGHUP", "SIGKILL", "alarm", "setitimer", "pthread_sigmask"],
}
OTHERS = (
    "aiohttp apscheduler.schedulers.background cronsim fastapi git httpcore2 httpx2 jinja2.sandbox jwt kubernetes.aio"
    " multiprocessing pydantic rich.console rich.progress rich.table structlog uvicorn yaml"
)


def become_windows() -> None:
    """Take away what Windows lacks, and give what it has for locks."""
    for name in OTHERS.split():
        importlib.import_module(name)
    asyncio.new_event_loop().close()

    def locking(descriptor: int, _mode: int, _bytes: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(13, "Permission denied") from error

    msvcrt = types.ModuleType("msvcrt")
    msvcrt.locking, msvcrt.LK_NBLCK = locking, 2
    os.O_BINARY = 0
    ssl.enum_certificates = lambda _store: ()
    for module, names in MISSING.items():
        for name in names:
            delattr(module, name)
    sys.modules.update(dict.fromkeys(MODULES), msvcrt=msvcrt)
    sys.platform = "win32"


def main() -> None:
    """Run each call, and print its exit code."""
    become_windows()
    assert not [name for name in sys.modules if name.startswith("reconciler")]
    from reconciler.cli import main as overspill  # noqa: PLC0415 - only now, as on Windows

    for call in json.loads(sys.argv[1]):
        try:
            overspill(call, prog_name="overspill")
        except SystemExit as end:
            print(f"exit code {end.code}", flush=True)  # noqa: T201 - the answer, read by the test


if __name__ == "__main__":
    main()
