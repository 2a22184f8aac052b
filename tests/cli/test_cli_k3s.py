"""Kubeconfigs of k3s, which are all alike but for their keys: `init` tells what would go wrong, and the way out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.builders.kube_objects import node
from tests.cli.conftest import Terminal
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

INIT = ("init", "fleet", "--from-kubeconfig")
VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.5+k3s1"}


def k3s_yaml(path: Path, server: str, name: str = "default", token: str = "") -> Path:
    """Write a file as k3s writes /etc/rancher/k3s/k3s.yaml, with a token in the place of a certificate."""
    document: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": {"server": server}}],
        "contexts": [{"name": name, "context": {"cluster": "default", "user": "default"}}],
        "current-context": name,
        "preferences": {},
        "users": [{"name": "default", "user": {"token": token or path.stem}}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def servers() -> Iterator[list[Cluster]]:
    with ExitStack() as stack:
        made = [Cluster(), Cluster()]
        for server in made:
            stack.enter_context(serving(server))
            server.put("nodes", node("edge", 1))
            server.documents["/version"] = VERSION
        yield made


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    return Terminal(env={"HOME": str(tmp_path), "OVERSPILL_KUBECONFIG": ""})


def told(terminal: Terminal, *arguments: str) -> str:
    done = terminal(*INIT, *arguments)
    assert done.exit_code == 0, done.output
    return " ".join(done.stderr.split())


def test_name_and_address_of_a_k3s_are_warned_of(terminal: Terminal, servers: list[Cluster], tmp_path: Path) -> None:
    terminal.env["KUBECONFIG"] = str(k3s_yaml(tmp_path / "k3s.yaml", servers[0].url))
    warned = told(terminal)
    assert "default is what k3s and RKE2 call every cluster" in warned
    assert "(try --rename default=NAME)" in warned
    assert "default is reached at 127.0.0.1, which is the machine of the kubeconfig alone" in warned


def test_a_renamed_cluster_keeps_its_context(terminal: Terminal, servers: list[Cluster], tmp_path: Path) -> None:
    terminal.env["KUBECONFIG"] = str(k3s_yaml(tmp_path / "k3s.yaml", servers[0].url))
    assert "call every cluster" not in told(terminal, "--rename", "default=edge-1", "--primary", "edge-1")
    cluster = yaml.safe_load(Path("fleet/clusters/edge-1.yaml").read_text())
    assert (cluster["metadata"]["name"], cluster["spec"]["connection"]) == ("edge-1", {"context": "default"})
    assert terminal("check", "fleet").exit_code == 0


def test_clusters_of_others_with_a_local_address_are_not_warned_of(
    terminal: Terminal, servers: list[Cluster], tmp_path: Path
) -> None:
    del servers[0].documents["/version"]
    terminal.env["KUBECONFIG"] = str(kubeconfig(tmp_path / "kind.yaml", ("kind-dev", servers[0].url)))
    assert "machine of the kubeconfig" not in told(terminal)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("default", "context default takes the cluster default of an earlier file, and not its own"),
        ("edge-2", "context edge-2 takes the cluster default of an earlier file, and not its own"),
    ],
    ids=["as k3s writes it", "after kubectl config rename-context"],
)
def test_files_of_two_k3s_hide_each_other(
    terminal: Terminal, servers: list[Cluster], tmp_path: Path, second: str, words: str
) -> None:
    first, other = (
        k3s_yaml(tmp_path / f"{number}.yaml", server.url, name)
        for number, server, name in zip((1, 2), servers, ("default", second), strict=True)
    )
    terminal.env["KUBECONFIG"] = os.pathsep.join(map(str, (first, other)))
    warned = told(terminal)
    assert f"{other}: {words} (rename the context, the cluster and the user in one of the files)" in warned


def test_files_of_two_k3s_whose_names_differ_are_two_clusters(
    terminal: Terminal, servers: list[Cluster], tmp_path: Path
) -> None:
    first, other = (k3s_yaml(tmp_path / f"{number}.yaml", servers[number].url) for number in (0, 1))
    other.write_text(other.read_text().replace("default", "edge-2"))
    terminal.env["KUBECONFIG"] = os.pathsep.join(map(str, (first, other)))
    assert "of an earlier file" not in told(
        terminal, "--primary", "edge-2", "--rename", "default=edge-1", "--engine", "flux"
    )
    assert {path.stem for path in Path("fleet/clusters").iterdir()} == {"edge-1", "edge-2"}


@pytest.mark.parametrize(
    ("rename", "words"),
    [
        ("defualt=edge", "--rename: there is no context 'defualt'"),
        ("default", "--rename: 'default' is not CONTEXT=NAME"),
        ("default=Edge_1", "--rename: 'Edge_1' is not a name of lower-case letters"),
    ],
)
def test_a_rename_that_is_none_is_refused(
    terminal: Terminal, servers: list[Cluster], tmp_path: Path, rename: str, words: str
) -> None:
    terminal.env["KUBECONFIG"] = str(k3s_yaml(tmp_path / "k3s.yaml", servers[0].url))
    done = terminal(*INIT, "--rename", rename)
    assert done.exit_code in (1, 2)
    assert words in " ".join(done.stderr.split())
    assert not Path("fleet").exists()
