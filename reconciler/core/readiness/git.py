"""The fleet repository: its source branch and files, its output branch, and the right to push."""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from reconciler.core.commits.branch_loss import NOTHING_WRITTEN, describe_loss, preview_command
from reconciler.core.commits.history import left_out
from reconciler.core.engines import ENGINES
from reconciler.core.readiness.check import CheckResult, missing, ok, unknown
from reconciler.errors import HostKeyChanged, InvalidInput, OverspillError, Severity
from reconciler.model.branch_loss import BranchLoss
from reconciler.model.ids import CommitId
from reconciler.model.policy import Desired
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.redaction import redacted, without_secrets
from reconciler.text.wording import count, join_names

_FROM = "spec.from"
_SHORT = 12
"""Characters of a commit that are printed."""


def unreadable(url: str, error: OverspillError) -> CheckResult:
    """Report a repository that cannot be fetched."""
    return missing("repository", str(error), _retry(error, "git", "ls-remote", without_secrets(url)))


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


def repo_url_result(desired: Desired, url: str) -> CheckResult | None:
    """Report a Fleet that does not say where engines fetch from; None where it does, or no engine needs it."""
    if desired.fleet.repo_url:
        return None
    reached = {name for workspace in desired.workspaces.values() for name in workspace.destinations}
    used = {desired.clusters[name].engine for name in reached if name in desired.clusters}
    engines = sorted(ENGINES[name].title for name in used if ENGINES[name].bootstrap is not None)
    if not engines:
        return None
    seen = f"not set, so {join_names(engines)} cannot be told where to fetch the output branch"
    spec = f"spec: {{repoURL: {json.dumps(without_secrets(url))}}}"
    document = f"{{apiVersion: overspill.dev/v1alpha1, kind: Fleet, metadata: {{name: fleet}}, {spec}}}"
    return missing("spec.repoURL", seen, f"set it in the Fleet, or commit one: {document}; then `overspill bootstrap`")


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


def committers_result(branch: str, commits: Sequence[LoggedCommit], committer: Identity) -> CheckResult | None:
    """Report recent commits of the output branch with our trailers that another address has committed, if any."""
    problem = left_out(commits, committer)
    return None if problem is None else unknown(f"committers of {branch}", problem.message, problem.hint)


def loss_result(loss: BranchLoss) -> CheckResult:
    """Report a branch of ours that lacks what it is known to have had."""
    return missing(f"branch {loss.branch}", f"{describe_loss(loss)}; {NOTHING_WRITTEN}", preview_command(loss))


def signing_result(refusal: OverspillError | None) -> CheckResult:
    """Report a rehearsal of a signature."""
    subject = "signing key"
    if refusal is None:
        return ok(subject, "signs")
    return missing(subject, str(refusal), "")


def push_result(branch: str, url: str, refusal: OverspillError | None, *, rules_shown: bool) -> CheckResult:
    """Report a rehearsal of a push, which moves nothing; `rules_shown` tells that the host's rules are a line too."""
    subject = f"push to {branch}"
    if refusal is None:
        hidden = "; rules of the host for a branch show at a real push alone"
        return ok(subject, f"a dry run is taken{'' if rules_shown else hidden}")
    words = ("git", "push", "--dry-run", without_secrets(url), f"HEAD:refs/heads/{branch}")
    report = missing if isinstance(refusal, InvalidInput) else unknown
    return report(subject, str(refusal), _retry(refusal, *words))


def _retry(error: OverspillError, *words: str) -> str:
    """Write the command line that shows a failure of git again; none where nothing may be sent to the host."""
    return "" if isinstance(error, HostKeyChanged) else shlex.join(words)
