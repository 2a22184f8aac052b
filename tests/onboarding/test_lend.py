"""A live workload as a template: every kind of the table, its companions, and what a person is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.fleet.sources.observed_contents import observed_contents
from reconciler.core.observe.kubernetes.live_objects import observed_object
from reconciler.core.onboarding.lend import (
    LentFiles,
    LiveWorkload,
    choose_primary,
    choose_workspace,
    find_kind,
    lent_files,
    needed_objects,
)
from reconciler.core.schema import yaml
from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.core.workloads.paths import at, put
from reconciler.errors import InvalidInput, Severity
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.cluster import Category
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import Desired
from tests.builders.inputs import desired

STORIES = (Path(__file__).parents[1] / "golden" / "kinds").glob("[!_]*.yaml")
WRAPPER = next(path for path in STORIES if path.stem == "appwrapper")
KINDS = sorted(path for path in STORIES if b"manifestResources" in path.read_bytes() and path != WRAPPER)
"""Stories of kinds that every workspace may deploy."""
"""Stories of kinds; in the others a chart makes the objects."""
PRIMARY = ClusterName("worker-1")
FLEET = """\
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-1}
---
apiVersion: overspill.dev/v1alpha1
kind: Cluster
metadata: {name: worker-2}
"""
POD = {
    "serviceAccountName": "runner",
    "nodeSelector": {"topology.kubernetes.io/zone": "a"},
    "containers": [
        {
            "name": "server",
            "image": "server:1",
            "envFrom": [{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "token"}}],
            "volumeMounts": [{"name": "models", "mountPath": "/models"}],
        }
    ],
    "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}}],
}


def named(kind: str, name: str, api_version: str = "v1", **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "serving", "uid": "1"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


DEPLOYMENT = named(
    "Deployment",
    "vllm",
    "apps/v1",
    spec={
        "replicas": 2,
        "selector": {"matchLabels": {"app": "vllm"}},
        "template": {"metadata": {"labels": {"app": "vllm", "tier": "gpu"}}, "spec": POD},
    },
)
SETTINGS = named("ConfigMap", "settings", data={"MODEL": "llama"})
CLAIM = named(
    "PersistentVolumeClaim",
    "models",
    spec={"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "pvc-1"},
)
ACCOUNT = named("ServiceAccount", "runner")
SERVICE = named("Service", "vllm", spec={"selector": {"app": "vllm"}, "ports": [{"port": 80}]})
OTHERS = (
    named("ConfigMap", "other", data={}),
    named("Service", "other", spec={"selector": {"app": "vllm", "tier": "cpu"}}),
    named("Service", "external", spec={"type": "ExternalName", "externalName": "example.com"}),
)


def fleet(*more: str) -> Desired:
    texts = {"clusters/all.yaml": FLEET, **{f"workspaces/{number}.yaml": text for number, text in enumerate(more)}}
    return assembled(texts)


def assembled(texts: dict[str, str]) -> Desired:
    return assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in texts.items()})


def lent(manifest: dict[str, Any], *companions: dict[str, Any]) -> LentFiles:
    live = LiveWorkload(primary=PRIMARY, manifest=manifest, companions=companions)
    return lent_files(live, fleet(), workspace=None, policy={})


def template(files: LentFiles) -> Any:
    return yaml.parse(files.files[files.template].encode(), files.template)[0].value


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.stem)
def test_every_kind_of_the_table_bursts_without_a_word_written_by_hand(path: Path) -> None:
    alive = [manifest for manifest in objects(path) if kind_of(manifest, NO_KINDS) is not None]
    assert alive, "every story of a kind has an object of it"
    files = lent(alive[0])
    after = assembled({"clusters/all.yaml": FLEET, **files.files})
    errors = [str(problem) for problem in after.problems if problem.severity is Severity.ERROR]
    assert errors == []
    ref = after.templates[files.workload].ref
    assert ref is not None
    assert (ref.namespace, ref.name) == (at(alive[0], ("metadata", "namespace")), at(alive[0], ("metadata", "name")))
    assert files.workload in after.policies
    assert after.templates[files.workload].spec.manifests[-1].manifest["kind"] == alive[0]["kind"]


def test_a_kind_that_a_workspace_has_to_allow_is_told() -> None:
    (alive,) = objects(WRAPPER)
    after = assembled({"clusters/all.yaml": FLEET, **lent(alive).files})
    (error,) = [str(problem) for problem in after.problems if problem.severity is Severity.ERROR]
    assert "the workspace's allowedKinds would have to hold workload.codeflare.dev/AppWrapper" in error


def objects(path: Path) -> list[Any]:
    """Return the objects of the template of a story, as they would be alive."""
    document = yaml.parse(path.read_bytes().replace(b"NUMBER", b"1"), path.name)[1]
    return [_with_numbers(resource["manifest"]) for resource in document.value["spec"].get("manifestResources", ())]


def _with_numbers(manifest: Any) -> Any:
    """Return an object as it would be alive: with a number where the template has an expression."""
    if isinstance(manifest, str):
        return 2 if manifest == "{{ replicas }}" else manifest
    if isinstance(manifest, list):
        return [_with_numbers(item) for item in manifest]
    if isinstance(manifest, dict):
        return {key: _with_numbers(value) for key, value in manifest.items()}
    return manifest


def test_what_pods_need_comes_along_and_nothing_else() -> None:
    files = lent(DEPLOYMENT, *OTHERS, SERVICE, CLAIM, SETTINGS, ACCOUNT)
    resources = template(files)["spec"]["manifestResources"]
    assert [resource["name"] for resource in resources] == [
        "serviceaccount-runner",
        "configmap-settings",
        "persistentvolumeclaim-models",
        "deployment-vllm",
        "service-vllm",
    ]
    assert resources[3]["manifest"]["spec"]["replicas"] == "{{ replicas }}"
    assert template(files)["metadata"]["annotations"] == {"overspill.dev/workload": "Deployment/serving/vllm"}


def test_what_stays_behind_is_told() -> None:
    notes = "\n".join(lent(DEPLOYMENT, CLAIM, ACCOUNT).notes)
    assert "Secret serving/token: not copied" in notes
    assert "ConfigMap serving/settings: not found on worker-1, or not readable" in notes
    assert "claim models: each cluster has its own, which begins empty" in notes
    assert "nodeSelector topology.kubernetes.io/zone" in notes
    assert "ServiceAccount" not in notes


def test_a_storage_class_of_a_claim_is_told_with_the_way_without_it() -> None:
    """The API server writes the default one into a claim: kubernetes.io/docs/concepts/storage/storage-classes."""
    claim = {**CLAIM, "spec": {**CLAIM["spec"], "storageClassName": "local-path"}}
    notes = lent(DEPLOYMENT, claim).notes
    words = "StorageClass local-path: each cluster of a burst has to have it; without storageClassName each takes its"
    assert any(note.startswith(words) for note in notes)
    assert not any("StorageClass" in note for note in lent(DEPLOYMENT, CLAIM).notes)


def test_a_job_is_told_to_run_once() -> None:
    job = named("Job", "train", "batch/v1", spec={"completions": 2, "template": {"spec": {"containers": []}}})
    assert "Job: runs once, so it is placed elsewhere only while the one on worker-1 is held" in lent(job).notes


def test_needed_objects_are_those_that_a_pod_cannot_start_without() -> None:
    needed = needed_objects(LiveWorkload(primary=PRIMARY, manifest=DEPLOYMENT), NO_KINDS)
    assert [(each.category, each.name) for each in needed] == [
        (Category.VOLUMES, "serving/models"),
        (Category.CONFIG_MAPS, "serving/settings"),
        (Category.SECRETS, "serving/token"),
        (Category.SERVICE_ACCOUNTS, "serving/runner"),
    ]


def test_files_are_a_template_a_workspace_and_a_policy() -> None:
    files = lent(DEPLOYMENT)
    assert list(files.files) == ["templates/vllm.yaml", "workspaces/serving.yaml", "policies/vllm.yaml"]
    assert files.workload == WorkloadId(WorkspaceName("serving"), TemplateName("vllm"))
    after = assembled({"clusters/all.yaml": FLEET, **files.files})
    assert after.workspaces[WorkspaceName("serving")].primary == PRIMARY
    assert after.workspaces[WorkspaceName("serving")].clusters == ("worker-1", "worker-2")


def test_a_kind_of_another_group_is_named_with_its_group() -> None:
    job = named("Job", "train", "batch.volcano.sh/v1alpha1", spec={"tasks": []})
    annotations = template(lent(job))["metadata"]["annotations"]
    assert annotations == {"overspill.dev/workload": "Job.batch.volcano.sh/serving/train"}


def test_a_name_that_is_no_name_of_a_file_is_made_one() -> None:
    manifest = put(DEPLOYMENT, ("metadata", "name"), "vllm.v1")
    assert next(iter(lent(manifest).files)) == "templates/vllm-v1.yaml"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("deployment", "apps/Deployment"),
        ("Deployments", "apps/Deployment"),
        ("deploy", "apps/Deployment"),
        ("job", "batch/Job"),
        ("job.batch.volcano.sh", "batch.volcano.sh/Job"),
        ("leaderworkerset", "leaderworkerset.x-k8s.io/LeaderWorkerSet"),
        ("pytorchjob", "kubeflow.org/PyTorchJob"),
    ],
)
def test_kinds_are_named_as_kubectl_takes_them(text: str, name: str) -> None:
    assert find_kind(text, NO_KINDS).name == name


def test_an_unknown_kind_is_told_with_the_nearest_one() -> None:
    with pytest.raises(InvalidInput, match=r"'deploymint' is no kind .* \(try 'deployment'\)"):
        find_kind("deploymint", NO_KINDS)


WORKSPACE = """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {{name: {name}}}
spec: {{primaryCluster: {primary}, clusters: [worker-1, worker-2], namespaces: [{namespace}]}}
"""


def workspace(name: str, *, primary: str = "worker-1", namespace: str = "serving") -> str:
    return WORKSPACE.format(name=name, primary=primary, namespace=namespace)


def test_the_workspace_is_the_one_that_may_use_the_namespace() -> None:
    described = fleet(workspace("llm"), workspace("vision", namespace="vision"))
    chosen = choose_workspace(described, PRIMARY, "serving", None)
    assert chosen is not None
    assert chosen.name == "llm"
    assert choose_workspace(described, PRIMARY, "batch", None) is None


def test_several_workspaces_are_asked_about() -> None:
    described = fleet(workspace("llm"), workspace("other"))
    with pytest.raises(InvalidInput, match=r"llm and other \(say which with --workspace\)"):
        choose_workspace(described, PRIMARY, "serving", None)


@pytest.mark.parametrize(
    ("name", "message"),
    [("west", "the primary cluster of workspace west is worker-2"), ("vision", "may not use the namespace serving")],
)
def test_a_workspace_that_does_not_fit_is_refused(name: str, message: str) -> None:
    described = fleet(workspace("west", primary="worker-2"), workspace("vision", namespace="vision"))
    with pytest.raises(InvalidInput, match=message):
        choose_workspace(described, PRIMARY, "serving", name)


def test_the_primary_is_that_of_the_workspaces() -> None:
    assert choose_primary(fleet(workspace("llm")), None, ".") == "worker-1"
    assert choose_primary(fleet(), "worker-2", ".") == "worker-2"
    with pytest.raises(InvalidInput, match="try --primary with one of worker-1 and worker-2"):
        choose_primary(fleet(), None, ".")
    with pytest.raises(InvalidInput, match="cluster worker-9 is not in the fleet repository"):
        choose_primary(fleet(), "worker-9", ".")
    with pytest.raises(InvalidInput, match="cluster worker-9 is not in the fleet repository"):
        choose_primary(fleet(workspace("llm", primary="worker-9")), None, ".")
    with pytest.raises(InvalidInput, match=r"the fleet in there has no Cluster yet \(try --fleet"):
        choose_primary(desired(clusters=()), None, "there")


@pytest.mark.parametrize(
    ("manifest", "selector"),
    [
        (
            named("LeaderWorkerSet", "llama", "leaderworkerset.x-k8s.io/v1", spec={
                "replicas": 1,
                "leaderWorkerTemplate": {
                    "size": 2,
                    "leaderTemplate": {"metadata": {"labels": {"role": "leader"}}, "spec": {"containers": []}},
                    "workerTemplate": {"spec": {"containers": []}},
                },
            }),
            {"leaderworkerset.sigs.k8s.io/name": "llama", "role": "leader"},
        ),
        (
            named("Job", "train", "batch/v1", spec={"template": {"spec": {"containers": []}}}),
            {"job-name": "train"},
        ),
        (
            named("StatefulSet", "web", "apps/v1", spec={
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
            }),
            {"statefulset.kubernetes.io/pod-name": "web-0"},
        ),
    ],
    ids=["leaderworkerset", "job", "statefulset"],
)  # fmt: skip # objects, field by field
def test_a_service_may_select_by_labels_that_a_controller_adds(
    manifest: dict[str, Any], selector: dict[str, str]
) -> None:
    service = named("Service", "of-it", spec={"selector": selector, "ports": [{"port": 80}]})
    other = named("Service", "of-another", spec={"selector": {**selector, "role": "another"}})
    resources = [
        resource["manifest"] for resource in template(lent(manifest, service, other))["spec"]["manifestResources"]
    ]
    assert [resource["metadata"]["name"] for resource in resources if resource["kind"] == "Service"] == ["of-it"]
    assert resources[-1]["spec"]["selector"] == selector


def test_a_service_that_a_controller_makes_of_the_workload_is_left_to_it() -> None:
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "llama", "uid": "1"}
    made = put(SERVICE, ("metadata", "ownerReferences"), [{**owner, "controller": True}])
    kept = put(SERVICE, ("metadata", "ownerReferences"), [owner])
    for service, kinds in ((made, ["Deployment"]), (kept, ["Deployment", "Service"])):
        resources = template(lent(DEPLOYMENT, service))["spec"]["manifestResources"]
        assert [resource["manifest"]["kind"] for resource in resources] == kinds


def test_certificates_of_the_cluster_stay_there() -> None:
    volume = {"name": "ca", "configMap": {"name": "kube-root-ca.crt"}}
    pod = {"containers": [{"name": "a", "image": "a"}], "volumes": [volume]}
    manifest = put(DEPLOYMENT, ("spec", "template", "spec"), pod)
    files = lent(manifest, named("ConfigMap", "kube-root-ca.crt", data={"ca.crt": "-----BEGIN"}))
    assert [resource["manifest"]["kind"] for resource in template(files)["spec"]["manifestResources"]] == ["Deployment"]
    assert files.notes == ()


def test_what_comes_into_git_and_what_is_left_out_is_told() -> None:
    ports = [{"port": 80, "nodePort": 30080}]
    service = put(SERVICE, ("spec", "ports"), ports) | {}
    service = put(service, ("spec", "externalIPs"), ["192.0.2.1"])
    notes = lent(DEPLOYMENT, SETTINGS, CLAIM, ACCOUNT, service).notes
    assert "ConfigMap settings: see that no credential comes into git with its key" in notes
    assert "Service vllm: externalIPs and nodePort of worker-1 left out" in notes


def test_who_makes_an_object_is_told() -> None:
    owners = [{"kind": "InferenceService", "name": "llama", "controller": True}]
    manifest = put(DEPLOYMENT, ("metadata", "ownerReferences"), owners)
    notes = lent(manifest, SETTINGS, CLAIM, ACCOUNT).notes
    assert "Deployment serving/vllm: InferenceService llama makes it, and may be what you mean to lend" in notes


@pytest.mark.parametrize("path", KINDS, ids=lambda path: path.stem)
def test_a_reference_comes_to_the_template_that_a_copy_is(path: Path) -> None:
    alive = next(manifest for manifest in objects(path) if kind_of(manifest, NO_KINDS) is not None)
    live = LiveWorkload(primary=PRIMARY, manifest=alive)
    copied, referring = (
        lent_files(live, fleet(), workspace=None, policy={}, reference=reference) for reference in (False, True)
    )
    assert "manifestResources" not in template(referring)["spec"]
    files = {path: parse_file(text.encode()) for path, text in {"clusters.yaml": FLEET, **referring.files}.items()}
    unread = assemble(CommitId(""), files)
    seen = ClusterObservation(cluster=PRIMARY, observed_at=datetime(2026, 11, 20, tzinfo=UTC))
    seen = replace(seen, objects=(observed_object(alive),))
    contents = observed_contents(unread.sources, Observed(clusters={PRIMARY: seen}))
    after = assemble(CommitId(""), files, contents=contents).templates[referring.workload]
    before = assembled({"clusters.yaml": FLEET, **copied.files}).templates[copied.workload]
    assert not after.unread
    assert (after.spec.manifests, after.ref, after.copy) == (before.spec.manifests, before.ref, before.copy)


def test_a_reference_with_companions_holds_none_of_them_either() -> None:
    live = LiveWorkload(primary=PRIMARY, manifest=DEPLOYMENT, companions=(SETTINGS, SERVICE, CLAIM))
    files = lent_files(live, fleet(), workspace=None, policy={}, reference=True, companions=True)
    spec = template(files)["spec"]
    assert spec["from"]["companions"] == ["configmap/settings", "service/vllm"]
    assert [step["name"] for step in spec["steps"]] == ["persistentvolumeclaim-models"]
    assert any(note.startswith("ConfigMap settings and Service vllm: read live, by rights to") for note in files.notes)
    read = {path: parse_file(text.encode()) for path, text in {"clusters.yaml": FLEET, **files.files}.items()}
    unread = assemble(CommitId(""), read)
    seen = ClusterObservation(cluster=PRIMARY, observed_at=datetime(2026, 11, 20, tzinfo=UTC))
    seen = replace(seen, objects=tuple(map(observed_object, (DEPLOYMENT, SETTINGS, SERVICE))))
    contents = observed_contents(unread.sources, Observed(clusters={PRIMARY: seen}))
    made = assemble(CommitId(""), read, contents=contents).templates[files.workload]
    assert not made.unread
    assert {each.manifest["kind"] for each in made.spec.manifests} == {
        "ConfigMap", "Deployment", "PersistentVolumeClaim", "Service",
    }  # fmt: skip # a list of words


def test_a_reference_stands_beside_the_objects_that_pods_need() -> None:
    live = LiveWorkload(primary=PRIMARY, manifest=DEPLOYMENT, companions=(SETTINGS, SERVICE))
    files = lent_files(live, fleet(), workspace=None, policy={}, reference=True)
    spec = template(files)["spec"]
    assert spec["from"] == {"workload": {"kind": "Deployment", "namespace": "serving", "name": "vllm"}}
    assert [step["name"] for step in spec["steps"]] == ["configmap-settings", "service-vllm"]
