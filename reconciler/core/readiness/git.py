"""The fleet repository: its source branch and files, its output branch, and the right to push."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import replace

from reconciler.core.engines import ENGINES
from reconciler.core.readiness.check import CheckResult, missing, ok, unknown
from reconciler.errors import InvalidInput, OverspillError, Severity
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.text.redaction import redacted
from reconciler.text.wording import count, join_names

_FROM = "spec.from"
_SHORT = 12
"""Characters of a commit that are printed."""


def unreadable(url: str, error: OverspillError) -> CheckResult:
    """Report a repository that cannot be fetched."""
    return missing("repository", str(error), shlex.join(["git", "ls-remote", redacted(url)]))


def source_result(branch: str, tip: CommitId | None, error: OverspillError | None) -> CheckResult:
    """Report the source branch."""
    subject = f"source branch {branch}"
    if tip is None:
        return missing(subject, str(error or "not there"), f"git push origin {shlex.quote(f'HEAD:{branch}')}")
    return ok(subject, f"readable, at {tip[:_SHORT]}")


def files_result(desired: Desired) -> CheckResult:
    """Report the files of the fleet."""
    errors = [problem for problem in desired.problems if problem.severity is Severity.ERROR]
    if errors:
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        return missing("files", f"{errors[0]}{more}", "overspill check  # in a checkout of the source branch")
    if not desired.policies:
        return missing("files", "no template that may burst: none has a BurstPolicy", "overspill check")
    parts = (
        count(len(desired.clusters), "cluster"),
        count(len(desired.workspaces), "workspace"),
        count(len(desired.policies), "template"),
    )
    warned = len(desired.problems)
    more = f"; {count(warned, 'warning')}: see `overspill check`" if warned else ""
    return ok("files", f"without errors: {parts[0]}, {parts[1]}, {parts[2]} that may burst{more}")


def repo_url_result(desired: Desired) -> CheckResult | None:
    """Report a Fleet that does not say where engines fetch from; None where it does, or no engine needs it."""
    if desired.fleet.repo_url:
        return None
    reached = {name for workspace in desired.workspaces.values() for name in workspace.destinations}
    used = {desired.clusters[name].engine for name in reached if name in desired.clusters}
    engines = sorted(ENGINES[name].title for name in used if ENGINES[name].bootstrap is not None)
    if not engines:
        return None
    seen = f"not set, so {join_names(engines)} cannot be told where to fetch the output branch"
    return missing("spec.repoURL", seen, "set spec.repoURL of fleet.yaml; then `overspill bootstrap`")


def partition_results(desired: Desired) -> Iterator[CheckResult]:
    """Report the Clusters that are partitions of Slurm, of which nothing is asked."""
    for name, cluster in sorted(desired.clusters.items()):
        if cluster.slurm is not None:
            yield ok(f"Cluster {name}", cluster.slurm.description)


def template_source_results(desired: Desired) -> Iterator[CheckResult]:
    """Report the problems of templates' sources (`spec.from`) that the files alone show, each with its edit.

    A warning leaves it unknown whether the source can be read.
    """
    for problem in desired.problems:
        if problem.field.startswith(_FROM):
            report = missing if problem.severity is Severity.ERROR else unknown
            subject = str(replace(problem, message="", hint=""))  # path:line: field
            mend = f"{redacted(problem.hint) or 'mend its spec.from'}; then `overspill check`"
            yield report(subject, problem.message, mend)


def output_result(branch: str, tip: CommitId | None, others: Collection[str]) -> CheckResult:
    """Report the output branch; `others` are the names of the other branches."""
    subject = f"output branch {branch}"
    if tip is not None:
        return ok(subject, f"there, at {tip[:_SHORT]}")
    name = branch.removeprefix("refs/heads/")
    in_the_way = sorted(other for other in others if name.startswith(f"{other}/") or other.startswith(f"{name}/"))
    if in_the_way:
        rename = f"{in_the_way[0]}:refs/heads/{in_the_way[0].replace('/', '-')}"
        seen = f"cannot begin: git keeps no branch beside {in_the_way[0]!r}"
        return missing(
            subject, seen, f"git push origin {shlex.quote(f'origin/{rename}')} {shlex.quote(f':{in_the_way[0]}')}"
        )
    return ok(subject, "not there yet: the first pass begins it")


def push_result(branch: str, url: str, refusal: OverspillError | None, *, rules_shown: bool) -> CheckResult:
    """Report a rehearsal of a push, which moves nothing; `rules_shown` tells that the host's rules are a line too."""
    subject = f"push to {branch}"
    if refusal is None:
        hidden = "; rules of the host for a branch show at a real push alone"
        return ok(subject, f"a dry run is taken{'' if rules_shown else hidden}")
    again = shlex.join(["git", "push", "--dry-run", redacted(url), f"HEAD:refs/heads/{branch}"])
    report = missing if isinstance(refusal, InvalidInput) else unknown
    return report(subject, str(refusal), again)
