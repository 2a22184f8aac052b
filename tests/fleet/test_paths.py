"""A pull request reaches no further than the paths that its author may change (docs/how-to/review.md)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from reconciler.core.fleet.file import Value
from reconciler.core.fleet.paths import _KIND_OF, FLEET_FILE, REACH, Scope, fleets_below, kind_of_value
from reconciler.core.fleet.read_file import parse_file
from reconciler.core.schema import KINDS
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.fleet import PathsFile
from reconciler.daemon.source import SourceReader
from reconciler.model.ids import WorkloadId
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, load, policy, text, workspace
from tests.fakes.memory_repository import MemoryRepository

ROOT = Path(__file__).parents[2]
VLLM = WorkloadId("llm", "vllm")
LAYOUT = ROOT / "repo-layout"
HEAD = "apiVersion: overspill.dev/v1alpha1\n"
GPR = "apiVersion: gpr.kubeslice.io/v1alpha1\n"
OBJECTS = {
    "Fleet": f"{HEAD}kind: Fleet\nmetadata: {{name: other}}\nspec: {{ignore: ['workspaces/**']}}\n",
    "Cluster": cluster("other"),
    "Workspace": workspace("other"),
    "BurstPolicy": policy("other", "{priority: 100, templates: [none]}"),
    "Notification": f"{HEAD}kind: Notification\nmetadata: {{name: other}}\nspec: {{apprise: {{urlFrom: chat}}}}\n",
    "WorkspacePolicy": f"{GPR}kind: WorkspacePolicy\nmetadata: {{name: llm}}\nspec: {{}}\n",
    "GPRTemplate": (
        f"{GPR}kind: GPRTemplate\nmetadata: {{name: other}}\nspec: {{clusterName: worker-1, template: {{}}}}\n"
    ),
    "GPRTemplateBinding": f"{GPR}kind: GPRTemplateBinding\nmetadata: {{name: llm}}\nspec: {{enableAutoGPR: true}}\n",
    "WorkloadKind": (
        f"{HEAD}kind: WorkloadKind\nmetadata: {{name: other}}\n"
        "spec: {group: kyverno.io, kind: Policy, replicasPaths: [spec.replicas]}\n"
    ),
}
"""An object of each kind that reaches beyond one workspace."""

OWN = {**FLEET, "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**]")}
OWN["teams/llm/vllm.yaml"] = OWN.pop("templates/vllm.yaml")
VISION = workspace("vision", "paths: [teams/vision/**]")


def fleet_of(spec: str) -> str:
    return f"{HEAD}kind: Fleet\nmetadata: {{name: fleet}}\nspec: {spec}\n"


def test_every_kind_of_the_registry_has_a_scope() -> None:
    assert {*REACH} == {*KINDS}
    assert {kind for kind, reach in REACH.items() if reach.scope in (Scope.ROOT, Scope.FLEET)} == {*OBJECTS}
    assert {*PathsFile.model_json_schema(by_alias=True)["properties"]} == {
        kind for kind, reach in REACH.items() if reach.scope in (Scope.FLEET, Scope.WORKSPACE)
    }


def test_every_object_that_a_file_can_hold_has_a_kind_of_the_registry() -> None:
    assert {*_KIND_OF} == {*get_args(Value)} - {RequestDraft}
    assert {*_KIND_OF.values()} | {"WorkloadPlacement", "GPUProvisioningRequest"} == {*KINDS} - {"Observation"}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("path", ["templates/aaa.yaml", "aaa.yaml", "policies-2/a.yaml", "team/clusters/a.yaml"])
def test_what_reaches_beyond_a_workspace_is_read_from_its_folder_alone(kind: str, path: str) -> None:
    desired = load({**FLEET, path: OBJECTS[kind]})
    (error,) = errors(desired)
    assert error.startswith(f"{path}:2: kind: a {kind} is read from ")
    assert "(try moving it " in error
    assert FLEET_FILE in error
    without = load()
    for field in ("fleet", "clusters", "workspaces", "policies", "limits", "gpr_templates", "bindings", "kinds"):
        assert getattr(desired, field) == getattr(without, field)


@pytest.mark.parametrize("kind", [kind for kind in OBJECTS if kind != "Fleet"])
def test_each_kind_is_read_from_every_one_of_its_defaults_and_from_the_fleets_file(kind: str) -> None:
    for pattern in (*REACH[kind].patterns, FLEET_FILE):
        path = pattern.replace("**", "deep/x.yaml").replace(".*", ".yaml")
        assert not [error for error in errors(load({**FLEET, path: OBJECTS[kind]})) if ": kind: " in error]


def test_a_whole_fleet_may_be_one_file() -> None:
    desired = load({"fleet.yaml": "---\n".join(FLEET.values())})
    assert desired.problems == ()
    assert desired.templates.keys() == load().templates.keys()


def test_the_fleet_names_other_paths_for_a_kind() -> None:
    files = {**FLEET, "infra/eu/c.yaml": cluster("worker-3"), "fleet.yaml": fleet_of("{paths: {Cluster: [infra/**]}}")}
    assert [error.partition(":")[0] for error in errors(load(files))][:2] == [
        "clusters/worker-1.yaml",
        "clusters/worker-2.yaml",
    ]
    files["fleet.yaml"] = fleet_of("{paths: {Cluster: [infra/**, clusters]}}")
    assert "worker-3" in load(files).clusters
    files["fleet.yaml"] = fleet_of("{paths: {WorkloadTemplate: [deployments/**]}}")
    assert (
        "templates/vllm.yaml:2: kind: a WorkloadTemplate is read from deployments/**, fleet.yaml alone"
        in errors(load(files))[1]
    )


@pytest.mark.parametrize("pattern", ["'!a/**'", "../a", "a/../../b", "a\\b", "''"])
def test_a_pattern_that_another_tool_would_read_otherwise_is_refused(pattern: str) -> None:
    (error,) = errors(load({**FLEET, "fleet.yaml": fleet_of(f"{{paths: {{Cluster: [{pattern}]}}}}")}))
    assert error.startswith("fleet.yaml:4: spec.paths.Cluster[0]: ")


def test_no_file_but_the_fleets_own_hides_others() -> None:
    for path in ("aaa.yaml", "templates/aaa.yaml", "policies/aaa.yaml", "fleet.yml", "a/fleet.yaml"):
        desired = load({**FLEET, path: OBJECTS["Fleet"]})
        assert [*desired.workspaces] == ["llm"]
        assert [error.partition(":")[0] for error in errors(desired)] == [path]
    everything = load({**FLEET, "fleet.yaml": fleet_of("{name: x, ignore: ['**']}").replace("name: x, ", "")})
    assert (everything.problems, everything.clusters, everything.fleet.ignore) == ((), {}, ("**",))


def test_a_file_of_a_workspaces_own_holds_its_objects_alone() -> None:
    assert load(OWN).problems == ()
    files = {**OWN, "workspaces/vision.yaml": VISION}
    for changed, message in {
        "teams/vision/a.yaml": "this path is workspace vision's own, and holds nothing of llm",
        "templates/a.yaml": "objects of workspace llm are read from teams/llm/** alone",
    }.items():
        desired = load({**files, changed: TEMPLATE.replace("name: vllm\n", "name: other\n")})
        assert errors(desired) == [
            f"{changed}:7: spec.workspaceName: {message} ({error.partition(' (')[2]}" for error in errors(desired)
        ]
        assert [*desired.templates] == [VLLM]


def test_an_object_without_a_workspace_is_the_one_of_its_path() -> None:
    plain = TEMPLATE.replace("  workspaceName: llm\n", "")
    both = {**FLEET, "workspaces/llm.yaml": workspace("llm", "paths: [teams/llm/**]"), "workspaces/v.yaml": VISION}
    del both["templates/vllm.yaml"]
    assert [*load({**both, "teams/llm/a.yaml": plain}).templates] == [VLLM]
    assert "llm-demo" in errors(load({**both, "teams/vision/a.yaml": plain}))[0]


def placement(name: str = "chat") -> str:
    body = TEMPLATE.replace("WorkloadTemplate", "WorkloadPlacement").replace("name: vllm\n", f"name: {name}\n", 1)
    return body.replace('"{{ replicas }}"', "1").replace("spec:\n", "spec:\n  clusterNames: [worker-2]\n", 1)


def parsed(_path: str, content: str) -> Value:
    (declared,) = parse_file(content.encode()).objects
    return declared.value


def test_requests_are_bound_to_the_paths_of_their_workspace_too() -> None:
    assert kind_of_value(parsed("a", placement())) == "WorkloadPlacement"
    assert errors(load({**OWN, "teams/llm/chat.yaml": placement()})) == []
    (error,) = errors(load({**OWN, "templates/chat.yaml": placement()}))
    assert "objects of workspace llm are read from teams/llm/** alone" in error


SPREAD = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata: {name: chat, namespace: llm-demo}
    spec:
      targetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm}
      subsets: [{name: all}]
    """)


