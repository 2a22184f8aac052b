"""What a request's pods claim counts, and what only a scheduler can judge fits nowhere and says why."""

from __future__ import annotations

from reconciler.core.capacity.cluster import ClusterCapacity
from reconciler.core.capacity.pod_requirements import pods_of_request, request_requirements
from reconciler.model.capacity import DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.workload import Json
from tests.builders.inputs import free
from tests.builders.platform_objects import deployment, obj
from tests.builders.requests import gpus, manifests, request

TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
CLAIMING = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "model"}]}


def shapes(*objects: Json) -> list[ReplicaShape]:
    return [part.shape for part in pods_of_request(request(spec=manifests(*objects))).parts]


def claim_template(**request_: Json) -> Json:
    exactly = {"deviceClassName": "gpu.nvidia.com", **request_}
    devices = {"requests": [{"name": "gpu", "exactly": exactly}]}
    return obj("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": {"devices": devices}})


def job(pods: int = 4, *, metadata: Json = None, **annotations: str) -> Json:
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "a"}]}}
    made = obj("batch/v1", "Job", spec={"parallelism": pods, "completions": pods, "template": template})
    return {**made, "metadata": {**made["metadata"], **(metadata or {})}}


def test_devices_that_pods_claim_by_a_template_of_the_same_request_are_counted() -> None:
    (shape,) = shapes(deployment(CLAIMING, replicas=1), claim_template(count=2))
    option = DeviceOption(device_class="gpu.nvidia.com", count=2)
    assert shape.devices == (DeviceRequest(options=(option,)),)
    assert not shape.obstacle


def test_what_a_template_in_the_cluster_claims_nobody_knows() -> None:
    (shape,) = shapes(deployment(CLAIMING, replicas=1))
    assert shape.obstacle == "claims devices by the ResourceClaimTemplate model, which is not known"
    assert ClusterCapacity(free("worker-2", 8)).count(shape, 1) == 0


def test_volcanos_hard_network_topology_fits_nowhere_and_says_why() -> None:
    tasks = [{"name": "worker", "replicas": 4, "template": {"spec": {"containers": []}}}]
    for mode, words in (("hard", "one network domain"), ("soft", "")):
        spec = {"tasks": tasks, "networkTopology": {"mode": mode, "highestTierAllowed": 1}}
        (shape,) = shapes(obj("batch.volcano.sh/v1alpha1", "Job", spec=spec))
        assert words in shape.obstacle
        assert bool(words) is bool(shape.obstacle)


def test_gpr_details_say_what_nobody_can_count() -> None:
    asked = request(spec=manifests(job(4, **{TOPOLOGY: "rack"})), ask=gpus(8, 4))
    assert request_requirements(asked, free("worker-2", 8, 8, 8, 8)).main.shape.obstacle == ""


def test_a_template_that_cannot_be_read_is_told() -> None:
    broken = obj("resource.k8s.io/v1", "ResourceClaimTemplate", spec={"spec": 3})
    assert pods_of_request(request(spec=manifests(deployment(CLAIMING, replicas=1), broken))).strange == ("part-0",)
