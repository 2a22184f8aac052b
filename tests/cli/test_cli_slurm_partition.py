"""A partition of Slurm among the clusters of a fleet: each command says what it is, and asks nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.builders.ready_fleet import FILES, ReadyFleet
from tests.builders.remote import Remote
from tests.cli.conftest import See, Terminal
from tests.fakes.kube_api_server import kubeconfig

WORDS = "partition gpu-h100 of Slurm: Argo CD and Flux apply no manifests there"
HPC = """\
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: hpc}
spec: {slurm: {partition: gpu-h100}}
"""


def with_partition(files: dict[str, str]) -> dict[str, str]:
    """Describe a partition, and let the workspace and its policy name it first."""
    return {
        **files,
        "clusters.yaml": files["clusters.yaml"] + HPC,
        "workspaces.yaml": files["workspaces.yaml"].replace("worker-2,", "hpc, worker-2,"),
        "policies.yaml": files["policies.yaml"].replace("[{name: worker-2}", "[{name: hpc}, {name: worker-2}"),
    }


@pytest.fixture
def partition(fleet: Remote) -> Remote:
    files = {name: fleet.git("show", f"main:{name}") + "\n" for name in ("clusters.yaml", "workspaces.yaml")}
    files["policies.yaml"] = fleet.git("show", "main:policies.yaml") + "\n"
    changed = with_partition(files)
    assert all(changed[name] != text for name, text in files.items())
    fleet.commit("main", changed)
    return fleet


@pytest.fixture
def ready(tmp_path: Path, overspill: Terminal, fleet: Remote) -> Iterator[ReadyFleet]:
    """Serve three clusters that have all objects, beside a partition and a context of its name that leads nowhere."""
    fleet.commit("main", with_partition(FILES))
    with ExitStack() as stack:
        ready = ReadyFleet(tmp_path, stack)
        other = kubeconfig(tmp_path / "other", ("hpc", "https://127.0.0.1:1"))
        overspill.env["KUBECONFIG"] = f"{ready.kubeconfig}:{other}"
        yield ready


def test_explain_refuses_it_first_and_the_next_cluster_takes_the_burst(
    overspill: Terminal, partition: Remote, see: See
) -> None:
    see(missing=2, worker_2=4)
    told = overspill.answer("explain", "llm/vllm")
    (refused,) = [row for row in told["assessments"] if row["cluster"] == "hpc"]
    assert (refused["refusal"]["reason"], refused["refusal"]["message"]) == ("SlurmPartition", WORDS)
    assert WORDS in " ".join(overspill.done("explain", "llm/vllm").split())
    subjects = [commit["subject"] for commit in overspill.answer("plan")["commits"]]
    assert "burst(llm/vllm): 2 replicas on worker-2 for 10m" in subjects


def test_status_shows_it_as_what_it_is(overspill: Terminal, partition: Remote, see: See) -> None:
    see(missing=0, worker_2=4)
    (row,) = [row for row in overspill.answer("status")["clusters"] if row["cluster"] == "hpc"]
    assert (row["engine"], row["message"], row["observedAt"]) == (None, WORDS, None)
    (line,) = [line for line in overspill.done("status").splitlines() if line.startswith("hpc ")]
    assert line.split()[:5] == ["hpc", "-", "-", "-", "-"]
    assert "never" not in line


def test_doctor_asks_nothing_of_it(overspill: Terminal, ready: ReadyFleet) -> None:
    result = overspill("doctor", "--kubeconfig", overspill.env["KUBECONFIG"], "-o", "json")
    groups = {group["place"]: group["results"] for group in json.loads(result.stdout)}
    assert set(groups) >= {"worker-1", "worker-2", "worker-3"}
    assert "hpc" not in groups
    (row,) = [row for row in groups["git"] if row["subject"] == "Cluster hpc"]
    assert (row["readiness"], row["seen"]) == ("ok", WORDS)


def test_a_context_of_its_name_is_not_watched(overspill: Terminal, ready: ReadyFleet) -> None:
    result = overspill("status", "--kubeconfig", overspill.env["KUBECONFIG"])
    assert result.exit_code == 0, result.output
    assert "cluster hpc" not in result.output


def test_bootstrap_and_grant_write_nothing_for_it(overspill: Terminal, ready: ReadyFleet, tmp_path: Path) -> None:
    printed = overspill("bootstrap", "argocd")
    assert printed.exit_code == 0, printed.output
    assert "hpc" not in printed.stdout
    flux = overspill("bootstrap", "flux", "--cluster", "hpc")
    assert flux.exit_code == 1
    assert f"writing Flux's objects for 'hpc': it is {WORDS}" in flux.stderr.replace("\n", " ")
    directory = tmp_path / "checkout"
    directory.mkdir()
    for name, text in with_partition(FILES).items():
        (directory / name).write_text(text)
    granted = overspill("grant", "--fleet", str(directory), "--context", "worker-1", "--cluster", "hpc", "--yes")
    assert granted.exit_code == 1
    assert "--cluster: hpc is partition gpu-h100 of Slurm, which needs no rights" in granted.stderr.replace("\n", " ")
