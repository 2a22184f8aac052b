"""Only a deletion deletes: what moves into a file that is not in force stays where it was until that file is mended."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.daemon.source import SourceReader
from reconciler.model.bounds import FILE_SIZE
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import Desired
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors
from tests.fakes.memory_repository import MemoryRepository

VLLM = WorkloadId("llm", "vllm")
PATH = "templates/vllm.yaml"
OTHER = "templates/other.yaml"
SETTINGS = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {engine: flux}\n"
CHAT = TEMPLATE.replace("vllm", "chat")
SPREAD = """apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: parts, namespace: llm-demo}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}
  subsets: [{name: one}]
"""
NOTICE = """apiVersion: overspill.dev/v1alpha1
kind: Notification
metadata: {name: team}
spec: {severity: Warning, webhook: {url: 'https://pager.example.com', secretFrom: pager}}
"""
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
WORKLOAD_KIND = """apiVersion: overspill.dev/v1alpha1
kind: WorkloadKind
metadata: {name: bars}
spec: {group: foo.example.com, kind: Bar, replicasPaths: [spec.count]}
"""
WHITELIST = """apiVersion: v1
kind: ConfigMap
metadata: {name: kruise-configuration, namespace: kruise-system}
data:
  WorkloadSpread_Watch_Custom_Workload_WhiteList: |
    {"workloads": [{"group": "game.example.com", "version": "v1", "kind": "Arena", "replicasPath": "spec.a"}]}
"""
LIMITS = """apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkspacePolicy
metadata: {name: any, namespace: kubeslice-acme}
spec: {sliceRef: {name: llm}, maxGPRs: 2}
"""
GPR_TEMPLATE = """apiVersion: gpr.kubeslice.io/v1alpha1
kind: GPRTemplate
metadata: {name: on-worker-2}
spec: {clusterName: worker-2, template: {priority: 150, enableAutoGpuSelection: true}}
"""
BINDING = """apiVersion: gpr.kubeslice.io/v1alpha1
kind: GPRTemplateBinding
metadata: {name: llm}
spec: {enableAutoGPR: false}
"""
ASKED = """apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: asked}
spec:
  workspaceName: llm
  clusterNames: [worker-2]
  burstDuration: 8m
  manifestResources:
    - name: settings
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: llm-demo}, data: {a: b}}
  steps: [{name: settings, type: manifest}]