def test_a_spread_holds_in_the_workspaces_whose_paths_it_lies_on() -> None:
    assert load({**OWN, "teams/llm/s.yaml": SPREAD}).policies[VLLM].spread is not None
    for path in ("templates/s.yaml", "teams/vision/s.yaml"):
        desired = load({**OWN, "workspaces/v.yaml": VISION, path: SPREAD})
        assert desired.policies[VLLM].spread is None
        named = SPREAD.replace("llm-demo}", "llm-demo, annotations: {overspill.dev/workspace: llm}}")
        (error,) = errors(load({**OWN, "workspaces/v.yaml": VISION, path: named}))
        assert error.startswith(f'{path}:3: metadata.annotations["overspill.dev/workspace"]: ')


@pytest.mark.parametrize("kind", [kind for kind in OBJECTS if kind != "Fleet"])
def test_what_reaches_beyond_a_workspace_is_not_read_from_its_own_path_by_default(kind: str) -> None:
    inside = workspace("llm", f"paths: ['{REACH[kind].patterns[0].replace('**', 'llm/**')}']")
    path = REACH[kind].patterns[0].replace("**", "llm/x.yaml")
    files = {**FLEET, "fleet.yaml": inside, path: OBJECTS[kind]}
    del files["workspaces/llm.yaml"], files["templates/vllm.yaml"]
    assert f"{path}:2: kind: this path is workspace llm's own" in errors(load(files))[0]


