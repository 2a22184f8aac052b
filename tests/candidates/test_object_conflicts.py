"""What is on a cluster already is nobody else's to make there: the end of one would take the other's away."""

from __future__ import annotations

from dataclasses import replace

from reconciler.core.fleet.object_owners import objects_made
from reconciler.model.ids import ClusterName, TemplateName, WorkspaceName
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import EngineName, Workspace
from reconciler.model.request import Request
from reconciler.model.workload import DeploySpec, HelmConfig, Step, StepType
from tests.builders.inputs import cluster, desired, free, ordering, placement, plan, short, template
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.builders.plans import begun
from tests.builders.requests import deployment, gpus, holds, manifests, placed, record, request, wants
from tests.fakes.memory_repository import MemoryRepository

COMMON = """\
    - name: common
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: common, namespace: demo}, data: {a: b}}
  steps: [{name: common, type: manifest}, {name: server, type: manifest}]
"""


def sharing() -> Passes:
    """Two templates whose bursts need a ConfigMap of one name."""
    template_file = SOURCE_FILES["template.yaml"].replace("  steps: [{name: server, type: manifest}]\n", COMMON)
    other = template_file.replace("name: vllm,", "name: other,")
    passes = Passes(MemoryRepository({**SOURCE_FILES, "template.yaml": template_file, "other.yaml": other}))
    passes.names = ("other", "vllm")
    return passes


CHART = HelmConfig(
    name="cuda",
    chart="cuda",
    release_name="cuda",
    release_namespace="demo",
    repo_url="https://charts.example.com",
)


def placements(of: Plan) -> list[tuple[str, str]]:
    return [(placement.workload.name, placement.cluster) for placement in begun(of)]


def decided(*asked: Request) -> Plan:
    return plan(free("worker-1", 8), free("worker-2", 8), free("worker-3", 8), wanted=wants(*asked))


def test_of_two_requests_for_the_same_object_the_second_waits_and_is_told_why():
    both = decided(request("worker-2", name="a"), request("worker-2", name="b"))
    assert placements(both) == [("a", "worker-2")]
    (told,) = both.suppressed
    (refusal,) = told.refusals
    assert refusal.reason is Reason.TAKEN
    assert refusal.message == "Deployment demo/server is there already, and belongs to llm/a"
    assert "another name" in refusal.remedy


def test_on_another_cluster_there_is_nothing_in_the_way():
    both = decided(request("worker-2", name="a"), request("worker-2", "worker-3", name="b", placements=1))
    assert placements(both) == [("a", "worker-2"), ("b", "worker-3")]


def test_a_release_is_made_once_as_well():
    spec = DeploySpec(helm=(CHART,), steps=(Step(name="cuda", type=StepType.HELM),))
    flux = (cluster("worker-1"), replace(cluster("worker-2"), engine=EngineName.FLUX))
    asked = [request("worker-2", name=name, spec=spec, ask=gpus(1)) for name in ("a", "b")]
    both = plan(free("worker-2", 8), wanted=wants(*asked, clusters=flux))
    assert placements(both) == [("a", "worker-2")]
    assert both.suppressed[0].refusals[0].message.startswith("Release demo/cuda")


def test_another_workspace_is_not_named():
    theirs = replace(request("worker-2", name="secret"), workspace=WorkspaceName("abc"))
    wanted = wants(theirs, request("worker-2"))
    abc = Workspace(name=theirs.workspace, primary=ClusterName("worker-1"), clusters=tuple(wanted.clusters))
    wanted = replace(wanted, workspaces={**wanted.workspaces, abc.name: abc})
    (told,) = plan(free("worker-2", 8), wanted=wanted).suppressed
    assert told.refusals[0].message == "Deployment demo/server is there already, and belongs to another workspace"


def test_a_burst_is_in_the_way_of_a_request_and_the_other_way_round():
    bursting = desired(ordering("worker-2"))
    asked = request("worker-2", spec=template().spec)
    wanted = replace(wants(asked), templates=bursting.templates, policies=bursting.policies)
    late = plan(free("worker-2", 8), wanted=wanted, there=holds(placed=[placement("worker-2")]))
    assert [one.refusals[0].reason for one in late.suppressed if one.workload.request] == [Reason.TAKEN]
    there = holds(record(asked, began_at=placed().created_at), placed=[placed("worker-2")])
    burst = plan(short(2), free("worker-2", 8), wanted=wanted, there=there)
    assert [one.refusals[0].reason for one in burst.suppressed] == [Reason.TAKEN]


def test_what_a_template_counts_on_the_primary_is_not_for_requests():
    bursting = desired(ordering("worker-2"))
    asked = request("worker-1", spec=template().spec)
    wanted = replace(wants(asked), templates=bursting.templates)
    (told,) = plan(free("worker-1", 8), wanted=wanted).suppressed
    assert told.refusals[0].message == (
        "Deployment demo/vllm is there already, and belongs to what workspace llm runs there itself"
    )
    elsewhere = replace(asked, name=TemplateName("other"), clusters=(ClusterName("worker-2"),))
    wanted = replace(wants(elsewhere), templates=bursting.templates)
    assert placements(plan(free("worker-2", 8), wanted=wanted)) == [("other", "worker-2")]


def test_of_two_bursts_that_make_one_object_the_second_takes_another_cluster():
    passes = sharing()
    passes.missing, passes.steady_since = 2, passes.moment - seconds(61)
    passes.run_once()
    assert [(each.workload.name, each.cluster) for each in passes.placements()] == [
        ("other", "worker-2"),
        ("vllm", "worker-3"),
    ]


def test_without_another_cluster_the_second_burst_waits_and_is_told_why():
    passes = sharing()
    passes.free = {"worker-2": 8}
    passes.missing, passes.steady_since = 2, passes.moment - seconds(61)
    outcome = passes.run_once()
    (placed_one,) = passes.placements()
    (waits,) = (each for each in outcome.plan.suppressed if each.workload != placed_one.workload)
    (refusal,) = (each for each in waits.refusals if each.reason is Reason.TAKEN)
    assert refusal.message == f"ConfigMap demo/common is there already, and belongs to {placed_one.workload}"


def test_namespace_that_two_templates_make_is_shared():
    shared = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    (workspace,) = wants().workspaces.values()
    assert objects_made(manifests(shared), workspace) == ()


def test_what_an_expression_names_is_not_known():
    named = deployment() | {"metadata": {"name": "server-{{ template.name }}", "namespace": "demo"}}
    (workspace,) = wants().workspaces.values()
    assert objects_made(manifests(named), workspace) == ()
    assert objects_made(manifests(deployment()), workspace) == (("apps/Deployment", "demo", "server"),)
