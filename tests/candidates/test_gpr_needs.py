"""What a request needs of a cluster, in the words of that cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.routes import placements
from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import request_requirements
from reconciler.core.fleet.admission import admit
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.pods.node_affinity import describe_node_selector, required_labels
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.egs.resource import rest_document
from reconciler.errors import Severity
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, Node, Pool
from reconciler.model.gpr import GprTerms
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.kubernetes.scheduling import Toleration
from reconciler.model.plan import Reason
from reconciler.model.request import Request
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import DeploySpec, HelmConfig, Json, Step, StepType
from reconciler.text.findings import dotted
from tests.builders.examples import examples
from tests.builders.gpu_nodes import cluster_of
from tests.builders.gpu_nodes import nodes as whole
from tests.builders.inputs import GPU, NOW, free, plan
from tests.builders.passes import SOURCE_FILES
from tests.builders.requests import deployment, gpus, holds, manifests, record, request, wants


def nodes(*kinds: tuple[str, int, dict[str, str]]) -> ClusterObservation:
    """Observe nodes by the name of their GPUs, how many are free, and their labels."""
    made = tuple(
        Node(name=f"node-{index}", free=Resources(amounts={name: Quantity(number * ONE)}), labels=labels)
        for index, (name, number, labels) in enumerate(kinds)
    )
    return ClusterObservation(cluster=ClusterName("worker-2"), observed_at=NOW, pools=(Pool(name="gpu", nodes=made),))


def amounts(of: Resources) -> dict[str, int]:
    return {name: amount // ONE for name, amount in of.amounts.items()}


H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}
T4 = {"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.memory": "15360"}
CHART = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: cuda}
spec:
  workspaceName: llm
  clusterNames: [worker-2]
  burstDuration: 1h
  helmConfig:
    - name: cuda
      chart: vaidio/cuda
      version: 1.0.0
      repoURL: https://charts.example.com
      releaseName: cuda
      releaseNamespace: demo
  steps: [{name: cuda, type: helm}]
"""
BOTH = nodes((GPU, 8, H100), (GPU, 8, T4))


@pytest.mark.parametrize(
    ("made", "replicas"),
    [
        (deployment(3), 3),
        (deployment() | {"kind": "StatefulSet"}, 2),
        ({"apiVersion": "v1", "kind": "Pod", "spec": deployment()["spec"]["template"]["spec"]}, 1),
        (
            {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "spec": {**deployment()["spec"], "parallelism": 4, "completions": 3},
            },
            3,
        ),
        (deployment("{{ replicas }}"), 1),
    ],
    ids=["Deployment", "StatefulSet", "Pod", "Job", "an expression"],
)
def test_the_pods_of_its_manifests_tell(made: Json, replicas: int):
    need = request_requirements(request(spec=manifests(made)))
    assert (amounts(need.main.shape.requests), need.main.replicas) == ({GPU: 1}, replicas)


def test_of_several_parts_the_first_with_gpus_counts_and_all_are_taken():
    router, server = deployment(1, gpus=0), deployment(2)
    need = request_requirements(request(spec=manifests(router, server)))
    assert (need.main.replicas, len(need.others), need.unknown) == (2, 1, "")


def test_parts_need_room_beside_each_other():
    asked = request("worker-2", spec=manifests(deployment(2), deployment(1, gpus=2)))
    (held,) = plan(free("worker-2", 3), wanted=wants(asked), there=holds(record(asked))).suppressed
    assert held.refusals[0].reason is Reason.NO_CAPACITY
    assert "no room for 2 pods with 1 GPU beside the rest of it" in held.refusals[0].message
    (place,) = plan(free("worker-2", 2, 2), wanted=wants(asked), there=holds(record(asked))).changes
    assert place.action is Action.PLACE


def test_room_is_handed_out_once():
    first, second = request("worker-2", name="a"), request("worker-2", name="b")
    decided = plan(free("worker-2", 3), wanted=wants(first, second), there=holds(record(first), record(second)))
    assert [change.action for change in decided.changes] == ["Place"]
    assert len(decided.suppressed) == 1


