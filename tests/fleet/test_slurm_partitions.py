"""A Cluster that is a partition of Slurm has nothing of a Kubernetes cluster, and is no home of workloads."""

from __future__ import annotations

import pytest

from reconciler.model.cluster import SlurmPartition
from tests.builders.fleet_files import FLEET, PODS, TEMPLATE, cluster, errors, load, warnings, workspace

PARTITION = "{slurm: {partition: gpu-h100}}"


def described(spec: str = PARTITION, **files: str) -> dict[str, str]:
    return {**FLEET, "clusters/worker-2.yaml": cluster("worker-2", spec), **files}


def test_a_partition_is_described() -> None:
    desired = load(described())
    assert errors(desired) == []
    assert desired.clusters["worker-2"].slurm == SlurmPartition(name="gpu-h100")
    assert desired.clusters["worker-1"].slurm is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("connection", "{context: hpc}"),
        ("engine", "flux"),
        ("autoscaling", "[{labels: {a: b}, allocatable: {nvidia.com/gpu: 8}, maxNodes: 2}]"),
        ("provides", "{schedulers: [volcano]}"),
    ],
)
def test_what_needs_an_api_server_is_refused_at_its_line_with_the_way_out(field: str, value: str) -> None:
    desired = load(described(f"{{slurm: {{partition: gpu}}, {field}: {value}}}"))
    (error,) = [line for line in errors(desired) if line.startswith("clusters/worker-2.yaml")]
    assert error == (
        f"clusters/worker-2.yaml:5: spec: has both slurm and {field}, and a partition of Slurm has no API server"
        f" (try leaving {field} out; leave slurm out where Slurm runs in a Kubernetes cluster)"
    )


def test_several_partitions_are_several_clusters() -> None:
    (error, *_) = errors(load(described("{slurm: {partition: 'a,b'}}")))
    assert error.startswith("clusters/worker-2.yaml:5: spec.slurm.partition: 'a,b' is not the name of one partition")


def test_no_workload_is_at_home_in_a_partition() -> None:
    desired = load({**FLEET, "clusters/worker-1.yaml": cluster("worker-1", PARTITION)})
    (error,) = errors(desired)
    assert error == (
        "workspaces/llm.yaml:6: spec.primaryCluster: worker-1 is a partition of Slurm, where no pod waits"
        " (name a Kubernetes cluster, and take the partition's pending jobs as a signal)"
    )


def test_a_policy_with_nothing_but_partitions_is_warned_of() -> None:
    desired = load(described())
    (warning,) = warnings(desired)
    assert warning == (
        "policies/gpu.yaml:5: spec: all clusters that it may use in workspace llm are partitions of Slurm: worker-2;"
        " nothing goes out (add a Kubernetes cluster to its spec.clusters)"
    )
    third = {"clusters/worker-3.yaml": cluster("worker-3")}
    wider = workspace().replace("[worker-1, worker-2]", "[worker-1, worker-2, worker-3]")
    assert warnings(load(described(**third, **{"workspaces/llm.yaml": wider}))) == []


def test_a_partition_is_not_said_to_lack_anything() -> None:
    pods = PODS.replace("spec: {", "spec: {runtimeClassName: nvidia, ")
    assert pods != PODS
    files = {
        "clusters/worker-3.yaml": cluster("worker-3"),
        "workspaces/llm.yaml": workspace().replace("[worker-1, worker-2]", "[worker-1, worker-2, worker-3]"),
        "templates/vllm.yaml": TEMPLATE.replace(PODS, pods),
    }
    (warning,) = warnings(load(described(**files)))
    assert "spec: worker-3 may lack RuntimeClass nvidia" in warning
