"""A spread governs the templates that burst replicas of its target, and what keeps it from doing so is told."""

from __future__ import annotations

import json

import pytest

from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.daemon.source import SourceReader
from reconciler.model.ids import WorkloadId
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, load, policy, warnings, workspace
from tests.builders.remote import Remote
from tests.builders.spread_files import HEAD, VLLM, doubtful, governing, in_zone, labelled, spread, subsets

CHAT = WorkloadId("chat", "vllm")


def annotated(workspace: str, source: str = "") -> str:
    note = f"  annotations: {{overspill.dev/workspace: {workspace}}}\n"
    return (source or spread()).replace("  name: vllm\n", f"  name: vllm\n{note}", 1)


def two_tenants() -> dict[str, str]:
    """Write a fleet in which two workspaces may touch any namespace, and each has a template for one object."""
    anywhere = {
        f"workspaces/{name}.yaml": workspace(name).replace(f"  namespaces: [{name}-demo]\n", "")
        for name in ("llm", "chat")
    }
    anywhere["workspaces/chat.yaml"] = anywhere["workspaces/chat.yaml"].replace("worker-1\n", "worker-2\n", 1)
    chat = TEMPLATE.replace("workspaceName: llm", "workspaceName: chat")
    return {**FLEET, **anywhere, "templates/chat.yaml": chat}


def test_a_spread_becomes_part_of_the_policy_of_its_template():
    desired = load({**FLEET, "s.yaml": spread()})
    assert desired.problems == ()
    assert governing(desired).name == "vllm"
    assert desired.policies[VLLM].name == "gpu"
    assert load(FLEET).policies[VLLM].spread is None


def test_a_template_that_does_not_say_the_kind_of_its_object_is_governed_too():
    note = "  namespace: kubeslice-acme\n  annotations: {overspill.dev/workload: llm-demo/vllm}\n"
    template = TEMPLATE.replace("  namespace: kubeslice-acme\n", note).replace("kind: Deployment", "kind: StatefulSet")
    desired = load({**FLEET, "templates/vllm.yaml": template, "s.yaml": spread()})
    assert desired.templates[VLLM].ref.kind == ""
    assert governing(desired).target.kind == "Deployment"


OTHERS = {
    "another name": ("name: vllm}", "name: vlm}", "Deployment/llm-demo/vlm", "try 'vllm'"),
    "another kind": ("apps/v1, kind: Deployment", "apps/v1, kind: ReplicaSet", "ReplicaSet/llm-demo/vllm", "try 'Depl"),
    "another namespace": ("llm-demo", "chat-demo", "Deployment/chat-demo/vllm", "try 'Deployment/llm-demo/vllm'"),
    "nothing alike": (
        "name: vllm}",
        "name: something-quite-different}",
        "Deployment/llm-demo/something-quite-different",
        "annotate the template: overspill.dev/workload: Deployment/llm-demo/something-quite-different)",
    ),
}


@pytest.mark.parametrize(("before", "after", "wanted", "way"), OTHERS.values(), ids=OTHERS)
def test_a_spread_that_no_template_matches_is_told(before: str, after: str, wanted: str, way: str):
    source = spread(head=HEAD.replace(before, after))
    (told,) = doubtful(source)
    assert told.startswith(
        f"7: spec.targetRef: no template bursts replicas of {wanted}, so that nothing is spread ({way}"
    )
    assert load({**FLEET, "s.yaml": source}).policies[VLLM].spread is None


def test_a_spread_without_a_namespace_is_in_default():
    (told,) = doubtful(spread(head=HEAD.replace("  namespace: llm-demo\n", "")))
    assert "; without metadata.namespace it is in default (try metadata.namespace: llm-demo)" in told


def test_an_object_of_another_group_is_another_object():
    head = HEAD.replace("apps/v1, kind: Deployment", "apps.kruise.io/v1beta1, kind: StatefulSet")
    stateful = {**FLEET, "templates/vllm.yaml": TEMPLATE.replace("kind: Deployment", "kind: StatefulSet")}
    (told,) = doubtful(spread(head=head), stateful)
    assert "the template that bursts replicas of StatefulSet/llm-demo/vllm is not governed by it (" in told
    kruise = stateful["templates/vllm.yaml"].replace("apps/v1", "apps.kruise.io/v1beta1")
    assert governing(load({**stateful, "templates/vllm.yaml": kruise, "s.yaml": spread(head=head)})).name == "vllm"


