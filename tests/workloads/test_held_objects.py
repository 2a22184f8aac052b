"""Objects that another one holds whole are found where its kind has them, or anywhere in a kind that no table has."""

from __future__ import annotations

from typing import Any

from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.core.workloads.held_objects import held_objects, with_wrapped
from reconciler.model.workload import Json
from tests.builders.workload_kinds import SAMPLES, workload

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
WRAPPER = "workload.codeflare.dev/v1beta2"


def wrapper(*objects: Json, **metadata: Any) -> Json:
    return workload(WRAPPER, "AppWrapper", {"components": [{"template": made} for made in objects]}, **metadata)


def test_objects_of_a_wrapper_are_found_at_any_depth_with_their_places() -> None:
    made = wrapper(CONFIG, wrapper(CONFIG), "{{ replicas }}")
    place = ("spec", "components", 1, "template")
    assert [*held_objects(made, NO_KINDS)] == [
        (("spec", "components", 0, "template"), CONFIG),
        (place, wrapper(CONFIG)),
        ((*place, "spec", "components", 0, "template"), CONFIG),
        (("spec", "components", 2, "template"), "{{ replicas }}"),
    ]


def test_whole_objects_of_a_kind_that_no_table_has_are_found_anywhere() -> None:
    work = workload("work.open-cluster-management.io/v1", "ManifestWork", {"workload": {"manifests": [CONFIG]}})
    assert [*held_objects(work, NO_KINDS)] == [(("spec", "workload", "manifests", 0), CONFIG)]
    spread = workload("apps.kruise.io/v1alpha1", "ResourceDistribution", {"resource": CONFIG, "targets": {}})
    assert [*held_objects(spread, NO_KINDS)] == [(("spec", "resource"), CONFIG)]


def test_references_and_parts_of_workloads_are_no_objects() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model"}
    scaled = workload("keda.sh/v1alpha1", "ScaledObject", {"scaleTargetRef": target})
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}}
    stateful = workload("apps/v1", "StatefulSet", {"volumeClaimTemplates": [claim]})
    for made in (scaled, stateful, *(each for name, (each, _) in SAMPLES.items() if "AppWrapper" not in name)):
        assert [*held_objects(made, NO_KINDS)] == []


def test_wrapped_objects_are_in_the_namespace_of_their_wrapper_unless_they_name_one() -> None:
    other = {**CONFIG, "metadata": {"name": "settings", "namespace": "tools"}}
    own, inner, named = with_wrapped(wrapper(CONFIG, other, "nothing"), NO_KINDS)
    assert own == wrapper(CONFIG, other, "nothing")
    assert inner["metadata"] == {"name": "settings", "namespace": "demo"}
    assert named == other


def test_nothing_is_certain_of_what_a_kind_that_no_table_has_holds() -> None:
    work = workload("work.karmada.io/v1alpha1", "Work", {"workload": {"manifests": [CONFIG]}})
    assert [*with_wrapped(work, NO_KINDS)] == [work]
