"""`lend release/NAME`: from a live Helm release, or what helm prints of it, to the plan of its first burst."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.cli import main
from tests.builders.helm_releases import CPU, GPU, VALUES, document, manifest, secret, workload
from tests.builders.kube_objects import node, pod
from tests.builders.kube_objects import workload as live
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

FLEET = """\
apiVersion: overspill.dev/v1alpha1
kind: Fleet
metadata: {name: fleet}
spec: {engine: argocd}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-1}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-2}
"""
OBSERVED = """\
items:
- apiVersion: overspill.dev/v1alpha1
  kind: Observation
  cluster: worker-1
  observedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"
- apiVersion: overspill.dev/v1alpha1
  kind: Observation
  cluster: worker-2
  observedAt: "{now:%Y-%m-%dT%H:%M:%SZ}"
  pools: [{{name: gpus, allocatable: {{cpu: 8, nvidia.com/gpu: 2}}, nodes: [{{name: gpu-1}}]}}]
"""
REPO = "https://charts.example.com/stack"
TOKEN = "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYz012345"


class PersonRunner(CliRunner):
    """Runs commands for somebody who sits at a terminal."""

    @contextmanager
    def isolation(self, *args: Any, **more: Any) -> Iterator[Any]:
        with super().isolation(*args, **more) as streams:
            sys.stdin.isatty = lambda: True  # the stand-in of click, not Python's
            yield streams


class Clusters:
    """worker-1 with one GPU and a release of which one replica has it, and worker-2 with two."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.primary, self.other = Cluster(), Cluster()
        for each, gpus in ((self.primary, 1), (self.other, 2)):
            stack.enter_context(serving(each))
            each.put("nodes", node("gpu-1", gpus))
        self.kubeconfig = kubeconfig(path / "config", ("worker-1", self.primary.url), ("worker-2", self.other.url))
        engine = workload("vllm-engine", 2, GPU)
        engine["metadata"] |= {"namespace": "demo", "uid": "1"}
        self.primary.put("replicasets", live("vllm-engine-1", owner=("Deployment", "vllm-engine")))
        self.primary.put("pods", pod("vllm-engine-1-a", on="gpu-1"))
        self.primary.put("deployments", {**engine, "status": {}})
        self.primary.put("secrets", secret(document()))


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Clusters]:
    with ExitStack() as stack:
        yield Clusters(tmp_path, stack)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    directory = tmp_path / "fleet"
    directory.mkdir()
    (directory / "fleet.yaml").write_text(FLEET)
    return directory


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(env={"HOME": str(tmp_path / "home"), "KUBECONFIG": ""})


def words(fleet: Path, *more: str) -> tuple[str, ...]:
    return "lend", "release/vllm", "-n", "demo", "--fleet", str(fleet), "--primary", "worker-1", *more


def template(fleet: Path) -> str:
    """Return the text of the template, without quotation marks."""
    return (fleet / "templates" / "vllm.yaml").read_text().replace('"', "")


def watched(clusters: Clusters) -> tuple[str, str]:
    return "--kubeconfig", str(clusters.kubeconfig)


