"""What objects of each kind that is built in come to: their pods, and which of these only run together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.capacity.pod_requirements import ManifestPods, pods_of_request
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.paths import replicas_at
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.units import ONE, Quantity
from reconciler.model.workload import Json
from tests.builders.inputs import GPU
from tests.builders.requests import manifests, request
from tests.builders.workload_kinds import ELSEWHERE, SAMPLES, lws, template, workload

KUEUE = "kueue.x-k8s.io/queue-name"


def pods(*objects: Json) -> ManifestPods:
    return pods_of_request(request(spec=manifests(*objects)))


def by_gpus(found: ManifestPods) -> dict[int, int]:
    counted = Counter[int]()
    for part in found.parts:
        counted[part.shape.requests.amounts.get(GPU, Quantity(0)) // ONE] += part.replicas
    return dict(counted)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_pods_of_an_object_are_those_that_its_controller_makes(name: str):
    made, expected = SAMPLES[name]
    found = pods(made)
    assert (by_gpus(found), found.strange) == (expected, ())


def test_each_kind_that_is_built_in_has_a_sample():
    assert {(made["apiVersion"].rpartition("/")[0], made["kind"]) for made, _ in SAMPLES.values()} == {
        (kind.group, kind.kind) for kind in BUILT_IN.values()
    }


@pytest.mark.parametrize("kind", BUILT_IN.values(), ids=lambda kind: kind.name)
def test_each_kind_says_what_it_was_checked_against(kind):
    assert kind.checked
    assert kind.versions


def test_what_has_a_version_of_which_nothing_is_known_is_told():
    found = pods(lws() | {"apiVersion": "leaderworkerset.x-k8s.io/v2"})
    assert (found.parts, found.strange) == ((), ("part-0",))


@pytest.mark.parametrize("made", ELSEWHERE.values(), ids=ELSEWHERE)
def test_what_is_said_elsewhere_or_makes_no_sense_is_told_as_unknown(made: Json):
    found = pods(made)
    assert (found.parts, found.strange) == ((), ("part-0",))


def test_a_rollout_takes_the_template_of_the_deployment_that_it_refers_to():
    deployment = workload("apps/v1", "Deployment", {"replicas": 0, "template": template(2)})
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model"}
    rollout = workload("argoproj.io/v1alpha1", "Rollout", {"replicas": 3, "workloadRef": reference})
    assert by_gpus(pods(deployment, rollout)) == {2: 3}


@pytest.mark.parametrize(
    ("made", "where"),
    [
        (SAMPLES["JobSet"][0], ("suspend",)),
        (SAMPLES["PyTorchJob"][0], ("runPolicy", "suspend")),
        (SAMPLES["RayJob"][0], ("suspend",)),
    ],
    ids=["JobSet", "PyTorchJob", "RayJob"],
)
def test_what_is_suspended_makes_no_pods_unless_kueue_will_wake_it(made: Json, where: tuple[str, ...]):
    asleep = True
    for part in reversed(where):
        asleep = {part: asleep}
    sleeping = made | {"spec": made["spec"] | asleep}
    assert pods(sleeping).parts == ()
    queued = sleeping | {"metadata": made["metadata"] | {"labels": {KUEUE: "gpus"}}}
    assert by_gpus(pods(queued)) == by_gpus(pods(made))


@pytest.mark.parametrize("name", ["InferenceService", "LLMInferenceService"])
def test_what_is_stopped_makes_no_pods_whatever_its_queue(name: str):
    made, _ = SAMPLES[name]
    metadata = {"labels": {KUEUE: "gpus"}, "annotations": {"serving.kserve.io/stop": "true"}}
    assert pods(made).parts
    assert pods(made | {"metadata": made["metadata"] | metadata}).parts == ()


def test_a_set_of_two_groups_of_four_runs_group_by_group():
    (gang,) = pods(lws(leader=1)).gangs
    assert (gang.groups, gang.size, gang.least) == (2, 4, 4)
    assert gang.requests.amounts == {GPU: Quantity(25 * ONE)}


@pytest.mark.parametrize(
    ("made", "least"),
    [
        (lws(startupPolicy="LeaderReady"), 1),
        (SAMPLES["Job of Volcano"][0], 3),
        (SAMPLES["PyTorchJob"][0], 4),
        (SAMPLES["RayCluster"][0], 7),
    ],
    ids=["a leader goes first", "minAvailable", "all", "all of a cluster"],
)
def test_so_many_pods_of_a_group_have_to_be_there(made: Json, least: int):
    (gang,) = pods(made).gangs
    assert gang.least == least


def test_pods_that_are_each_for_themselves_are_no_group():
    assert pods(SAMPLES["Deployment"][0], SAMPLES["Rollout"][0]).gangs == ()


def test_a_number_that_an_expression_gives_counts_as_one():
    made = lws()
    made["spec"]["replicas"] = "{{ replicas }}"
    assert by_gpus(pods(made)) == {8: 4}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(
                    ["template", "spec", "replicas", "leaderWorkerTemplate", "size", "tasks", "containers"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(sorted(SAMPLES)),
)
def test_whatever_stands_in_a_spec_nothing_breaks(spec: Json, name: str):
    found = pods(SAMPLES[name][0] | {"spec": spec})
    assert all(part.replicas > 0 for part in found.parts)


def test_replicas_are_added_up_over_the_items_of_a_list():
    assert replicas_at(SAMPLES["Job of Volcano"][0], (path("spec.tasks.0.replicas"),)) == 1
    with pytest.raises(ValueError, match=r"nothing stands at spec\.tasks\.2\.replicas"):
        replicas_at(SAMPLES["Job of Volcano"][0], (path("spec.tasks.*.replicas"),))