@pytest.mark.parametrize(
    ("kind", "text", "admitted"),
    [
        ("BurstPolicy", policy("own", "{workspaces: [llm]}"), True),
        ("BurstPolicy", policy("own", "{workspaces: [llm, vision]}"), False),
        ("BurstPolicy", policy("own", "{}"), False),
        ("WorkspacePolicy", OBJECTS["WorkspacePolicy"], True),
        ("GPRTemplateBinding", OBJECTS["GPRTemplateBinding"], True),
        ("Workspace", workspace("other"), False),
        ("Cluster", cluster("other"), False),
        ("WorkloadKind", OBJECTS["WorkloadKind"], False),
        ("GPRTemplate", OBJECTS["GPRTemplate"], False),
    ],
)
def test_a_fleet_that_names_a_kind_has_it_read_from_workspaces_own_paths(kind: str, text: str, admitted: bool) -> None:
    usual = ", ".join(f"'{pattern}'" for pattern in REACH[kind].patterns)
    files = {**OWN, "fleet.yaml": fleet_of(f"{{paths: {{{kind}: [{usual}, 'teams/*/*']}}}}"), "teams/llm/x.yaml": text}
    assert (errors(load(files)) == []) is admitted


def test_the_file_of_the_fleet_is_no_workspaces_own() -> None:
    files = {"fleet.yaml": "---\n".join([*FLEET.values()][:4]) + "---\n" + workspace("llm", "paths: ['**']")}
    assert load(files).problems == ()