def test_a_spread_governs_in_every_workspace_that_may_touch_its_namespace():
    desired = load({**two_tenants(), "s.yaml": spread()})
    assert errors(desired) == []
    assert [governing(desired, workload).name for workload in (VLLM, CHAT)] == ["vllm", "vllm"]


def test_a_spread_of_one_workspace_governs_there_alone():
    desired = load({**two_tenants(), "s.yaml": annotated("chat")})
    assert errors(desired) == []
    assert governing(desired, CHAT).name == "vllm"
    assert desired.policies[VLLM].spread is None


def test_workspaces_may_have_spreads_of_one_name_and_target_each():
    desired = load({**two_tenants(), "a.yaml": annotated("chat"), "b.yaml": annotated("llm", subsets("patch: {}"))})
    assert errors(desired) == []
    assert [governing(desired, workload).subsets[0].name for workload in (CHAT, VLLM)] == ["all", "s0"]


def test_a_workspace_that_is_not_there_is_told():
    (told,) = errors(load({**FLEET, "s.yaml": annotated("lmm")}))
    assert (
        told
        == "s.yaml:5: metadata.annotations[\"overspill.dev/workspace\"]: no file describes Workspace lmm (try 'llm')"
    )


def test_a_namespace_that_the_workspace_may_not_touch_is_told():
    desired = load({**FLEET, "s.yaml": annotated("llm").replace("namespace: llm-demo", "namespace: other")})
    (told,) = errors(desired)
    assert told.endswith("'other' is no namespace of workspace llm (it has llm-demo)")


def test_of_two_spreads_with_one_target_the_first_is_in_force_and_the_other_told():
    second = spread("subsets: [{name: other}]").replace("  name: vllm\n", "  name: later\n", 1)
    desired = load({**FLEET, "a.yaml": spread(), "b.yaml": second})
    assert errors(desired) == [
        (
            "b.yaml:7: spec.targetRef: ws.spec.targetRef is in conflict with other WorkloadSpread vllm "
            "(that is in a.yaml:1; put both into one)"
        )
    ]
    assert governing(desired).name == "vllm"
    filtered = second + "  targetFilter: {selector: {matchLabels: {role: worker}}}\n"
    assert len(errors(load({**FLEET, "a.yaml": spread(), "b.yaml": filtered}))) == 1


def test_two_spreads_of_one_name_are_an_error_at_the_second():
    second = spread().replace("name: vllm}", "name: other}")
    assert errors(load({**FLEET, "a.yaml": spread(), "b.yaml": second})) == [
        "b.yaml:4: metadata.name: WorkloadSpread llm-demo/vllm is already in a.yaml:1 (try another name)"
    ]


def test_a_refused_spread_is_in_nobodys_way():
    refused = spread(head=HEAD.replace("apps/v1, kind: Deployment", "example.com/v1, kind: Thing"))
    desired = load({**FLEET, "a.yaml": refused, "b.yaml": spread()})
    assert len(errors(desired)) == 1
    assert governing(desired).path == "b.yaml"


def test_a_template_that_may_mean_either_of_two_objects_is_governed_by_the_first():
    note = "  namespace: kubeslice-acme\n  annotations: {overspill.dev/workload: llm-demo/vllm}\n"
    template = TEMPLATE.replace("  namespace: kubeslice-acme\n", note).replace("apps/v1", "example.com/v1")
    template = template.replace("kind: Deployment", "kind: ModelServer")
    second = spread(head=HEAD.replace("kind: Deployment", "kind: StatefulSet").replace("e: vllm\n", "e: later\n", 1))
    allowing = {"workspaces/llm.yaml": workspace(more="allowedKinds: [example.com/ModelServer]")}
    desired = load({**FLEET, **allowing, "templates/vllm.yaml": template, "a.yaml": spread(), "b.yaml": second})
    assert governing(desired).name == "vllm"
    assert [line for line in warnings(desired) if line.startswith("b.yaml")] == [
        (
            "b.yaml:7: spec.targetRef: llm/vllm is governed by WorkloadSpread vllm in a.yaml:1, and stays so "
            "(say of which kind it is: overspill.dev/workload: <Kind>/llm-demo/vllm)"
        )
    ]


