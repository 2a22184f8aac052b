"""What stands keeps what nobody can change, whatever the template says now; all else is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from reconciler.core.engines.standing_objects import HeldFiles, hold_immutable
from reconciler.core.schema.yaml import emit
from reconciler.errors import InvalidInput
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS


def deployment(replicas: int = 2, **selector: str) -> dict[str, Any]:
    labels = {"app": "vllm", **selector}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "server", "image": "vllm:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata("vllm"), "spec": spec}


def job(image: str = "prep:1", **spec: Any) -> dict[str, Any]:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "prep", "image": image}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata("prep"), "spec": {"template": pod, **spec}}


def service(selector: str) -> dict[str, Any]:
    spec = {"selector": {"app": selector}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata("vllm"), "spec": spec}


def scaler(most: int) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "vllm"}
    spec = {"scaleTargetRef": target, "maxReplicas": most}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata("vllm"),
        "spec": spec,
    }


def metadata(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "demo"}


def written(*objects: dict[str, Any], step: int = 1) -> dict[str, bytes]:
    return {
        f"vllm-1/manifests/{step}-{each['kind'].lower()}-{each['metadata']['name']}.yaml": emit(each).encode()
        for each in objects
    }


def held(old: dict[str, bytes], new: dict[str, bytes], *, charts: bool = False) -> HeldFiles:
    return hold_immutable(old, new, {}, NO_SCHEMAS, charts=charts)


def objects(files: HeldFiles) -> dict[str, Any]:
    return {(value := yaml.safe_load(data))["kind"]: value for data in files.files.values()}


def test_new_placement_is_written_as_it_is() -> None:
    files = written(deployment(), job())
    assert held({}, files) == HeldFiles(files=files)


def test_change_that_an_api_server_takes_is_written_as_it_is() -> None:
    other = deployment(4)
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "vllm:2"
    files = written(other)
    assert held(written(deployment()), files) == HeldFiles(files=files)


def test_companion_stays_while_the_rest_of_its_placement_changes() -> None:
    outcome = held(written(deployment(2), job("prep:1")), written(deployment(4), job("prep:2")))
    assert objects(outcome)["Job"] == job("prep:1")
    assert objects(outcome)["Deployment"] == deployment(4)
    assert outcome.kept == "what nobody can change stays as it was placed: spec.template of Job demo/prep"
    assert not outcome.whole


def test_companion_whose_step_was_renamed_is_the_same_object() -> None:
    outcome = held(written(job("prep:1"), step=1), written(job("prep:2"), step=2))
    assert [*outcome.files] == ["vllm-1/manifests/1-job-prep.yaml"], "the only workload of a placement holds it all"
    outcome = held(
        written(deployment()) | written(job("prep:1"), step=1), written(deployment()) | written(job("prep:2"), step=2)
    )
    assert objects(outcome)["Job"] == job("prep:1")
    assert "vllm-1/manifests/2-job-prep.yaml" in outcome.files


def test_selector_of_a_workload_keeps_its_service_and_takes_its_replicas() -> None:
    old = written(deployment(2), service("vllm"), scaler(2))
    new = written(deployment(5, tier="gpu"), service("other"), scaler(5), job())
    outcome = held(old, new)
    assert outcome.whole
    assert objects(outcome) == {
        "Deployment": deployment(5),
        "Service": service("vllm"),
        "HorizontalPodAutoscaler": scaler(5),
    }
    assert outcome.kept == (
        "all but its replicas stays as it was placed, since nobody can change spec.selector of Deployment demo/vllm"
    )


def stateful(replicas: int = 2) -> dict[str, Any]:
    return {**deployment(replicas), "kind": "StatefulSet"}


def named(manifest: dict[str, Any], name: str = "vllm", namespace: str = "demo") -> dict[str, Any]:
    return {**manifest, "metadata": {"name": name, "namespace": namespace}}


IDENTITY = "all but its replicas stays as it was placed, since nobody can change the kind, namespace and name of"


@pytest.mark.parametrize(
    "new",
    [
        named(deployment(5), name="vllm-v2"),
        named(deployment(5), namespace="other"),
        stateful(5),
        {**deployment(5), "kind": "CloneSet", "apiVersion": "apps.kruise.io/v1alpha1"},
    ],
    ids=["name", "namespace", "kind", "group"],
)
def test_workload_in_whose_place_another_comes_stays_with_all_of_its_placement(new: dict[str, Any]) -> None:
    """The pods of the old object would go at once, before any of the new one serves."""
    scales = scaler(5)
    scales["spec"]["scaleTargetRef"] = {"kind": new["kind"], "name": new["metadata"]["name"]}
    outcome = held(written(deployment(2), service("vllm"), scaler(2)), written(new, service("other"), scales))
    assert outcome.whole
    assert objects(outcome) == {
        "Deployment": deployment(5),
        "Service": service("vllm"),
        "HorizontalPodAutoscaler": scaler(5),
    }
    assert outcome.kept == f"{IDENTITY} Deployment demo/vllm"


def test_job_that_runs_alone_stays_where_another_comes_in_its_place() -> None:
    outcome = held(written(job("prep:1")), written(named(job("prep:2"), name="other")))
    assert objects(outcome) == {"Job": job("prep:1")}
    assert outcome.kept == f"{IDENTITY} Job demo/prep"


def test_workload_that_is_deleted_beside_another_goes() -> None:
    router = named(deployment(1), name="router")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("v2"), "data": {"a": "1"}}
    files = written(deployment(4), config)
    assert held(written(deployment(), router), files) == HeldFiles(files=files)


def command(image: str = "prep:1") -> dict[str, Any]:
    return {**job(image), "metadata": {**metadata("prep"), "labels": {"overspill.dev/step": "prep"}}}


ONCE = {"job": job(parallelism=9), "command": command()}
"""What runs once beside workloads, and takes the place of none."""


@pytest.mark.parametrize("once", ONCE.values(), ids=ONCE)
@pytest.mark.parametrize("charts", [False, True])
def test_workload_goes_though_something_that_runs_once_comes(once: dict[str, Any], charts: bool) -> None:
    """Its replicas were those of a new Job before, and nothing else in the placement changed any more."""
    files = written(deployment(4), once)
    assert held(written(deployment(), named(deployment(1), name="router")), files, charts=charts) == HeldFiles(
        files=files
    )


GATEWAY = {"apiVersion": "example.com/v1", "kind": "Gateway", "metadata": metadata("vllm"), "spec": {}}
"""An object of which nobody knows whether it makes pods."""


@pytest.mark.parametrize("beside", [*ONCE.values(), GATEWAY], ids=[*ONCE, "unknown kind"])
def test_workload_that_is_renamed_is_resized_though_more_comes_beside_it(beside: dict[str, Any]) -> None:
    outcome = held(written(deployment(2)), written(named(deployment(5), name="v2"), beside))
    assert objects(outcome) == {"Deployment": deployment(5)}
    assert outcome.kept == f"{IDENTITY} Deployment demo/vllm"


def test_workloads_that_are_replaced_together_get_the_replicas_of_their_own_successors() -> None:
    router, queue = named(deployment(1), name="router"), named(stateful(3), name="queue")
    old = written(deployment(2), step=1) | written(router, step=2) | written(queue, step=3)
    new = written(named(stateful(4), name="broker"), step=1)
    new |= written(named(deployment(1), name="gateway"), step=2) | written(stateful(6), step=3)
    replicas = {
        value["metadata"]["name"]: value["spec"]["replicas"]
        for value in map(yaml.safe_load, held(old, new).files.values())
    }
    assert replicas == {"vllm": 6, "router": 1, "queue": 4}


def test_companion_that_is_renamed_is_replaced() -> None:
    files = written(deployment(4), named(job("prep:2"), name="other"))
    assert held(written(deployment(), job()), files) == HeldFiles(files=files)


@pytest.mark.parametrize(
    "new",
    [
        [named(deployment(5), name="a"), named(deployment(5), name="b")],
        [{"apiVersion": "example.com/v1", "kind": "Server", "metadata": metadata("vllm"), "spec": {}}],
        [service("vllm")],
    ],
    ids=["two in its place", "of a kind without known replicas", "none in its place"],
)
def test_workload_whose_replicas_nothing_says_any_more_is_not_resized(new: list[dict[str, Any]]) -> None:
    with pytest.raises(InvalidInput, match="Deployment demo/vllm would be deleted with all of its pods"):
        held(written(deployment(), service("vllm")), written(*new))


def test_workload_is_not_held_by_another_file_of_the_same_object() -> None:
    files = written(deployment(4), step=2)
    assert held(written(deployment(), step=1), files) == HeldFiles(files=files)


def test_object_that_a_held_workload_mounts_stays_though_the_template_has_it_no_more() -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata("v1"), "data": {"a": "1"}}
    outcome = held(written(deployment(), config), written(deployment(tier="gpu")))
    assert objects(outcome)["ConfigMap"] == config


def test_metadata_of_a_held_object_is_that_of_its_new_version() -> None:
    new = job("prep:2")
    new["metadata"] = {**metadata("prep"), "annotations": {"argocd.argoproj.io/sync-options": "Prune=false"}}
    outcome = held(written(deployment(), job("prep:1")), written(deployment(), new))
    assert objects(outcome)["Job"] == {**job("prep:1"), "metadata": new["metadata"]}


def test_label_of_a_queue_stays_in_the_metadata_of_a_new_version() -> None:
    queue = {"kueue.x-k8s.io/queue-name": "a"}
    old, new = job(), job()
    old["metadata"] = {**metadata("prep"), "labels": queue}
    new["metadata"] = {**metadata("prep"), "labels": {"kueue.x-k8s.io/queue-name": "b", "team": "x"}}
    outcome = held(written(deployment(), old), written(deployment(), new))
    assert objects(outcome)["Job"]["metadata"]["labels"] == {"team": "x", **queue}


def test_stateful_set_in_a_queue_of_kueue_is_not_resized() -> None:
    def stateful(replicas: int, **labels: str) -> dict[str, Any]:
        made = {**deployment(replicas), "kind": "StatefulSet", "metadata": {**metadata("vllm"), "labels": labels}}
        return {**made, "spec": {**made["spec"], "serviceName": "vllm"}}

    queue = {"kueue.x-k8s.io/queue-name": "a"}
    with pytest.raises(InvalidInput, match="StatefulSet demo/vllm stands with a number of replicas that nobody can"):
        held(written(stateful(2, **queue)), written(stateful(4, **queue)))
    files = written(stateful(4))
    assert held(written(stateful(2)), files) == HeldFiles(files=files)


def test_job_whose_completions_are_its_replicas_is_not_resized() -> None:
    old, new = job(parallelism=2, completions=2), job(parallelism=4, completions=4)
    with pytest.raises(InvalidInput, match="Job demo/prep stands with 2 completions, which nobody can change"):
        held(written(old), written(new))
    indexed = {"completionMode": "Indexed"}
    files = written(job(parallelism=4, completions=4, **indexed))
    assert held(written(job(parallelism=2, completions=2, **indexed)), files) == HeldFiles(files=files)


def test_job_beside_a_workload_never_holds_up_the_workload() -> None:
    old, new = job(parallelism=2, completions=2), job(parallelism=4, completions=4)
    outcome = held(written(deployment(2), old), written(deployment(4), new))
    assert objects(outcome) == {"Deployment": deployment(4), "Job": old}


def test_job_beside_a_chart_never_holds_up_the_chart() -> None:
    def release(replicas: int) -> dict[str, Any]:
        spec = {"values": {"replicaCount": replicas}}
        return {
            "apiVersion": "helm.toolkit.fluxcd.io/v2",
            "kind": "HelmRelease",
            "metadata": metadata("vllm"),
            "spec": spec,
        }

    outcome = held(written(release(2), job("prep:1")), written(release(4), job("prep:2")), charts=True)
    assert objects(outcome) == {"HelmRelease": release(4), "Job": job("prep:1")}
    outcome = held(written(deployment(), release(2)), written(deployment(tier="gpu"), release(4)), charts=True)
    assert objects(outcome) == {"HelmRelease": release(4), "Deployment": deployment()}


def test_job_of_a_command_is_no_workload() -> None:
    outcome = held(written(command("a"), service("a")), written(command("b"), service("b")))
    assert objects(outcome) == {"Job": command("a"), "Service": service("b")}


def job_set(replicas: int, name: str = "worker") -> dict[str, Any]:
    spec = {"replicatedJobs": [{"name": name, "replicas": replicas, "template": {"spec": job()["spec"]}}]}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata("train"), "spec": spec}


def train_job(replicas: int, image: str = "a") -> dict[str, Any]:
    spec = {"runtimeRef": {"name": "torch"}, "trainer": {"image": image, "numNodes": replicas}}
    metadata_ = metadata("train")
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata_, "spec": spec}


def wrapper(made: dict[str, Any]) -> dict[str, Any]:
    kind, spec = "AppWrapper", {"components": [{"template": made}]}
    return {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": kind, "metadata": metadata("train"), "spec": spec}


def wrapped_job(replicas: int, image: str = "prep:1") -> dict[str, Any]:
    return wrapper(job(image, parallelism=replicas, completions=4))


def graph(replicas: int) -> dict[str, Any]:
    spec = {"components": [{"name": "decode", "replicas": replicas, "scalingAdapter": {}}]}
    kind = "DynamoGraphDeployment"
    return {"apiVersion": "nvidia.com/v1beta1", "kind": kind, "metadata": metadata("train"), "spec": spec}


@pytest.mark.parametrize("made", [job_set, train_job, wrapped_job])
def test_replicas_within_an_immutable_field_are_not_resized(made: Callable[..., dict[str, Any]]) -> None:
    """Their webhooks refused the object, the engine failed, and the whole burst was taken back."""
    kind = made(2)["kind"]
    with pytest.raises(InvalidInput, match=f"{kind} demo/train stands with a number of replicas that nobody can"):
        held(written(made(2)), written(made(4)))
    with pytest.raises(InvalidInput, match="nobody can change"):
        held(written(made(2)), written(named(made(4), name="other")))
    outcome = held(written(deployment(2), made(2)), written(deployment(4), made(4)))
    assert objects(outcome) == {"Deployment": deployment(4), kind: made(2)}, "beside a workload"
    assert objects(held(written(made(2)), written(made(2, "other")))) == {kind: made(2)}


@pytest.mark.parametrize("made", [lambda replicas: wrapper(deployment(replicas)), graph], ids=["a wrapper", "a graph"])
def test_replicas_of_what_serves_within_an_immutable_field_are_not_resized(
    made: Callable[..., dict[str, Any]],
) -> None:
    with pytest.raises(InvalidInput, match="demo/train stands with a number of replicas that nobody can change"):
        held(written(made(2)), written(made(4)))


def test_replicas_beside_immutable_fields_are_resized() -> None:
    def volcano(replicas: int, image: str = "a") -> dict[str, Any]:
        pod = {"spec": {"containers": [{"name": "x", "image": image}]}}
        spec = {"minAvailable": replicas, "tasks": [{"name": "worker", "replicas": replicas, "template": pod}]}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata("train"), "spec": spec}

    files = written(volcano(4))
    assert held(written(volcano(2)), files) == HeldFiles(files=files)
    outcome = objects(held(written(volcano(2)), written(volcano(4, "b"))))["Job"]
    assert outcome["spec"]["tasks"] == volcano(4)["spec"]["tasks"]


def test_what_a_person_has_made_of_a_file_is_not_compared() -> None:
    files = written(deployment(4))
    assert held({"vllm-1/manifests/1-deployment-vllm.yaml": b"{: <<<<"}, files) == HeldFiles(files=files)


def test_many_held_objects_are_told_by_a_few_names() -> None:
    def configs(value: str) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata(f"c{n}"),
                "immutable": True,
                "data": {"a": value},
            }
            for n in range(9)
        ]

    outcome = held(written(*configs("1")), written(*configs("2")))
    assert outcome.kept.endswith("data of ConfigMap demo/c4; 4 more objects")
    assert len(outcome.files) == 9


def test_standing_field_of_another_type_is_no_error() -> None:
    standing = {"apiVersion": "v1", "kind": "Service", "metadata": metadata("vllm"), "spec": {"ipFamilies": 1}}
    wanted = {**standing, "spec": {"ipFamilies": ["IPv4"]}}
    assert held(written(standing), written(wanted)).files == written(wanted)
