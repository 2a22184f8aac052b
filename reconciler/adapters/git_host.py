"""The API of a git host, asked for the rules of one branch: GitHub's, GitLab's, and that of Gitea and Forgejo.

Which software a host runs is asked without a login; the login of git is sent to the host that it is for, and nowhere
else. Nothing is written here; `adapters.notification.commit_status` sets statuses of commits.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from reconciler.adapters.git.remote import Credentials, check_address
from reconciler.core.readiness.branch_rules import BranchRules, HostAnswer, HostSoftware, rule_paths, settings_page
from reconciler.errors import InvalidInput
from reconciler.http_client import HttpClient, NoAnswer

_GITHUB, _GITHUB_API = "github.com", "https://api.github.com"
_LIMIT = 1 << 20
"""Bytes that are read of an answer."""
_UNAUTHORIZED = 401


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedProject:
    """A repository at a git host whose API is known."""

    software: HostSoftware
    root: str
    """The address of the host's page."""
    api: str
    """The address below which the paths of its API begin."""
    project: str
    """The path of the repository, ``acme/fleet``."""


def project_path(url: str) -> str:
    """Return the path of a repository at its host."""
    return urlsplit(url).path.strip("/").removesuffix(".git")


def hosted_project(http: HttpClient, url: str) -> HostedProject | None:
    """Find out what hosts a repository; None for a host that is not known, and for one that is not reached by https."""
    parts = urlsplit(url)
    if parts.scheme not in ("https", "http"):
        return None
    root = f"{parts.scheme}://{parts.netloc}"
    software = _software(http, parts, root)
    if software is None:
        return None
    api = _GITHUB_API if parts.hostname == _GITHUB else root
    return HostedProject(software=software, root=root, api=api, project=project_path(url))


def login_headers(software: HostSoftware, credentials: Credentials) -> Mapping[str, str]:
    """Return the header with the login of git, as the API of a host takes it."""
    password = credentials.current_password()
    if not password:
        return {}
    if software is HostSoftware.GITEA:  # takes a token in place of a password, as for git
        pair = base64.b64encode(f"{credentials.username}:{password}".encode()).decode()
        return {"Authorization": f"Basic {pair}"}
    return {"Authorization": f"Bearer {password}"}


class GitHost:
    """Asks the host of a repository (a `ports.BranchRuleSource`); `timeout` is in seconds, for each answer."""

    def __init__(self, url: str, credentials: Credentials, *, timeout: float) -> None:
        self._remote = check_address(url, credentials)
        self._timeout = timeout

    def rules(self, branch: str) -> BranchRules:
        """Return what the host tells of a branch; nothing for a repository that is not reached by https."""
        nothing = BranchRules(software=None, project=project_path(self._remote.url), page="")
        try:
            with HttpClient(timeout=self._timeout) as http:
                host = hosted_project(http, self._remote.url)
                if host is None:
                    return nothing
                headers = login_headers(host.software, self._remote.credentials)
                paths = rule_paths(host.software, host.project, branch)
                answers = {path: _ask(http, f"{host.api}{path}", headers) for path in paths}
        except InvalidInput:  # a proxy that cannot be used
            return nothing
        page = settings_page(host.software, host.root, host.project)
        return BranchRules(software=host.software, project=host.project, page=page, answers=answers)


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
    return HostSoftware.GITLAB if known else None


def _ask(http: HttpClient, url: str, headers: Mapping[str, str]) -> HostAnswer:
    try:
        answer = http.send("GET", url, headers={"Accept": "application/json", **headers}, limit=_LIMIT)
    except NoAnswer:
        return HostAnswer(status=0)
    return HostAnswer(status=answer.status, body=answer.json)
