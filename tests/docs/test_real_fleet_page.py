"""docs/tutorial/real-fleet.md begins a repository that is true of its fleet. tests/e2e runs it on clusters."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs" / "tutorial" / "real-fleet.md").read_text()
ADDRESS = "https://git.example.com/acme/fleet.git"


def commands(number: int) -> str:
    """Find what one step of the page says to type."""
    (step,) = re.findall(rf"^## {number}\. .*?(?=^## )", PAGE, re.MULTILINE | re.DOTALL)
    return "".join(re.findall(r"^```sh run\n(.*?)^```$", step, re.MULTILINE | re.DOTALL))


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Path]:
    """Serve the three clusters of the page, and yield the kubeconfig that it begins with."""
    engines = {
        "worker-1": {},
        "worker-2": {"/apis/kustomize.toolkit.fluxcd.io/v1": {"resources": [{"name": "kustomizations"}]}},
        "worker-3": {"/apis/argoproj.io/v1alpha1": {"resources": [{"name": "applications"}]}},
    }
    with ExitStack() as stack:
        addresses = []
        for name, documents in engines.items():
            cluster = Cluster()
            cluster.documents |= documents
            addresses.append((name, stack.enter_context(serving(cluster))))
        yield kubeconfig(tmp_path / "administrator", *addresses)


@pytest.fixture
def person(person: dict[str, str], clusters: Path) -> dict[str, str]:
    """Be somebody with the commands of the page, whose clusters take all that they are given."""
    person["KUBECONFIG"] = str(clusters)
    for name, does in {"kubectl": "echo /hook/0", "openssl": "echo 0"}.items():
        program = Path(person["PATH"].partition(os.pathsep)[0]) / name
        program.write_text(f"#!/bin/sh\n{does}\n")
        program.chmod(0o755)
    return person


def test_what_it_pushes_for_the_engines_is_printed_for_its_own_clusters(tmp_path: Path, person: dict[str, str]) -> None:
    remote = tmp_path / "fleet.git"

    def types(*lines: str) -> str:
        text = "\n".join(lines).replace(ADDRESS, str(remote))
        # The engines are told where the repository is for them, which is not on this disk.
        text = text.replace(f"--repo-url {remote}", f"--repo-url {ADDRESS}")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=tmp_path, env=person, check=False,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180,
        )  # fmt: skip # a command line, word by word
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    def pushed() -> dict[str, str]:
        names = types("git -C fleet.git ls-tree --name-only main bootstrap/").split()
        return {name.removeprefix("bootstrap/"): types(f"git -C fleet.git show main:{name}") for name in names}

    types("git init --quiet --bare --initial-branch=main fleet.git", "echo 0 > git-read-password")
    types(commands(1), commands(3))
    assert not {"argocd.yaml", "flux.yaml"} & pushed().keys()
    here = f"export OVERSPILL_REPO={shlex.quote(str(remote))}"
    types(here, commands(5))
    assert pushed()["argocd.yaml"] == types(here, "overspill bootstrap argocd")
    assert pushed()["flux.yaml"] == types(here, "overspill bootstrap flux --cluster worker-2")
    assert "worker-3" in pushed()["argocd.yaml"]