"""
BREAKS: dict[str, Callable[[str], str]] = {
    "syntax": lambda text: text.replace("metadata:", "metadata: [", 1),
    "unknown field": lambda text: text.replace("metadata:", "bogus: 1\nmetadata:", 1),
    "JSON cut short": lambda text: '{"apiVersion": "overspill.dev/v1alpha1",' + text,
    "too large": lambda text: text + "#" * FILE_SIZE.most,
    "conflict": lambda text: f"<<<<<<< HEAD\n{text}",
}


def read(fleet: MemoryRepository, *readers: SourceReader) -> Desired:
    """Read the tip with readers that have seen the past, and with one that begins now: they agree."""
    commit = fleet.tips().source
    assert commit is not None
    desired = SourceReader(fleet).desired(commit)
    for reader in readers:
        assert reader.desired(commit) == desired
    return desired


def start(files: Mapping[str, str]) -> tuple[MemoryRepository, SourceReader]:
    fleet = MemoryRepository(FLEET | dict(files))
    reader = SourceReader(fleet)
    assert not errors(read(fleet, reader))
    return fleet, reader


@pytest.mark.parametrize("broken", BREAKS)
def test_a_template_that_moves_into_a_file_that_breaks_stays_until_that_is_mended(broken: str) -> None:
    fleet, reader = start({OTHER: CHAT})
    text = f"{CHAT}---\n{BREAKS[broken](TEMPLATE)}"
    fleet.commit_as_person("source", {OTHER: text}, removes=[PATH])
    fleet.commit_as_person("source", {"README.md": "later"})
    desired = read(fleet, reader)
    assert {VLLM, WorkloadId("llm", "chat")} <= set(desired.templates)
    assert not desired.incomplete
    told = [line for line in errors(desired) if line.startswith(PATH)]
    assert len(told) == 1
    assert f"WorkloadTemplate vllm is gone from it, and may be in {OTHER}, which is broken: it stays" in told[0]
    fleet.commit_as_person("source", {OTHER: f"{CHAT}---\n{TEMPLATE}"})
    desired = read(fleet, reader)
    assert desired.templates[VLLM].path == OTHER
    assert errors(desired) == []


@pytest.mark.parametrize("broken", ["syntax", "unknown field"])
def test_what_the_broken_file_does_not_name_is_deleted(broken: str) -> None:
    fleet, reader = start({OTHER: CHAT})
    fleet.commit_as_person("source", {OTHER: BREAKS[broken](CHAT)}, removes=[PATH])
    assert VLLM not in read(fleet, reader).templates


def test_a_template_that_is_taken_out_of_the_broken_file_as_well_is_deleted() -> None:
    fleet, reader = start({OTHER: CHAT})
    fleet.commit_as_person("source", {OTHER: f"{CHAT}---\n{BREAKS['syntax'](TEMPLATE)}"}, removes=[PATH])
    assert VLLM in read(fleet, reader).templates
    fleet.commit_as_person("source", {OTHER: BREAKS["syntax"](CHAT)})
    assert VLLM not in read(fleet, reader).templates


def test_one_document_of_several_that_moves_leaves_its_file_as_it_is_now() -> None:
    fleet, reader = start({PATH: f"{TEMPLATE}---\n{CHAT}", OTHER: CHAT.replace("chat", "third")})
    later = CHAT.replace("10m", "20m")
    text = fleet.tree("source")[OTHER].decode()
    fleet.commit_as_person("source", {PATH: later, OTHER: f"{text}---\n{BREAKS['syntax'](TEMPLATE)}"})
    desired = read(fleet, reader)
    assert VLLM in desired.templates
    chat = desired.templates[WorkloadId("llm", "chat")]
    assert (chat.path, chat.line) == (PATH, 1)


def test_a_template_that_was_deleted_before_the_file_broke_stays_deleted() -> None:
    fleet, reader = start({OTHER: CHAT})
    fleet.commit_as_person("source", removes=[PATH])
    read(fleet, reader)
    fleet.commit_as_person("source", {OTHER: f"{CHAT}---\n{BREAKS['syntax'](TEMPLATE)}"})
    assert VLLM not in read(fleet, reader).templates


def test_a_template_that_moves_into_a_file_that_was_broken_before_stays() -> None:
    fleet, reader = start({OTHER: CHAT})
    broken = BREAKS["syntax"](CHAT)
    fleet.commit_as_person("source", {OTHER: broken})
    fleet.commit_as_person("source", {"templates/third.yaml": CHAT.replace("chat", "third")})
    assert WorkloadId("llm", "third") in read(fleet, reader).templates
    third = fleet.tree("source")["templates/third.yaml"].decode()
    fleet.commit_as_person("source", {OTHER: f"{broken}---\n{third}"}, removes=["templates/third.yaml"])
    assert WorkloadId("llm", "third") in read(fleet, reader).templates


KINDS: dict[str, tuple[str, str, str]] = {
    "Cluster": ("clusters/x.yaml", cluster("x"), "clusters/y.yaml"),
    "Workspace": ("workspaces/llm.yaml", FLEET["workspaces/llm.yaml"], "workspaces/y.yaml"),
    "BurstPolicy": ("policies/gpu.yaml", FLEET["policies/gpu.yaml"], "policies/y.yaml"),
    "GPRTemplate": ("gpr-templates/x.yaml", GPR_TEMPLATE, "gpr-templates/y.yaml"),
    "GPRTemplateBinding": ("policies/x.yaml", BINDING, "policies/y.yaml"),
    "WorkloadSpread": ("templates/x.yaml", SPREAD, "templates/y.yaml"),
    "WorkspacePolicy": ("policies/x.yaml", LIMITS, "policies/y.yaml"),
    "WorkloadKind": ("kinds/x.yaml", WORKLOAD_KIND, "kinds/y.yaml"),
    "ConfigMap of Kruise": ("kinds/x.yaml", WHITELIST, "kinds/y.yaml"),
    "WorkloadPlacement": ("requests/x.yaml", ASKED, "requests/y.yaml"),
    "Notification": ("notifications/x.yaml", NOTICE, "notifications/y.yaml"),
    "CustomResourceDefinition": ("kinds/x.yaml", CRD, "kinds/y.yaml"),
    "Fleet": ("fleet.yaml", SETTINGS, "policies/y.yaml"),
}
"""By kind: a file with an object, and a file into which it moves."""
PARTS = (
    "fleet", "clusters", "workspaces", "templates", "policies", "requests", "limits", "kinds", "schemas",
    "notifications", "gpr_templates", "bindings",
)  # fmt: skip # a list of words


@pytest.mark.parametrize("broken", ["syntax", "unknown field"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_object_of_any_kind_stays(kind: str, broken: str) -> None:
    path, text, into = KINDS[kind]
    anchor = cluster("anchor") if into.startswith("clusters") else ""
    fleet = MemoryRepository(FLEET | {OTHER: CHAT, path: text, into: anchor or "# nothing yet\n"})
    reader = SourceReader(fleet)
    before = read(fleet, reader)
    assert not errors(before)
    breaking = cluster("broken").replace(
        "metadata:", {"syntax": "metadata: [", "unknown field": "x: 1\nmetadata:"}[broken]
    )
    fleet.commit_as_person("source", {into: f"{anchor}---\n{text}---\n{breaking}"}, removes=[path])
    after = read(fleet, reader)
    assert any(line.startswith(f"{path}: ") and " is gone from it, and may be in " in line for line in errors(after))
    for part in PARTS:
        assert getattr(after, part) == getattr(before, part), part


@pytest.mark.parametrize(
    ("kind", "into"),
    [
        ("Cluster", "templates/x.yaml"),
        ("Workspace", OTHER),
        ("BurstPolicy", OTHER),
        ("Notification", OTHER),
        ("Fleet", "fleet.yml"),
        ("Fleet", "config/fleet.yaml"),
        ("Fleet", "policies/gpu.yaml"),
        ("GPRTemplate", OTHER),
        ("WorkspacePolicy", OTHER),
        ("WorkloadKind", OTHER),
    ],
)
def test_an_object_that_moves_to_where_its_kind_is_not_read_stays_in_force(kind: str, into: str) -> None:
    path, text, _ = KINDS[kind]
    fleet = MemoryRepository(FLEET | {OTHER: CHAT, path: text})
    reader = SourceReader(fleet)
    before = read(fleet, reader)
    assert not errors(before)
    standing = fleet.tree("source").get(into, b"").decode()
    fleet.commit_as_person("source", {into: f"{standing}---\n{text}" if standing else text}, removes=[path])
    after = read(fleet, reader)
    for part in PARTS:
        assert getattr(after, part) == getattr(before, part), part
    told = errors(after)
    assert any(
        line.startswith(f"{path}: {kind} ") and f"may be in {into}, which is not in force" in line for line in told
    )
    assert any(line.startswith(f"{into}:") and "is read from" in line for line in told)


def _pointer(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(text)}\n"


@pytest.mark.parametrize(("path", "text"), [("apps/vllm.yaml", TEMPLATE), ("templates/new.yaml", TEMPLATE + "# new\n")])
def test_a_file_that_moves_and_becomes_a_pointer_in_one_commit_stays(path: str, text: str) -> None:
    fleet, reader = start({})
    fleet.commit_as_person("source", {path: _pointer(text)}, removes=[PATH])
    fleet.commit_as_person("source", {"README.md": "later"})
    desired = read(fleet, reader)
    assert VLLM in desired.templates
    told = f"vllm is gone from it, and may be in {path}, which is a Git LFS pointer: it stays"
    assert any(told in line for line in errors(desired))
    fleet.commit_as_person("source", {path: _pointer(text + "#")})
    assert VLLM in read(fleet, reader).templates
    fleet.commit_as_person("source", removes=[path])
    desired = read(fleet, reader)
    assert VLLM not in desired.templates
    assert errors(desired) == []


def test_a_template_is_deleted_beside_a_pointer_to_something_else() -> None:
    fleet, reader = start({})
    fleet.commit_as_person("source", {"apps/vllm.yaml": _pointer("x")}, removes=[PATH])
    desired = read(fleet, reader)
    assert VLLM not in desired.templates


def test_what_is_deleted_later_than_a_pointer_came_is_deleted() -> None:
    fleet, reader = start({OTHER: CHAT})
    fleet.commit_as_person("source", {"templates/new.yaml": _pointer("x")})
    read(fleet, reader)
    fleet.commit_as_person("source", removes=[PATH])
    assert VLLM not in read(fleet, reader).templates


def test_it_holds_for_real_repositories(remote, tmp_path) -> None:
    remote.commit("main", FLEET | {OTHER: CHAT})
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        reader = SourceReader(repository)
        assert VLLM in reader.desired(repository.fetch().source).templates
        remote.commit("main", {PATH: None, OTHER: f"{CHAT}---\n{BREAKS['syntax'](TEMPLATE)}"})
        for number in range(30):
            remote.commit("main", {"README.md": str(number)})
        desired = reader.desired(repository.fetch().source)
        assert VLLM in desired.templates
    with GitRepository(remote.url, cache=tmp_path / "fresh") as repository:
        assert SourceReader(repository).desired(repository.fetch().source) == desired
