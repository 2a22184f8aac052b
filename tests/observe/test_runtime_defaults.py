"""RuntimeClasses and LimitRanges are watched: what they add to pods is known of each cluster, or known not to be."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource, Watched
from reconciler.core.pods.pod_requests import unstated_requests
from reconciler.core.workloads.watch import ChangeEffect
from reconciler.model.capacity import ClusterObservation
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.scheduling import RuntimeClass, Toleration
from reconciler.model.units import Resources, parse_quantity
from tests.builders.kube_objects import Raw

AT = datetime(2026, 11, 20, 10, tzinfo=UTC)
KATA: Raw = {
    "metadata": {"name": "kata"},
    "handler": "kata-qemu",
    "overhead": {"podFixed": {"cpu": "250m"}},
    "scheduling": {"nodeSelector": {"kata": "yes"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
}


def limits(name: str, *items: Raw, namespace: str = "llm") -> Raw:
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"limits": list(items)}}


def of_container(**requests: str) -> Raw:
    return {"type": "Container", "default": {"cpu": "9"}, "defaultRequest": requests}


def seen(made: ClusterState, *unknown: Watched) -> ClusterObservation:
    return made.observation(ClusterName("worker-2"), AT, frozenset(unknown))


def amounts(**named: str) -> Resources:
    return Resources(amounts={name: parse_quantity(amount) for name, amount in named.items()})


def test_a_runtime_class_is_seen_with_all_that_it_adds() -> None:
    made = ClusterState()
    assert made.apply(Resource.RUNTIME_CLASSES, KATA) is ChangeEffect.CAPACITY
    assert made.apply(Resource.RUNTIME_CLASSES, KATA) is ChangeEffect.NOTHING
    made.apply(Resource.RUNTIME_CLASSES, {"metadata": {"name": "runc"}, "handler": "runc"})
    assert seen(made).runtime_classes == {
        "kata": RuntimeClass(
            overhead=amounts(cpu="250m"),
            node_selector={"kata": "yes"},
            tolerations=(Toleration(key="kata", operator="Exists"),),
        ),
        "runc": RuntimeClass(),
    }
    made.remove(Resource.RUNTIME_CLASSES, "kata")
    assert list(seen(made).runtime_classes or ()) == ["runc"]


def test_a_limit_range_is_seen_by_what_it_gives_to_containers() -> None:
    made = ClusterState()
    made.apply(Resource.LIMIT_RANGES, limits("a", of_container(cpu="1"), {"type": "Pod", "max": {"cpu": "8"}}))
    made.apply(Resource.LIMIT_RANGES, limits("b", of_container(cpu="500m", memory="1Gi")))
    made.apply(Resource.LIMIT_RANGES, limits("c", of_container(cpu="2"), namespace="other"))
    images = {"type": "openshift.io/Image", "max": {"storage": "8Gi"}}
    assert made.apply(Resource.LIMIT_RANGES, limits("d", images)) is ChangeEffect.NOTHING
    assert seen(made).limit_ranges == {"llm": amounts(cpu="1", memory="1Gi"), "other": amounts(cpu="2")}


def test_a_limit_range_is_seen_by_its_bounds_on_containers_and_pods() -> None:
    made = ClusterState()
    given = {"type": "Container", "default": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "4"}}
    made.apply(Resource.LIMIT_RANGES, limits("a", given, {"type": "Pod", "max": {"cpu": "8"}, "min": {"cpu": "1"}}))
    of_containers, of_pods = seen(made).limit_range_items["llm"]
    assert (of_containers.of_pod, of_pods.of_pod, of_pods.limit_range) == (False, True, "a")
    assert dict(of_containers.default) == amounts(cpu="2").amounts
    assert dict(of_containers.ratio) == amounts(cpu="4").amounts
    assert (dict(of_pods.most), dict(of_pods.least)) == (amounts(cpu="8").amounts, amounts(cpu="1").amounts)
    assert seen(made).limit_ranges == {}


def test_an_amount_that_no_container_can_request_hides_no_other_limit_range() -> None:
    made = ClusterState()  # the API server takes a LimitRange that gives less than nothing
    made.apply(Resource.LIMIT_RANGES, limits("a", of_container(cpu="-1", memory="1Gi")))
    made.apply(Resource.LIMIT_RANGES, limits("b", of_container(cpu="2"), namespace="other"))
    assert seen(made).limit_ranges == {"llm": amounts(memory="1Gi"), "other": amounts(cpu="2")}


def test_what_cannot_be_listed_is_not_known_to_be_none() -> None:
    made = ClusterState()
    assert (seen(made).runtime_classes, seen(made).limit_ranges) == ({}, {})
    blind = seen(made, Resource.RUNTIME_CLASSES, Resource.LIMIT_RANGES)
    assert (blind.runtime_classes, blind.limit_ranges) == (None, None)


def test_what_a_limit_range_gave_to_a_pod_is_told_from_what_its_template_requests() -> None:
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}}
    spec = {
        "initContainers": [{"name": "load", "resources": {"requests": {"cpu": "4"}}}],
        "containers": [{"name": "server", "resources": resources}, {"name": "logs", "resources": resources}],
    }
    told = "LimitRanger plugin set: cpu, memory request for container logs; cpu limit for container logs; cpu request"
    found = unstated_requests(spec, {"annotations": {"kubernetes.io/limit-ranger": f"{told} for init container load"}})
    assert [found.lacking(name) for name in ("cpu", "memory", "other")] == [1, 1, 2]
    assert dict(found.defaults) == {"cpu": parse_quantity("1"), "memory": parse_quantity("1Gi")}
