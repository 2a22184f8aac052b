"""The keys that ssh knows of a host, whatever their types.

ssh says of a host that shows a key of a type that it has none of that no key of that type is known, and of a key of a
known type that it has changed. A man in the middle chooses which of the two is said.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Sequence
from urllib.parse import urlsplit

from reconciler.adapters.git.remote import Remote
from reconciler.adapters.operating_system import foreign_environment

_PATIENCE = 10.0
"""Seconds for each program: none of them talks to the host."""
_NO_KEY = ("#", "@revoked")
"""Lines of ssh-keygen that are remarks, and keys that no host may show: `@revoked *` stands for every host."""
_FILES = ("userknownhostsfile", "globalknownhostsfile")


def are_keys_known(remote: Remote) -> bool:
    """Return whether a file of known hosts has any key for the host; false where ssh cannot be asked."""
    if remote.protocols != "ssh":
        return False
    host, port = _host(remote.url)
    command = [*shlex.split(remote.environment()["GIT_SSH_COMMAND"]), *(["-p", port] if port else []), "-G", "--", host]
    settings = dict(line.split(" ", 1) for line in _lines(command) if " " in line)
    name = settings.get("hostkeyalias") or settings.get("hostname", "")
    port = settings.get("port", "22")
    if port != "22" and "hostkeyalias" not in settings:
        name = f"[{name}]:{port}"
    files = [file for setting in _FILES for file in settings.get(setting, "").split()]
    found = (line for file in files for line in _lines(["ssh-keygen", "-F", name, "-f", file]))
    return bool(name) and any(not line.startswith(_NO_KEY) for line in found)


def _host(url: str) -> tuple[str, str]:
    """Return the host of an address with its user, and its port where it names one."""
    if "://" not in url:
        return url.partition(":")[0], ""
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    return f"{user}{parts.hostname or ''}", str(parts.port or "")


def _lines(command: Sequence[str]) -> list[str]:
    try:
        done = subprocess.run(
            command,
            env=foreign_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []
