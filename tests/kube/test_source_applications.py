"""Applications that templates are made from are watched one by one, where Argo CD runs."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.ids import CommitId
from reconciler.model.manifest_source import ArgoCDSource, RepositorySource, SourceKey, UnreadSource
from reconciler.model.policy import ArgoCD, Connection, Desired
from reconciler.model.policy import Fleet as ModelFleet
from tests.builders.watched_clusters import LASTING, Fleet, until
from tests.fakes.kube_api_server import Cluster, kubeconfig, serving

URL = "https://git.example.com/apps.git"
APPLICATIONS = "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications"


def application(name: str, commit: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "argocd"},
        "spec": {"source": {"repoURL": URL, "path": name}},
        "status": {"sync": {"status": "Synced", "revision": commit}},
    }


def deployed(name: str, commit: str) -> RepositorySource:
    return RepositorySource(url=URL, revision="", path=name, at=commit, recurse=False)


class Control(Fleet):
    """Argo CD in a cluster of its own, which is none of the fleet."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.control = Cluster()
        stack.enter_context(serving(self.control))
        super().__init__(path, stack)
        for name in ("vllm", "chat", "other"):
            self.control.put("applications", application(name, "1" * 40))

    def login(self, token: str = "") -> None:
        kubeconfig(self.path, ("control", self.control.url), token=token)

    def made_from(self, *names: str) -> Desired:
        return replace(
            Desired(commit=CommitId("c"), fleet=ModelFleet(argocd=ArgoCD(connection=Connection(context="control")))),
            sources=frozenset(SourceKey(ArgoCDSource(name=name)) for name in names),
        )


@pytest.fixture
def argo(tmp_path: Path):
    with ExitStack() as stack:
        yield Control(tmp_path, stack)


def test_each_application_is_followed_by_its_name(argo: Control) -> None:
    view = argo.view(LASTING)
    view.follow(argo.made_from("vllm", "gone"))
    seen = view.observe().applications
    assert seen["vllm"] == deployed("vllm", "1" * 40)
    gone = seen["gone"]
    assert isinstance(gone, UnreadSource)
    assert gone.message == "Argo CD has no Application gone in namespace argocd"
    asked = {query.get("fieldSelector") for _, path, query in argo.control.asked if path == APPLICATIONS}
    assert asked == {"metadata.name=vllm", "metadata.name=gone"}
    argo.control.put("applications", application("vllm", "2" * 40))
    until(lambda: view.observe().applications["vllm"] == deployed("vllm", "2" * 40))
    assert argo.woken
    lists = argo.control.count(APPLICATIONS, watch=False)
    view.follow(argo.made_from("vllm", "chat"))
    until(lambda: view.observe().applications.keys() == {"vllm", "chat"})
    assert argo.control.count(APPLICATIONS, watch=False) == lists + 1, "the one that stays is not listed anew"
    argo.control.delete("applications", "vllm", "argocd")
    until(lambda: isinstance(view.observe().applications["vllm"], UnreadSource))
    view.follow(argo.made_from())
    assert not view.observe().applications


def test_applications_that_may_not_be_read_are_unknown_and_told_once(argo: Control) -> None:
    argo.control.refuses[APPLICATIONS] = 403
    view = argo.view()
    view.follow(argo.made_from("vllm", "chat"))
    observed = view.observe()
    assert not observed.applications
    (problem,) = observed.problems
    assert str(problem).startswith("Applications of Argo CD: applications.argoproj.io are not looked at")
    assert "apply bootstrap/rbac-argocd.yaml there" in str(problem)
