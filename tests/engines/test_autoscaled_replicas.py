"""An autoscaler owns the replicas of what it scales: no engine is given them, and none puts them right."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from reconciler.core.engines import autoscaled_replicas
from reconciler.core.engines.deployment import autoscaled, scaled_objects
from reconciler.core.workloads.paths import at
from reconciler.model.kubernetes.workload_kind import WorkloadKind, path
from reconciler.model.policy import EngineName
from reconciler.model.workload import Json
from tests.builders.deploy_specs import chart, files, spec
from tests.builders.platform_objects import deployment, obj
from tests.builders.workload_kinds import SAMPLES, lws

ENGINES = [*EngineName]


def hpa(kind: str = "Deployment", version: str = "apps/v1", name: str = "model", **metadata: Json) -> Json:
    target = {"apiVersion": version, "kind": kind, "name": name}
    bounds = {"minReplicas": "{{ replicas }}", "maxReplicas": 8}
    return obj("autoscaling/v2", "HorizontalPodAutoscaler", "scaler", {"scaleTargetRef": target, **bounds}, **metadata)


def written(*objects: Json, engine: EngineName, charts: Any = None) -> dict[str, Json]:
    """What an engine is given, by kind and name."""
    deployed = spec(*((f"part-{number}", one) for number, one in enumerate(objects)))
    made = files(deployed, engine, charts=charts)
    found = (one for data in made.values() for one in yaml.safe_load_all(data) if one and one.get("metadata"))
    return {f"{one['kind']} {one['metadata']['name']}": one for one in found}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("scaler", "target"),
    [
        (hpa(), deployment(replicas=3)),
        (
            hpa("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1"),
            obj("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec=lws()["spec"]),
        ),
        (hpa("Rollout", "argoproj.io/v1alpha1"), obj("argoproj.io/v1alpha1", "Rollout", spec={"replicas": 3, "a": 1})),
        (hpa("Strange", "example.com/v1"), obj("example.com/v1", "Strange", spec={"replicas": 3, "a": 1})),
        (obj("keda.sh/v1alpha1", "ScaledObject", spec={"scaleTargetRef": {"name": "model"}}), deployment(replicas=3)),
    ],
    ids=lambda value: value["kind"],
)
def test_what_is_scaled_comes_without_replicas(scaler: Json, target: Json, engine: EngineName) -> None:
    assert at(target, path("spec.replicas"))
    alone = written(target, engine=engine)[f"{target['kind']} model"]["spec"]
    beside = written(target, scaler, engine=engine)[f"{target['kind']} model"]["spec"]
    assert alone.pop("replicas")
    assert beside == alone


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "scaler",
    [
        hpa(name="other"),
        hpa("StatefulSet"),
        hpa(version="example.com/v1"),
        hpa(namespace="other"),
        obj("keda.sh/v1alpha1", "ScaledJob", spec={"jobTargetRef": {}}),
    ],
    ids=["another name", "another kind", "another group", "another namespace", "jobs of its own"],
)
def test_what_is_not_scaled_keeps_its_share(scaler: Json, engine: EngineName) -> None:
    assert written(deployment(replicas=3), scaler, engine=engine)["Deployment model"]["spec"]["replicas"] == 3


def test_an_elastic_job_of_pytorch_has_its_scale_in_its_workers() -> None:
    roles = {"Master": {"replicas": 1}, "Worker": {"replicas": 3}}
    job = obj("kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": roles})
    made = written(job, hpa("PyTorchJob", "kubeflow.org/v1"), engine=EngineName.MANIFESTS)["PyTorchJob model"]
    assert made["spec"]["pytorchReplicaSpecs"] == {"Master": {"replicas": 1}, "Worker": {}}
    assert "replicas" not in at(made, path("spec.pytorchReplicaSpecs.Worker"))


def test_a_kind_without_a_scale_keeps_its_share() -> None:
    # Since KServe scales what it makes of it: no autoscaler can scale the service itself.
    service = obj("serving.kserve.io/v1alpha1", "LLMInferenceService", spec={"replicas": 2, "prefill": {"replicas": 3}})
    scaler = hpa("LLMInferenceService", "serving.kserve.io/v1alpha1")
    made = written(service, scaler, engine=EngineName.MANIFESTS)["LLMInferenceService model"]
    assert made["spec"] == {"replicas": 2, "prefill": {"replicas": 3}}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_would_begin_with_none_begins_with_one_replica(engine: EngineName) -> None:
    # Grove's CRD defaults replicas to 0, and an autoscaler leaves alone what has none.
    template = SAMPLES["PodCliqueSet"][0]["spec"]["template"]
    cliques = obj("grove.io/v1alpha1", "PodCliqueSet", spec={"replicas": 3, "template": template})
    made = written(cliques, hpa("PodCliqueSet", "grove.io/v1alpha1"), engine=engine)
    assert made["PodCliqueSet model"]["spec"]["replicas"] == 1
    stages = [one for name, one in made.items() if name.startswith("Kustomization")]
    assert [stage["spec"]["ignore"] for stage in stages] == [
        [{"paths": ["/spec/replicas"], "target": target("grove\\.io", "PodCliqueSet")}] for _ in stages
    ]


def test_a_kind_that_is_declared_is_scaled_where_it_says() -> None:
    kind = WorkloadKind(group="game.example.com", kind="GameServerSet", replicas=(path("spec.rooms.size"),))
    kinds = {kind.name: kind}
    made = obj("game.example.com/v1", "GameServerSet", spec={"rooms": {"size": 3, "of": 2}})
    scaler = hpa("GameServerSet", "game.example.com/v1")
    way = autoscaled_replicas.owned_replica_paths(made, "ml", autoscaled_replicas.targets([(scaler, "ml")]), kinds)
    assert way == path("spec.rooms.size")
    assert autoscaled_replicas.without(made, way)["spec"] == {"rooms": {"of": 2}}
    assert (
        autoscaled_replicas.owned_replica_paths(
            made, "ml", autoscaled_replicas.targets([(scaler, "ml")]), {kind.name: replace(kind, replicas=())}
        )
        == ()
    )


def test_flux_puts_right_what_is_not_scaled_and_leaves_alone_what_is() -> None:
    other = deployment(replicas=3)
    other = {**other, "metadata": {**other["metadata"], "name": "router"}}
    made = written(deployment(replicas=3), other, hpa(), engine=EngineName.FLUX)
    (stage,) = (one for name, one in made.items() if name.startswith("Kustomization"))
    assert stage["spec"]["ignore"] == [
        {"paths": ["/spec/replicas"], "target": target("apps", "Deployment")},
    ]


def test_objects_of_a_chart_that_is_rendered_here_are_scaled_as_well() -> None:
    scaler = hpa()
    scaler["spec"]["minReplicas"] = 3
    objects = (deployment(replicas=3), scaler)
    charts = {"vllm-app": tuple({**one, "metadata": {**one["metadata"], "namespace": "vllm-demo"}} for one in objects)}
    made = files(spec(chart()), EngineName.MANIFESTS, charts=charts)
    (found,) = (yaml.safe_load(data) for name, data in made.items() if "deployment" in name)
    assert "replicas" not in found["spec"]


def test_argo_cd_is_told_whose_replicas_it_may_not_put_right() -> None:
    scaler = hpa(name="gateway")
    assert scaled_objects(spec(chart(), ("scaler", scaler)), "demo") == [
        {
            "group": "apps",
            "kind": "Deployment",
            "namespace": "ml",
            "name": "gateway",
            "jsonPointers": ["/spec/replicas"],
        }
    ]
    assert not autoscaled(spec(chart(), ("scaler", scaler))), "all Deployments would be ignored"
    assert scaled_objects(spec(chart(), ("job", obj("keda.sh/v1alpha1", "ScaledJob"))), "demo") == []


def test_argo_cd_ignores_the_replicas_of_all_where_an_autoscaler_names_nothing() -> None:
    scaler = obj("keda.sh/v1alpha1", "ScaledObject", spec={"scaleTargetRef": {"name": "{{ template.name }}"}})
    assert autoscaled(spec(chart(), ("scaler", scaler)))


def test_pointer_of_a_scaled_object_is_where_its_kind_has_its_replicas() -> None:
    served = obj("serving.kserve.io/v1beta1", "InferenceService", spec={"predictor": {"minReplicas": 2}})
    scaler = hpa("InferenceService", "serving.kserve.io/v1beta1", namespace="model")
    (found,) = scaled_objects(
        spec(("it", {**served, "metadata": {"name": "model", "namespace": "model"}}), ("s", scaler)), "x"
    )
    assert found["namespace"] == "model"
    assert found["jsonPointers"][0].startswith("/spec/")


def ray(kind: str = "RayCluster", root: str = "", *, scales: bool = True, **group: Json) -> Json:
    """Make an object with a cluster of Ray's that has two groups of workers."""
    groups = [{"groupName": name, "replicas": 3, **group} for name in ("small", "large")]
    cluster = {"enableInTreeAutoscaling": scales, "workerGroupSpecs": groups}
    return obj("ray.io/v1", kind, spec={root: cluster} if root else cluster)


