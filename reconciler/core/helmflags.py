"""EGS's older helmFlags, a text of Helm's own options, read into the newer object (rule R10 of the EGS reference)."""

from __future__ import annotations

import shlex
from collections import deque
from datetime import timedelta

from reconciler.core.findings import Finding, Loc, shortened
from reconciler.errors import Severity
from reconciler.model.units import parse_duration
from reconciler.model.workload import HelmFlags

_SWITCHES = {
    "--atomic": "atomic",
    "--cleanup-on-fail": "cleanup_on_fail",
    "--create-namespace": "create_namespace",
    "--skip-crds": "skip_crds",
    "--wait": "wait",
}
_ELSEWHERE = {
    "--version": "write it as version:",
    "--set": "write it under values:",
    "--set-string": "write it under values:",
    "--set-file": "write it under values:",
    "--set-json": "write it under values:",
    "--values": "write them under values:",
    "-f": "write them under values:",
    "--namespace": "write it as releaseNamespace:",
    "-n": "write it as releaseNamespace:",
    "--repo": "write it as repoURL:",
}
_MOST_FLAGS = 20
"""Problems of one line that are told."""
_KNOWN = "--atomic, --cleanup-on-fail, --create-namespace, --skip-crds, --timeout and --wait are read"


def read_flags(text: str, loc: Loc) -> tuple[HelmFlags, tuple[Finding, ...]]:
    """Read a line of options; what cannot be read is reported at `loc` and left out."""
    try:
        words = deque(shlex.split(text))
    except ValueError as error:
        return HelmFlags(), (Finding(loc=loc, message=f"{shortened(text)!r} is no list of options: {error}"),)
    switches: dict[str, bool] = {}
    timeout: timedelta | None = None
    found: list[Finding] = []
    while words and len(found) < _MOST_FLAGS:
        option, equals, given = words.popleft().partition("=")
        # 1. A switch, on its own or with =true or =false.
        if option in _SWITCHES and given in ("", "true", "false"):
            switches[_SWITCHES[option]] = given != "false"
        # 2. The only option with an argument that is ours to read.
        elif option == "--timeout":
            duration = given if equals else words.popleft() if words else ""
            try:
                timeout = parse_duration(shortened(duration))
            except ValueError as error:
                found.append(Finding(loc=loc, message=f"--timeout: {error}"))
        # 3. Harmless, without effect here.
        elif option == "--debug":
            found.append(Finding(loc=loc, message="--debug has no effect", severity=Severity.WARNING))
        # 4. Said elsewhere in the file, or not at all.
        else:
            found.append(
                Finding(loc=loc, message=f"{shortened(option)} is not read here", hint=_ELSEWHERE.get(option, _KNOWN))
            )
            if option in _ELSEWHERE and not equals and words and not words[0].startswith("-"):
                words.popleft()
    return HelmFlags(timeout=timeout, **switches), tuple(found)
