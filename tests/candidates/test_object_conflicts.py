"""What is on a cluster already is nobody else's to make there: the end of one would take the other's away."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.decide.candidates.own_objects import OwnObjects
from reconciler.core.decide.decide import decide
from reconciler.core.fleet.object_owners import objects_made
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Change, Plan, Reason
from reconciler.model.policy import Desired, EngineName, Workspace
from reconciler.model.request import Request
from reconciler.model.workload import (
    DeploySpec,
    HelmConfig,
    ManifestResource,
    Step,
    StepType,
    WorkloadRef,
    WorkloadTemplate,
)
from tests.builders.inputs import VLLM, cluster, desired, free, inputs, ordering, placement, plan, short, template
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.builders.plans import begun
from tests.builders.requests import deployment, gpus, holds, manifests, placed, record, request, wants
from tests.builders.workload_kinds import workload
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


def begun_places(of: Plan) -> list[Change]:
    return [change for change in of.changes if change.action is Action.PLACE]


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


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "common", "namespace": "demo"}}
OTHER = WorkloadId(WorkspaceName("abc"), TemplateName("vllm"))
"""A template of another workspace, whose primary is worker-2."""


def beside(workload: WorkloadId, *more: dict[str, object], name: str = "") -> WorkloadTemplate:
    """Make a template of a Deployment, of another name where one is given, and of more objects."""
    made = template(WorkloadId(workload.workspace, TemplateName(name or workload.name)))
    named = [ManifestResource(name=f"part-{index}", manifest=manifest) for index, manifest in enumerate(more)]
    steps = [Step(name=part.name, type=StepType.MANIFEST) for part in named]
    spec = replace(made.spec, manifests=(*made.spec.manifests, *named), steps=(*made.spec.steps, *steps))
    return replace(made, name=workload.name, spec=spec)


def neighbours(*, name: str = "vllm", shared: tuple[dict[str, object], ...] = ()) -> Desired:
    """Two workspaces whose primaries are each other's clusters; objects of the other's template have this name."""
    made = desired(ordering("worker-2", "worker-3"), workloads=(VLLM, OTHER), policies={})
    abc = replace(made.workspaces[OTHER.workspace], primary=ClusterName("worker-2"))
    return replace(
        made,
        workspaces={**made.workspaces, abc.name: abc},
        templates={VLLM: beside(VLLM, *shared), OTHER: beside(OTHER, *shared, name=name)},
        policies={VLLM: ordering("worker-2", "worker-3")},
    )


@pytest.mark.parametrize(
    ("name", "shared", "taken"),
    [("vllm", (), "Deployment demo/vllm"), ("other", (CONFIG,), "ConfigMap demo/common"), ("other", (), "")],
)
def test_burst_stays_away_from_a_primary_where_another_workspace_has_its_object(
    name: str, shared: tuple[dict[str, object], ...], taken: str
) -> None:
    decision = plan(short(2), free("worker-2", 8), free("worker-3", 8), wanted=neighbours(name=name, shared=shared))
    assert placements(decision) == [("vllm", "worker-3" if taken else "worker-2")]
    refused = [one for place in begun_places(decision) for one in place.refused]
    message = f"{taken} is there already, and belongs to what another workspace runs there itself"
    expected = [("worker-2", Reason.TAKEN, message)] if taken else []
    assert [(one.cluster, one.reason, one.message) for one in refused] == expected


def test_request_stays_away_from_a_primary_where_another_workspace_has_its_object() -> None:
    asked = request("worker-2", spec=template(OTHER).spec)
    wanted = replace(neighbours(), requests={asked.workload: asked})
    told = [each for each in plan(free("worker-2", 8), wanted=wanted).suppressed if each.workload.request]
    assert [[one.reason for one in each.refusals] for each in told] == [[Reason.TAKEN]]


def runs(cluster_name: str, kind: str = "Deployment", name: str = "vllm") -> ClusterObservation:
    """Observe a cluster with room, which runs a workload that no placement has made."""
    ref = WorkloadRef(namespace="demo", name=name, kind=kind)
    return replace(free(cluster_name, 8), unplaced=(ref,))


@pytest.mark.parametrize(
    ("kind", "name", "to"),
    [
        ("Deployment", "vllm", "worker-3"),
        ("", "vllm", "worker-3"),
        ("StatefulSet", "vllm", "worker-2"),
        ("Deployment", "other", "worker-2"),
    ],
)
def test_burst_stays_away_from_a_cluster_that_is_seen_to_run_its_object(kind: str, name: str, to: str) -> None:
    wanted = desired(ordering("worker-2", "worker-3"))
    decision = plan(short(2), runs("worker-2", kind, name), free("worker-3", 8), wanted=wanted)
    assert placements(decision) == [("vllm", to)]


def test_burst_without_another_cluster_waits_and_is_told_that_the_cluster_runs_its_object_itself() -> None:
    (told,) = plan(short(2), runs("worker-2"), wanted=desired(ordering("worker-2"))).suppressed
    (refusal,) = told.refusals
    assert refusal.message == "Deployment demo/vllm is there already, and belongs to what worker-2 runs itself"


def test_request_stays_away_from_a_cluster_that_is_seen_to_run_its_object() -> None:
    asked = [request("worker-2", name=name, spec=template().spec) for name in ("a", "b")]
    both = plan(runs("worker-2"), wanted=wants(*asked)).suppressed
    assert [[one.reason for one in told.refusals] for told in both] == [[Reason.TAKEN]] * 2


def test_cluster_that_begins_to_run_an_object_by_itself_is_left_from_the_next_pass_on() -> None:
    """The answers that bursts of one kind share hold from pass to pass."""
    wanted = desired(ordering("worker-2", "worker-3"))
    first = inputs(short(2), free("worker-2", 8), free("worker-3", 8), wanted=wanted)
    assert placements(decide(first)) == [("vllm", "worker-2")]
    seen = {**first.observed.clusters, ClusterName("worker-2"): runs("worker-2")}
    second = replace(first, observed=replace(first.observed, clusters=seen))
    assert placements(decide(second)) == [("vllm", "worker-3")]


@pytest.mark.parametrize("kind", ["Deployment", ""])
@pytest.mark.parametrize("charted", [False, True])
def test_object_of_a_placement_is_not_the_clusters_own_though_an_observation_lists_it_without(
    kind: str, charted: bool
) -> None:
    wanted = desired(ordering("worker-2"))
    if charted:  # what its chart makes is known by what the template counts
        spec = DeploySpec(helm=(CHART,), steps=(Step(name="cuda", type=StepType.HELM),))
        counted = WorkloadRef(namespace="demo", name="vllm", kind="Deployment", group="apps")
        wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], spec=spec, ref=counted)})
    worker, seen = ClusterName("worker-2"), ("apps/Deployment", "demo", "vllm")
    there = holds(placed=[placement("worker-2")])
    assert OwnObjects(inputs(runs("worker-2", kind), wanted=wanted)).seen(worker, seen) == "what worker-2 runs itself"
    assert OwnObjects(inputs(runs("worker-2", kind), wanted=wanted, there=there)).seen(worker, seen) == ""
    for other in ("apps/StatefulSet", "apps.example.com/Deployment"):
        group, _, plain = other.rpartition("/")
        ref = WorkloadRef(namespace="demo", name="vllm", kind=plain, group=group)
        own = OwnObjects(inputs(replace(free("worker-2", 8), unplaced=(ref,)), wanted=wanted, there=there))
        assert own.seen(worker, (other, "demo", "vllm")) == "what worker-2 runs itself"


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


def test_objects_that_a_workload_wraps_are_objects_of_it():
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "common"}}
    spec = {"components": [{"template": config}, {"template": deployment()}, {"template": "{{ cluster.labels }}"}]}
    wrapper = workload("workload.codeflare.dev/v1beta2", "AppWrapper", spec)
    (workspace,) = wants().workspaces.values()
    assert objects_made(manifests(wrapper), workspace) == (
        ("workload.codeflare.dev/AppWrapper", "demo", "model"),
        ("/ConfigMap", "demo", "common"),
        ("apps/Deployment", "demo", "server"),
    )


def test_what_an_expression_names_is_not_known():
    named = deployment() | {"metadata": {"name": "server-{{ template.name }}", "namespace": "demo"}}
    (workspace,) = wants().workspaces.values()
    assert objects_made(manifests(named), workspace) == ()
    assert objects_made(manifests(deployment()), workspace) == (("apps/Deployment", "demo", "server"),)