def test_what_it_says_goes_before_its_manifests():
    need = request_requirements(request(ask=gpus(8, nodes=2)), BOTH)
    assert (amounts(need.main.shape.requests), need.main.replicas, need.others) == ({GPU: 8}, 2, ())


@pytest.mark.parametrize(
    ("shape", "fitting"), [("NVIDIA-H100-80GB-HBM3", 1), ("h100", 1), ("Tesla-T4", 1), ("A100", 0), ("", 2)]
)
def test_a_model_is_meant_by_its_name_or_a_word_of_it(shape: str, fitting: int):
    assert (
        ClusterCapacity(BOTH).count(request_requirements(request(ask=gpus(8, shape=shape)), BOTH).main.shape, 10)
        == fitting
    )


@pytest.mark.parametrize(("memory", "fitting"), [(16, 2), (40, 1), (80, 1), (96, 0)])
def test_memory_is_in_the_gigabytes_that_gpus_are_sold_in(memory: int, fitting: int):
    assert (
        ClusterCapacity(BOTH).count(request_requirements(request(ask=gpus(8, memory=memory)), BOTH).main.shape, 10)
        == fitting
    )


def test_an_instance_type_is_a_label_of_nodes():
    seen = nodes((GPU, 8, {"node.kubernetes.io/instance-type": "p5.48xlarge"}), (GPU, 8, {}))
    assert (
        ClusterCapacity(seen).count(
            request_requirements(request(ask=gpus(8, instance_type="p5.48xlarge")), seen).main.shape, 10
        )
        == 1
    )


@pytest.mark.parametrize("name", ["amd.com/gpu", "gpu.intel.com/xe"])
def test_gpus_are_called_what_the_cluster_calls_them(name: str):
    assert amounts(request_requirements(request(ask=gpus(2)), nodes((name, 8, {}))).main.shape.requests) == {name: 2}


def test_nodes_that_are_tainted_for_gpus_are_tolerated():
    (own,) = request_requirements(request(ask=gpus(1), spec=manifests()), BOTH).main.shape.tolerations
    assert own == Toleration(key=GPU, operator="Exists")


def test_what_a_chart_needs_is_unknown():
    chart = HelmConfig(name="cuda", chart="vaidio/cuda", release_name="cuda", release_namespace="demo")
    spec = DeploySpec(helm=(chart,), steps=(Step(name="cuda", type=StepType.HELM),))
    asked = request("worker-2", spec=spec)
    need = request_requirements(asked)
    assert (need.unknown, dict(need.main.shape.requests.amounts)) == ("the needs of chart cuda are unknown", {})
    assert request_requirements(request("worker-2", spec=spec, ask=gpus(1))).unknown == ""


def test_a_file_with_a_chart_is_told_to_declare_its_gpus():
    files = {**SOURCE_FILES, "asked.yaml": CHART}
    told = assemble(CommitId(""), {path: parse_file(text.encode()) for path, text in files.items()}).problems
    (problem,) = [one for one in told if "nothing is placed" in one.message]
    assert (problem.path, problem.severity) == ("asked.yaml", Severity.WARNING)
    assert problem.hint == "declare it in gprDetails: numberOfGPUs, numberOfGPUNodes"


@pytest.mark.parametrize("spec", [{"template": "none"}, {"template": {"spec": {"containers": [3]}}}, {}])
def test_a_manifest_that_makes_no_sense_is_unknown(spec: Json):
    need = request_requirements(request(spec=manifests({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec})))
    assert need.unknown == "the needs of manifest part-0 are unknown"


def test_what_makes_no_pods_needs_nothing():
    need = request_requirements(request(spec=manifests({"kind": "ConfigMap", "data": {}})))
    assert (need.unknown, need.main.replicas, dict(need.main.shape.requests.amounts)) == ("", 1, {})


