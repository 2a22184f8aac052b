"""A field of a patch that no Pod has is left out and told, with what was probably meant."""

from __future__ import annotations

import pytest

from tests.builders.fleet_files import FLEET, TEMPLATE, load
from tests.builders.spread_files import PATCHES, doubtful, governing, subsets

NOTHING = "nothing is patched by it"
NO_FIELD = f"the spec of a Pod has no such field, and {NOTHING}"
WORKLOAD = "a patch is one of the pod, not of the workload"

FILES = {
    **FLEET,
    "templates/vllm.yaml": TEMPLATE.replace(
        "{containers: [{name: server, image: vllm:1}]}",
        "{containers: [{name: a, image: a:1}, {name: b, image: b:1}, {name: main, image: c:1}]}",
    ),
}
STRAY = {
    "written for the workload": (
        "{spec: {template: {spec: {priorityClassName: low}}}}",
        f"spec.template: {NO_FIELD} ({WORKLOAD}: write it as patch: {{spec: …}})",
    ),
    "with labels, too": (
        "{template: {metadata: {labels: {a: b}}, spec: {}}}",
        f"template: a Pod has no such field, and {NOTHING} ({WORKLOAD}: write it as patch: {{metadata: …, spec: …}})",
    ),
    "replicas": (
        "{spec: {replicas: 3}}",
        f"spec.replicas: the spec of a Pod has no such field, and {NOTHING} ({WORKLOAD}: leave it out)",
    ),
    "labels at the root": ("{labels: {a: b}}", f"labels: a Pod has no such field, and {NOTHING} (try metadata.labels)"),
    "labels in the spec": (
        "{spec: {labels: {a: b}}}",
        f"spec.labels: the spec of a Pod has no such field, and {NOTHING} (try metadata.labels)",
    ),
    "misspelt": (
        "{spec: {priorityClass: low}}",
        f"spec.priorityClass: the spec of a Pod has no such field, and {NOTHING} (try 'priorityClassName')",
    ),
    "in a container": (
        "{spec: {containers: [{name: a}, {name: b, nodeSelector: {a: b}}]}}",
        f"spec.containers[1].nodeSelector: a container has no such field, and {NOTHING} (try spec.nodeSelector)",
    ),
    "of OpenKruise's sample": (
        PATCHES[1],
        f"spec.containers[0].resources.limit: resources has no such field, and {NOTHING} (try 'limits')",
    ),
}


@pytest.mark.parametrize(("patch", "told"), STRAY.values(), ids=STRAY)
def test_a_field_that_no_pod_has_is_told_at_its_place(patch: str, told: str):
    assert doubtful(subsets(f"patch: {patch}"), FILES) == [f"9: spec.subsets[0].patch.{told}"]


@pytest.mark.parametrize(
    "patch",
    [
        PATCHES[0],
        PATCHES[2],
        "{apiVersion: v1, kind: Pod}",
        "{spec: {enableServiceLinks: true, tolerations: [{key: a, operator: Exists}], nodeSelector: {template: b}}}",
        "{spec: {$retainKeys: [containers], containers: [{name: a, $patch: delete}]}}",
        "{metadata: {labels: {app: vllm}, annotations: {replicas: '3'}, $patch: replace}}",
    ],
)
def test_what_a_pod_has_and_what_merging_knows_is_not_told(patch: str):
    assert doubtful(subsets(f"patch: {patch}"), FILES) == []


def test_a_field_that_no_pod_has_is_in_no_patch_that_is_merged():
    patch = "{spec: {replicas: 3, containers: [{name: a, env: [{name: A, valeu: b}], resources: {limit: {cpu: 1}}}]}}"
    governed = governing(load({**FILES, "s.yaml": subsets(f"patch: {patch}")}))
    assert governed.subsets[0].patch == {
        "spec": {"containers": [{"name": "a", "env": [{"name": "A"}], "resources": {}}]}
    }
