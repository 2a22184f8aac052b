"""Whether bursts can be proposed on the git host, as far as its API tells that to the account that pushes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from reconciler.core.readiness.branch_rules import HostAnswer, HostSoftware
from reconciler.core.readiness.check import CheckResult, missing, ok, unknown
from reconciler.core.workloads.paths import at
from reconciler.model.policy import Desired
from reconciler.model.workload import Json
from reconciler.text.wording import join_names

_OK = 200
_DEVELOPER = 30
"""GitLab's access level from which on a member opens merge requests."""
_SUBJECT = "pull requests for approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalRights:
    """What a git host tells of a repository and its pull requests."""

    software: HostSoftware | None
    """None for one that is not known, and that was asked nothing."""
    answers: Mapping[str, HostAnswer] = field(default_factory=dict, hash=False)
    """By the paths of `proposal_paths`."""


def proposal_paths(software: HostSoftware, project: str) -> tuple[str, str]:
    """Return the paths below the root of a host's API that tell of a repository, and list its pull requests."""
    match software:
        case HostSoftware.GITHUB:
            return f"/repos/{project}", f"/repos/{project}/pulls?per_page=1"
        case HostSoftware.GITLAB:
            root = f"/api/v4/projects/{quote(project, safe='')}"
            return root, f"{root}/merge_requests?per_page=1"
        case HostSoftware.GITEA:
            return f"/api/v1/repos/{project}", f"/api/v1/repos/{project}/pulls?limit=1"


def approving_policies(desired: Desired) -> tuple[str, ...]:
    """Name the policies in force that have bursts approved."""
    return tuple(sorted({policy.name for policy in desired.policies.values() if policy.approval is not None}))


def proposal_result(policies: tuple[str, ...], project: str, rights: ProposalRights) -> CheckResult:
    """Report whether the host lets the account open pull requests for what these policies have approved."""
    software, way_out = rights.software, "overspill approve WORKSPACE/WORKLOAD"
    if software is None:
        why = f"policy {join_names(policies)} asks for approval, and no host with pull requests is known here"
        return unknown(_SUBJECT, f"{why} (it takes an https address and a token)", way_out)
    repository, listed = (rights.answers[path] for path in proposal_paths(software, project))
    if listed.status != _OK:
        why = f"{software} does not show them to this account ({listed.status})"
        return missing(_SUBJECT, why, "give the token of git the right to read and write pull requests")
    if repository.status != _OK or not _may_write(software, repository.body):
        why = f"{software} lets this account read them, and not push a branch"
        return missing(_SUBJECT, why, "give the account of git the right to write to the repository")
    return ok(_SUBJECT, f"{software} shows them to this account, which may push")


def _may_write(software: HostSoftware, repository: Json) -> bool:
    if software is not HostSoftware.GITLAB:
        return at(repository, ("permissions", "push")) is True
    levels = (at(repository, ("permissions", by, "access_level")) for by in ("project_access", "group_access"))
    return any(isinstance(level, int) and level >= _DEVELOPER for level in levels)