def test_a_kind_that_the_fleet_declares_may_be_spread():
    kind = (
        "apiVersion: overspill.dev/v1alpha1\nkind: WorkloadKind\nmetadata: {name: servers}\n"
        "spec: {group: game.example.com, kind: GameServerSet, replicasPaths: [spec.size]}\n"
    )
    listed = {"workloads": [{"Group": "game.example.com", "Version": "v1", "Kind": "GameServerSet"}]}
    configuration = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "kruise-configuration"},
        "data": {"WorkloadSpread_Watch_Custom_Workload_WhiteList": json.dumps(listed)},
    }
    source = spread(head=HEAD.replace("apps/v1, kind: Deployment", "game.example.com/v2, kind: GameServerSet"))
    note = "  namespace: kubeslice-acme\n  annotations: {overspill.dev/workload: GameServerSet/llm-demo/vllm}\n"
    files = {**FLEET, "templates/vllm.yaml": TEMPLATE.replace("  namespace: kubeslice-acme\n", note), "s.yaml": source}
    assert len(errors(load(files))) == 1
    for declared in (kind, json.dumps(configuration)):
        assert governing(load({**files, "kinds.yaml": declared})).group == "game.example.com"


BROKEN = {
    "a field": "apiVersion: overspill.dev/v1alpha1\nkind: WorkloadKind\nmetadata: {name: a}\nspec: {}\n",
    "yaml": "apiVersion: overspill.dev/v1alpha1\nkind: WorkloadKind\n: :\n",
    "a whitelist": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kruise-configuration}\n"
        "data: {WorkloadSpread_Watch_Custom_Workload_WhiteList: '{,}'}\n"
    ),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_kind_that_a_broken_file_may_declare_is_not_refused(broken: str):
    source = spread(head=HEAD.replace("apps/v1, kind: Deployment", "game.example.com/v2, kind: GameServerSet"))
    found = errors(load({**FLEET, "s.yaml": source, "kinds.yaml": broken}))
    assert {line.partition(":")[0] for line in found} == {"kinds.yaml"}
    settings = "apiVersion: gpr.kubeslice.io/v1alpha1\nkind: WorkloadTemplat\nspec: {kind: ConfigMap}\n"
    found = errors(load({**FLEET, "s.yaml": source, "kinds.yaml": settings}))
    assert [line.partition(":")[0] for line in found] == ["kinds.yaml", "s.yaml"]


def test_a_distribution_of_the_policys_own_is_an_error_and_nothing_is_spread():
    files = {**FLEET, "policies/gpu.yaml": policy("gpu", "{distribution: {maxClusters: 2}}"), "s.yaml": spread()}
    desired = load(files)
    assert errors(desired) == [
        (
            "s.yaml:8: spec.subsets: BurstPolicy gpu has a distribution of its own: subsets only bound its clusters "
            "(leave all but strategy out of spec.distribution there, or give the template another BurstPolicy)"
        )
    ]
    assert desired.policies[VLLM].spread is None
    assert not desired.incomplete


def test_strategy_of_the_policy_divides_within_subsets_by_the_weights_of_its_clusters():
    chosen = policy("gpu", "{clusters: [{name: worker-2, weight: 3}], distribution: {strategy: Weighted}}")
    desired = load({**FLEET, "policies/gpu.yaml": chosen, "s.yaml": spread()})
    assert desired.problems == ()
    assert desired.policies[VLLM].spread is not None
    weights = {each.cluster: each.weight for each in ClusterOrder(desired).order(VLLM) if each.subset}
    assert weights["worker-2"] == 3
    assert {weight for name, weight in weights.items() if name != "worker-2"} <= {1}


