"""A share that an autoscaler leaves without effect is told, with the field that would bound the autoscaler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.fleet.warnings.autoscaled import warn_autoscaled
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.workload import Json
from tests.builders.deploy_specs import spec
from tests.builders.inputs import template
from tests.builders.platform_objects import deployment, obj
from tests.builders.workload_kinds import lws
from tests.engines.test_autoscaled_replicas import hpa, ray

SHARE = "{{ replicas }}"
KEDA = ("keda.sh/v1alpha1", "ScaledObject")


def warning_text(*objects: Json) -> str:
    made = spec(*((f"part-{number}", one) for number, one in enumerate(objects)))
    found = warn_autoscaled(replace(template(), spec=made, uses_replicas=True), NO_KINDS)
    return "".join(f"{finding.message} ({finding.hint})" for finding in found)


def bounds(name: str = "model", **fields: Json) -> Json:
    """Make an autoscaler of a Deployment with these bounds."""
    made = hpa(name=name)
    return {**made, "spec": {"scaleTargetRef": made["spec"]["scaleTargetRef"], **fields}}


@pytest.mark.parametrize("replicas", [SHARE, 3])
def test_a_share_that_nothing_written_follows_from_is_told_with_the_field_to_bound(replicas: Json) -> None:
    assert warning_text(deployment(replicas=replicas), bounds(minReplicas=1, maxReplicas=10)) == (
        "its HorizontalPodAutoscaler owns the replicas, and no expression bounds it: every placement deploys the same,"
        ' whatever its share (write maxReplicas: "{{ replicas }}" there)'
    )


def test_kedas_field_has_another_name() -> None:
    target = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "model"}
    made = obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec=lws(SHARE)["spec"])
    assert "maxReplicaCount" in warning_text(made, obj(*KEDA, spec={"scaleTargetRef": target, "maxReplicaCount": 4}))


@pytest.mark.parametrize(
    "objects",
    [
        (deployment(replicas=SHARE), bounds(maxReplicas=SHARE)),
        (deployment(replicas=SHARE), bounds(minReplicas=SHARE, maxReplicas=10)),
        (deployment(replicas=SHARE), bounds("another", maxReplicas=10)),
        (deployment(replicas=SHARE),),
    ],
    ids=["at its most", "at its least", "another is scaled", "nothing is scaled"],
)
def test_a_share_that_bounds_an_autoscaler_or_is_written_is_not(objects: tuple[Json, ...]) -> None:
    assert warning_text(*objects) == ""


RAYS = [("RayCluster", ""), ("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")]


@pytest.mark.parametrize(("kind", "root"), RAYS)
def test_a_share_that_rays_own_autoscaler_only_begins_with_is_told(kind: str, root: str) -> None:
    assert warning_text(ray(kind, root, replicas=SHARE, minReplicas=1, maxReplicas=10)) == (
        f"Ray's autoscaler owns the replicas of its {kind}, and no expression bounds it: a placement's share is no more"
        ' than what its workers begin with (write maxReplicas: "{{ replicas }}" in its workerGroupSpecs)'
    )


@pytest.mark.parametrize(("kind", "root"), RAYS)
def test_a_share_that_bounds_rays_autoscaler_or_is_written_for_good_is_not(kind: str, root: str) -> None:
    assert warning_text(ray(kind, root, replicas=SHARE, maxReplicas=SHARE)) == ""
    assert warning_text(ray(kind, root, minReplicas=SHARE)) == ""
    assert warning_text(ray(kind, root, scales=False, replicas=SHARE)) == ""
