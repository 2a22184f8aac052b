"""The API of a git host, asked for the rules of one branch: GitHub's, GitLab's, and that of Gitea and Forgejo.

Which software a host runs is asked without a login; the login of git is sent to the host that it is for, and nowhere
else. Nothing is written here; `adapters.notification.commit_status` sets statuses of commits.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from reconciler.adapters.git.remote import Credentials, check_address
from reconciler.core.readiness.branch_rules import BranchRules, HostAnswer, HostSoftware, rule_paths, settings_page
from reconciler.core.readiness.proposal_rights import ProposalRights, proposal_paths
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpClient, NoAnswer

_GITHUB, _GITHUB_API = "github.com", "https://api.github.com"
_ENTERPRISE = "/api/v3"
"""Where GitHub Enterprise Server has its API (https://docs.github.com/enterprise-server/rest/meta/meta)."""
_LIMIT = 1 << 20
"""Bytes that are read of an answer."""
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAddress:
    """Where the API of a host is, and what it is asked about."""

    software: HostSoftware
    root: str
    """The address of its pages."""
    api: str
    """The address that the paths of its API stand below."""
    project: str
    """The path of the repository, ``acme/fleet``."""
    credentials: Credentials = field(repr=False)

    def headers(self) -> Mapping[str, str]:
        """Return the headers with the login of now."""
        password = self.credentials.current_password()
        if not password:
            return {}
        if self.software is HostSoftware.GITEA:  # takes a token in place of a password, as for git
            pair = base64.b64encode(f"{self.credentials.username}:{password}".encode()).decode()
            return {"Authorization": f"Basic {pair}"}
        return {"Authorization": f"Bearer {password}"}


def project_of(url: str) -> str:
    """Return the path of a repository below its host."""
    return urlsplit(url).path.strip("/").removesuffix(".git")


def find_host(http: HttpClient, url: str, credentials: Credentials) -> HostAddress | None:
    """Find the host of a repository; None for one that is unknown, or not reached by https."""
    remote = check_address(url, credentials)
    parts = urlsplit(remote.url)
    if parts.scheme not in ("https", "http"):
        return None
    root = f"{parts.scheme}://{parts.netloc}"
    software = _software(http, parts, root)
    if software is None:
        return None
    api = root
    if software is HostSoftware.GITHUB:
        api = _GITHUB_API if parts.hostname == _GITHUB else f"{root}{_ENTERPRISE}"
    return HostAddress(
        software=software, root=root, api=api, project=project_of(remote.url), credentials=remote.credentials
    )


class GitHost:
    """Asks the host of a repository (a `ports.BranchRuleSource`); `timeout` is in seconds, for each answer.

    `signed` says whether our commits are signed.
    """

    def __init__(self, url: str, credentials: Credentials, *, timeout: float, signed: bool = False) -> None:
        self._signed = signed
        self._url, self._credentials = url, credentials
        self._project = project_of(check_address(url, credentials).url)
        self._timeout = timeout

    def rules(self, branch: str) -> BranchRules:
        """Return what the host tells of a branch; nothing for a repository that is not reached by https."""
        nothing = BranchRules(software=None, project=self._project, page="")
        try:
            with HttpClient(timeout=self._timeout) as http:
                host = find_host(http, self._url, self._credentials)
                if host is None:
                    return nothing
                paths = rule_paths(host.software, host.project, branch)
                answers = {path: _ask(http, f"{host.api}{path}", host.headers()) for path in paths}
        except InvalidInput:  # a proxy that cannot be used
            return nothing
        return BranchRules(
            software=host.software,
            project=host.project,
            page=settings_page(host.software, host.root, host.project),
            signed=self._signed,
            answers=answers,
        )

    def proposal_rights(self) -> ProposalRights:
        """Return what the host tells of the repository and its pull requests; nothing where it is not known."""
        nothing = ProposalRights(software=None)
        try:
            with HttpClient(timeout=self._timeout) as http:
                host = find_host(http, self._url, self._credentials)
                if host is None:
                    return nothing
                paths = proposal_paths(host.software, host.project)
                answers = {path: _ask(http, f"{host.api}{path}", host.headers()) for path in paths}
        except InvalidInput:  # as above
            return nothing
        return ProposalRights(software=host.software, answers=answers)

    @property
    def project(self) -> str:
        """The path of the repository, ``acme/fleet``."""
        return self._project


def _software(http: HttpClient, parts: SplitResult, root: str) -> HostSoftware | None:
    """Tell which software a host runs, by what it answers to everybody."""
    if parts.hostname == _GITHUB:
        return HostSoftware.GITHUB
    gitea = _ask(http, f"{root}/api/v1/version", {})
    if isinstance(gitea.body, dict) and isinstance(gitea.body.get("version"), str):
        return HostSoftware.GITEA
    gitlab = _ask(http, f"{root}/api/v4/version", {})
    known = isinstance(gitlab.body, dict) and (
        "revision" in gitlab.body or (gitlab.status == _UNAUTHORIZED and "message" in gitlab.body)
    )
    if known:
        return HostSoftware.GITLAB
    enterprise = _ask(http, f"{root}{_ENTERPRISE}/meta", {})
    told = isinstance(enterprise.body, dict) and isinstance(enterprise.body.get("installed_version"), str)
    return HostSoftware.GITHUB if told else None


def _ask(http: HttpClient, url: str, headers: Mapping[str, str]) -> HostAnswer:
    try:
        answer = http.send("GET", url, headers={"Accept": "application/json", **headers}, limit=_LIMIT)
    except NoAnswer:
        return HostAnswer(status=0)
    return HostAnswer(status=answer.status, body=answer.json)