def test_clusters_of_the_policy_come_after_subsets_and_that_is_told():
    files = {**FLEET, "policies/gpu.yaml": policy("gpu", "{clusters: [{name: worker-2}]}")}
    assert doubtful(spread(), files) == [
        (
            "8: spec.subsets: they go before spec.clusters of BurstPolicy gpu "
            "(leave spec.clusters out there, or give the template another BurstPolicy)"
        )
    ]
    assert governing(load({**files, "s.yaml": spread()})).name == "vllm"


ZONES = {
    **FLEET,
    "clusters/worker-1.yaml": labelled("worker-1", "a"),
    "clusters/worker-2.yaml": labelled("worker-2", "b"),
}


def test_a_subset_that_no_cluster_can_be_in_is_told():
    assert doubtful(subsets(in_zone("b"), in_zone("c")), ZONES) == [
        (
            "10: spec.subsets[1].requiredNodeSelectorTerm: no Cluster of workspace llm meets it, "
            "so that the subset holds nothing (they have zone=a, zone=b)"
        )
    ]


def test_of_several_labels_the_one_that_no_cluster_meets_is_told():
    both = in_zone("c").replace("[{", "[{key: pace, operator: Exists}, {", 1)
    (told,) = doubtful(
        subsets(both), {path: text.replace("{zone:", "{pace: fast, zone:") for path, text in ZONES.items()}
    )
    assert told.endswith("so that the subset holds nothing (they have zone=a, zone=b)")


def test_a_key_that_is_nearly_one_of_the_clusters_is_told_and_any_other_may_be_of_nodes():
    slip = in_zone("a").replace("key: zone", "key: zome")
    preferred = (
        "preferredNodeSelectorTerms: [{weight: 1, preference: {matchExpressions: [{key: zoned, operator: Exists}]}}]"
    )
    assert doubtful(subsets(slip, preferred), ZONES) == [
        f"{line}: spec.subsets[{index}].{field}: no Cluster has a label {key}, so that it is asked of nodes"
        " (try 'zone')"
        for line, index, field, key in (
            (9, 0, "requiredNodeSelectorTerm", "zome"),
            (10, 1, "preferredNodeSelectorTerms", "zoned"),
        )
    ]
    for key in ("pool", "topology.kubernetes.io/zone", "nvidia.com/gpu.product"):
        assert doubtful(subsets(in_zone("a").replace("key: zone", f"key: {key}")), ZONES) == []


def test_a_key_of_nodes_that_a_cluster_may_get_is_no_slip():
    nodes = "{autoscaling: [{labels: {zones: a}, allocatable: {cpu: 8}, maxNodes: 2}]}"
    slip = subsets(in_zone("a").replace("key: zone", "key: zones"))
    assert len(doubtful(slip, ZONES)) == 1
    files = {**ZONES, "clusters/worker-2.yaml": ZONES["clusters/worker-2.yaml"] + f"spec: {nodes}\n"}
    assert doubtful(slip, files) == []


def test_the_primary_may_be_a_subset():
    assert doubtful(subsets(in_zone("a"), in_zone("b")), ZONES) == []


def test_what_a_cluster_has_no_label_for_is_up_to_its_nodes():
    files = {**ZONES, "clusters/worker-2.yaml": cluster("worker-2")}
    assert doubtful(subsets(in_zone("c"), in_zone("b")), files) == []


def test_a_subset_may_name_a_cluster():
    field = "requiredNodeSelector: {matchFields: [{key: metadata.name, operator: In, values: [%s]}]}"
    (told,) = doubtful(subsets(field % "worker-2", field % "worker-3"), ZONES)
    assert told.startswith("10: spec.subsets[1].requiredNodeSelector: no Cluster of workspace llm meets it")
    assert told.endswith("(they are worker-1, worker-2)")


def test_where_a_cluster_is_broken_nothing_is_said_of_subsets():
    files = {**ZONES, "clusters/worker-2.yaml": cluster("worker-2", "{taint: []}")}
    desired = load({**files, "s.yaml": subsets(in_zone("c"))})
    assert [line for line in warnings(desired) if line.startswith("s.yaml")] == []


