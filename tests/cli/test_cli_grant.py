"""`grant` shows what it would change in clusters, asks, and adds logins to the daemon's kubeconfig alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from reconciler.cli import main
from tests.builders.ready_fleet import FILES, ReadyFleet
from tests.cli.conftest import Terminal


@pytest.fixture
def ready(tmp_path: Path) -> Iterator[ReadyFleet]:
    """Serve three clusters in which nobody has granted anything."""
    with ExitStack() as stack:
        ready = ReadyFleet(tmp_path, stack)
        for cluster in ready.clusters:
            for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings", "serviceaccounts"):
                cluster.objects[plural] = {}
        yield ready


@pytest.fixture
def terminal(tmp_path: Path, ready: ReadyFleet) -> Terminal:
    fleet = tmp_path / "fleet"
    fleet.mkdir()
    for name, text in FILES.items():
        (fleet / name).write_text(text)
    return Terminal(env={"HOME": str(tmp_path), "KUBECONFIG": str(ready.kubeconfig)})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "daemon.kubeconfig"


def grant(terminal: Terminal, *more: str, answers: str = "") -> Result:
    words = ["grant", "--fleet", f"{terminal.env['HOME']}/fleet", *more]
    return terminal.runner.invoke(main, words, env=terminal.env, input=answers, prog_name="overspill")


def test_rights_and_a_login_are_made_and_no_token_is_printed(terminal: Terminal, ready: ReadyFleet, out: Path) -> None:
    out.write_text(yaml.safe_dump({"contexts": [{"name": "other", "context": {"user": "somebody"}}]}))
    out.chmod(0o644)
    done = grant(terminal, "--context", "worker-2", "--context", "worker-3", "--kubeconfig-out", str(out), "--yes")
    assert done.exit_code == 0, done.output
    assert set(ready.flux.objects["roles"]) == {"overspill/overspill-flux-reader"}
    assert set(ready.argo_cd.objects["roles"]) == {"argocd/overspill-argocd-reader"}
    assert "secrets" not in str(ready.argo_cd.objects["clusterroles"])
    written = yaml.safe_load(out.read_text())
    assert [entry["name"] for entry in written["contexts"]] == ["other", "worker-2", "worker-3"]
    assert [entry["cluster"]["server"] for entry in written["clusters"]] == [ready.flux.url, ready.argo_cd.url]
    assert all(entry["user"]["token"].startswith("token-") for entry in written["users"])
    assert "token-" not in done.output
    assert out.stat().st_mode & 0o777 == 0o600
    assert done.stdout.endswith(f"Next: `overspill doctor --kubeconfig {out}`.\n")


def test_what_is_there_is_kept_and_the_token_is_made_anew(terminal: Terminal, out: Path) -> None:
    words = ("--context", "worker-1", "--kubeconfig-out", str(out), "--yes")
    grant(terminal, *words)
    first = yaml.safe_load(out.read_text())["users"]
    done = grant(terminal, *words)
    assert not any(line.startswith(("create", "change")) for line in done.stdout.splitlines())
    assert f"Token for 30d, as context worker-1 of {out}." in done.stdout
    assert "Applied" not in done.stdout
    assert yaml.safe_load(out.read_text())["users"] != first
    assert "Nothing to apply: context worker-1 has all objects" in grant(terminal, "--context", "worker-1").stdout


@pytest.mark.parametrize("refusal", [("--dry-run",), ()])
def test_nothing_is_changed_before_somebody_says_so(
    terminal: Terminal, ready: ReadyFleet, out: Path, refusal: tuple[str, ...]
) -> None:
    done = grant(terminal, "--context", "worker-1", "--kubeconfig-out", str(out), *refusal, answers="n\n")
    assert done.exit_code == (0 if refusal else 130)
    asked = f"Apply 4 objects and write 1 login to {out} in context worker-1? [y/N]:"
    assert (asked in done.stderr) is not bool(refusal)
    assert ready.primary.objects["clusterroles"] == {}
    assert not out.exists()


def test_login_of_somebody_else_is_not_replaced(terminal: Terminal, ready: ReadyFleet) -> None:
    before = ready.kubeconfig.read_text()
    done = grant(terminal, "--context", "worker-1", "--kubeconfig-out", str(ready.kubeconfig), "--yes")
    assert done.exit_code == 1
    assert f"{ready.kubeconfig} has a context worker-1 with another login (try another --kubeconfig-out" in done.stderr
    assert ready.kubeconfig.read_text() == before
    assert ready.primary.objects["clusterroles"] == {}


def test_file_that_cannot_be_written_is_told_before_anything_is_applied(
    terminal: Terminal, ready: ReadyFleet, out: Path
) -> None:
    out.touch()
    done = grant(terminal, "--context", "worker-1", "--kubeconfig-out", f"{out}/daemon", "--yes")
    assert done.exit_code == 1
    assert f"writing {out}/daemon: Not a directory (try another --kubeconfig-out)" in done.stderr
    assert ready.primary.objects["clusterroles"] == {}


def test_rules_of_another_tool_are_told(terminal: Terminal, ready: ReadyFleet) -> None:
    ready.primary.managed["/clusterroles/overspill-reader"] = ("argocd-controller", ".rules")
    done = grant(terminal, "--context", "worker-1", "--yes")
    assert done.exit_code == 1
    assert "ClusterRole overspill-reader: has rules set by argocd-controller (--force-conflicts" in done.stderr
    assert grant(terminal, "--context", "worker-1", "--yes", "--force-conflicts").exit_code == 0
    assert "/overspill-reader" in ready.primary.objects["clusterroles"]


def test_lifetime_that_a_cluster_cuts_short_is_told(terminal: Terminal, ready: ReadyFleet, out: Path) -> None:
    ready.primary.longest_token = 86_400
    done = grant(terminal, "--context", "worker-1", "--kubeconfig-out", str(out), "--yes")
    assert "worker-1 lets a token last for 1d at most: run `overspill grant` again" in done.stderr


def test_context_of_another_name_is_matched_to_its_cluster(terminal: Terminal, ready: ReadyFleet, out: Path) -> None:
    text = ready.kubeconfig.read_text().replace('"name": "worker-2", "context"', '"name": "gke", "context"')
    ready.kubeconfig.write_text(text)
    words = ("--context", "gke", "--kubeconfig-out", str(out), "--yes")
    unknown = grant(terminal, *words)
    assert unknown.exit_code == 1
    assert "--context gke: no Cluster of the fleet is reached by this name" in unknown.stderr
    assert grant(terminal, *words, "--cluster", "worker-2").exit_code == 0
    assert [entry["name"] for entry in yaml.safe_load(out.read_text())["contexts"]] == ["worker-2"]


def test_cluster_that_the_daemon_runs_in_gets_rights_and_no_token(
    terminal: Terminal, ready: ReadyFleet, out: Path
) -> None:
    inside = FILES["clusters.yaml"].replace("{engine: flux}", "{engine: flux, connection: {inCluster: true}}")
    Path(terminal.env["HOME"], "fleet", "clusters.yaml").write_text(inside)
    done = grant(terminal, "--context", "worker-2", "--cluster", "worker-2", "--kubeconfig-out", str(out), "--yes")
    assert done.exit_code == 0, done.output
    assert "No token: the daemon logs in there without a kubeconfig." in done.stdout
    assert "/overspill-reader" in ready.flux.objects["clusterroles"]
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "status", "hint"),
    [
        (("--context", "worker-9"), 1, "the kubeconfig has no context worker-9"),
        (("--context", "worker-1", "--context", "worker-2", "--cluster", "worker-1"), 2, "--cluster goes with one"),
        (("--context", "worker-1", "--no-expiry"), 2, "--no-expiry goes with --kubeconfig-out"),
        (("--context", "worker-1"), 2, "nobody answers here, and nothing is changed (try --yes)"),
        (("--context", "worker-1", "--token-lifetime", "5m"), 2, "a token lasts for at least 10m"),
        (("--context", "worker-1", "--cluster", "worker-7"), 1, "there is no Cluster worker-7"),
    ],
)
def test_what_cannot_be_meant_is_refused(terminal: Terminal, words: tuple[str, ...], status: int, hint: str) -> None:
    done = grant(terminal, *words)
    assert done.exit_code == status
    assert hint in done.stderr
