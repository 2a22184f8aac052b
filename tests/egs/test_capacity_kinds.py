"""EGS's capacity side in files: reservations, templates of GPRs, bindings and policies of workspaces."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reconciler.model.gpr import (
    ClusterBinding,
    GprBinding,
    GprTemplate,
    GprTerms,
    GpuAsk,
    GpuLimits,
    WorkspaceLimits,
)
from reconciler.model.ids import WorkloadId
from reconciler.model.policy import ClusterPreference, Desired
from tests.builders.egs_samples import egs, fleet, placement
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, warnings, workspace

VLLM = WorkloadId("llm", "vllm")
TUNING = WorkloadId("llm", "tuning", request=True)
TEMPLATES = tuple(
    egs("GPRTemplate", f"clusterName: {cluster}\ntemplate: {terms}", name=f"on-{cluster}")
    for cluster, terms in (("worker-1", "{}"), ("worker-2", "{priority: 90, exitDuration: 2h}"))
)
BINDING = egs(
    "GPRTemplateBinding",
    """
    enableAutoGPR: true
    clusters:
    - clusterName: worker-2
      defaultTemplateName: on-worker-2
      templates: [on-worker-2]
    """,
)


def gpr(spec: str, *, where: str = "preferredClusters: [worker-2]") -> str:
    lines = f"sliceName: llm\nnumberOfGPUNodes: 1\n{where}\n" + spec
    return egs("GPUProvisioningRequest", lines, name="tuning")


def messages(found: list[str]) -> list[str]:
    return [line.partition(": ")[2] for line in found]


def without_policy(*objects: str, template: str = TEMPLATE) -> Desired:
    """Load the fleet without its BurstPolicy."""
    files = {path: one for path, one in FLEET.items() if not path.startswith("policies/")}
    numbered = {f"policies/{number}.yaml": one for number, one in enumerate(objects)}
    return load({**files, "templates/vllm.yaml": template, **numbered})


def test_a_reservation_becomes_a_request_without_steps():
    desired = fleet(
        gpr("""numberOfGPUs: 4