def test_where_a_template_is_broken_nothing_is_said_of_its_absence():
    desired = load({**FLEET, "templates/vllm.yaml": TEMPLATE.replace("steps:", "stpes:"), "s.yaml": spread()})
    assert [line for line in warnings(desired) if line.startswith("s.yaml")] == []


@pytest.mark.parametrize(
    ("selector", "fits"),
    [
        ("{matchLabels: {app: vllm}}", True),
        ("{}", True),
        ("{matchLabels: {app: other}}", False),
        ("{matchExpressions: [{key: app, operator: In, values: [a, vllm]}]}", True),
        ("{matchExpressions: [{key: role, operator: NotIn, values: [ps]}]}", True),
        ("{matchExpressions: [{key: app, operator: DoesNotExist}]}", False),
        ("{matchLabels: {app: vllm}, matchExpressions: [{key: role, operator: Exists}]}", False),
    ],
)
def test_a_selector_that_fits_none_of_the_pods_is_told(selector: str, fits: bool):
    told = doubtful(spread(f"targetFilter: {{selector: {selector}}}\nsubsets: [{{name: all}}]"))
    wrong = (
        "8: spec.targetFilter.selector: selects none of the pods of Deployment vllm in llm/vllm (they have app: vllm)"
    )
    assert told == ([] if fits else [wrong])


def test_a_target_that_meets_another_spread_keeps_the_last_good_version(remote: Remote, repository):
    later = spread("subsets: [{name: other}]").replace("  name: vllm\n", "  name: later\n", 1)
    elsewhere = later.replace("kind: Deployment, name: vllm", "kind: Deployment, name: other")
    remote.commit("main", {**FLEET, "a.yaml": spread(), "b.yaml": elsewhere})
    commit = remote.commit("main", {"b.yaml": later})
    repository.fetch()
    desired = SourceReader(repository).desired(commit)
    assert [line for line in errors(desired) if line.startswith("b.yaml")] == [
        (
            "b.yaml:7: spec.targetRef: ws.spec.targetRef is in conflict with other WorkloadSpread vllm "
            "(that is in a.yaml:1; put both into one)"
        )
    ]
    assert any("its last good version" in line for line in warnings(desired))
    assert not desired.incomplete
    assert governing(desired).name == "vllm"


STATEFUL = HEAD.replace("kind: Deployment", "kind: StatefulSet")


def numbered(*given: str) -> list[str]:
    """Return the warnings about a spread of a StatefulSet over subsets with these fields; the primary is in zone a."""
    zones = {
        f"clusters/worker-{number}.yaml": labelled(f"worker-{number}", zone) for number, zone in ((1, "a"), (2, "b"))
    }
    template = TEMPLATE.replace("kind: Deployment", "kind: StatefulSet")
    lines = "".join(f"- {{name: s{index}, {one}}}\n" for index, one in enumerate(given))
    return doubtful(spread(f"subsets:\n{lines}", head=STATEFUL), {**FLEET, **zones, "templates/vllm.yaml": template})


def test_a_stateful_set_whose_primary_is_not_in_the_first_subset_shares_ordinals_with_it():
    told = (
        "9: spec.subsets[0]: primary worker-1 of workspace llm is not in it, so that StatefulSet vllm has the same "
        "ordinals there as here (begin with a subset that worker-1 is in, with as many maxReplicas as it runs)"
    )
    assert numbered(in_zone("b")) == [told]
    assert numbered(f"maxReplicas: 3, {in_zone('b')}", in_zone("a")) == [told]
    assert numbered(f"maxReplicas: 3, {in_zone('a')}", in_zone("b")) == []


def test_a_subset_of_a_stateful_set_behind_one_without_an_end_is_told():
    assert numbered(in_zone("a"), in_zone("b")) == [
        (
            "10: spec.subsets[1]: subset s0 before it has no maxReplicas, so that no ordinal is left for it "
            "(give each subset before it a maxReplicas in replicas)"
        )
    ]
