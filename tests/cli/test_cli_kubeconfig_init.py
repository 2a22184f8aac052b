"""`init --from-kubeconfig`: a fleet repository is made of the clusters of a kubeconfig, and asks for the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from reconciler.cli import main
from tests.builders.kube_objects import node, pod, workload
from tests.builders.remote import Remote
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "topology.kubernetes.io/region": "eu-west-1"}
ARGO_CD = {"/apis/argoproj.io/v1alpha1": {"resources": [{"name": "applications"}]}}
FLUX = {"/apis/kustomize.toolkit.fluxcd.io/v1": {"resources": [{"name": "kustomizations"}]}}


class PersonRunner(CliRunner):
    """Runs commands for somebody who sits at a terminal."""

    @contextmanager
    def isolation(self, *args: Any, **more: Any) -> Iterator[Any]:
        with super().isolation(*args, **more) as streams:
            sys.stdin.isatty = lambda: True  # the stand-in of click, not Python's
            yield streams


class Contexts:
    """worker-1 without an engine, worker-2 with Flux, worker-3 with Argo CD and two contexts, worker-4 out of reach."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.path = path
        self.servers = [Cluster() for _ in range(3)]
        for server in self.servers:
            stack.enter_context(serving(server))
            server.put("nodes", node("gpu-1", labels=H100))
        self.servers[0].put("pods", pod("vllm-1", on="gpu-1", namespace="vllm-demo"))
        self.servers[1].documents |= FLUX
        self.run_argo_cd(self.servers[2])
        one, two, three = (server.url for server in self.servers)
        self.know(
            ("worker-1", one), ("worker-2", two), ("worker-3", three), ("admin", three), ("gone", "http://127.0.0.1:9")
        )

    def know(self, *contexts: tuple[str, str]) -> None:
        kubeconfig(self.path, *contexts)

    def run_argo_cd(self, server: Cluster) -> None:
        server.documents |= ARGO_CD
        deployment = workload("argocd-server", namespace="gitops")
        deployment["metadata"]["labels"] = {"app.kubernetes.io/part-of": "argocd"}
        server.put("deployments", deployment)


@pytest.fixture
def contexts(tmp_path: Path) -> Iterator[Contexts]:
    with ExitStack() as stack:
        yield Contexts(tmp_path / "kubeconfig", stack)


@pytest.fixture
def terminal(contexts: Contexts) -> Terminal:
    return Terminal(env={"KUBECONFIG": str(contexts.path), "OVERSPILL_KUBECONFIG": ""})


def person(terminal: Terminal, answers: str, *arguments: str) -> tuple[int, str]:
    """Run a command at a terminal, where somebody types answers."""
    result = PersonRunner().invoke(main, list(arguments), env=terminal.env, input=answers, prog_name="overspill")
    return result.exit_code, result.output


def spec(path: Path) -> Any:
    return yaml.safe_load(path.read_text())["spec"]


INIT = ("init", "fleet", "--from-kubeconfig")


def test_what_is_written_passes_check_without_a_word(terminal: Terminal) -> None:
    done = terminal(*INIT, "--primary", "worker-1", "--repo-url", "https://git.example.com/ml/fleet.git")
    assert done.exit_code == 0, done.output
    told = done.stderr.splitlines()
    assert told[0] == "warning: the contexts worker-3 and admin lead to one API server: worker-3 is taken"
    assert told[1].startswith("warning: gone does not answer, and is written as Cordoned: cannot be reached: ")
    assert len(told) == 2
    assert done.stdout.endswith("Wrote 33 files to fleet.\nNext: `overspill check fleet`.\n")
    counted, following = terminal.done("check", "fleet").splitlines()[-2:]
    assert counted == "7 files, 4 clusters, 1 workspace, 0 templates, 1 policy: 0 errors, 0 warnings"
    assert "Next: `overspill lend deployment/NAME --namespace NAMESPACE --fleet fleet`" in following


