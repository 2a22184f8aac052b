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
_PUSH_RULES = (
    "commit_message_regex", "commit_message_negative_regex", "branch_name_regex", "author_email_regex",
    "file_name_regex", "commit_committer_check", "commit_committer_name_check", "member_check",
    "reject_non_dco_commits",
)  # fmt: skip # a list of words, filled line by line
"""Push rules of GitLab that may refuse a push of ours; the others are about tags, secrets and large files."""
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

    The branch comes first of GitLab and Gitea, then what says whether commits have to be signed:
    https://docs.github.com/rest/repos/rules, https://docs.gitlab.com/api/branches,
    https://docs.gitlab.com/api/project_push_rules (Premium, and to maintainers), and the Swagger file of Gitea, which
    tells the rules to administrators of the repository.
    """
    name = quote(branch, safe="")
    match software:
        case HostSoftware.GITHUB:
            return f"/repos/{project}/rules/branches/{name}", f"/repos/{project}/branches/{name}"
        case HostSoftware.GITLAB:
            of_project = f"/api/v4/projects/{quote(project, safe='')}"
            return f"{of_project}/repository/branches/{name}", f"{of_project}/push_rule"
        case HostSoftware.GITEA:
            return f"/api/v1/repos/{project}/branches/{name}", f"/api/v1/repos/{project}/branch_protections"


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
    first, second = (rules.answers[path] for path in rule_paths(rules.software, rules.project, branch))
    if rules.software is HostSoftware.GITHUB:
        return _of_github(subject, first, second, rules)
    if first.status == _ABSENT:
        return unknown(subject, f"{rules.software} tells them once the branch is there", "overspill once")
    may = at(first.body, ("can_push" if rules.software is HostSoftware.GITLAB else "user_can_push",))
    if first.status != _OK or not isinstance(may, bool):
        return unknown(subject, f"{rules.software} does not tell them to this account ({first.status})", rules.page)
    if not may:
        return missing(subject, f"{rules.software} does not let this account push: the branch is protected", rules.page)
    if rules.software is HostSoftware.GITLAB:
        return _of_push_rules(subject, second, rules)
    return _of_protections(subject, first, second, rules)


def _of_push_rules(subject: str, push_rule: HostAnswer, asked: BranchRules) -> CheckResult:
    """Look at GitLab's push rules, which hold for all branches; other answers than an object have none to tell."""
    if at(push_rule.body, ("reject_unsigned_commits",)) is True and not asked.signed:
        return _unsigned(subject, HostSoftware.GITLAB)
    names = [name for name in _PUSH_RULES if at(push_rule.body, (name,)) not in (None, "", False)]
    if push_rule.status == _OK and names:
        why = f"GitLab has the push rules {join_names(names)}: they may refuse pushes"
        return unknown(subject, why, asked.page)
    return ok(subject, "GitLab lets this account push")


def _of_protections(subject: str, branch: HostAnswer, protections: HostAnswer, asked: BranchRules) -> CheckResult:
    """Look at the rule of Gitea that is in force for the branch."""
    name = at(branch.body, ("effective_branch_protection_name",))
    listed = protections.body if isinstance(protections.body, list) else []
    rules = [rule for rule in listed if name and at(rule, ("rule_name",)) == name]
    if not asked.signed and any(at(rule, ("require_signed_commits",)) is True for rule in rules):
        return _unsigned(subject, HostSoftware.GITEA)
    if not asked.signed and not rules and at(branch.body, ("protected",)) is True:
        return ok(
            subject, "Gitea lets this account push, and tells administrators alone whether commits must be signed"
        )
    return ok(subject, "Gitea lets this account push")


def _unsigned(subject: str, software: HostSoftware) -> CheckResult:
    why = f"{software} requires signed commits, and ours are not: no push is taken"
    return missing(subject, why, "set OVERSPILL_SIGNING_KEY_FILE; its public key goes to the account as a signing key")


def _of_github(subject: str, rules: HostAnswer, branch: HostAnswer, asked: BranchRules) -> CheckResult:
    """Look at the rulesets, and at the older protection, whose details GitHub tells to administrators alone."""
    page = asked.page
    if rules.status != _OK or not isinstance(rules.body, list):
        return unknown(subject, f"GitHub does not tell them to this account ({rules.status})", page)
    found = {str(rule.get("type")) for rule in rules.body if isinstance(rule, dict)} & _BLOCKING
    if _SIGNATURES in found and not asked.signed:
        return _unsigned(subject, HostSoftware.GITHUB)
    types = sorted(found - {_SIGNATURES})
    if types:
        why = f"GitHub has the rules {join_names(types)}: they refuse pushes, unless the account may bypass them"
        return unknown(subject, why, page)
    if branch.status == _OK and at(branch.body, ("protected",)) is True:
        return unknown(subject, "the branch is protected, and GitHub tells administrators alone who may push", page)
    return ok(subject, "none of GitHub's refuses a push")
