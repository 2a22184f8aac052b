"""A git host is known by what it answers to everybody, and only then given the login that it is for."""

from __future__ import annotations

import base64

from reconciler.adapters.git.remote import Credentials
from reconciler.adapters.git_host import GitHost
from reconciler.core.readiness.branch_rules import HostSoftware
from tests.fakes.kube_api_server import Cluster, serving

LOGIN = Credentials(username="overspill", password="hunter2")
GITLAB = "/api/v4/projects/acme%2Ffleet/repository/branches/placements"
GITEA = "/api/v1/repos/acme/fleet/branches/placements"


def logins(host: Cluster, end: str) -> list[str]:
    return [token for token, path, _ in host.asked if path.endswith(end)]


def test_gitlab_gets_the_token_as_a_bearer() -> None:
    host = Cluster()
    host.documents |= {"/api/v4/version": {"version": "18.4.0", "revision": "0"}, GITLAB: {"can_push": False}}
    with serving(host) as url:
        rules = GitHost(f"{url}/acme/fleet.git", LOGIN, timeout=5).rules("placements")
    assert (rules.software, rules.page) == (HostSoftware.GITLAB, f"{url}/acme/fleet/-/settings/repository")
    assert rules.answers[GITLAB].body == {"can_push": False}
    assert logins(host, "/version") == ["", ""]
    assert logins(host, "/branches/placements") == ["hunter2"]


def test_gitea_gets_the_login_of_git() -> None:
    host = Cluster()
    host.documents |= {"/api/v1/version": {"version": "1.25.0"}, GITEA: {"user_can_push": True}}
    with serving(host) as url:
        rules = GitHost(f"{url}/acme/fleet.git", LOGIN, timeout=5).rules("placements")
    assert rules.software is HostSoftware.GITEA
    assert logins(host, "/branches/placements") == [f"Basic {base64.b64encode(b'overspill:hunter2').decode()}"]


def test_server_without_an_api_is_given_no_login() -> None:
    host = Cluster()
    with serving(host) as url:
        assert GitHost(f"{url}/acme/fleet.git", LOGIN, timeout=5).rules("placements").software is None
    assert {token for token, _, _ in host.asked} == {""}
    assert GitHost("/srv/fleet.git", LOGIN, timeout=5).rules("placements").software is None
    assert GitHost("http://127.0.0.1:9/fleet.git", LOGIN, timeout=5).rules("placements").software is None