def test_reasons_of_contexts_that_do_not_answer_come_before_the_questions(terminal: Terminal, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "dead", ("a", "http://127.0.0.1:1"), ("b", "127.0.0.1"))
    done = terminal(*INIT, "--kubeconfig", str(path))
    assert done.exit_code == 2
    assert "a does not answer, and is written as Cordoned: cannot be reached: 127.0.0.1:1: Connection refused" in (
        done.stderr
    )
    assert "b does not answer, and is written as Cordoned: cannot be connected to: cluster b of the kubeconfig has" in (
        done.stderr
    )


def test_each_cluster_has_its_engine_its_labels_and_its_context(terminal: Terminal) -> None:
    terminal.done(*INIT, "--primary", "worker-1")
    clusters = {path.stem: yaml.safe_load(path.read_text()) for path in Path("fleet/clusters").iterdir()}
    assert {name: cluster["spec"].get("engine") for name, cluster in clusters.items()} == {
        "worker-1": "argocd", "worker-2": "flux", "worker-3": "argocd", "gone": None,
    }  # fmt: skip # a table, a row a line
    assert clusters["worker-2"]["metadata"]["labels"] == {"region": "eu-west-1", "gpu": "NVIDIA-H100-80GB-HBM3"}
    assert clusters["worker-2"]["spec"]["connection"] == {"context": "worker-2"}
    assert clusters["gone"]["spec"]["availability"] == "Cordoned"
    assert spec(Path("fleet/fleet.yaml")) == {
        "engine": "argocd",
        "argocd": {"namespace": "gitops", "connection": {"context": "worker-3"}},
    }
    assert spec(Path("fleet/workspaces/default.yaml")) == {
        "primaryCluster": "worker-1",
        "clusters": ["worker-1", "worker-2", "worker-3", "gone"],
        "namespaces": ["vllm-demo"],
        "requestsOnPrimary": False,
    }
    policy = spec(Path("fleet/policies/serving.yaml"))
    assert not {"templates", "clusters", "tolerations"} & policy.keys()
    assert policy["maxReplicas"] == 12
    assert not (Path("fleet") / "templates").exists()
    assert "templates/" not in Path("fleet/README.md").read_text().partition("Files are found")[0]


def test_flags_answer_every_question(terminal: Terminal) -> None:
    terminal.done(
        *INIT, "--context", "worker-2", "--context", "worker-1", "--primary", "worker-1", "--workspace", "llm",
        "--namespace", "a", "--namespace", "b", "--engine", "flux", "--policy", "one-region",
        "--repo-url", "https://git.example.com/ml/fleet.git",
    )  # fmt: skip # a command line, word by word
    assert spec(Path("fleet/workspaces/llm.yaml")) == {
        "primaryCluster": "worker-1",
        "clusters": ["worker-2", "worker-1"],
        "namespaces": ["a", "b"],
        "requestsOnPrimary": False,
    }
    assert spec(Path("fleet/fleet.yaml")) == {"repoURL": "https://git.example.com/ml/fleet.git", "engine": "flux"}
    assert spec(Path("fleet/policies/one-region.yaml"))["requireLabels"] == {"region": "eu-west-1"}
    assert "https://git.example.com/ml/fleet.git" in Path("fleet/bootstrap/daemon.yaml").read_text()
    assert not Path("fleet/policies/serving.yaml").exists()
    assert "0 errors, 0 warnings" in terminal.done("check", "fleet")


def test_a_policy_that_fits_none_of_the_clusters_is_told_at_once(terminal: Terminal) -> None:
    result = terminal(*INIT, "--primary", "worker-1", "--policy", "batch-overnight")
    assert result.exit_code == 0, result.output
    assert "spec.clusters[0].matchLabels: no Cluster has these labels" in result.stderr


