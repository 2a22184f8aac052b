"""The rules of a git host for one branch, as far as its API tells them to the account that pushes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import quote

from reconciler.core.readiness.check import CheckResult, missing, ok, unknown
from reconciler.core.workloads.paths import at
from reconciler.model.workload import Json
from reconciler.text.wording import join_names

_BLOCKING = frozenset({
    "creation", "update", "pull_request", "merge_queue", "required_signatures", "required_status_checks",
    "required_deployments", "workflows", "commit_message_pattern", "commit_author_email_pattern",
    "committer_email_pattern", "branch_name_pattern",
})  # fmt: skip # a list of words, filled line by line
"""Types of GitHub's rules that may refuse a plain push of new commits; others forbid deletion, or a forced push."""
_SIGNATURES = "required_signatures"
_OK, _ABSENT = 200, 404


class HostSoftware(StrEnum):
    """The software of a git host whose API tells rules of branches."""

    GITHUB = "GitHub"
    GITLAB = "GitLab"
    GITEA = "Gitea"
    """Forgejo as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """An answer of a git host; a status of 0 stands for none."""

    status: int
    body: Json = field(default=None, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchRules:
    """What a git host tells of one branch."""

    software: HostSoftware | None
    """None for one that is not known, and that was asked nothing."""
    project: str
    """The path of the repository, ``acme/fleet``."""
    page: str
    """The address of the page on which the rules are."""
    signed: bool = False
    """Whether our commits are signed."""
    answers: Mapping[str, HostAnswer] = field(default_factory=dict, hash=False)
    """By the paths of `rule_paths`."""


def rule_paths(software: HostSoftware, project: str, branch: str) -> tuple[str, ...]:
    """Return the paths below the root of a host's API that tell the rules of a branch.

    https://docs.github.com/rest/repos/rules, https://docs.gitlab.com/api/branches, and the Swagger file of Gitea.
    """
    name = quote(branch, safe="")
    match software:
        case HostSoftware.GITHUB:
            return f"/repos/{project}/rules/branches/{name}", f"/repos/{project}/branches/{name}"
        case HostSoftware.GITLAB:
            return (f"/api/v4/projects/{quote(project, safe='')}/repository/branches/{name}",)
        case HostSoftware.GITEA:
            return (f"/api/v1/repos/{project}/branches/{name}",)


def settings_page(software: HostSoftware, root: str, project: str) -> str:
    """Return the address of the page on which the rules of branches are edited."""
    match software:
        case HostSoftware.GITHUB:
            return f"{root}/{project}/settings/rules"
        case HostSoftware.GITLAB:
            return f"{root}/{project}/-/settings/repository"
        case HostSoftware.GITEA:
            return f"{root}/{project}/settings/branches"


def rules_result(branch: str, rules: BranchRules) -> CheckResult | None:
    """Report whether the host lets the account push to a branch; None where nothing tells."""
    subject = f"rules for {branch}"
    if rules.software is None:
        return None
    first, *more = (rules.answers[path] for path in rule_paths(rules.software, rules.project, branch))
    if rules.software is HostSoftware.GITHUB:
        return _of_github(subject, first, more[0], rules)
    if first.status == _ABSENT:
        return unknown(subject, f"{rules.software} tells them once the branch is there", "overspill once")
    may = at(first.body, ("can_push" if rules.software is HostSoftware.GITLAB else "user_can_push",))
    if first.status != _OK or not isinstance(may, bool):
        return unknown(subject, f"{rules.software} does not tell them to this account ({first.status})", rules.page)
    if may:
        return ok(subject, f"{rules.software} lets this account push")
    return missing(subject, f"{rules.software} does not let this account push: the branch is protected", rules.page)


def _of_github(subject: str, rules: HostAnswer, branch: HostAnswer, asked: BranchRules) -> CheckResult:
    """Look at the rulesets, and at the older protection, whose details GitHub tells to administrators alone."""
    page = asked.page
    if rules.status != _OK or not isinstance(rules.body, list):
        return unknown(subject, f"GitHub does not tell them to this account ({rules.status})", page)
    found = {str(rule.get("type")) for rule in rules.body if isinstance(rule, dict)} & _BLOCKING
    if _SIGNATURES in found and not asked.signed:
        why = "GitHub requires signed commits, and ours are not: no push is taken"
        return missing(
            subject, why, "set OVERSPILL_SIGNING_KEY_FILE; its public key goes to the account as a signing key"
        )
    types = sorted(found - {_SIGNATURES})
    if types:
        why = f"GitHub has the rules {join_names(types)}: they refuse pushes, unless the account may bypass them"
        return unknown(subject, why, page)
    if branch.status == _OK and at(branch.body, ("protected",)) is True:
        return unknown(subject, "the branch is protected, and GitHub tells administrators alone who may push", page)
    return ok(subject, "none of GitHub's refuses a push")
