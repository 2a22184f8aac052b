"""Files are held against each other: names once, references to something, one policy a template."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.fleet.paths import covered
from reconciler.core.fleet.read_file import assemble, is_read, parse_file
from reconciler.errors import Problem, Severity
from reconciler.model.ids import BlobId, CommitId, WorkloadId
from reconciler.text.findings import MOST_TOLD, told
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, lines, load, policy, warnings, workspace

VLLM = WorkloadId("llm", "vllm")


def test_a_fleet_without_mistakes_has_no_problems():
    desired = load()
    assert desired.problems == ()
    assert not desired.incomplete
    assert set(desired.clusters) == {"worker-1", "worker-2"}
    assert desired.policies[VLLM].name == "gpu"


def test_the_layout_of_files_does_not_matter():
    assert load({"fleet.yaml": "---\n".join(FLEET.values())}).policies.keys() == load().policies.keys()


@given(st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_listed_does_not_matter(chance: random.Random):
    broken = {**FLEET, "a.yaml": cluster("worker-1"), "b.yaml": policy("b"), "c.yaml": policy("c", "{templates: [x]}")}
    shuffled = list(broken.items())
    chance.shuffle(shuffled)
    assert load(dict(shuffled)) == load(broken)


def test_problems_are_sorted_by_path_and_line():
    desired = load({**FLEET, "z.yaml": policy("z", "{hold: x, priority: y}"), "a.yaml": cluster("A")})
    assert [(problem.path, problem.line) for problem in desired.problems] == [
        ("a.yaml", 4),
        ("z.yaml", 5),
        ("z.yaml", 5),
    ]


def test_a_second_fleet_is_an_error_and_the_first_stays():
    fleet = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata:\n  name: fleet\nspec:\n  engine: {}\n"
    desired = load({**FLEET, "fleet.yaml": fleet.format("manifests") + "---\n" + fleet.format("argocd")})
    assert errors(desired) == ["fleet.yaml:9: kind: a Fleet is already in fleet.yaml:1; there is one at most"]
    assert desired.fleet.engine == "manifests"
    assert desired.clusters["worker-1"].engine == "manifests"


def test_two_templates_of_one_name_are_an_error_at_the_second():
    desired = load({**FLEET, "templates/z.yaml": "# mine\n" + TEMPLATE})
    assert errors(desired) == [
        (
            "templates/z.yaml:5: metadata.name: WorkloadTemplate llm/vllm is already in "
            "templates/vllm.yaml:1 (try another name)"
        )
    ]
    assert desired.templates[VLLM].path == "templates/vllm.yaml"


def test_templates_of_one_name_may_live_in_two_workspaces():
    other = TEMPLATE.replace("workspaceName: llm", "workspaceName: chat").replace("llm-demo", "chat-demo")
    desired = load({**FLEET, "workspaces/chat.yaml": workspace("chat"), "templates/chat.yaml": other})
    assert errors(desired) == []
    assert set(desired.templates) == {VLLM, WorkloadId("chat", "vllm")}


def test_two_clusters_of_one_name_are_an_error_even_in_one_file():
    desired = load({**FLEET, "clusters/x.yaml": cluster("x") + "---\n" + cluster("x")})
    assert errors(desired) == [
        "clusters/x.yaml:9: metadata.name: Cluster x is already in clusters/x.yaml:1 (try another name)"
    ]


def test_a_cluster_named_in_no_file_is_told_and_the_workspace_stays_in_force():
    named = workspace().replace("[worker-1, worker-2]", "\n  - worker-1\n  - worker-9")
    desired = load({**FLEET, "workspaces/llm.yaml": named})
    assert errors(desired) == [
        "workspaces/llm.yaml:9: spec.clusters[1]: no file describes Cluster worker-9 (try 'worker-2')"
    ]
    assert desired.workspaces["llm"].primary == "worker-1"
    assert VLLM in desired.templates
    assert not desired.incomplete


def test_a_primary_that_no_file_describes_is_told():
    desired = load({path: text for path, text in FLEET.items() if path != "clusters/worker-1.yaml"})
    assert errors(desired) == [
        "workspaces/llm.yaml:6: spec.primaryCluster: no file describes Cluster worker-1 (try 'worker-2')",
        "workspaces/llm.yaml:7: spec.clusters[0]: no file describes Cluster worker-1 (add a Cluster of this name)",
    ]


def test_cluster_of_an_approval_must_exist():
    desired = load({**FLEET, "policies/gpu.yaml": policy("gpu", "\n  approval: {clusters: [worker-3]}")})
    assert errors(desired) == [
        "policies/gpu.yaml:6: spec.approval.clusters[0]: no file describes Cluster worker-3 (try 'worker-2')"
    ]


def test_what_a_policy_names_must_exist():
    spec = "\n  workspaces: [lmm]\n  templates: [vlm]\n  clusters:\n  - name: worker-3\n  - matchLabels: {tier: spot}"
    desired = load({**FLEET, "policies/gpu.yaml": policy("gpu", spec), "policies/z.yaml": policy("z")})
    assert errors(desired) == [
        "policies/gpu.yaml:6: spec.workspaces[0]: no file describes Workspace lmm (try 'llm')",
        "policies/gpu.yaml:9: spec.clusters[0].name: no file describes Cluster worker-3 (try 'worker-2')",
    ]
    assert warnings(desired) == [
        "policies/gpu.yaml:7: spec.templates[0]: no file describes WorkloadTemplate vlm (try 'vllm')",
        "policies/gpu.yaml:10: spec.clusters[1].matchLabels: no Cluster has these labels",
    ]
    assert not desired.incomplete


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("{templates: [vlm]}", "no file describes WorkloadTemplate vlm (try 'vllm')"),
        ("{templates: [chat]}", "no file describes WorkloadTemplate chat (there are vllm)"),
        (
            "{templates: [vllm], workspaces: [speech]}",
            "WorkloadTemplate vllm is in none of spec.workspaces (it is in llm)",
        ),
    ],
    ids=["a misspelt name", "names of nothing", "a template of another workspace"],
)
def test_a_name_that_costs_a_template_its_policy_is_an_error(spec, told):
    speech = (
        FLEET["workspaces/llm.yaml"].replace("name: llm", "name: speech").replace("namespaces: [", "namespaces: [x-")
    )
    files = {**FLEET, "policies/gpu.yaml": policy("gpu", spec), "workspaces/speech.yaml": speech}
    assert [line.partition("]: ")[2] for line in errors(load(files)) if "policies/" in line] == [told]
    governed = load({**files, "policies/z.yaml": policy("z")})
    assert [line for line in errors(governed) if "policies/" in line] == []
    assert any(told.partition(" (")[0] in line for line in warnings(governed))
    assert not load(files).incomplete


def test_a_name_that_is_left_over_beside_others_is_a_warning():
    desired = load({**FLEET, "policies/gpu.yaml": policy("gpu", "{templates: [vllm, vllm-old]}")})
    assert errors(desired) == []
    (line,) = warnings(desired)
    assert line == (
        "policies/gpu.yaml:5: spec.templates[1]: no file describes WorkloadTemplate vllm-old"
        " (add a WorkloadTemplate of this name)"
    )


def test_the_policy_that_names_the_template_goes_before_its_workspace_and_that_before_all():
    files = {
        **FLEET,
        "policies/a.yaml": policy("for-all"),
        "policies/b.yaml": policy("for-workspace", "{workspaces: [llm]}"),
        "policies/c.yaml": policy("for-template", "{templates: [vllm]}"),
    }
    del files["policies/gpu.yaml"]
    for name in ("for-template", "for-workspace", "for-all"):
        desired = load(files)
        assert desired.policies[VLLM].name == name
        assert desired.problems == ()
        files = {path: text for path, text in files.items() if f"name: {name}\n" not in text}
    assert load(files).policies == {}


def test_a_policy_for_another_workspace_does_not_govern_a_template_it_names():
    files = {
        **FLEET,
        "workspaces/chat.yaml": workspace("chat"),
        "policies/a.yaml": policy("a", "{workspaces: [chat], templates: [vllm]}"),
    }
    assert load(files).policies[VLLM].name == "gpu"


def test_two_policies_of_one_rank_are_an_error_at_the_second_and_the_first_stays():
    desired = load({**FLEET, "policies/z.yaml": policy("z")})
    assert errors(desired) == [
        (
            "policies/z.yaml:4: metadata.name: llm/vllm is governed by BurstPolicy gpu just as well, and stays so "
            "(name the template or its workspace in one of them alone)"
        )
    ]
    assert desired.policies[VLLM].name == "gpu"
    assert not desired.incomplete


def test_rivals_that_a_more_specific_policy_overrules_are_no_error():
    files = {**FLEET, "policies/y.yaml": policy("y"), "policies/z.yaml": policy("z", "{templates: [vllm]}")}
    assert load(files).problems == ()


def test_a_template_that_no_policy_governs_is_a_warning():
    desired = load({path: text for path, text in FLEET.items() if not path.startswith("policies/")})
    assert warnings(desired) == [
        (
            "templates/vllm.yaml:4: metadata.name: no BurstPolicy governs it, so it does not burst "
            "(add one, name it in spec.templates of one, or add a GPRTemplateBinding with enableAutoGPR: true)"
        )
    ]


def counting(name: str, **annotations: str) -> str:
    """Return a template of another name that counts the same object, unless annotated."""
    marks = "".join(f"    overspill.dev/{key}: {value}\n" for key, value in annotations.items())
    annotated = f"  annotations:\n{marks}" if marks else ""
    return TEMPLATE.replace("  name: vllm\n", f"  name: {name}\n{annotated}", 1)


CHAT = WorkloadId("llm", "chat")
COUNTED = (
    "templates/z.yaml:4: metadata.name: {} on worker-1 is already counted by template llm/vllm in "
    "templates/vllm.yaml:1 (try the annotation overspill.dev/workload, or another release name)"
)


def test_two_templates_that_count_one_object_do_not_both_burst():
    desired = load({**FLEET, "templates/z.yaml": counting("chat")})
    assert errors(desired) == [COUNTED.format("Deployment/llm-demo/vllm")]
    assert set(desired.templates) == {VLLM, CHAT}
    assert set(desired.policies) == {VLLM}
    assert not desired.incomplete


def test_an_object_named_without_its_kind_is_counted_once_too():
    desired = load({**FLEET, "templates/z.yaml": counting("chat", workload="llm-demo/vllm")})
    assert errors(desired) == [COUNTED.format("llm-demo/vllm")]
    assert set(desired.policies) == {VLLM}


def test_the_first_by_path_counts_whatever_the_templates_are_called():
    desired = load({**FLEET, "templates/a.yaml": counting("z")})
    assert set(desired.policies) == {WorkloadId("llm", "z")}


def test_objects_of_one_name_on_two_primaries_or_of_two_kinds_are_two():
    kinds = load({**FLEET, "templates/z.yaml": counting("chat", workload="StatefulSet/llm-demo/vllm")})
    assert (errors(kinds), set(kinds.policies)) == ([], {VLLM, CHAT})
    elsewhere = workspace("chat").replace("primaryCluster: worker-1", "primaryCluster: worker-2")
    other = counting("chat", workload="llm-demo/vllm").replace("workspaceName: llm", "workspaceName: chat")
    other = other.replace("namespace: llm-demo", "namespace: chat-demo")
    desired = load({**FLEET, "workspaces/chat.yaml": elsewhere, "templates/z.yaml": other})
    assert (errors(desired), len(desired.policies)) == ([], 2)
    same = elsewhere.replace("primaryCluster: worker-2", "primaryCluster: worker-1")
    assert len(load({**FLEET, "workspaces/chat.yaml": same, "templates/z.yaml": other}).policies) == 1


def test_a_template_that_does_not_burst_counts_nothing():
    files = {**FLEET, "templates/a.yaml": counting("chat"), "policies/gpu.yaml": policy("gpu", "{templates: [vllm]}")}
    desired = load(files)
    assert errors(desired) == []
    assert set(desired.policies) == {VLLM}


NAMELESS = TEMPLATE.replace("  workspaceName: llm\n", "")


def test_a_template_without_a_workspace_belongs_to_the_only_one():
    assert VLLM in load({**FLEET, "templates/vllm.yaml": NAMELESS}).templates


def test_of_several_workspaces_it_belongs_to_the_one_with_its_namespaces():
    files = {**FLEET, "templates/vllm.yaml": NAMELESS, "workspaces/chat.yaml": workspace("chat")}
    assert VLLM in load(files).templates


def test_where_none_or_several_have_its_namespaces_it_has_to_say():
    files = {
        **FLEET,
        "templates/vllm.yaml": NAMELESS.replace("llm-demo", "other"),
        "workspaces/chat.yaml": workspace("chat"),
    }
    assert errors(load(files)) == [
        (
            "templates/vllm.yaml:6: spec.workspaceName: is required: no workspace has all of its "
            "namespaces (one of chat, llm)"
        )
    ]
    files["templates/vllm.yaml"] = NAMELESS
    files["workspaces/chat.yaml"] = workspace("chat").replace("[chat-demo]", "[chat-demo, llm-demo]")
    assert errors(load(files)) == [
        "templates/vllm.yaml:6: spec.workspaceName: is required: 2 workspaces have its namespaces (one of chat, llm)"
    ]


def test_a_workspace_that_does_not_exist_keeps_the_template_out():
    desired = load({**FLEET, "templates/vllm.yaml": TEMPLATE.replace("workspaceName: llm", "workspaceName: lmm")})
    assert errors(desired) == ["templates/vllm.yaml:7: spec.workspaceName: no file describes Workspace lmm (try 'llm')"]
    assert desired.templates == {}
    assert desired.incomplete


def test_what_the_workspace_does_not_allow_keeps_the_template_out():
    foreign = TEMPLATE.replace("namespace: llm-demo", "namespace: kube-system")
    desired = load({**FLEET, "templates/vllm.yaml": foreign})
    assert errors(desired) == [
        (
            "templates/vllm.yaml:14: spec.manifestResources[0].manifest.metadata.namespace: "
            "'kube-system' is no namespace of "
            "workspace llm (it has llm-demo)"
        )
    ]
    assert desired.templates == {}


def test_a_namespace_that_a_template_lists_has_to_be_the_workspaces():
    desired = load({**FLEET, "templates/vllm.yaml": f"{TEMPLATE}  namespaces: [llm-demo, kube-system]\n"})
    assert errors(desired) == [
        "templates/vllm.yaml:22: spec.namespaces[1]: 'kube-system' is no namespace of workspace llm (it has llm-demo)"
    ]
    assert desired.templates == {}
    open_to_all = workspace().replace("  namespaces: [llm-demo]\n", "")
    files = {**FLEET, "templates/vllm.yaml": f"{TEMPLATE}  namespaces: [kube-system]\n"}
    assert errors(load({**files, "workspaces/llm.yaml": open_to_all})) == []


def test_a_broken_file_takes_no_part_and_holds_up_nothing_else():
    desired = load(
        {**FLEET, "clusters/worker-2.yaml": "kind: Cluster\nkind: Cluster\napiVersion: overspill.dev/v1alpha1\n"}
    )
    assert [line.split(":")[0] for line in errors(desired)] == ["clusters/worker-2.yaml", "workspaces/llm.yaml"]
    assert VLLM in desired.templates
    assert desired.incomplete


CORDONED = cluster("worker-1") + "---\n" + cluster("worker-2", "{availability: cordoned}")
ONE_ERROR = [
    ("clusters/all.yaml:10: spec.availability: 'cordoned' is not one of Active, Cordoned, Draining (try 'Cordoned')")
]


def without(folder: str) -> dict[str, str]:
    """Return the sample fleet without the files of one folder."""
    return {path: content for path, content in FLEET.items() if not path.startswith(folder)}


def test_one_wrong_line_about_a_cluster_is_one_error():
    spec = "{clusters: [{name: worker-1}, {matchLabels: {tier: spot}}]}"
    desired = load({**without("clusters"), "clusters/all.yaml": CORDONED, "policies/gpu.yaml": policy("gpu", spec)})
    assert errors(desired) == ONE_ERROR
    assert warnings(desired) == []


def test_one_wrong_line_about_a_workspace_or_a_policy_is_one_error():
    for template in (TEMPLATE, NAMELESS):
        files = {**without("workspaces"), "templates/vllm.yaml": template}
        desired = load({**files, "workspaces/llm.yaml": workspace(more="nemspaces: []")})
        assert [line.split(":")[0] for line in errors(desired)] == ["workspaces/llm.yaml"]
        assert desired.templates == {}
        assert desired.incomplete
    desired = load({**FLEET, "policies/gpu.yaml": policy("gpu", "{priority: high}")})
    assert [problem.path for problem in desired.problems] == ["policies/gpu.yaml"]


def test_a_template_that_is_kept_out_is_still_described():
    named = policy("gpu", "{workspaces: [llm], templates: [vllm]}")
    for wrong in (TEMPLATE.replace("burstDuration: 10m", "burstDuration: soon"), TEMPLATE.replace("llm-demo", "x")):
        desired = load({**FLEET, "policies/gpu.yaml": named, "templates/vllm.yaml": wrong})
        assert [problem.path for problem in desired.problems] == ["templates/vllm.yaml"]


def test_a_name_that_no_broken_file_mentions_is_told_beside_it():
    desired = load(
        {**FLEET, "clusters/worker-2.yaml": "kind: Cluster\nmetadata:\n  name: 'worker-3'\n  nam: worker-2\n"}
    )
    assert [line for line in errors(desired) if "no file describes" in line] == [
        "workspaces/llm.yaml:7: spec.clusters[1]: no file describes Cluster worker-2 (add a Cluster of this name)"
    ]


def test_what_a_broken_file_mentions_is_bounded():
    many = "\n".join(f"- name: n{number}" for number in range(100_000))
    assert len(parse_file(f"kind: Cluster\nkind: Cluster\nx:\n{many}\n".encode()).mentioned) <= 10_000
    assert parse_file(FLEET["clusters/worker-1.yaml"].encode()).mentioned == frozenset()


def test_a_primary_outside_of_the_clusters_is_a_warning():
    desired = load({**FLEET, "workspaces/llm.yaml": workspace().replace("[worker-1, worker-2]", "[worker-2]")})
    assert lines(desired.problems) == [
        "workspaces/llm.yaml:6: spec.primaryCluster: worker-1 is not among spec.clusters (try adding it there)"
    ]
    assert VLLM in desired.policies


def test_a_duration_that_the_policy_cuts_is_a_warning_at_the_template():
    files = {**FLEET, "templates/vllm.yaml": TEMPLATE.replace("burstDuration: 10m", "burstDuration: 15m")}
    desired = load({**files, "policies/gpu.yaml": policy("gpu", "{duration: {default: 5m, max: 12m}}")})
    assert lines(desired.problems) == [
        "templates/vllm.yaml:8: spec.burstDuration: 15m is cut to 12m by policy gpu (try 12m, or a longer duration.max)"
    ]
    assert load({**files, "policies/gpu.yaml": policy("gpu", "{duration: {default: 5m, max: 15m}}")}).problems == ()


def test_a_duration_that_its_workspace_cuts_is_a_warning_at_the_template():
    limits = (
        "apiVersion: gpr.kubeslice.io/v1alpha1\nkind: WorkspacePolicy\nmetadata: {name: llm}\n"
        "spec: {maxExitDurationPerGPR: 8m}\n"
    )
    assert lines(load({**FLEET, "policies/limits.yaml": limits}).problems) == [
        (
            "templates/vllm.yaml:8: spec.burstDuration: 10m is cut to 8m by the WorkspacePolicy of llm"
            " (try 8m, or a longer maxExitDurationPerGPR)"
        )
    ]


def annotated(workload: str) -> dict[str, str]:
    """Return the sample fleet with a template that names the object to count."""
    marked = f"kubeslice-acme\n  annotations:\n    overspill.dev/workload: {workload}\n"
    return {**FLEET, "templates/vllm.yaml": TEMPLATE.replace("kubeslice-acme\n", marked)}


def test_an_annotation_that_leaves_the_namespace_is_a_warning():
    desired = load(annotated("Deployment/chat/vllm"))
    assert lines(desired.problems) == [
        (
            'templates/vllm.yaml:7: metadata.annotations["overspill.dev/workload"]: '
            "'chat' is no namespace of workspace llm (it has llm-demo)"
        )
    ]
    assert desired.problems[0].severity is Severity.WARNING
    assert VLLM in desired.policies
    unbounded = workspace().replace("namespaces: [llm-demo]", "namespaces: []")
    assert load({**annotated("chat/vllm"), "workspaces/llm.yaml": unbounded}).problems == ()
    assert load(annotated("llm-demo/other")).problems == ()


@pytest.mark.parametrize(
    ("kind", "meant"),
    [("Jobs.batch.volcano.sh", "Job"), ("Jobb", "Job"), ("job", "Job"), ("deployments", "Deployment"), ("Xyzzy", "")],
)
def test_an_annotation_of_a_kind_that_nobody_knows_is_a_warning_with_the_nearest(kind: str, meant: str):
    desired = load(annotated(f"{kind}/llm-demo/volc"))
    (told,) = lines(desired.problems)
    tried = f"try '{meant}/llm-demo/volc'; " if meant else ""
    assert told.startswith(
        'templates/vllm.yaml:7: metadata.annotations["overspill.dev/workload"]: '
        f"unknown kind '{kind}' ({tried}known are AdvancedCronJob, AppWrapper, BroadcastJob, "
    )
    assert desired.problems[0].severity is Severity.WARNING
    assert VLLM in desired.policies


def test_a_kind_that_a_workload_kind_declares_or_the_template_deploys_is_known():
    assert load(annotated("Job/llm-demo/volc")).problems == ()
    declared = (
        "apiVersion: overspill.dev/v1alpha1\nkind: WorkloadKind\nmetadata: {name: engines}\n"
        "spec: {group: example.com, kind: Engine, versions: [v1], replicasPaths: [spec.replicas],"
        " podTemplates: [{path: spec.template, counts: [{path: spec.replicas}]}]}\n"
    )
    assert load({**annotated("Engine/llm-demo/a"), "kinds/engine.yaml": declared}).problems == ()
    files = annotated("Other/llm-demo/a")
    files["templates/vllm.yaml"] = files["templates/vllm.yaml"].replace("kind: Deployment", "kind: Other")
    assert [one for one in lines(load(files).problems) if "unknown kind" in one] == []


def test_templates_remember_the_version_they_came_from():
    files = {path: parse_file(text.encode()) for path, text in FLEET.items()}
    desired = assemble(CommitId("c"), files, blobs={"templates/vllm.yaml": BlobId("b1")})
    assert desired.templates[VLLM].blob == "b1"


def test_ignored_files_are_neither_read_nor_told():
    fleet = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: fleet}\nspec: "
        "{ignore: [charts/**, 'old*']}\n"
    )
    broken = "apiVersion: overspill.dev/v1alpha1\nkind: Nothing\n"
    desired = load({**FLEET, "fleet.yaml": fleet, "charts/a/b.yaml": broken, "old-ones/x.yaml": broken})
    assert desired.problems == ()
    assert load({**FLEET, "fleet.yaml": fleet, "new/charts/a.yaml": broken}).problems != ()


def test_patterns_cover_files_and_whole_directories():
    assert covered("charts/a.yaml", ["charts"])
    assert covered("charts/a/b.yaml", ["charts/"])
    assert covered("a/b/c.yaml", ["**/c.yaml"])
    assert covered("c.yaml", ["**/c.yaml"])
    assert covered("a/b.yaml", ["a/*.yaml"])
    assert covered("docs/v1/x.yaml", ["./docs/v?"])
    assert not covered("a/b/c.yaml", ["a/*.yaml"])
    assert not covered("chartsy/a.yaml", ["charts"])
    assert not covered("x/charts/a.yaml", ["charts"])
    assert not covered("a+b.yaml", ["aab.yaml"])


def test_only_yaml_and_json_outside_hidden_directories_is_read():
    assert all(map(is_read, ["a.yaml", "b/c.yml", "d.json", ".hidden.yaml", "a.b/c.yaml", "A.YAML", "b/C.Yml"]))
    assert not any(map(is_read, ["README.md", "a.yaml.bak", ".github/a.yaml", "x/.y/z.yaml", "yaml"]))


def test_no_pattern_takes_long():
    assert not covered("a" * 200 + "/" + "a" * 200, ["*a" * 60 + "b", "**/" * 60 + "b", "a*" * 60 + "/b"])


def test_many_unknown_names_are_told_in_short():
    names = ", ".join(f"node-{number}" for number in range(5000))
    named = workspace().replace("[worker-1, worker-2]", f"[{names}]")
    found = errors(load({**FLEET, "workspaces/llm.yaml": named}))
    assert len(found) == 21
    assert "spec.clusters[20]: no file describes 4980 more that are named here" in "\n".join(found)


def test_many_unknown_fields_are_told_in_short():
    fields = "".join(f"  field{number}: 1\n" for number in range(20000))
    found = errors(load({**FLEET, "policies/gpu.yaml": policy().replace("spec: {}\n", f"spec:\n{fields}")}))
    assert len(found) == 100
    assert found[0] == "policies/gpu.yaml:1: has 19901 more problems"


def test_the_problems_of_one_file_are_told_in_short_and_errors_never_hide_behind_warnings():
    odd = "kind: Workspace, metadata: {name: llm}, spec: {primaryCluster: worker-1, clusters: [worker-2]}"
    kinds = "".join(f"- {{apiVersion: overspill.dev/v1alpha1, {odd}}}\n" for _ in range(500))
    wrong = "- {apiVersion: overspill.dev/v1alpha1, kind: Nothing}\n"
    desired = load({**FLEET, "x.yaml": f"apiVersion: v1\nkind: List\nitems:\n{kinds}{wrong}"})
    assert len(desired.problems) == 101
    assert warnings(desired)[0] == "x.yaml: has 401 more problems"
    assert [line.partition(" ")[0] for line in errors(desired)] == ["x.yaml:504:"]
    assert desired.incomplete


def test_one_problem_more_than_are_told_is_one_more() -> None:
    *_, last = told([Problem(path="x.yaml", line=line, message="is wrong") for line in range(MOST_TOLD + 1)])
    assert str(last) == "x.yaml: has 1 more problem"
