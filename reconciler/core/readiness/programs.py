"""The programs beside the daemon, as the machine of the doctor has them, and a daemon that runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from reconciler.core.engines import ENGINES
from reconciler.core.readiness.check import CheckResult, missing, ok
from reconciler.core.readiness.server import clock_result
from reconciler.model.policy import Desired

_GIT = (2, 34)
"""The oldest git whose commands are all that ours need."""
_NUMBER = re.compile(r"v?(?<![0-9])([0-9]{1,9})\.([0-9]{1,9})\S*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonAnswer:
    """What a daemon answers to the question how it is."""

    status: int = 0
    state: str = ""
    """The word of its answer: ``ok``, ``failing``, ``stuck``."""
    reason: str = ""
    skew: timedelta | None = None
    """How far its clock is ahead of ours; None where it was not told."""
    trouble: str = ""
    """Why there is no answer; empty for one."""


def git_result(version: str) -> CheckResult:
    """Report git by what it prints of its version, or by why it prints nothing."""
    found = _NUMBER.search(version)
    if found is None:
        return missing("git", version or "not installed", "git --version")
    if (int(found[1]), int(found[2])) < _GIT:
        least = ".".join(map(str, _GIT))
        return missing("git", f"{found[0]}, and {least} or newer is needed", "git --version")
    return ok("git", found[0])


def helm_result(desired: Desired, version: str) -> CheckResult | None:
    """Report helm by what it prints of its version, empty where it is not installed; None where nothing needs it."""
    rendered = sorted(
        str(workload)
        for workload in desired.policies
        for engine in {cluster.engine for cluster in desired.clusters.values() if cluster.slurm is None}
        if ENGINES[engine].to_render(desired.templates[workload].spec)
    )
    if not rendered:
        return None
    if not version:
        return missing("helm", f"not installed, and charts of {rendered[0]} are rendered here", "helm version")
    return ok("helm", version)


def daemon_results(url: str, answer: DaemonAnswer) -> tuple[CheckResult, ...]:
    """Report a running daemon: whether it works, and its clock."""
    look = f"curl {url}/healthz"
    subject = "daemon"
    if answer.trouble:
        return (missing(subject, answer.trouble, look),)
    if not answer.state:
        return (missing(subject, f"answers {answer.status}, and is no daemon", look),)
    why = f"{answer.state}{f': {answer.reason}' if answer.reason else ''}"
    works = ok(subject, why) if answer.state == "ok" else missing(subject, why, look)
    return works, clock_result(answer.skew, look)


def kubeconfig_result(path: str, seen: str) -> CheckResult:
    """Report a context that leads elsewhere than its file says: another cluster would be watched in its place."""
    look = f"{shlex.join(['kubectl', '--kubeconfig', path, 'config', 'view'])}  # rename its context, cluster and user"
    return missing(f"kubeconfig {path}", seen, look)


def program_results(desired: Desired | None, versions: Mapping[str, str]) -> tuple[CheckResult, ...]:
    """Report the programs that a pass starts; of a fleet that cannot be read, git alone."""
    helm = helm_result(desired, versions.get("helm", "")) if desired is not None else None
    return git_result(versions.get("git", "")), *([helm] if helm is not None else [])
