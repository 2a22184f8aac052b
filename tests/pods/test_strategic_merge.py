"""A strategic merge patch on a Pod, rule by rule; the e2e tests compare with the real kubectl."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from reconciler.core.pods.strategic_merge import Unmergeable, leftover_directive, merge
from tests.builders.random_patches import pair

A, B, C = ({"name": name, "image": f"{name}:1"} for name in "abc")


def spec(pod: dict[str, Any], patch: dict[str, Any]) -> Any:
    """Patch the spec of a pod."""
    return merge({"spec": pod}, {"spec": patch})["spec"]


def names(items: list[dict[str, Any]]) -> str:
    """Put the names of items together."""
    return "".join(item["name"] for item in items)


def test_objects_are_merged_and_null_deletes() -> None:
    pod = {"metadata": {"labels": {"app": "vllm", "tier": "gpu"}}}
    patch = {"metadata": {"labels": {"tier": None, "zone": "a"}, "annotations": {"by": "spread", "not": None}}}
    assert merge(pod, patch) == {"metadata": {"labels": {"app": "vllm", "zone": "a"}, "annotations": {"by": "spread"}}}


def test_containers_are_merged_by_name_and_keep_their_place() -> None:
    made = spec({"containers": [A, B]}, {"containers": [{"name": "b", "resources": {"limits": {"cpu": "2"}}}]})
    assert made == {"containers": [A, {**B, "resources": {"limits": {"cpu": "2"}}}]}


def test_what_is_new_in_a_list_comes_first() -> None:
    assert names(spec({"containers": [A, B]}, {"containers": [C]})["containers"]) == "cab"


@pytest.mark.parametrize(
    ("field", "key"),
    [
        ("volumes", "name"),
        ("imagePullSecrets", "name"),
        ("hostAliases", "ip"),
        ("topologySpreadConstraints", "topologyKey"),
        ("resourceClaims", "name"),
        ("schedulingGates", "name"),
    ],
)
def test_lists_of_a_pod_are_merged_by_their_key(field: str, key: str) -> None:
    made = spec({field: [{key: "a", "x": 1}, {key: "b"}]}, {field: [{key: "b", "y": 2}]})
    assert made == {field: [{key: "a", "x": 1}, {key: "b", "y": 2}]}


@pytest.mark.parametrize(
    ("field", "key", "one", "two"),
    [
        ("env", "name", "A", "B"),
        ("ports", "containerPort", 80, 81),
        ("volumeMounts", "mountPath", "/a", "/b"),
        ("volumeDevices", "devicePath", "/dev/a", "/dev/b"),
    ],
)
def test_lists_of_a_container_are_merged_by_their_key(field: str, key: str, one: Any, two: Any) -> None:
    pod = {"containers": [{"name": "a", field: [{key: one, "x": 1}, {key: two}]}]}
    made = spec(pod, {"containers": [{"name": "a", field: [{key: two, "y": 2}]}]})
    assert made["containers"][0][field] == [{key: one, "x": 1}, {key: two, "y": 2}]


@pytest.mark.parametrize(
    "field",
    ["args", "command", "envFrom", "resizePolicy"],
)
def test_lists_without_a_key_are_replaced(field: str) -> None:
    made = spec({"containers": [{"name": "a", field: [1, 2]}]}, {"containers": [{"name": "a", field: [3]}]})
    assert made["containers"][0][field] == [3]


def test_tolerations_and_claims_of_resources_are_replaced() -> None:
    made = spec(
        {"tolerations": [{"key": "a"}], "containers": [{"name": "a", "resources": {"claims": [{"name": "x"}]}}]},
        {"tolerations": [{"key": "b"}], "containers": [{"name": "a", "resources": {"claims": [{"name": "y"}]}}]},
    )
    assert made["tolerations"] == [{"key": "b"}]
    assert made["containers"] == [{"name": "a", "resources": {"claims": [{"name": "y"}]}}]


def test_an_item_is_deleted_and_a_list_replaced_by_a_directive() -> None:
    gone = {"name": "a", "$patch": "delete"}
    assert spec({"containers": [A, B]}, {"containers": [gone]}) == {"containers": [B]}
    assert spec({"containers": [A, B]}, {"containers": [{"$patch": "replace"}, C]}) == {"containers": [C]}


def test_an_object_is_replaced_or_emptied_by_a_directive() -> None:
    pod = {"securityContext": {"runAsUser": 1, "fsGroup": 2}}
    assert spec(pod, {"securityContext": {"$patch": "replace", "fsGroup": 3}}) == {"securityContext": {"fsGroup": 3}}
    assert spec(pod, {"securityContext": {"$patch": "delete"}}) == {"securityContext": {}}


def test_only_the_fields_that_are_retained_stay() -> None:
    pod = {"volumes": [{"name": "data", "hostPath": {"path": "/a"}}]}
    patch = {"volumes": [{"name": "data", "emptyDir": {}, "$retainKeys": ["name", "emptyDir"]}]}
    assert spec(pod, patch) == {"volumes": [{"name": "data", "emptyDir": {}}]}


def test_scalars_are_taken_out_of_a_list_and_put_into_it_once() -> None:
    pod = {"metadata": {"finalizers": ["a", "b"]}}
    assert merge(pod, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}) == {
        "metadata": {"finalizers": ["b"]}
    }
    assert merge(pod, {"metadata": {"finalizers": ["b", "c"]}}) == {"metadata": {"finalizers": ["a", "b", "c"]}}


def test_an_order_is_kept() -> None:
    order = [{"name": name} for name in "cab"]
    made = spec({"containers": [A, B]}, {"containers": [C], "$setElementOrder/containers": order})
    assert names(made["containers"]) == "cab"


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"containers": [{"image": "x"}]}, "spec.containers[0]: has no name"),
        ({"containers": [A, "b"]}, "spec.containers: its items"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, "spec.containers[0].$patch: 'merge' is neither"),
        ({"securityContext": {"$patch": "keep"}}, "spec.securityContext.$patch: 'keep' is neither"),
        ({"securityContext": {"$retainKeys": [], "fsGroup": 1}}, "spec.securityContext.fsGroup: is set and not among"),
        ({"containers": [A, B], "$setElementOrder/containers": [B, A]}, "does not list the items of the patch"),
        ({"$deleteFromPrimitiveList": ["a"]}, "names no list"),
        ({"sidecars": [{"name": "a"}]}, "spec.sidecars: a Pod has no such list"),
    ],
)
def test_a_patch_that_cannot_be_applied_says_where(patch: dict[str, Any], said: str) -> None:
    with pytest.raises(Unmergeable) as refused:
        spec({"containers": [A], "securityContext": {"fsGroup": 2}, "sidecars": [{"name": "a"}]}, patch)
    assert said in str(refused.value)


def test_a_directive_in_a_new_item_stays_and_is_found() -> None:
    made = spec({"containers": [A]}, {"containers": [{"name": "n", "env": [{"name": "X", "$patch": "delete"}]}]})
    assert leftover_directive(made) == ("containers", 0, "env", 0, "$patch")
    assert leftover_directive({"containers": [A]}) is None


@pytest.mark.parametrize("seed", range(60))
def test_a_patch_changes_neither_the_pod_nor_itself(seed: int) -> None:
    pod, patch = pair(seed)
    before = copy.deepcopy((pod, patch))
    try:
        merge(pod, patch)
    except Unmergeable as error:
        assert error.loc  # noqa: PT017 - what cannot be applied says where
    assert (pod, patch) == before