SHADOWS = {
    "Cluster": ("clusters/worker-1.yaml", "clusters/aaa.yaml", cluster("worker-1", "{availability: Draining}")),
    "Workspace": ("workspaces/llm.yaml", "workspaces/aaa.yaml", workspace("llm", "allowedKinds: [a.b/C]")),
    "BurstPolicy": ("policies/gpu.yaml", "policies/aaa.yaml", policy("gpu", "{priority: 100}")),
    "WorkloadTemplate": ("templates/vllm.yaml", "aaa.yaml", TEMPLATE.replace("10m", "20m")),
    "WorkloadPlacement": ("zzz.yaml", "aaa.yaml", placement().replace("10m", "20m")),
    "WorkloadSpread": ("zzz.yaml", "aaa.yaml", SPREAD.replace("name: all", "name: other")),
    "WorkloadSpread of another name": ("zzz.yaml", "aaa.yaml", SPREAD.replace("name: chat", "name: other")),
    "GPRTemplate": ("policies/zzz.yaml", "policies/aaa.yaml", OBJECTS["GPRTemplate"].replace("-1", "-2")),
    "GPRTemplateBinding": (
        "policies/zzz.yaml",
        "policies/aaa.yaml",
        OBJECTS["GPRTemplateBinding"].replace("tr", "fal"),
    ),
    "WorkspacePolicy": ("policies/zzz.yaml", "policies/aaa.yaml", OBJECTS["WorkspacePolicy"]),
    "WorkloadKind": ("kinds/zzz.yaml", "kinds/aaa.yaml", OBJECTS["WorkloadKind"].replace("name: other", "name: a")),
}
STANDING = {
    "WorkloadPlacement": placement(),
    "WorkloadSpread": SPREAD,
    "WorkloadSpread of another name": SPREAD,
    "GPRTemplate": OBJECTS["GPRTemplate"],
    "GPRTemplateBinding": OBJECTS["GPRTemplateBinding"],
    "WorkspacePolicy": OBJECTS["WorkspacePolicy"].replace("{}", "{priorityRange: low}"),
    "WorkloadKind": OBJECTS["WorkloadKind"],
}


@pytest.mark.parametrize("kind", SHADOWS)
@pytest.mark.parametrize("at_once", [False, True])
def test_of_two_objects_of_one_name_the_one_in_force_stays(kind: str, at_once: bool) -> None:
    standing, shadow, content = SHADOWS[kind]
    repository = MemoryRepository({**FLEET, **({standing: STANDING[kind]} if kind in STANDING else {})})
    reader = SourceReader(repository)
    before = reader.desired(repository.heads["source"])
    assert errors(before) == []
    repository.person("source", {shadow: content})
    commit = repository.person("source", {"README.md": "later"})
    for read in (SourceReader(repository),) if at_once else (reader, SourceReader(repository)):
        after = read.desired(commit)
        for field in ("clusters", "workspaces", "templates", "policies", "requests", "gpr_templates", "bindings"):
            assert getattr(after, field) == getattr(before, field)
        assert (after.limits, after.kinds) == (before.limits, before.kinds)
        assert [error.partition(":")[0] for error in errors(after)] == [shadow]


def test_of_two_that_came_at_once_the_first_by_path_stays_and_that_is_told() -> None:
    files = {**FLEET, "templates/a.yaml": TEMPLATE.replace("10m", "20m")}
    repository = MemoryRepository(files)
    desired = SourceReader(repository).desired(repository.heads["source"])
    assert desired.templates[VLLM].path == "templates/a.yaml"
    told = "templates/vllm.yaml:4: metadata.name: WorkloadTemplate llm/vllm is already in templates/a.yaml:1"
    assert errors(desired) == [f"{told} (try another name)"]


def test_a_name_is_not_taken_from_a_file_while_it_is_broken() -> None:
    repository = MemoryRepository(FLEET)
    repository.person("source", {"templates/vllm.yaml": TEMPLATE + "x: 1\n"})
    commit = repository.person("source", {"aaa.yaml": TEMPLATE.replace("10m", "20m")})
    assert SourceReader(repository).desired(commit).templates[VLLM].path == "templates/vllm.yaml"


