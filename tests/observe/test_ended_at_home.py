"""An object that has ended asks for nothing at home, whichever kind it is of and whatever is left of its pods."""

from __future__ import annotations

import pytest

from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource, custom_resources
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.model.capacity import WorkloadObservation
from reconciler.model.ids import ClusterName
from reconciler.model.workload import Json, WorkloadRef
from tests.builders.kube_objects import NO_GPU, pod
from tests.builders.run_statuses import ENDED, ENDING, GOING_ON
from tests.builders.workload_kinds import SAMPLES
from tests.observe.test_cluster_state import AT

MANIFESTS = {group_kind(made): made for made, _ in reversed(SAMPLES.values())} | {
    "ray.io/RayJob": SAMPLES["RayJob"][0],
}
KINDS = sorted(name for name in ENDED if name != "/Pod")


def at_home(name: str, status: Json) -> WorkloadObservation | None:
    """Observe an object with a status, and a pod of it that waits for a GPU; None where it is not observed."""
    group, _, kind = name.partition("/")
    ref = WorkloadRef(namespace="demo", name="model", kind=kind, group=group)
    state = ClusterState(frozenset({ref}))
    resource = next(iter(custom_resources({ref})), Resource.JOBS)
    state.apply(resource, {**MANIFESTS[name], "status": status})
    owned = pod("model-0", owner=(kind, "model"), version=MANIFESTS[name]["apiVersion"], waits=NO_GPU)
    state.apply(Resource.PODS, owned)
    return next(iter(state.observation(ClusterName("worker-1"), AT).workloads), None)


@pytest.mark.parametrize("name", KINDS)
def test_what_has_ended_wants_no_pod_and_misses_none(name: str) -> None:
    for status, _ in (*ENDED[name][0], *ENDED[name][1]):
        seen = at_home(name, status)
        assert seen is None or (seen.wanted, seen.waiting) == (0, ())


@pytest.mark.parametrize("name", ENDING)
def test_what_is_being_ended_wants_no_pod_either(name: str) -> None:
    for status in ENDING[name]:
        seen = at_home(name, status)
        assert seen is None or (seen.wanted, seen.waiting) == (0, ())


@pytest.mark.parametrize("name", KINDS)
def test_what_goes_on_misses_the_pod_that_waits(name: str) -> None:
    for status in GOING_ON[name]:
        seen = at_home(name, status)
        assert seen is not None
        assert sum(missing.replicas for missing in seen.waiting) >= 1
