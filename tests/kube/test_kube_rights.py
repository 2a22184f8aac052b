"""The rights in repo-layout/bootstrap/rbac.yaml are those that watching takes, and no others."""

from __future__ import annotations

from pathlib import Path

from reconciler.core import yamlio
from reconciler.core.kubernetes.resources import Resource

FILE = Path(__file__).parents[2] / "repo-layout" / "bootstrap" / "rbac.yaml"


def test_role_allows_just_what_is_watched() -> None:
    documents = [document.value for document in yamlio.parse(FILE.read_bytes(), "rbac.yaml")]
    (role,) = [one for one in documents if one["kind"] == "ClusterRole"]
    allowed = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    asked = {(resource.group, resource.plural) for resource in Resource}
    assert allowed == asked
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"list", "watch"}


def test_role_is_bound_to_the_account_that_comes_with_it() -> None:
    documents = {document.value["kind"]: document.value for document in yamlio.parse(FILE.read_bytes(), "rbac.yaml")}
    account, binding = documents["ServiceAccount"]["metadata"], documents["ClusterRoleBinding"]
    assert binding["roleRef"]["name"] == documents["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account}]
    assert account["namespace"] == documents["Namespace"]["metadata"]["name"]