def target(group: str, kind: str) -> Json:
    """Select the object of the tests, as Flux does."""
    return {"group": group, "kind": kind, "name": "model", "namespace": "ml"}


def ignored(*objects: Json) -> Json:
    """What Flux is told to leave alone."""
    made = written(*objects, engine=EngineName.FLUX)
    (stage,) = (one for name, one in made.items() if name.startswith("Kustomization"))
    return stage["spec"].get("ignore", [])


def test_flux_leaves_alone_what_rays_own_autoscaler_writes_once_it_is_there() -> None:
    cluster = target("ray\\.io", "RayCluster")
    fields = [f"/spec/workerGroupSpecs/{index}/{field}" for index in (0, 1) for field in ("replicas", "scaleStrategy")]
    assert ignored(ray()) == [{"paths": fields, "target": cluster}]
    assert ignored(ray(), deployment(), hpa())[0] == {"paths": fields, "target": cluster}
    assert ignored(ray(scales=False)) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_group_begins_with_the_number_that_is_written_since_without_one_it_has_none(
    engine: EngineName,
) -> None:
    groups = written(ray(), engine=engine)["RayCluster model"]["spec"]["workerGroupSpecs"]
    assert [group["replicas"] for group in groups] == [3, 3]


def test_flux_tells_objects_of_two_groups_and_names_with_dots_apart() -> None:
    dotted = {**deployment(), "metadata": {**deployment()["metadata"], "name": "model.v1"}}
    scaler = hpa()
    scaler["spec"]["scaleTargetRef"]["name"] = "model.v1"
    (rule,) = ignored(dotted, scaler)
    assert rule["target"]["name"] == "model\\.v1", "a dot of a pattern is any character"
    fields = {"selector": {"matchLabels": {"app": "a"}}, "template": deployment()["spec"]["template"], "replicas": 2}
    ours = obj("apps/v1", "StatefulSet", spec=fields)
    kruise = obj("apps.kruise.io/v1beta1", "StatefulSet", spec=fields)
    assert [rule["target"] for rule in ignored(ours, kruise, hpa("StatefulSet"))] == [target("apps", "StatefulSet")]


@pytest.mark.parametrize(("kind", "root"), [("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")])
def test_of_a_job_or_a_service_of_rays_the_autoscaler_writes_another_object(kind: str, root: str) -> None:
    assert ignored(ray(kind, root)) == []
