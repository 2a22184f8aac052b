"""What Kubernetes validates of a pod beyond the types of its fields is told at its field."""

from __future__ import annotations

import pytest

from reconciler.core.validation.objects import check_object
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS
from reconciler.model.workload import Json
from reconciler.text.findings import dotted
from tests.builders.judged_workloads import REFUSED, TAKEN, Manifest, main, workload

POD = "spec.template.spec"
MAIN = f"{POD}.containers[0]"


def problems(manifest: Json, *, rendered: bool = True) -> list[str]:
    found = check_object(manifest, (), NO_SCHEMAS, NO_KINDS, rendered=rendered)
    return [f"{dotted(one.loc)}: {one.message}" for one in found]


def mounted(*paths: str) -> Json:
    return main(volumeMounts=[{"name": "v", "mountPath": path} for path in paths])


INVALID: dict[str, tuple[Json, str]] = {
    "no container": ({"containers": []}, f"{POD}.containers: a pod has at least one container"),
    "restart": (
        {"restartPolicy": "Never"},
        f"{POD}.restartPolicy: pods that run until they are deleted have no restartPolicy Never",
    ),
    "deadline": (
        {"activeDeadlineSeconds": 9},
        f"{POD}.activeDeadlineSeconds: pods that run until they are deleted have no deadline",
    ),
    "resolver": ({"dnsPolicy": "None"}, f"{POD}.dnsPolicy: dnsPolicy None needs the nameservers of a dnsConfig"),
    "processes": (
        {"hostPID": True, "shareProcessNamespace": True},
        f"{POD}.shareProcessNamespace: hostPID and shareProcessNamespace cannot both be true",
    ),
    "selector key": (
        {"nodeSelector": {"a b": "c"}},
        f"{POD}.nodeSelector[\"a b\"]: 'a b' cannot be the name of a label",
    ),
    "selector": ({"nodeSelector": {"a": "-"}}, f"{POD}.nodeSelector.a: '-' cannot be the value of a label"),
    "two sources": (
        {"volumes": [{"name": "v", "emptyDir": {}, "configMap": {"name": "c"}}]},
        f"{POD}.volumes[0].emptyDir: configMap and emptyDir exclude each other",
    ),
    "two volumes": ({"volumes": [{"name": "v"}, {"name": "v"}]}, f"{POD}.volumes[1].name: 'v' is there twice"),
    "name": ({"containers": [{"name": "A", "image": "a"}]}, f"{MAIN}.name: 'A' cannot be a name here"),
    "two containers": (
        {"initContainers": [{"name": "main", "image": "a"}]},
        f"{MAIN}.name: 'main' is there twice",
    ),
    "no volume": (mounted("/a"), f"{MAIN}.volumeMounts[0].name: there is no volume 'v'"),
    "one path": (
        {**mounted("/a", "/a"), "volumes": [{"name": "v"}]},
        f"{MAIN}.volumeMounts[0].mountPath: '/a' is mounted twice",
    ),
    "port": (main(ports=[{"containerPort": 70000}]), f"{MAIN}.ports[0].containerPort: 70000 is no port"),
    "port name": (
        main(ports=[{"containerPort": 1, "name": "a_b"}]),
        f"{MAIN}.ports[0].name: 'a_b' cannot be the name of a port",
    ),
    "port names": (
        main(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
        f"{MAIN}.ports[1].name: 'a' is there twice",
    ),
    "variable": (main(env=[{"name": "A=B"}]), f"{MAIN}.env[0].name: 'A=B' cannot be the name of a variable"),
    "two values": (
        main(env=[{"name": "A", "value": "b", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        f"{MAIN}.env[0]: a variable has a value or valueFrom, not both",
    ),
    "no handler": (
        main(livenessProbe={"periodSeconds": 3}),
        f"{MAIN}.livenessProbe: one of exec, grpc, httpGet, tcpSocket is required",
    ),
    "two handlers": (
        main(lifecycle={"preStop": {"exec": {"command": ["a"]}, "sleep": {"seconds": 1}}}),
        f"{MAIN}.lifecycle.preStop.sleep: exec and sleep exclude each other",
    ),
    "successes": (
        main(startupProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
        f"{MAIN}.startupProbe.successThreshold: a startupProbe succeeds at once, so that it is 1",
    ),
    "limit": (
        main(resources={"requests": {"cpu": 1}, "limits": {"cpu": "500m"}}),
        f"{MAIN}.resources.requests.cpu: the request of 1 is more than the limit of 500m",
    ),
    "half a GPU": (
        main(resources={"limits": {"nvidia.com/gpu": "0.5"}}),
        f'{MAIN}.resources.limits["nvidia.com/gpu"]: devices are whole, and 0.5 is no whole number of them',
    ),
}


@pytest.mark.parametrize("manifest", REFUSED.values(), ids=REFUSED)
def test_what_an_api_server_refuses_is_one_problem(manifest: Manifest) -> None:
    assert len(problems(manifest)) == 1


@pytest.mark.parametrize("manifest", TAKEN.values(), ids=TAKEN)
def test_what_an_api_server_takes_is_no_problem(manifest: Manifest) -> None:
    assert problems(manifest) == []


@pytest.mark.parametrize(("spec", "problem"), INVALID.values(), ids=INVALID)
def test_a_pod_that_an_api_server_refuses_is_told_at_its_field(spec: Json, problem: str) -> None:
    assert problems(workload(spec)) == [problem]


@pytest.mark.parametrize(
    "spec",
    [
        {
            "restartPolicy": "Always",
            "nodeSelector": {"a/b": ""},
            "dnsPolicy": "None",
            "dnsConfig": {"nameservers": ["1.1.1.1"]},
        },
        {**mounted("/a", "/b"), "volumes": [{"name": "v"}]},
        main(resources={"requests": {"cpu": "500m"}, "limits": {"cpu": 1, "nvidia.com/gpu": "2000m"}}),
        main(env=[{"name": "a.b-c", "value": ""}], ports=[{"containerPort": 65535, "name": "http-1"}]),
        main(readinessProbe={"grpc": {"port": 1}, "successThreshold": 2}),
    ],
)
def test_a_pod_that_an_api_server_takes_has_no_problem(spec: Json) -> None:
    assert problems(workload(spec)) == []


def test_a_job_says_when_its_pods_restart() -> None:
    assert problems(workload({}, "Job")) == [f"{POD}: restartPolicy is required in pods that end"]
    assert problems(workload({"restartPolicy": "Never"}, "Job")) == []
    assert problems(workload({"restartPolicy": "Always"}, "Job")) == [
        f"{POD}.restartPolicy: pods that end have no restartPolicy Always"
    ]


def test_a_claim_template_is_a_volume() -> None:
    stateful = workload(mounted("/a"), "StatefulSet")
    stateful["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "v"}, "spec": {}}]
    claim = "spec.volumeClaimTemplates[0].spec"
    assert problems(stateful) == [f"{claim}: accessModes is required", f"{claim}: the size is required"]


def test_labels_that_an_expression_makes_may_be_those_of_the_selector() -> None:
    for metadata in ("{{ none }}", {"labels": "{{ none }}"}, {"labels": {"{{ 'app' }}": "web"}}):
        made = workload({})
        made["spec"]["template"]["metadata"] = metadata
        assert problems(made, rendered=False) == []


def test_words_of_another_type_in_a_port_are_told_and_compared_with_none() -> None:
    ports = [
        {"containerPort": 1, "hostPort": 9, "protocol": ["TCP"]},
        {"containerPort": 1, "hostPort": 8, "hostIP": {}},
    ]
    found = problems(workload(main(ports=ports)))
    assert [one.partition(": ")[2] for one in found] == [
        "Kubernetes takes a text here, not a list",
        "Kubernetes takes a text here, not a mapping",
    ]


def test_labels_of_pods_have_the_syntax_of_labels() -> None:
    assert problems(workload({}, labels={"a": "b c"})) == [
        "spec.template.metadata.labels.a: 'b c' cannot be the value of a label"
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"a": "{{ cluster.name }} b"}},
        {"containers": [{"name": "{{ cluster.name }}", "image": "a"}], "restartPolicy": "{{ 'Always' }}"},
        {**mounted("/a"), "volumes": [{"name": "{{ cluster.name }}"}]},
        main(env=[{"name": "{{ cluster.name }}", "value": "a"}], livenessProbe={"exec": "{{ none }}"}),
        main(resources={"requests": {"cpu": "{{ 4 }}"}, "limits": {"cpu": 1, "nvidia.com/gpu": "{{ 0.5 }}"}}),
        main(resources={"requests": {"nvidia.com/gpu": 1}, "limits": "{{ none }}"}),
        {**mounted("/a"), "volumes": "{{ none }}"},
        {**main(resources={"claims": [{"name": "a"}]}), "resourceClaims": "{{ none }}"},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In", "values": "{{ none }}"}]}
                        ]
                    }
                }
            }
        },
    ],
)
def test_an_expression_is_judged_once_it_is_rendered(spec: Json) -> None:
    assert problems(workload(spec), rendered=False) == []