def test_without_a_terminal_the_primary_has_to_be_named(terminal: Terminal) -> None:
    result = terminal(*INIT)
    assert result.exit_code == 2
    assert result.stderr.endswith(
        "Error: say which cluster is the primary, where the workloads live, by --primary: worker-1, worker-2, worker-3,"
        " gone\n"
    )
    assert not Path("fleet").exists()


def test_on_a_terminal_the_primary_is_asked_for(terminal: Terminal) -> None:
    code, output = person(terminal, "worker-9\nworker-1\n", *INIT)
    assert code == 0, output
    question = "Primary cluster, where the workloads live (worker-1, worker-2, worker-3, gone): "
    assert output.count(question) == 2, "a name that is none is asked for again"
    assert spec(Path("fleet/workspaces/default.yaml"))["primaryCluster"] == "worker-1"


def test_an_engine_that_was_seen_nowhere_is_asked_for(terminal: Terminal, contexts: Contexts) -> None:
    contexts.servers[1].documents.clear()
    arguments = (*INIT, "--context", "worker-1", "--context", "worker-2", "--primary", "worker-1")
    result = terminal(*arguments)
    assert result.exit_code == 2
    assert "say which engine applies placements in worker-2" in result.stderr
    assert "by --engine: argocd, flux" in result.stderr
    code, output = person(terminal, "flux\n", *arguments)
    assert code == 0, output
    assert "Engine that applies placements in worker-2 (argocd, flux): " in output
    assert spec(Path("fleet/clusters/worker-2.yaml"))["engine"] == "flux"


def test_of_several_argo_cds_the_one_that_deploys_to_all_is_asked_for(terminal: Terminal, contexts: Contexts) -> None:
    contexts.run_argo_cd(contexts.servers[0])
    arguments = (*INIT, "--primary", "worker-1")
    result = terminal(*arguments)
    assert (result.exit_code, "by --argocd: worker-1, worker-3" in result.stderr) == (2, True)
    code, output = person(terminal, "worker-3\n", *arguments)
    assert code == 0, output
    assert spec(Path("fleet/fleet.yaml"))["argocd"]["connection"] == {"context": "worker-3"}
    result = terminal("init", "other", "--from-kubeconfig", "--primary", "worker-1", "--argocd", "worker-2")
    assert (result.exit_code, "no Argo CD was seen in worker-2 (try 'worker-" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("flags", "code", "words"),
    [
        (["--context", "worker-9"], 1, "--context: the kubeconfig has no context 'worker-9' (try 'worker-"),
        (["--primary", "worker-9"], 1, "--primary: there is no cluster 'worker-9' (try 'worker-"),
        (["--kubeconfig", "nowhere"], 1, "reading the kubeconfig: nowhere is not a file (try another --kubeconfig)"),
        (["--workspace", "My Team"], 2, "--workspace: 'My Team' is not a name"),
        (["--policy", "cheapest"], 2, "--policy: there is no ready-made policy 'cheapest' (try 'cheapest-first')"),
        (["--repo-url", "https://ann:secret@git.example.com/f"], 2, "--repo-url: may not hold a password"),
    ],
)
def test_a_wrong_answer_is_refused_with_the_way_out(
    terminal: Terminal, flags: list[str], code: int, words: str
) -> None:
    result = terminal(*INIT, *flags)
    assert (result.exit_code, Path("fleet").exists()) == (code, False)
    assert words in result.stderr


def test_answers_need_the_question(terminal: Terminal) -> None:
    result = terminal("init", "fleet", "--primary", "worker-1")
    assert (result.exit_code, "--primary goes with --from-kubeconfig" in result.stderr) == (2, True)


def test_a_ready_made_policy_takes_the_place_of_the_usual_one(terminal: Terminal) -> None:
    terminal.done("init", "fleet", "--policy", "tight-budget")
    assert [path.name for path in Path("fleet/policies").iterdir()] == ["tight-budget.yaml"]
    assert "1 policy: 0 errors, 0 warnings" in terminal.done("check", "fleet")