def test_a_name_that_was_given_up_may_be_taken() -> None:
    repository = MemoryRepository(FLEET)
    repository.person("source", removes=["templates/vllm.yaml"])
    repository.person("source", {"aaa.yaml": TEMPLATE})
    commit = repository.person("source", {"templates/vllm.yaml": TEMPLATE})
    assert SourceReader(repository).desired(commit).templates[VLLM].path == "aaa.yaml"


def test_an_object_that_leaves_its_paths_counts_as_broken() -> None:
    repository = MemoryRepository(OWN)
    narrowed = workspace("llm", "paths: [teams/new/**]")
    commit = repository.person("source", {"workspaces/llm.yaml": narrowed})
    desired = SourceReader(repository).desired(commit)
    assert desired.incomplete
    moved = repository.person(
        "source", {"templates/w.yaml": FLEET["workspaces/llm.yaml"]}, removes=["workspaces/llm.yaml"]
    )
    assert SourceReader(repository).desired(moved).incomplete


def test_a_misplaced_object_beside_good_ones_keeps_the_last_good_version_of_its_file() -> None:
    repository = MemoryRepository(FLEET)
    commit = repository.person(
        "source", {"templates/vllm.yaml": TEMPLATE.replace("10m", "20m") + "---\n" + cluster("x")}
    )
    desired = SourceReader(repository).desired(commit)
    assert desired.templates[VLLM].spec.burst_duration == load().templates[VLLM].spec.burst_duration
    assert not desired.incomplete
    assert "x" not in desired.clusters


def test_a_template_takes_no_object_from_a_tenant_whose_namespace_it_is_in() -> None:
    foreign = TEMPLATE.replace("workspaceName: llm", "workspaceName: vision").replace("llm-demo", "vision-demo")
    foreign = foreign.replace("acme\n", "acme\n  annotations: {overspill.dev/workload: Deployment/llm-demo/vllm}\n", 1)
    desired = load({**FLEET, "workspaces/vision.yaml": workspace("vision"), "aaa.yaml": foreign})
    assert [*desired.policies] == [VLLM]


def test_code_owners_are_named_for_every_path_that_gives_rights() -> None:
    lines = [line.split() for line in (LAYOUT / "CODEOWNERS").read_text().splitlines() if line[:1] not in ("", "#")]
    assert all(len(line) > 1 and re.fullmatch(r"@[\w/-]+", line[1]) for line in lines)
    guarded = {path for path, *_ in lines}
    wanted = {f"/{pattern.removesuffix('**')}" for reach in REACH.values() for pattern in reach.patterns} - {"/"}
    assert wanted <= guarded
    assert "/CODEOWNERS" in guarded


def test_the_page_lists_every_kind_with_its_paths() -> None:
    page = (ROOT / "docs" / "how-to" / "review.md").read_text()
    rows = re.findall(r"^\| ([A-Z][\w, ]+) \| (.*?) \|", page, re.MULTILINE)
    listed = {kind: where for kinds, where in rows for kind in kinds.split(", ")}
    assert {*listed} == {*KINDS}
    for kind, where in listed.items():
        for pattern in re.findall("`(.*?)`", where):
            assert pattern in REACH[kind].patterns


@pytest.mark.parametrize(
    ("declared", "below"),
    [
        (["gpu/fleet.yaml"], ["gpu"]),
        (["gpu/clusters/a.yaml", "gpu/workspaces/b.yaml", "policies/c.yaml"], ["gpu"]),
        (["gpu/clusters.yaml", "gpu/workspaces.yaml"], ["gpu"]),
        (["gpu/clusters/a.yaml", "templates/b.yaml"], []),
        (["fleet.yaml", "examples/fleet.yaml"], []),
        (["clusters/a.yaml", "examples/fleet.yaml"], []),
        (["clusters.yaml", "examples/fleet.yaml"], []),
        (["workspaces.yml", "examples/clusters.yaml", "examples/workspaces.yaml"], []),
    ],
)
def test_a_fleet_below_the_root_is_known_by_its_layout_in_folders_or_in_files(
    declared: list[str], below: list[str]
) -> None:
    assert fleets_below(declared) == below