memoryPerGpu: 80
exitDuration: 2h
idleTimeOutDuration: 30m
dedicatedNodes: true
requeueOnFailure: true""")
    )
    assert desired.problems == ()
    request = desired.requests[TUNING]
    assert request.reserves
    assert request.ask == GpuAsk(gpus=4, memory=80)
    assert request.terms == GprTerms(
        exit_duration=timedelta(hours=2), idle=timedelta(minutes=30), enforce_idle=True, requeue=True, dedicated=True
    )


@pytest.mark.parametrize(
    ("where", "clusters"),
    [
        ("preferredClusters: [worker-2, worker-1]", ("worker-2", "worker-1")),
        ("clusterName: worker-1", ("worker-1",)),
        ("enableAutoClusterSelection: true", ()),
    ],
)
def test_a_reservation_is_on_one_of_the_clusters_that_will_do(where, clusters):
    request = fleet(gpr("exitDuration: 1h", where=where)).requests[TUNING]
    assert (request.clusters, request.placements) == (clusters, 1)


@pytest.mark.parametrize(
    ("spec", "where", "message"),
    [
        ("", "", "spec: names no cluster (try preferredClusters: [...], or enableAutoClusterSelection: true)"),
        (
            "",
            "preferredClusters: [worker-1]\nenableAutoClusterSelection: true",
            "spec: names clusters, and enableAutoClusterSelection that lets any do (try keeping one of them)",
        ),
        (
            "",
            "preferredClusters: [worker-1]\nclusterName: worker-2",
            "spec: has both clusterName and preferredClusters, and they differ (try keeping preferredClusters)",
        ),
        (
            "",
            "preferredClusters: [worker-3]",
            "spec.preferredClusters[0]: worker-3 is no cluster of workspace llm (try 'worker-2')",
        ),
        ("requestName: " + "x" * 41, "clusterName: worker-2", "spec.requestName: string should have at most 40"),
        ("gpuShape: H100", "clusterName: worker-2", "spec: has gpuShape without instanceType"),
    ],
)
def test_a_reservation_that_cannot_be_is_an_error(spec, where, message):
    desired = fleet(gpr(spec, where=where))
    assert messages(errors(desired))[0].startswith(message)
    assert TUNING not in desired.requests


@pytest.mark.parametrize(
    "field",
    [
        "requestName: x", "gpuSharingMode: Virtual Machine", "multiNode: true", "earlyRelease: true",
        "enableRDMA: true",
        "enableSecondaryNetwork: true", "enableTimeSlicing: true", "enableMig: true", "enableDynamicNodePool: true",
        "workloadSelector: {matchLabels: {a: b}}", "estimatedStartTime: now", "estimatedWaitTime: 0h2m40s",
        "runPrecheck: true",
    ],
)  # fmt: skip # a table, a row a line
def test_what_a_reservation_does_not_do_here_is_told_with_the_way_out(field):
    (warning,) = messages(warnings(fleet(gpr(f"exitDuration: 1h\n{field}"))))
    name = field.partition(":")[0]
    assert warning.startswith(f"spec.{name}: has no effect here (")


def test_a_reservation_without_an_end_is_told_when_it_ends():
    assert messages(warnings(fleet(gpr("")))) == [
        "spec: says nothing about how long: it ends after 7d (try exitDuration: 1h)"
    ]


def test_a_gpr_template_is_what_one_cluster_gives():
    desired = fleet(*TEMPLATES)
    assert desired.problems == ()
    assert desired.gpr_templates["on-worker-2"] == GprTemplate(
        name="on-worker-2",
        cluster="worker-2",
        ask=GpuAsk(gpus=1),
        terms=GprTerms(priority=90, exit_duration=timedelta(hours=2)),
    )


def test_a_gpr_template_says_all_that_a_gpr_may_say():
    file = egs(
        "GPRTemplate",
        """
        clusterName: worker-2
        template:
          numberOfGPUs: 8
          numberOfGPUNodes: 2
          memoryPerGpu: 80
          gpuShape: NVIDIA-H100
          instanceType: p5.48xlarge
          priority: 210
          exitDuration: 2h
          idleTimeOutDuration: 30m
          enforceIdleTimeOut: true
          enableEviction: true
          requeueOnFailure: true
        """,
        name="h100",
    )
    desired = fleet(file)
    assert desired.problems == ()
    assert desired.gpr_templates["h100"] == GprTemplate(
        name="h100",
        cluster="worker-2",
        ask=GpuAsk(gpus=8, nodes=2, memory=80, shape="NVIDIA-H100", instance_type="p5.48xlarge"),
        terms=GprTerms(
            priority=210,
            exit_duration=timedelta(hours=2),
            idle=timedelta(minutes=30),
            enforce_idle=True,
            evictable=True,
            requeue=True,
        ),
    )


def test_how_gpus_are_shared_is_told_to_have_no_effect_in_a_gpr_template():
    file = egs("GPRTemplate", "clusterName: worker-2\ntemplate: {gpuSharingMode: Virtual Machine}")
    (warning,) = messages(warnings(fleet(file)))
    assert warning.startswith("spec.template.gpuSharingMode: has no effect here (")


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        ("GPRTemplate", "clusterName: worker-2", "{}"),
        ("GPRTemplateBinding", "{}", "{clusters: [{defaultTemplateCondition: Ready}]}"),
        ("WorkspacePolicy", "{}", "{PriorityRange: low}"),
        (
            "GPUProvisioningRequest",
            "sliceName: llm\nclusterName: worker-2\nnumberOfGPUNodes: 1\nexitDuration: 1h",
            "{provisioningStatus: Successful, internalState: Reserved, nodeList: [gpu-1], retryCount: 2}",
        ),
    ],
)
def test_whatever_status_egs_reports_of_a_kind_is_not_read(kind, spec, status):
    file = egs(kind, spec)
    desired = fleet(f"{file}status: {status}\n")
    assert errors(desired) == []
    assert desired.problems == fleet(file).problems


def test_a_gpr_template_of_an_unknown_cluster_is_an_error():
    desired = fleet(egs("GPRTemplate", "clusterName: worker-9"))
    assert messages(errors(desired)) == ["spec.clusterName: no file describes Cluster worker-9 (try 'worker-2')"]


def test_r24_a_gpr_template_does_not_switch_auto_gpr_on():
    desired = without_policy(egs("GPRTemplate", "clusterName: worker-2\nenableAutoGPR: true"))
    assert "spec.enableAutoGPR: has no effect here (the GPRTemplateBinding of a workspace says it)" in messages(
        warnings(desired)
    )
    assert not desired.policies


@pytest.mark.parametrize("kind", ["GPRTemplate", "GPRTemplateBinding", "WorkspacePolicy"])
def test_two_of_one_name_are_an_error_at_the_second(kind):
    one = egs(kind, "clusterName: worker-2" if kind == "GPRTemplate" else "{}")
    (found,) = errors(fleet(one, one))
    assert found.startswith("policies/1.yaml:4: metadata.name: ")
    assert found.endswith("is already in policies/0.yaml:1 (try another name)")


def test_a_template_names_the_gpr_templates_on_whose_terms_it_has_gpus():
    desired = load(
        {
            **FLEET,
            "policies/gpr.yaml": "---\n".join(TEMPLATES),
            "templates/vllm.yaml": TEMPLATE + "  gprTemplates: [on-worker-2, on-worker-3]\n",
        }
    )
    assert messages(errors(desired)) == [
        "spec.gprTemplates[1]: no file describes GPRTemplate on-worker-3 (try 'on-worker-1')"
    ]
    assert desired.templates[VLLM].gpr_templates == ("on-worker-2", "on-worker-3")


def test_a_binding_is_of_the_workspace_of_its_name():
    desired = fleet(*TEMPLATES, BINDING)
    assert desired.bindings["llm"] == GprBinding(
        workspace="llm",
        auto=True,
        clusters=(ClusterBinding(cluster="worker-2", default="on-worker-2", templates=("on-worker-2",)),),
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "clusters: [{clusterName: worker-9}]",
            "spec.clusters[0].clusterName: no file describes Cluster worker-9 (try 'worker-2')",
        ),
        (
            "clusters: [{clusterName: worker-2, templates: [on-worker-3]}]",
            "spec.clusters[0].templates[0]: no file describes GPRTemplate on-worker-3 (try 'on-worker-2')",
        ),
        (
            "clusters: [{clusterName: worker-2, defaultTemplateName: on-worker-1}]",
            (
                "spec.clusters[0].defaultTemplateName: GPRTemplate on-worker-1 is for worker-1, not for worker-2 "
                "(each template is for one cluster)"
            ),
        ),
    ],
)
def test_what_a_binding_names_has_to_be_there_and_belong_together(spec, message):
    assert message in messages(errors(fleet(*TEMPLATES, egs("GPRTemplateBinding", spec))))


def test_a_fleet_of_egs_files_alone_bursts_by_its_binding():
    desired = without_policy(*TEMPLATES, BINDING)
    assert desired.problems == ()
    policy = desired.policies[VLLM]
    assert policy.name == "binding/llm"
    assert policy.candidates == (ClusterPreference(name="worker-2"),)
    assert (policy.priority, policy.default_duration) == (90, timedelta(hours=2))


@pytest.mark.parametrize(
    "binding", ["enableAutoGPR: false\nclusters: [{clusterName: worker-2}]", "clusters: []", "enableAutoGPR: true"]
)
def test_without_auto_gpr_or_a_cluster_a_binding_bursts_nothing(binding):
    desired = without_policy(egs("GPRTemplateBinding", binding))
    assert not desired.policies
    assert any("so it does not burst" in line for line in warnings(desired))


def test_a_burst_policy_goes_before_a_binding():
    assert fleet(*TEMPLATES, BINDING).policies[VLLM].name == "gpu"


def test_a_template_may_be_left_out_of_bursting_by_a_binding():
    assert not without_policy(*TEMPLATES, BINDING, template=TEMPLATE + "  autoPlacement: false\n").policies


@pytest.mark.parametrize(
    ("said", "clusters"),
    [
        ("clusterNames: [worker-1, worker-2]", ("worker-1", "worker-2")),
        ("enableBurst: true", ()),
        ("autoPlacement: true", ("worker-2",)),
    ],
)
def test_a_template_says_where_its_bursts_go_by_a_binding(said, clusters):
    desired = without_policy(*TEMPLATES, BINDING, template=f"{TEMPLATE}  {said}\n")
    assert desired.problems == ()
    assert tuple(one.name for one in desired.policies[VLLM].candidates) == clusters
    assert desired.policies[VLLM].priority == 90


def test_r24_a_gpr_template_that_the_binding_does_not_list_is_not_used():
    more = egs("GPRTemplate", "clusterName: worker-2\ntemplate: {priority: 7}", name="low")
    named = TEMPLATE + "  gprTemplates: [low]\n"
    desired = without_policy(*TEMPLATES, BINDING, more, template=named)
    assert desired.policies[VLLM].priority == 90
    assert messages(warnings(desired)) == [
        (
            "spec.gprTemplates[0]: has no effect: the GPRTemplateBinding of workspace llm does not list low "
            "(add it to spec.clusters[].templates there)"
        )
    ]
    listed = BINDING.replace("[on-worker-2]", "[on-worker-2, low]")
    assert without_policy(*TEMPLATES, listed, more, template=named).policies[VLLM].priority == 7


def test_a_broken_binding_is_not_told_as_a_template_that_does_not_burst():
    broken = egs("GPRTemplateBinding", "enableAutoGpr: true")
    desired = without_policy(broken)
    assert messages(errors(desired)) == ["spec.enableAutoGpr: unknown field (try 'enableAutoGPR')"]
    assert warnings(desired) == []


def test_a_broken_burst_policy_leaves_what_a_binding_bursts_as_it_is():
    broken = "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nmetadata: {name: new}\nspec: {prio: 1}\n"
    desired = without_policy(*TEMPLATES, BINDING, broken)
    assert desired.policies == without_policy(*TEMPLATES, BINDING).policies
    assert [line.partition(":")[0] for line in errors(desired)] == ["policies/3.yaml"]


def test_a_cluster_that_is_not_the_workspaces_is_told_where_a_template_bursts_to_it():
    desired = without_policy(*TEMPLATES, BINDING, template=TEMPLATE + "  clusterNames: [worker-9]\n")
    assert messages(errors(desired)) == ["spec.clusterNames[0]: no file describes Cluster worker-9 (try 'worker-2')"]


def test_two_templates_of_one_workspace_may_burst_by_a_binding_to_different_places():
    other = TEMPLATE.replace("name: vllm", "name: chat") + "  clusterNames: [worker-1, worker-2]\n"
    policies = without_policy(*TEMPLATES, BINDING, other).policies
    assert {policy.name for policy in policies.values()} == {"binding/llm", "binding/llm/chat"}


def test_how_a_template_bursts_is_told_to_have_no_effect_where_nothing_bursts_it():
    desired = without_policy(template=TEMPLATE + "  enableBurst: true\n")
    assert (
        "spec.enableBurst: has no effect: its workspace has no GPRTemplateBinding with enableAutoGPR "
        "(add one, or a BurstPolicy)" in messages(warnings(desired))
    )


def test_a_policy_of_a_workspace_is_its_limits():
    desired = fleet(
        egs(
            "WorkspacePolicy",
            """
            sliceRef: {name: llm}
            PriorityRange: Medium
            maxGPRs: 5
            maxExitDurationPerGPR: 2W
            requeueOnFailure: false
            enableAutoEviction: false
            globalGPUConstraints: {gpuShapes: [H100], maxGPUPerGpr: 8, maxMemoryPerGpr: 80}
            clusterGPUConstraints: [{clusterName: worker-2, maxGPUPerGpr: 4}]
            """,
            name="anything",
        )
    )
    assert desired.problems == ()
    assert desired.limits["llm"] == WorkspaceLimits(
        workspace="llm",
        highest=200,
        most=5,
        longest=timedelta(weeks=2),
        requeue=False,
        evicts=False,
        limits=GpuLimits(shapes=("H100",), gpus=8, memory=80),
        by_cluster={"worker-2": GpuLimits(gpus=4)},
    )


def test_a_policy_that_says_nothing_has_the_defaults_of_egs():
    assert fleet(egs("WorkspacePolicy", "{}")).limits["llm"] == WorkspaceLimits(workspace="llm")


@pytest.mark.parametrize(("text", "days"), [("1W", 7), ("2M", 60), ("36h", 1.5), ("1d", 1), ("30m", 1 / 48)])
def test_the_longest_duration_is_weeks_months_or_a_duration(text, days):
    limits = fleet(egs("WorkspacePolicy", f"maxExitDurationPerGPR: {text}")).limits["llm"]
    assert limits.longest == timedelta(days=days)


@pytest.mark.parametrize("text", ["0W", "1w", "W", "2Y"])
def test_another_longest_duration_is_an_error(text):
    (found,) = messages(errors(fleet(egs("WorkspacePolicy", f"maxExitDurationPerGPR: {text}"))))
    assert found == f"spec.maxExitDurationPerGPR: '{text}' is neither weeks nor a duration (try '1W' or '36h')"


@pytest.mark.parametrize(
    ("policy", "details", "message"),
    [
        (
            "priorityRange: low",
            "priority: 150",
            (
                "priority: 150 is not within 1 to 100, the priorities of workspace llm "
                "(try 100, or a WorkspacePolicy with a higher priorityRange)"
            ),
        ),
        (
            "priorityRange: low",
            "numberOfGPUs: 1",  # R27: EGS's own default is beyond its own default policy
            (
                "priority: 101 is not within 1 to 100, the priorities of workspace llm "
                "(try 100, or a WorkspacePolicy with a higher priorityRange)"
            ),
        ),
        (
            "globalGPUConstraints: {maxGPUPerGpr: 4}",
            "priority: 1, numberOfGPUs: 4, numberOfGPUNodes: 2",
            (
                "numberOfGPUs: 8 GPUs (4 on each of 2 nodes) are more than the 4 that one GPR may have "
                "in workspace llm (try 2)"
            ),
        ),
        (
            "globalGPUConstraints: {maxMemoryPerGpr: 40}",
            "priority: 1, memoryPerGpu: 80",
            "memoryPerGpu: 80 GB are more than the 40 GB that a GPU may have in workspace llm (try 40)",
        ),
        (
            "globalGPUConstraints: {gpuShapes: [H100]}",
            "priority: 1, gpuShape: A100, instanceType: p4",
            "gpuShape: A100 is not among the GPUs that a GPR may have in workspace llm (try 'H100')",
        ),
        (
            "clusterGPUConstraints: [{clusterName: worker-2, maxGPUPerGpr: 1}]",
            "priority: 1, numberOfGPUs: 2",
            "numberOfGPUs: 2 GPUs are more than the 1 that one GPR may have on worker-2 in workspace llm (try 1)",
        ),
        (
            "maxExitDurationPerGPR: 10m",
            "priority: 1, exitDuration: 15m",
            "exitDuration: 15m is longer than 10m, the most that workspace llm allows (try 10m)",
        ),
    ],
)
def test_r27_what_the_policy_of_a_workspace_does_not_allow_is_an_error(policy, details, message):
    limits = egs("WorkspacePolicy", policy)
    asked = placement(f"burstDuration: 5m\ngprDetails: {{{details}}}")
    assert f"spec.gprDetails.{message}" in messages(errors(fleet(asked, limits)))
    reserved = gpr("\n".join(part.strip() for part in details.split(",")) + "\n")
    if "numberOfGPUNodes: 2" in details:
        reserved = reserved.replace("  numberOfGPUNodes: 1\n", "")
    assert f"spec.{message}" in messages(errors(fleet(reserved, limits)))


def test_r27_a_placement_may_not_last_longer_than_its_workspace_allows():
    limits = egs("WorkspacePolicy", "maxExitDurationPerGPR: 10m")
    assert messages(errors(fleet(placement(), limits))) == [
        "spec.burstDuration: 15m is longer than 10m, the most that workspace llm allows (try 10m)"
    ]


def test_r27_a_binding_whose_template_is_beyond_the_policy_is_not_in_force():
    default = egs("GPRTemplate", "clusterName: worker-2", name="on-worker-2")
    desired = without_policy(default, BINDING, egs("WorkspacePolicy", "{}"))
    assert messages(errors(desired)) == [
        f"spec.clusters[0].{field}: GPRTemplate on-worker-2: priority: 101 is not within 1 to 100, the priorities of "
        "workspace llm (try 100, or a WorkspacePolicy with a higher priorityRange)"
        for field in ("defaultTemplateName", "templates[0]")
    ]
    assert not desired.policies


def test_a_placement_that_says_nothing_of_a_gpr_has_the_nearest_priority_that_is_allowed():
    desired = fleet(placement(), egs("WorkspacePolicy", "{}"))
    assert desired.problems == ()
    (request,) = desired.requests.values()
    assert (request.terms.priority, request.terms.requeue) == (100, True)


def test_one_that_says_whether_it_waits_again_goes_before_the_policy():
    asked = placement("gprDetails: {priority: 5, requeueOnFailure: false}")
    (request,) = fleet(asked, egs("WorkspacePolicy", "requeueOnFailure: true")).requests.values()
    assert not request.terms.requeue


def test_one_that_says_nothing_about_its_end_ends_when_the_policy_says():
    asked = placement("gprDetails: {priority: 5}").replace("  burstDuration: 15m\n", "")
    limits = egs("WorkspacePolicy", "maxExitDurationPerGPR: 3d")
    assert messages(warnings(fleet(asked, limits))) == [
        "spec: says nothing about how long: it ends after 3d (try burstDuration: 1h)"
    ]


def test_a_workspace_without_a_policy_has_no_limits():
    asked = placement("burstDuration: 400d\ngprDetails: {priority: 299, numberOfGPUs: 1000, numberOfGPUNodes: 1000}")
    assert fleet(asked).problems == ()


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "clusterNames: [worker-1, worker-3]",
            "spec.clusterNames[1]: worker-3 is no cluster of workspace llm (try 'worker-2')",
        ),
        (
            "clusterNames: [worker-1]\nnumPlacements: 2",
            "spec.numPlacements: 2 placements need a cluster each, and 1 are named (try 1)",
        ),
        (
            "autoSelectCluster: true\nnumPlacements: 3",
            "spec.numPlacements: 3 placements need a cluster each, and 2 workspace llm has (try 2)",
        ),
    ],
)
def test_a_placement_needs_clusters_of_its_workspace(where, message):
    assert messages(errors(fleet(placement(where=where)))) == [message]


def test_a_placement_on_a_primary_that_takes_no_requests_is_an_error():
    closed = {"workspaces/llm.yaml": workspace(more="requestsOnPrimary: false")}
    assert messages(errors(fleet(placement(where="clusterNames: [worker-2, worker-1]"), more=closed))) == [
        (
            "spec.clusterNames[1]: worker-1 is the primary of workspace llm, which takes no requests"
            " (try another cluster, or spec.requestsOnPrimary: true in the Workspace)"
        )
    ]
    assert messages(errors(fleet(placement(where="autoSelectCluster: true\nnumPlacements: 2"), more=closed))) == [
        "spec.numPlacements: 2 placements need a cluster each, and 1 workspace llm has (try 1)"
    ]
    assert fleet(gpr("numberOfGPUs: 1", where="preferredClusters: [worker-1]"), more=closed).requests


@pytest.mark.parametrize("field", ["enableTimeSlicing: true", "timeSliceDuration: 10m"])
def test_what_a_policy_does_not_do_here_is_told(field):
    (warning,) = messages(warnings(fleet(egs("WorkspacePolicy", field))))
    assert warning.startswith(f"spec.{field.partition(':')[0]}: has no effect here (")


@pytest.mark.parametrize("kind", ["GPRTemplateBinding", "WorkspacePolicy"])
def test_what_is_for_no_workspace_is_told(kind):
    assert messages(errors(fleet(egs(kind, "{}", name="lim")))) == [
        "metadata.name: no file describes Workspace lim (try 'llm')"
    ]
