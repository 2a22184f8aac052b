"""What an Application of Argo CD has deployed, as the source of a template."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reconciler.core.engines.argocd.source_applications import SourceApplication, deployed_source
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.manifest_source import RepositorySource, UnreadSource

URL = "https://git.example.com/apps.git"
ONE, TWO = "1" * 40, "2" * 40
SOURCE = {"repoURL": URL, "path": "./vllm/", "targetRevision": "HEAD"}
APPLICATION: dict[str, Any] = {
    "metadata": {"name": "vllm", "namespace": "argocd"},
    "spec": {"source": SOURCE, "destination": {"namespace": "demo"}},
    "status": {
        "sourceType": "Directory",
        "sync": {"status": "Synced", "revision": ONE, "comparedTo": {"source": SOURCE}},
        "history": [{"revision": TWO, "source": {**SOURCE, "path": "old"}}],
    },
}
DEPLOYED = RepositorySource(url=URL, revision="", path="vllm", at=ONE, recurse=False, namespace="demo")


def application(spec: dict[str, Any] | None = None, **status: Any) -> dict[str, Any]:
    raw = copy.deepcopy(APPLICATION)
    raw["spec"].update(spec or {})
    raw["status"].update(status)
    return raw


def source(**changes: Any) -> dict[str, Any]:
    """Make an Application whose source has these fields too."""
    changed = {**SOURCE, **changes}
    return application({"source": changed}, sync={"status": "Synced", "revision": ONE})


def test_an_application_in_sync_is_at_the_commit_that_it_was_compared_to() -> None:
    assert deployed_source(APPLICATION) == DEPLOYED


def test_an_application_out_of_sync_is_still_what_its_last_sync_made_of_it() -> None:
    read = deployed_source(application(sync={"status": "OutOfSync", "revision": "3" * 40}))
    assert isinstance(read, RepositorySource)
    assert (read.at, read.path) == (TWO, "old")


def test_the_last_operation_stands_in_for_a_history_that_is_not_kept() -> None:
    operation = {"phase": "Succeeded", "syncResult": {"revision": TWO, "source": SOURCE}}
    unkept = {"revisionHistoryLimit": 0}
    read = deployed_source(application(unkept, sync={"status": "OutOfSync"}, history=None, operationState=operation))
    assert isinstance(read, RepositorySource)
    assert read.at == TWO
    failed = {**operation, "phase": "Failed"}
    dry, partial = ({**operation, "operation": {"sync": part}} for part in ({"dryRun": True}, {"resources": [{}]}))
    for state in (failed, dry, partial):
        read = deployed_source(application(unkept, sync={}, history=None, operationState=state))
        assert isinstance(read, UnreadSource)
    kept = application(sync={}, history=None, operationState=operation)
    assert isinstance(deployed_source(kept), UnreadSource)


def test_a_list_of_one_source_is_one_source() -> None:
    spec = {"source": None, "sources": [SOURCE]}
    assert deployed_source(application(spec, sync={"status": "Synced", "revisions": [ONE]})) == DEPLOYED


def test_directories_count_where_argo_cd_reads_them() -> None:
    read = deployed_source(source(directory={"recurse": True, "jsonnet": {}}, path="."))
    assert isinstance(read, RepositorySource)
    assert (read.recurse, read.path) == (True, "")


REFUSED = {
    "several sources": (application({"sources": [SOURCE, SOURCE]}), "has several sources", "from.workload"),
    "several sources compared": (
        application(sync={"status": "Synced", "revisions": [ONE, TWO], "comparedTo": {"sources": [SOURCE, SOURCE]}}),
        "has several sources",
        "from.workload",
    ),
    "several sources synced": (
        application(sync={}, history=[{"revisions": [ONE, TWO], "sources": [SOURCE, SOURCE]}]),
        "has several sources",
        "from.workload",
    ),
    "a chart in a list": (
        application({"source": None, "sources": [SOURCE]}, sourceType=None, sourceTypes=["Helm"]),
        "is rendered by Helm",
        "spec.helmConfig",
    ),
    "a chart": (source(chart="vllm", path=None), "is rendered by Helm", "spec.helmConfig"),
    "values of a chart": (source(helm={"valueFiles": ["a.yaml"]}), "is rendered by Helm", "spec.helmConfig"),
    "a chart in git": (application(sourceType="Helm"), "is rendered by Helm", "spec.helmConfig"),
    "a kustomization": (application(sourceType="Kustomize"), "is rendered by Kustomize", "from.workload"),
    "a plugin": (source(plugin={"name": "cue"}), "is rendered by a plugin", "from.workload"),
    "some files": (source(directory={"include": "*.yaml"}), "has directory.include", "from.workload"),
    "no sync": (application(sync={"status": "OutOfSync", "revision": ONE}, history=[]), "has not been synced", "Argo"),
    "no status": ({key: APPLICATION[key] for key in ("metadata", "spec")}, "has not been synced", "Argo"),
    "a password": (source(repoURL="https://ada:sesame@git.example.com/a.git"), "holds a credential", "Secrets"),
    "no commit": (application(sync={"status": "Synced", "revision": "1.2.3"}), "not deployed from a commit", "from."),
    "no repository": (application({"source": None}, sync={"status": "Synced", "revision": ONE}), "git repos", "from."),
}


@pytest.mark.parametrize(("raw", "message", "remedy"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_source_is_told_with_its_way_out(raw: dict[str, Any], message: str, remedy: str) -> None:
    read = deployed_source(raw)
    assert isinstance(read, UnreadSource)
    assert message in read.message
    assert remedy in read.remedy
    assert "sesame" not in read.text


def test_one_application_is_followed_and_no_other() -> None:
    followed = SourceApplication("vllm", "argocd")
    assert "no Application vllm in namespace argocd" in str(followed.source)
    other = application()
    other["metadata"]["name"] = "chat"
    assert followed.apply(other) is ChangeEffect.NOTHING
    assert followed.apply(APPLICATION) is ChangeEffect.DEMAND
    assert followed.apply(application(health={"status": "Degraded"})) is ChangeEffect.NOTHING
    assert (followed.source, followed.keys()) == (DEPLOYED, {"argocd/vllm"})
    assert followed.remove("argocd/vllm") is ChangeEffect.DEMAND
    assert not followed.keys()