def test_dedicated_nodes_have_to_be_wholly_free():
    asked = request("worker-2", ask=gpus(2), terms=GprTerms(dedicated=True))
    there = holds(record(asked))
    assert plan(cluster_of(whole(6)), wanted=wants(asked), there=there).changes == ()
    (place,) = plan(cluster_of(whole(6, 8)), wanted=wants(asked), there=there).changes
    assert place.action is Action.PLACE


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def requiring(**requirement: Json) -> Json:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"], **requirement}]}]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("pod", "field", "message"),
    [
        ({"nodeSelector": {GPU: ["b"]}}, f'nodeSelector["{GPU}"]', "a text here, not a list"),
        ({"nodeSelector": {"zone": None}}, "nodeSelector.zone", "a text here, not nothing"),
        ({"nodeSelector": {"zone": 1}}, "nodeSelector.zone", "a text here, not '1' (quote it)"),
        ({"nodeSelector": ["zone"]}, "nodeSelector", "a mapping here, not a list"),
        ({"tolerations": [{"key": ["a"]}]}, "tolerations[0].key", "a text here, not a list"),
        ({"tolerations": [{"effect": {}}]}, "tolerations[0].effect", "a text here, not a mapping"),
        ({"tolerations": {"key": "a"}}, "tolerations", "a list here, not a mapping"),
        (
            {"affinity": requiring(values=[["a"]])},
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].values[0]",
            "a text here, not a list",
        ),
        (
            {"affinity": requiring(operator=[])},
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0].operator",
            "a text here, not a list",
        ),
        ({"affinity": "zone"}, "affinity", "a mapping here, not 'zone'"),
        ({"containers": [None]}, "containers[0]", "a value here, not nothing"),
        (
            {"initContainers": [{"name": "a", "image": "a", "resources": {"limits": {GPU: [1]}}}]},
            f'initContainers[0].resources.limits["{GPU}"]',
            "'[1]' is not a quantity (try 1, 500m or 8Gi)",
        ),
    ],
)
def test_what_a_pod_template_says_in_another_type_is_told_with_its_field_and_counts_as_nothing(
    pod: Json, field: str, message: str
):
    asked = request("worker-2", spec=manifests(deployment(**pod)))
    assert request_requirements(asked).unknown == "the needs of manifest part-0 are unknown"
    draft = placements.read_create({**rest_document(asked), "workspaceName": "llm"})
    assert isinstance(draft, RequestDraft)
    found = admit(draft, wants())
    assert isinstance(found, tuple)
    (finding,) = found
    assert dotted(finding.loc) == f"manifestResources[0].manifest.spec.template.spec.{field}"
    assert message in (f"{finding.message} ({finding.hint})")


def test_what_an_expression_becomes_is_not_judged_before_it_is_known():
    pod = deployment(nodeSelector={"zone": "{{ cluster.name }}"}, tolerations="{{ cluster.name }}")
    draft = placements.read_create({**rest_document(request("worker-2", spec=manifests(pod))), "workspaceName": "llm"})
    assert isinstance(draft, RequestDraft)
    assert isinstance(admit(draft, wants()), Request)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "a", "In", "1", "{{ a }}"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "key",
                    "operator",
                    "values",
                    "effect",
                    "nodeAffinity",
                    REQUIRED,
                    "nodeSelectorTerms",
                    "matchExpressions",
                    "matchFields",
                    "resources",
                    "limits",
                    "requests",
                    GPU,
                    "restartPolicy",
                    "tolerationSeconds",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
FIELDS = st.sampled_from(
    ["nodeSelector", "affinity", "tolerations", "containers", "initContainers", "resources", "overhead"]
)


@examples(6)
@given(st.dictionaries(FIELDS, ANYTHING, max_size=3), ANYTHING)
def test_whatever_a_pod_template_says_can_be_counted_and_told(pod: Json, whole_template: Json):
    for made in (deployment(**pod), deployment() | {"spec": whole_template}):
        asked = request("worker-2", spec=manifests(made))
        for shape in (part.shape for part in request_requirements(asked, BOTH).parts):
            hash((shape.node_terms, shape.tolerations, *shape.node_selector.values()))
            assert describe_node_selector(shape) + str(required_labels(shape))
            assert ClusterCapacity(BOTH).count(shape, 3) or ClusterCapacity(BOTH).shortfall(shape)
