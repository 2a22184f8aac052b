"""`grant` and `bootstrap --apply` as a real API server judges them: its server-side apply, its RBAC and its tokens."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.core.observe.kubernetes.resources import CONTROLLERS
from reconciler.core.readiness.needed_rights import DAEMON
from reconciler.core.readiness.question import access_question
from tests.builders.ready_fleet import FILES
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.e2e import argo_cd, flux
from tests.e2e.components import Missing, sources
from tests.e2e.control_plane import Cluster, program

READER = "/apis/rbac.authorization.k8s.io/v1/clusterroles/overspill-reader"
PRIMARY, FLUX, ARGO_CD = "worker-1", "worker-2", "worker-3"


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[[str], Cluster]) -> Cluster:
    """Start the one cluster that every context of these tests leads to."""
    cluster = start_cluster("grant")
    cluster.ensure_namespace("argocd")
    return cluster


@pytest.fixture
def terminal(cluster: Cluster, tmp_path: Path) -> Iterator[Terminal]:
    """Be an administrator who has the fleet checked out, in a cluster that knows nothing of it."""
    (tmp_path / "fleet").mkdir()
    for name, text in FILES.items():
        (tmp_path / "fleet" / name).write_text(text)
    access = cluster.access
    authority = base64.b64encode(access.authority.read_bytes()).decode()
    server = {"server": access.server, "certificate-authority-data": authority}
    contexts = (PRIMARY, FLUX, ARGO_CD)
    config = {
        "clusters": [{"name": "only", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": access.token}}],
        "contexts": [{"name": name, "context": {"cluster": "only", "user": "admin"}} for name in contexts],
    }
    admin = tmp_path / "admin"
    admin.write_text(json.dumps(config))
    yield Terminal(env={"HOME": str(tmp_path), "KUBECONFIG": str(admin)})
    for kind in ("clusterrole", "clusterrolebinding"):
        cluster.kubectl("delete", kind, "overspill-reader", "--ignore-not-found")
    cluster.kubectl("delete", "namespace", "overspill-system", "overspill", "--ignore-not-found")


def granting(tmp_path: Path, *more: str) -> tuple[str, ...]:
    return ("grant", "--fleet", str(tmp_path / "fleet"), *more)


def may(kubeconfig: Path, context: str, *words: str) -> bool:
    """Ask the API server itself what a login may do."""
    done = subprocess.run(
        [program("kubectl"), f"--kubeconfig={kubeconfig}", f"--context={context}", "auth", "can-i", *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip # a command line, word by word
    assert done.stdout.strip() in ("yes", "no"), done.stderr
    return done.stdout.strip() == "yes"


def allowed(cluster: Cluster, verb: str, group: str, resource: str, namespace: str) -> bool:
    """Ask whether the account may do something to a kind that need not be served."""
    question = access_question(verb, group, resource, namespace, account=DAEMON)
    answer = cluster.call("POST", question.path, json.loads(question.body))
    return bool(answer["status"]["allowed"])


def test_login_that_is_made_may_read_what_the_fleet_is_watched_for_and_nothing_else(
    cluster: Cluster, terminal: Terminal, tmp_path: Path
) -> None:
    out = tmp_path / "daemon" / "kubeconfig"
    before = cluster.inventory()
    words = granting(tmp_path, "--context", PRIMARY, "--kubeconfig-out", str(out))
    assert "create" in terminal.done(*words, "--dry-run")
    assert cluster.inventory() == before
    assert not out.exists()
    done = terminal(*words, "--yes")
    assert done.exit_code == 0, done.output
    (user,) = yaml.safe_load(out.read_text())["users"]
    assert user["user"]["token"] not in done.output
    assert out.stat().st_mode & 0o777 == 0o600
    for verb in ("list", "watch"):
        for resource in CONTROLLERS:
            assert may(out, PRIMARY, verb, resource.full_name, "--all-namespaces")
    for forbidden in (("get", "secrets"), ("list", "secrets"), ("create", "pods"), ("list", "configmaps")):
        assert not may(out, PRIMARY, *forbidden, "--all-namespaces")


def test_second_run_changes_nothing_but_the_token(cluster: Cluster, terminal: Terminal, tmp_path: Path) -> None:
    out = tmp_path / "kubeconfig"
    words = granting(tmp_path, "--context", FLUX, "--kubeconfig-out", str(out), "--yes")
    terminal.done(*words)
    reader, first = cluster.call("GET", READER), yaml.safe_load(out.read_text())
    printed = terminal.done(*words)
    rows = [line.split()[0] for line in printed.splitlines() if line.startswith(("create", "change", "keep"))]
    assert set(rows) == {"keep"}
    assert cluster.call("GET", READER)["metadata"]["resourceVersion"] == reader["metadata"]["resourceVersion"]
    second = yaml.safe_load(out.read_text())
    assert second["contexts"] == first["contexts"]
    assert second["users"] != first["users"]
    assert allowed(cluster, "list", "kustomize.toolkit.fluxcd.io", "kustomizations", "overspill")
    # It is no primary: what is placed there is read, and no autoscaler.
    assert may(out, FLUX, "watch", "deployments", "--all-namespaces")
    assert not may(out, FLUX, "list", "horizontalpodautoscalers", "--all-namespaces")
    words = granting(tmp_path, "--context", ARGO_CD, "--kubeconfig-out", str(out), "--yes")
    terminal.done(*words)
    assert [entry["name"] for entry in yaml.safe_load(out.read_text())["contexts"]] == [FLUX, ARGO_CD]
    assert allowed(cluster, "watch", "argoproj.io", "applications", "argocd")
    assert not allowed(cluster, "watch", "argoproj.io", "applications", "overspill")


def test_fields_of_another_tool_are_told_and_taken_over_only_when_that_is_said(
    cluster: Cluster, terminal: Terminal, tmp_path: Path
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "overspill-reader"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
    }
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(role))
    words = granting(tmp_path, "--context", FLUX, "--yes")
    refused = terminal(*words)
    assert refused.exit_code == 1
    assert "ClusterRole overspill-reader: has rules set by kubectl-client-side-apply (--force-conflicts" in (
        refused.stderr
    )
    assert cluster.call("GET", READER)["rules"] == role["rules"]
    terminal.done(*words, "--force-conflicts")
    assert cluster.call("GET", READER)["rules"] != role["rules"]


def test_token_without_an_end_is_kept_in_a_secret(cluster: Cluster, terminal: Terminal, tmp_path: Path) -> None:
    out = tmp_path / "kubeconfig"
    words = granting(tmp_path, "--context", FLUX, "--kubeconfig-out", str(out), "--no-expiry", "--yes")
    printed = terminal.done(*words)
    assert "its token has no end until `kubectl --context worker-2 -n overspill-system delete secret" in printed
    assert may(out, FLUX, "list", "nodes")
    before = out.read_text()
    terminal.done(*words)
    assert out.read_text() == before


def test_account_that_may_not_grant_is_told_by_the_server(terminal: Terminal, tmp_path: Path) -> None:
    out = tmp_path / "kubeconfig"
    terminal.done(*granting(tmp_path, "--context", FLUX, "--kubeconfig-out", str(out), "--yes"))
    refused = terminal(*granting(tmp_path, "--context", FLUX, "--kubeconfig", str(out), "--yes"))
    assert refused.exit_code == 1
    assert "ClusterRole overspill-reader: is not taken: forbids it: clusterroles" in refused.stderr
    assert f'is forbidden: User "{DAEMON.user}"' in refused.stderr


def test_bootstrap_is_applied_once_and_found_as_it_is_afterwards(
    cluster: Cluster, terminal: Terminal, tmp_path: Path
) -> None:
    released = sources(argo_cd.KINDS)
    if isinstance(released, Missing) or flux.missing():
        pytest.skip(flux.missing() or str(released))
    flux.teach(cluster)
    argo_cd.teach(cluster, released)
    cluster.kubectl("delete", "namespace", "overspill")
    remote = Remote(tmp_path / "remote.git")
    remote.commit("main", FILES)
    terminal.env["OVERSPILL_REPO"] = remote.url
    for engine, context in ((("flux", "--cluster", FLUX), FLUX), (("argocd",), ARGO_CD)):
        words = ("bootstrap", *engine, "--apply", "--context", context, "--yes")
        printed = terminal.done(*words)
        assert " as they are" not in printed, printed
        again = terminal.done(*words)
        assert again.rstrip().endswith("objects as they are."), again
    project = "/apis/argoproj.io/v1alpha1/namespaces/argocd/appprojects/overspill"
    bounds = cluster.call("GET", project)["spec"]["destinations"]
    cluster.call("PATCH", project, {"spec": {"destinations": []}})
    refused = terminal(*words)
    assert refused.exit_code == 1, refused.output
    assert "AppProject argocd/overspill: has spec.destinations set by " in refused.stderr
    terminal.done(*words, "--force-conflicts")
    assert cluster.call("GET", project)["spec"]["destinations"] == bounds
