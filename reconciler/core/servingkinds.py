"""Kinds that serve models: what is known of them, as data."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.describing import REPLICAS, plain, template
from reconciler.model.workloadkind import Count, Group, Mark, PodTemplate, WorkloadKind, path


def rolling() -> Iterator[WorkloadKind]:
    """Describe what is like a Deployment, and rolls out in ways of its own."""
    yield plain("apps.kruise.io", "CloneSet", ("v1alpha1", "v1beta1"), "Kruise 07169cf (2026-07-02)")
    yield WorkloadKind(
        group="argoproj.io",
        kind="Rollout",
        versions=("v1alpha1",),
        replicas=(REPLICAS,),
        templates=(
            PodTemplate(
                spec=path("spec.template.spec"),
                reference=path("spec.workloadRef"),
                labels=path("spec.template.metadata.labels"),
                counts=(Count(path=REPLICAS),),
            ),
        ),
        checked="Argo Rollouts 9f8d111 (2026-08-17)",
    )


_SERVERS = (
    "model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm",
    "paddle",
)  # fmt: skip # a list of words, filled line by line
"""The fields of a predictor that are the container of a model server."""


def serving() -> Iterator[WorkloadKind]:
    """Describe the services of KServe."""
    checked = "KServe aaac4e2 (2026-08-21)"
    yield WorkloadKind(
        group="serving.kserve.io",
        kind="InferenceService",
        versions=("v1beta1",),
        replicas=(path("spec.predictor.minReplicas"),),
        templates=(
            _component("predictor", _SERVERS, completed=True),
            _component("transformer", optional=True),
            _component("explainer", ("art",), optional=True),
        ),
        unknown=(path("spec.predictor.workerSpec"),),
        marks=(Mark(label="serving.kserve.io/inferenceservice"),),
        checked=checked,
    )
    yield WorkloadKind(
        group="serving.kserve.io",
        kind="LLMInferenceService",
        versions=("v1alpha1", "v1alpha2"),
        replicas=(REPLICAS, path("spec.prefill.replicas")),
        templates=(
            *_llm("spec", optional=False),
            *_llm("spec.prefill", optional=True),
            PodTemplate(
                spec=path("spec.router.scheduler.template"),
                labels=path("spec.router.scheduler.labels"),
                optional=True,
                counts=(Count(path=path("spec.router.scheduler.replicas")),),
            ),
        ),
        together=Group(called="service"),
        marks=(Mark(label="app.kubernetes.io/name", beside=(("app.kubernetes.io/part-of", "llminferenceservice"),)),),
        checked=checked,
    )


def _component(
    name: str, containers: tuple[str, ...] = (), *, optional: bool = False, completed: bool = False
) -> PodTemplate:
    """Describe a component of an InferenceService, which is the spec of its pods and has their number and labels."""
    root = ("spec", name)
    counts = (Count(path=(*root, "minReplicas")),)
    return PodTemplate(
        spec=root,
        containers=containers,
        labels=(*root, "labels"),
        optional=optional,
        completed=completed,
        counts=counts,
    )


def _llm(root: str, *, optional: bool) -> Iterator[PodTemplate]:
    """Describe the pods that compute for an LLMInferenceService: of groups of several, the others are workers."""
    replicas = Count(path=path(f"{root}.replicas"))
    size = Count(
        path=path(f"{root}.parallelism.data"),
        over=path(f"{root}.parallelism.dataLocal"),
        instead=path(f"{root}.parallelism.pipeline"),
        less=1,
    )
    labels = path(f"{root}.labels")
    yield PodTemplate(
        spec=path(f"{root}.template"), labels=labels, optional=optional, completed=True, counts=(replicas,)
    )
    yield PodTemplate(
        spec=path(f"{root}.worker"), labels=labels, optional=True, completed=True, counts=(replicas, size)
    )


def dynamo() -> Iterator[WorkloadKind]:
    """Describe the graphs of Dynamo, whose two versions have their pods in different places."""
    services, components = "spec.services.*", "spec.components.*"
    yield WorkloadKind(
        group="nvidia.com",
        kind="DynamoGraphDeployment",
        versions=("v1alpha1", "v1beta1"),
        replicas=(path(f"{services}.replicas"), path(f"{components}.replicas")),
        templates=(
            PodTemplate(
                spec=path(f"{services}.extraPodSpec"),
                containers=("mainContainer",),
                resources=path(f"{services}.resources"),
                labels=path(f"{services}.extraPodMetadata.labels"),
                optional=True,
                counts=tuple(Count(path=path(f"{services}.{one}")) for one in ("replicas", "multinode.nodeCount")),
            ),
            template(
                f"{components}.podTemplate",
                f"{components}.replicas",
                f"{components}.multinode.nodeCount",
                optional=True,
            ),
        ),
        together=Group(called="graph"),
        marks=(Mark(label="nvidia.com/dynamo-graph-deployment-name"),),
        checked="Dynamo 50820f5 (v1alpha1 and v1beta1 types), d195d28 (labels)",
    )
