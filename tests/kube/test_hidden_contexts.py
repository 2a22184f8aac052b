"""Of two files with entries of one name the first counts; a context that leads elsewhere because of that is told."""

from __future__ import annotations

import os
from pathlib import Path

from reconciler.adapters.kube.kubeconfig import HiddenContext, read_kubeconfig
from reconciler.adapters.kube.targets import Contexts
from tests.fakes.kube_api_server import kubeconfig


def merged(*paths: Path) -> Path:
    return Path(os.pathsep.join(map(str, paths)))


def test_what_is_the_same_in_both_files_is_no_trouble(tmp_path: Path) -> None:
    both = [kubeconfig(tmp_path / name, ("edge", "https://10.0.0.1:6443")) for name in ("a", "b")]
    assert read_kubeconfig(merged(*both)).hidden == ()


def test_a_login_of_an_earlier_file_is_told(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "a", ("edge", "https://10.0.0.1:6443"), token="one")
    second = kubeconfig(tmp_path / "b", ("far", "https://10.0.0.2:6443"), token="two")
    assert read_kubeconfig(merged(first, second)).hidden == (
        HiddenContext(path=second, context="far", by="user", name="reader"),
    )
    assert read_kubeconfig(merged(first)).hidden == ()


def test_a_context_of_another_cluster_counts_for_nothing(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "a", ("edge", "https://10.0.0.1:6443"))
    second = kubeconfig(tmp_path / "b", ("far", "https://10.0.0.2:6443"))
    second.write_text(second.read_text().replace('"name": "far", "context"', '"name": "edge", "context"'))
    (hidden,) = read_kubeconfig(merged(first, second)).hidden
    assert hidden.message == "context edge counts for nothing: an earlier file has another one of this name"


def test_a_daemon_warns_of_a_context_that_it_uses_until_it_is_mended(tmp_path: Path) -> None:
    first = kubeconfig(tmp_path / "a", ("edge", "https://10.0.0.1:6443"), token="one")
    second = kubeconfig(tmp_path / "b", ("far", "https://10.0.0.2:6443"), token="two")
    contexts = Contexts(merged(first, second))
    assert contexts.read() == {"edge", "far"}
    assert contexts.hidden({"edge"}) == ()
    (problem,) = contexts.hidden({"far"})
    assert str(problem) == (
        f"{second}: context far takes the user reader of an earlier file, and not its own"
        " (rename the context, the cluster and the user in one of the files)"
    )
    second.write_text(second.read_text().replace("reader", "far-reader"))
    assert contexts.read() == {"edge", "far"}
    assert contexts.hidden({"edge", "far"}) == ()