def test_a_directory_with_something_else_is_refused_before_any_cluster_is_asked(
    terminal: Terminal, contexts: Contexts
) -> None:
    Path("fleet").mkdir()
    Path("fleet/notes.txt").write_text("mine\n")
    result = terminal(*INIT)
    assert (result.exit_code, "is not empty: it holds notes.txt" in result.stderr) == (1, True)
    assert not contexts.servers[0].asked


def test_a_repository_with_commits_is_refused_before_any_cluster_is_asked(
    terminal: Terminal, contexts: Contexts
) -> None:
    for words in (["init", "-q", "fleet"], ["-C", "fleet", "commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run(["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *words], check=True)
    result = terminal(*INIT, "--primary", "worker-1", "--git")
    assert (result.exit_code, "with commits already (try without --git)" in result.stderr) == (1, True)
    assert not contexts.servers[0].asked


def test_it_goes_on_where_it_was_broken_off(terminal: Terminal) -> None:
    arguments = (*INIT, "--primary", "worker-1", "--git")
    terminal.done(*arguments[:-1])
    Path("fleet/workspaces/default.yaml").unlink()
    Path("fleet/clusters/.worker-1.yaml.partial").write_text("half of")
    terminal.done(*arguments)
    assert Remote(Path("fleet/.git")).subjects("main") == ["Begin the fleet repository"]
    assert "already" in terminal.done(*arguments)


def test_a_changed_file_of_a_cluster_is_left_alone(terminal: Terminal) -> None:
    terminal.done(*INIT, "--primary", "worker-1")
    Path("fleet/clusters/worker-2.yaml").write_text("# mine\n")
    result = terminal(*INIT, "--primary", "worker-1")
    assert (result.exit_code, "it holds clusters/worker-2.yaml" in result.stderr) == (1, True)
    assert Path("fleet/clusters/worker-2.yaml").read_text() == "# mine\n"


def test_the_remote_of_a_clone_is_where_engines_clone_from(terminal: Terminal) -> None:
    remote = Remote(Path("fleet/.git"))
    remote.git("config", "core.bare", "false")
    remote.git("remote", "add", "origin", "https://git.example.com/ml/fleet.git")
    terminal.done(*INIT, "--primary", "worker-1")
    assert spec(Path("fleet/fleet.yaml"))["repoURL"] == "https://git.example.com/ml/fleet.git"


def test_a_login_in_the_remote_of_a_clone_gets_into_no_file(terminal: Terminal) -> None:
    remote = Remote(Path("fleet/.git"))
    remote.git("config", "core.bare", "false")
    remote.git("remote", "add", "origin", "https://ann:sesame-street@git.example.com/ml/fleet.git")
    result = terminal(*INIT, "--primary", "worker-1")
    assert result.exit_code == 0, result.output
    assert "nothing says where engines clone the repository from" in result.stderr
    written = [path.read_text() for path in Path("fleet").rglob("*.yaml")]
    assert not [text for text in written if "sesame-street" in text]


def test_pods_that_may_not_be_listed_leave_the_namespaces_open(terminal: Terminal, contexts: Contexts) -> None:
    contexts.servers[0].refuses["/pods"] = 403
    result = terminal(*INIT, "--primary", "worker-1")
    assert result.exit_code == 0, result.output
    assert "the pods of worker-1 cannot be listed, so its namespaces are not known: forbids it" in result.stderr
    assert "namespaces" not in spec(Path("fleet/workspaces/default.yaml"))
    assert "0 errors, 0 warnings" in terminal.done("check", "fleet")


def test_the_only_cluster_is_the_primary(terminal: Terminal) -> None:
    result = terminal(*INIT, "--context", "worker-1")
    assert result.exit_code == 0, result.output
    assert "worker-1 is the only cluster" in result.stderr
    assert "0 errors, 0 warnings" in terminal.done("check", "fleet")