def test_a_live_release_has_its_files_and_its_first_plan(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    printed = terminal.done(*words(fleet, "--chart-repo", REPO, *watched(clusters)))
    assert "Read Secret demo/sh.helm.release.v1.vllm.v3 of worker-1: the chart, values and objects of" in printed
    assert f"Wrote {fleet}/templates/vllm.yaml\n" in printed
    assert "with each burst comes along deployment/vllm-router" in " ".join(printed.split())
    (row,) = [line.split() for line in printed.splitlines() if line.startswith("Place")]
    assert (row[1], row[3], row[4]) == ("demo/vllm", "worker-2", "2")
    text = template(fleet)
    assert f"repoURL: {REPO}\n" in text
    assert "replicaCount: {{ replicas }}" in text
    assert "1 template, 1 policy: 0 errors" in terminal.done("check", str(fleet))


def test_where_the_chart_comes_from_is_asked_on_a_terminal_and_else_an_option(
    terminal: Terminal, fleet: Path, clusters: Clusters
) -> None:
    refused = terminal(*words(fleet, *watched(clusters)))
    assert refused.exit_code == 2
    told = " ".join(refused.stderr.split())
    assert "say where engines fetch the chart vllm-stack 0.1.7 from, by --chart-repo URL" in told
    assert "its page is https://example.com/vllm" in told
    assert not (fleet / "templates").exists()
    address = "oci://registry.example.com/vllm-stack\n"
    asked = PersonRunner().invoke(main, [*words(fleet, *watched(clusters))], input=address, env=terminal.env)
    assert asked.exit_code == 0, asked.output
    assert "Repository of the chart vllm-stack 0.1.7" in asked.output
    assert "repoURL: oci://registry.example.com\n" in template(fleet)


def test_a_release_may_come_from_what_helm_prints(terminal: Terminal, fleet: Path, tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest())
    (tmp_path / "values.yaml").write_text("USER-SUPPLIED VALUES:\nengine:\n  replicaCount: 2\n")
    files = ("-f", str(tmp_path / "manifest.yaml"), "--values", str(tmp_path / "values.yaml"))
    terminal.done(*words(fleet, *files, "--chart-repo", REPO, "--chart-version", "0.1.8"))
    text = template(fleet)
    assert "chart: vllm-stack\n" in text
    assert "version: 0.1.8\n" in text
    assert "    values:\n      engine:\n        replicaCount: {{ replicas }}\n" in text
    (tmp_path / "bare.yaml").write_text(manifest({"": {**workload("a", 1, CPU), "metadata": {"name": "a"}}}))
    bare = terminal(*words(fleet, "-f", str(tmp_path / "bare.yaml"), "--chart-repo", REPO))
    assert (bare.exit_code, "say --chart: no label helm.sh/chart of" in " ".join(bare.stderr.split())) == (2, True)


def test_observations_that_lack_the_release_show_its_burst_by_what_helm_prints(
    terminal: Terminal, fleet: Path, tmp_path: Path
) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest())
    (tmp_path / "observed.yaml").write_text(OBSERVED.format(now=datetime.now(UTC)))
    files = ("-f", str(tmp_path / "manifest.yaml"), "--observations", str(tmp_path / "observed.yaml"))
    values = ("--chart-repo", REPO, "--replicas-value", "engine.replicaCount")
    printed = terminal.done(*words(fleet, *files, *values))
    assert [line.split()[3:5] for line in printed.splitlines() if line.startswith("Place")] == [["worker-2", "2"]]
    assert "helmConfig:" in template(fleet)


def test_a_value_that_looks_like_a_secret_leaves_no_file_and_is_never_shown(
    terminal: Terminal, fleet: Path, clusters: Clusters, tmp_path: Path
) -> None:
    clusters.primary.put("secrets", secret(document(config={**VALUES, "hf": {"token": TOKEN}})))
    arguments = words(fleet, "--chart-repo", REPO, *watched(clusters))
    refused = terminal(*arguments, "--dry-run")
    assert refused.exit_code == 1
    assert "values of release demo/vllm: hf.token: this looks like a Hugging Face token" in refused.stderr
    assert TOKEN not in refused.output
    assert not (fleet / "templates").exists()
    (tmp_path / "values.yaml").write_text("engine: {model: llama, tokenSecret: hub}\n")
    terminal.done(*arguments, "--values", str(tmp_path / "values.yaml"))
    assert "tokenSecret: hub" in template(fleet)


def test_answers_about_a_chart_need_a_release(terminal: Terminal, fleet: Path, clusters: Clusters) -> None:
    deployment = ("lend", "deployment/vllm", *words(fleet, *watched(clusters))[2:])
    wrong = terminal(*deployment, "--chart-repo", REPO)
    assert (wrong.exit_code, "--chart-repo goes with release/NAME" in wrong.stderr) == (2, True)
    both = terminal(*words(fleet, *watched(clusters), "--reference"))
    assert (both.exit_code, "--reference goes with an object" in both.stderr) == (2, True)
    plain = terminal(*words(fleet, *watched(clusters), "--chart-repo", "http://charts.example.com"))
    assert (plain.exit_code, "--chart-repo: must begin with https:// or oci://" in plain.stderr) == (2, True)
