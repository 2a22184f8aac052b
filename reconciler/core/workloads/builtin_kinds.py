"""The register of kinds of workloads: all that follows from a kind is a column here, and no other module lists kinds.

Each path was read from the project's own API types, of the release or the commit that `checked` names. A WorkloadKind
in the fleet repository goes before the entry here. To add a kind, add an entry to the list of its family below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.wrapped_kinds import wrapping_kind
from reconciler.model.cluster import Category
from reconciler.model.kubernetes.workload_kind import (
    EACH,
    Count,
    EndStatus,
    Group,
    Mark,
    Path,
    PodTemplate,
    ScaledPart,
    WorkloadKind,
    path,
)
from reconciler.model.workload import Json, WorkloadRef

REPLICAS = path("spec.replicas")
SUSPEND = (path("spec.suspend"),)
LABELS = ("metadata", "labels")


def template(
    text: str, *counts: Count | str, instead: str = "", optional: bool = False, completed: bool = False
) -> PodTemplate:
    """Describe a pod template as Kubernetes has them, with metadata beside the spec."""
    pod_path = path(text)
    return PodTemplate(
        spec=(*pod_path, "spec"),
        instead=path(f"{instead}.spec") if instead else (),
        labels=(*pod_path, *LABELS),
        optional=optional,
        completed=completed,
        counts=tuple(Count(path=path(count)) if isinstance(count, str) else count for count in counts),
    )


def spec_template_kind(
    group: str,
    kind: str,
    versions: tuple[str, ...],
    checked: str,
    *,
    counted: bool = True,
    plural: str = "",
    short_name: str = "",
    one_by_one: bool = False,
    unqueued: bool = False,
) -> WorkloadKind:
    """Describe a kind that makes ``spec.replicas`` pods of ``spec.template``, or uncounted ones, on each node."""
    return WorkloadKind(
        group=group,
        kind=kind,
        versions=versions,
        replicas=(REPLICAS,) if counted else (),
        templates=(template("spec.template", *(("spec.replicas",) if counted else ())),),
        counted=counted,
        on_each_node=not counted,
        ordinals=kind == "StatefulSet",
        one_by_one=one_by_one,
        unqueued=unqueued,
        spreads=counted and bool(group),
        plural=plural,
        short_name=short_name,
        checked=checked,
    )


def parallel_pods(root: str) -> Count:
    """Count the parallel pods of a Job: never more than its completions."""
    return Count(path=path(f"{root}.parallelism"), most=path(f"{root}.completions"))


_GROVE = "Grove fcc3b3b (2026-08-19)"
_JOBSET = Mark(label="jobset.sigs.k8s.io/jobset-name")
_COMPLETE = EndStatus(complete=("Complete",), failed=("Failed",))
"""The conditions of Kubernetes' Job (`JobComplete`, `JobFailed`), which others have taken over."""


_JOB = replace(_COMPLETE, ending=("FailureTarget", "SuccessCriteriaMet"))
"""Those of a Job itself, which says beforehand how it will end (`JobFailureTarget`, `JobSuccessCriteriaMet`)."""


def sets() -> Iterator[WorkloadKind]:
    """Describe sets of pods or of jobs, some of which are gangs."""
    worker = "spec.leaderWorkerTemplate.workerTemplate"
    yield WorkloadKind(
        group="leaderworkerset.x-k8s.io",
        kind="LeaderWorkerSet",
        versions=("v1",),
        replicas=(REPLICAS,),
        templates=(
            template("spec.leaderWorkerTemplate.leaderTemplate", "spec.replicas", instead=worker),
            template(worker, "spec.replicas", Count(path=path("spec.leaderWorkerTemplate.size"), less=1)),
        ),
        together=Group(
            called="group",
            counts=(Count(path=REPLICAS),),
            eager=(path("spec.startupPolicy"), "LeaderReady"),
            label="leaderworkerset.sigs.k8s.io/group-index",
            size="leaderworkerset.sigs.k8s.io/size",
            # `hpaPodSelector` in its status, pkg/controllers/leaderworkerset_controller.go
            leader=("leaderworkerset.sigs.k8s.io/worker-index", "0"),
        ),
        divides=True,
        apart="leaderworkerset.sigs.k8s.io/exclusive-topology",
        group_key="leaderworkerset.sigs.k8s.io/group-key",
        subgroup_key="leaderworkerset.sigs.k8s.io/subgroup-key",
        # `initRollingUpdate`, pkg/controllers/disaggregatedset/executor.go
        replaced="disaggregatedset.x-k8s.io/initial-replicas",
        marks=(Mark(label="leaderworkerset.sigs.k8s.io/name"),),
        checked="LeaderWorkerSet 060ab4d (2026-08-21)",
    )
    yield _disaggregated_set()
    jobs = "spec.replicatedJobs.*"
    yield WorkloadKind(
        group="jobset.x-k8s.io",
        kind="JobSet",
        versions=("v1alpha2",),
        replicas=(path(f"{jobs}.replicas"),),
        templates=(
            template(f"{jobs}.template.spec.template", f"{jobs}.replicas", parallel_pods(f"{jobs}.template.spec")),
        ),
        together=Group(called="set"),
        suspended=SUSPEND,
        apart="alpha.jobset.sigs.k8s.io/exclusive-topology",
        group_key="jobset.sigs.k8s.io/job-key",
        once=True,
        completions=path(f"{jobs}.template.spec.completions"),
        deadline=path(f"{jobs}.template.spec.activeDeadlineSeconds"),
        runs=path(f"{jobs}.replicas"),
        complete_early=(
            (path("spec.successPolicy.operator"), "All"),
            (path("spec.successPolicy.targetReplicatedJobs"), ""),
        ),
        end=EndStatus(complete=("Completed",), failed=("Failed",)),
        marks=(_JOBSET,),
        checked="JobSet 08dfbdf (2026-08-18)",
    )
    cliques, scaling = "spec.template.cliques.*", "spec.template.podCliqueScalingGroups.*"
    sizes, copies = path(f"{scaling}.replicas"), Count(path=REPLICAS, default=0)
    yield WorkloadKind(
        group="grove.io",
        kind="PodCliqueSet",
        versions=("v1alpha1",),
        replicas=(REPLICAS,),
        templates=(
            PodTemplate(
                spec=path(f"{cliques}.spec.podSpec"),
                labels=path(f"{cliques}.labels"),
                counts=(
                    copies,
                    Count(path=sizes, among=("cliqueNames", "name"), enough=path(f"{scaling}.minAvailable")),
                    Count(path=path(f"{cliques}.spec.replicas"), enough=path(f"{cliques}.spec.minAvailable")),
                ),
            ),
        ),
        together=Group(called="replica of the set", counts=(copies,), label="grove.io/podcliqueset-replica-index"),
        unqueued=True,
        divides=True,
        made=("grove.io/PodClique", "grove.io/PodCliqueScalingGroup"),
        scaled_below=True,  # the replicas of cliques and of scaling groups are the set's at their creation alone
        marks=(Mark(label="app.kubernetes.io/part-of", beside=(("app.kubernetes.io/managed-by", "grove-operator"),)),),
        checked=_GROVE,
    )


def _disaggregated_set() -> WorkloadKind:
    """Describe a set of slices, each of which has a LeaderWorkerSet of every role.

    Its own placement policy, and the exclusive topology of a role, give pods affinities that nothing here counts.
    """
    roles, slices = "spec.roles.*", path("spec.slices")
    group = f"{roles}.spec.leaderWorkerTemplate"
    worker = f"{group}.workerTemplate"
    counts = (Count(path=slices), Count(path=path(f"{roles}.spec.replicas")))
    return WorkloadKind(
        group="disaggregatedset.x-k8s.io",
        kind="DisaggregatedSet",
        versions=("v1",),
        replicas=(slices,),
        scale=(),
        templates=(
            template(f"{group}.leaderTemplate", *counts, instead=worker),
            template(worker, *counts, Count(path=path(f"{group}.size"), less=1)),
        ),
        together=Group(called="slice", counts=(Count(path=slices),), label="disaggregatedset.x-k8s.io/slice"),
        divides=True,
        unknown=(
            path("spec.placementPolicy.topology"),
            (*path(f"{roles}.metadata.annotations"), "leaderworkerset.sigs.k8s.io/exclusive-topology"),
            (*path(f"{roles}.metadata.annotations"), "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"),
        ),
        made=("leaderworkerset.x-k8s.io/LeaderWorkerSet",),
        scaled_below=True,
        revisions="app",  # its name, the slice and the role
        marks=(Mark(label="disaggregatedset.x-k8s.io/name"),),
        # `ScalerName`, pkg/controllers/disaggregatedset/scaler_manager.go
        scaled_as=(
            ScaledPart(
                kind="DisaggregatedSetRoleScaler",
                labels=("disaggregatedset.x-k8s.io/name", "disaggregatedset.x-k8s.io/role"),
            ),
        ),
        checked="LeaderWorkerSet 060ab4d (2026-08-21)",
    )


def training() -> Iterator[WorkloadKind]:
    """Describe the jobs of Volcano and Kubeflow."""
    tasks = "spec.tasks.*"
    yield WorkloadKind(
        group="batch.volcano.sh",
        kind="Job",
        versions=("v1alpha1",),
        replicas=(path(f"{tasks}.replicas"),),
        templates=(
            template(
                f"{tasks}.template",
                Count(path=path(f"{tasks}.replicas"), default=0, enough=path(f"{tasks}.minAvailable")),
            ),
        ),
        together=Group(called="job", gang=path("spec.minAvailable")),
        unqueued=True,
        once=True,
        references=(
            (path("spec.queue"), Category.QUEUES),
            (path("spec.priorityClassName"), Category.PRIORITY_CLASSES),
            (path("spec.schedulerName"), Category.SCHEDULERS),
        ),
        end=EndStatus(
            complete=("Completed",),
            failed=("Failed", "Terminated", "Aborted"),
            ending=("Completing", "Terminating", "Aborting"),
            word=path("status.state.phase"),
            moments=(path("status.state.lastTransitionTime"),),
            reasons=(path("status.state.message"), path("status.state.reason")),
        ),
        marks=(Mark(label="volcano.sh/job-name"),),
        checked="Volcano APIs 536f121 (2026-06-22)",
    )
    checked = "Training Operator 1.9.0"
    for kind, field, elastic, scales in (
        ("TFJob", "tfReplicaSpecs", False, False),
        ("PyTorchJob", "pytorchReplicaSpecs", True, True),
        ("PaddleJob", "paddleReplicaSpecs", True, True),
        ("XGBoostJob", "xgbReplicaSpecs", False, False),
        ("JAXJob", "jaxReplicaSpecs", False, True),
    ):
        roles = f"spec.{field}.*"
        own = f"{kind.lower()}-controller"
        # A master beside elastic workers is one pod, so that the minimum holds for it as well.
        enough = path("spec.elasticPolicy.minReplicas") if elastic else ()
        made = (template(f"{roles}.template", Count(path=path(f"{roles}.replicas"), enough=enough)),)
        ordered = ((enough, path("spec.elasticPolicy.maxReplicas")),) if elastic else ()
        # The operator makes the autoscaler of elastic workers from elasticPolicy.metrics; JAXJob has the scale alone.
        scale = (path(f"spec.{field}.Worker.replicas"),) if scales else ()
        yield _kubeflow(kind, ("v1",), field, made, checked, operators=(own,), ordered=ordered, scale=scale)
    worker = Count(path=path("spec.mpiReplicaSpecs.Worker.replicas"), default=0)
    yield _kubeflow(
        "MPIJob",
        ("v1", "v2beta1"),
        "mpiReplicaSpecs",
        (
            template("spec.mpiReplicaSpecs.Launcher.template", "spec.mpiReplicaSpecs.Launcher.replicas"),
            template("spec.mpiReplicaSpecs.Worker.template", worker, optional=True),
        ),
        f"{checked}, MPI Operator caa3c47 (2026-07-02)",
        operators=("mpijob-controller", "mpi-operator"),
    )
    yield WorkloadKind(
        group="trainer.kubeflow.org",
        kind="TrainJob",
        versions=("v1alpha1",),
        replicas=(path("spec.trainer.numNodes"),),
        templates=(
            PodTemplate(
                resources=path("spec.trainer.resourcesPerNode"),
                completed=True,
                counts=(Count(path=path("spec.trainer.numNodes"), default=None),),
            ),
        ),
        together=Group(called="job"),
        suspended=SUSPEND,
        once=True,
        end=replace(_COMPLETE, by_pods=False),
        references=((path("spec.runtimeRef.name"), Category.RUNTIMES),),
        marks=(_JOBSET,),  # it makes a JobSet of its own name
        checked="Kubeflow Trainer 8c0f505 (2026-08-21)",
    )


def _kubeflow(
    kind: str,
    versions: tuple[str, ...],
    field: str,
    templates: tuple[PodTemplate, ...],
    checked: str,
    *,
    operators: tuple[str, ...],
    ordered: tuple[tuple[Path, Path], ...] = (),
    scale: tuple[Path, ...] = (),
) -> WorkloadKind:
    """Describe a job of the training operator, whose pods have roles."""
    return WorkloadKind(
        group="kubeflow.org",
        kind=kind,
        versions=versions,
        replicas=(path(f"spec.{field}.*.replicas"),),
        templates=templates,
        together=Group(called="job", gang=path("spec.runPolicy.schedulingPolicy.minAvailable")),
        suspended=(path("spec.runPolicy.suspend"),),
        once=True,
        deadline=path("spec.runPolicy.activeDeadlineSeconds"),
        end=EndStatus(complete=("Succeeded",), failed=("Failed",), by_pods=kind != "MPIJob"),
        references=(
            (path("spec.runPolicy.schedulingPolicy.queue"), Category.QUEUES),
            (path("spec.runPolicy.schedulingPolicy.priorityClass"), Category.PRIORITY_CLASSES),
        ),
        scale=scale,
        ordered=ordered,
        marks=tuple(
            Mark(label="training.kubeflow.org/job-name", beside=(("training.kubeflow.org/operator-name", name),))
            for name in operators
        ),
        checked=checked,
    )


def ray() -> Iterator[WorkloadKind]:
    """Describe kinds that run on a Ray cluster."""
    yield _ray_kind("RayCluster", "spec", mark=Mark(label=_RAY))
    made = Mark(label=_RAY, made_up=True, infix="-raycluster")  # KubeRay before 1.4
    yield _ray_kind(
        "RayJob",
        "spec.rayClusterSpec",
        template("spec.submitterPodTemplate", optional=True),
        mark=made,
        optional=True,
    )
    yield _ray_kind("RayService", "spec.rayClusterConfig", mark=made)


_RAY = "ray.io/cluster"
_RAY_JOB = EndStatus(
    complete=("Complete",),
    # A job that is tried once more is `Retrying`; one that a person stops is `Complete` with the status STOPPED, as was
    # one that fails before 1.1.
    failed=("Failed", "ValidationFailed"),
    ending=("Suspending",),
    word=path("status.jobDeploymentStatus"),
    spoiled=(path("status.jobStatus"), ("STOPPED", "FAILED")),
    moments=(path("status.endTime"), path("status.rayJobInfo.endTime")),
    reasons=(path("status.message"), path("status.reason")),
    by_pods=False,
)


def _ray_kind(kind: str, root: str, *more: PodTemplate, mark: Mark, optional: bool = False) -> WorkloadKind:
    """Describe a kind by the path of its Ray cluster: a head, and groups of workers."""
    workers = f"{root}.workerGroupSpecs.*"
    hosts = Count(
        path=path(f"{workers}.replicas"),
        default=0,
        least=path(f"{workers}.minReplicas"),
        most=path(f"{workers}.maxReplicas"),
        elastic=path(f"{root}.enableInTreeAutoscaling"),
    )
    return WorkloadKind(
        group="ray.io",
        kind=kind,
        versions=("v1",),
        replicas=(path(f"{workers}.replicas"),),
        templates=(
            template(f"{root}.headGroupSpec.template", optional=optional),
            replace(
                template(f"{workers}.template", hosts, f"{workers}.numOfHosts"), suspended=path(f"{workers}.suspend")
            ),
            *more,
        ),
        together=Group(called="cluster"),
        suspended=SUSPEND,
        # Ray's autoscaler scales the RayCluster; an upgrade of a RayService has two of them.
        made=() if kind == "RayCluster" else ("ray.io/RayCluster",),
        scaled_below=kind != "RayCluster",
        revisions="" if kind == "RayCluster" else EACH,
        once=kind == "RayJob",
        deadline=path("spec.activeDeadlineSeconds") if kind == "RayJob" else (),
        end=_RAY_JOB if kind == "RayJob" else None,
        divides=kind == "RayService",
        marks=(mark,),
        checked="KubeRay feeaf72 (2026-08-19)",
    )


def rolling() -> Iterator[WorkloadKind]:
    """Describe kinds like a Deployment, with a rollout of their own."""
    checked = "Kruise 07169cf (2026-07-02)"
    versions = ("v1alpha1", "v1beta1")
    yield spec_template_kind("apps.kruise.io", "CloneSet", versions, checked, one_by_one=True)
    yield spec_template_kind("apps.kruise.io", "StatefulSet", versions, checked, unqueued=True)
    yield spec_template_kind("apps.kruise.io", "DaemonSet", versions, checked, counted=False)
    yield WorkloadKind(
        group="apps.kruise.io",
        kind="UnitedDeployment",
        versions=versions,
        replicas=(REPLICAS,),
        templates=tuple(
            template(f"spec.template.{name}Template.spec.template", "spec.replicas", optional=True)
            for name in ("statefulSet", "advancedStatefulSet", "cloneSet", "deployment")
        ),
        made=("apps.kruise.io/StatefulSet", "apps.kruise.io/CloneSet"),
        checked=checked,
    )
    yield WorkloadKind(
        group="apps.kruise.io",
        kind="BroadcastJob",
        versions=versions,
        templates=(template("spec.template"),),
        counted=False,
        on_each_node=True,
        once=True,
        end=_COMPLETE,
        checked=checked,
    )
    yield WorkloadKind(
        group="apps.kruise.io",
        kind="AdvancedCronJob",
        versions=versions,
        templates=tuple(
            template(f"spec.template.{name}Template.spec.template", optional=True) for name in ("job", "broadcastJob")
        ),
        counted=False,
        checked=checked,
    )
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
        one_by_one=True,
        checked="Argo Rollouts 9f8d111 (2026-08-17)",
    )


_SERVERS = (
    "model", "sklearn", "xgboost", "tensorflow", "pytorch", "triton", "onnx", "huggingface", "pmml", "lightgbm",
    "paddle",
)  # fmt: skip # a list of words, filled line by line
"""The fields of a predictor that are the container of a model server."""


_STOP = "serving.kserve.io/stop"
"""The annotation of `GetForceStopRuntime` in pkg/utils/utils.go of KServe, in any case of letters."""


def serving() -> Iterator[WorkloadKind]:
    """Describe the services of KServe."""
    checked = "KServe aaac4e2 (2026-08-21)"
    yield WorkloadKind(
        group="serving.kserve.io",
        kind="InferenceService",
        versions=("v1beta1",),
        replicas=(path("spec.predictor.minReplicas"),),
        ceiling=path("spec.predictor.maxReplicas"),
        templates=(
            _component("predictor", _SERVERS, completed=True),
            _component("transformer", optional=True),
            _component("explainer", ("art",), optional=True),
        ),
        stopped=_STOP,
        scaled_below=True,  # the autoscaler is its Deployment's, or Knative's
        revisions="serving.knative.dev/configuration",
        unqueued=True,
        unknown=(path("spec.predictor.workerSpec"),),
        references=((path("spec.predictor.model.runtime"), Category.RUNTIMES),),
        marks=(Mark(label="serving.kserve.io/inferenceservice"),),
        checked=checked,
    )
    yield WorkloadKind(
        group="serving.kserve.io",
        kind="LLMInferenceService",
        versions=("v1alpha1", "v1alpha2"),
        replicas=(REPLICAS, path("spec.prefill.replicas")),
        scale=(),
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
        stopped=_STOP,
        made=("leaderworkerset.x-k8s.io/LeaderWorkerSet",),
        scaled_below=True,
        divides=True,
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
    """Describe the serving pods of an LLMInferenceService; in groups of several, all but the first are workers."""
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


_GRAPH = "nvidia.com/dynamo-graph-deployment-name"


def dynamo() -> Iterator[WorkloadKind]:
    """Describe Dynamo's graphs, whose two versions have their pods in different fields."""
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
                counts=tuple(Count(path=path(f"{services}.{field}")) for field in ("replicas", "multinode.nodeCount")),
            ),
            template(
                f"{components}.podTemplate",
                f"{components}.replicas",
                f"{components}.multinode.nodeCount",
                optional=True,
            ),
        ),
        together=Group(called="graph"),
        marks=(Mark(label=_GRAPH),),
        # `generateAdapterName` of its operator
        scaled_as=(
            ScaledPart(
                kind="DynamoGraphDeploymentScalingAdapter",
                labels=(_GRAPH, "nvidia.com/dynamo-component"),
            ),
        ),
        checked="Dynamo 50820f5 (v1alpha1 and v1beta1 types), d195d28 (labels)",
    )


def wrappers() -> Iterator[WorkloadKind]:
    """Describe kinds that hold other objects whole, and make them once all of their pods are admitted."""
    yield WorkloadKind(
        group="workload.codeflare.dev",
        kind="AppWrapper",
        versions=("v1beta2",),
        wraps=path("spec.components.*.template"),
        together=Group(called="wrapper"),
        suspended=SUSPEND,
        once=True,
        end=EndStatus(
            complete=("Succeeded",),
            failed=("Failed",),
            ending=("Suspending", "Terminating"),
            word=path("status.phase"),
            moments=(path("status.conditions.*.lastTransitionTime"),),
            explained_by="Unhealthy",
        ),
        marks=(Mark(label="workload.codeflare.dev/appwrapper"),),
        checked="AppWrapper 019a3d3 (v1beta2 types), 017674f (labels), b47a99e (phases)",
    )


Kinds: TypeAlias = Mapping[str, WorkloadKind]
"""Kinds that the fleet repository declares, by ``group/Kind``."""

NO_KINDS: Kinds = {}
_KUBERNETES = "Kubernetes 1.37"


def _kubernetes() -> Iterator[WorkloadKind]:
    yield WorkloadKind(
        group="",
        kind="Pod",
        versions=("v1",),
        templates=(PodTemplate(spec=("spec",)),),
        one_by_one=True,
        end=EndStatus(
            complete=("Succeeded",),
            failed=("Failed",),
            word=path("status.phase"),
            moments=(
                path("status.containerStatuses.*.state.terminated.finishedAt"),
                path("status.conditions.*.lastTransitionTime"),
            ),
            reasons=(
                path("status.message"),
                path("status.reason"),
                path("status.containerStatuses.*.state.terminated.reason"),
            ),
        ),
        plural="pods",
        checked=_KUBERNETES,
    )
    yield spec_template_kind("", "ReplicationController", ("v1",), _KUBERNETES, unqueued=True)
    for kind, short_name in (("Deployment", "deploy"), ("StatefulSet", "sts"), ("ReplicaSet", "")):
        yield spec_template_kind(
            "apps",
            kind,
            ("v1",),
            _KUBERNETES,
            plural=f"{kind.lower()}s",
            short_name=short_name,
            one_by_one=kind != "StatefulSet",
        )
    yield spec_template_kind("apps", "DaemonSet", ("v1",), _KUBERNETES, counted=False, short_name="ds")
    yield WorkloadKind(
        group="batch",
        kind="Job",
        versions=("v1",),
        replicas=(path("spec.parallelism"),),
        templates=(template("spec.template", parallel_pods("spec")),),
        suspended=SUSPEND,
        once=True,
        once_with=(path("spec.completions"),),
        completions=path("spec.completions"),
        deadline=path("spec.activeDeadlineSeconds"),
        end=_JOB,
        spreads=True,
        plural="jobs",
        checked=_KUBERNETES,
    )
    yield WorkloadKind(
        group="batch",
        kind="CronJob",
        versions=("v1",),
        templates=(PodTemplate(spec=path("spec.jobTemplate.spec.template.spec")),),
        counted=False,
        checked=_KUBERNETES,
    )


def intermediate() -> Iterator[WorkloadKind]:
    """Describe kinds whose objects only other controllers make, between an object and its pods."""
    yield WorkloadKind(
        group="grove.io",
        kind="PodClique",
        versions=("v1alpha1",),
        replicas=(REPLICAS,),
        templates=(PodTemplate(spec=path("spec.podSpec"), counts=(Count(path=REPLICAS),)),),
        checked=_GROVE,
    )
    # It makes a PodClique of each of its cliques for each of its replicas.
    yield WorkloadKind(
        group="grove.io", kind="PodCliqueScalingGroup", versions=("v1alpha1",), counted=False, checked=_GROVE
    )


def _table(*parts: Iterable[WorkloadKind]) -> dict[str, WorkloadKind]:
    return {kind.name: kind for part in parts for kind in part}


BUILT_IN: Mapping[str, WorkloadKind] = _table(
    _kubernetes(),
    rolling(),
    sets(),
    training(),
    ray(),
    serving(),
    dynamo(),
    wrappers(),
)
"""Built-in kinds by ``group/Kind``, in the order of the documentation."""

INTERMEDIATE: Mapping[str, WorkloadKind] = _table(intermediate())
"""Kinds that are observed and never placed, by ``group/Kind``: nobody writes their objects but controllers."""

POD_TEMPLATES = frozenset(
    kind.name for kind in BUILT_IN.values() if kind.group in {"apps", "batch"} and kind.kind != "CronJob"
)
"""Kinds of Kubernetes whose pods are made from ``spec.template``."""

WATCHED = tuple(kind for kind in BUILT_IN.values() if kind.plural and kind.replicas)
"""Kinds of controllers that are watched in every cluster, in the order in which an owner is looked for."""

COMMANDED = tuple(kind for kind in BUILT_IN.values() if kind.short_name)
"""Kinds whose objects the commands of a template may name."""

SPREAD: Mapping[str, tuple[str, ...]] = {
    name: tuple(kind.group for kind in BUILT_IN.values() if kind.kind == name)
    for name in (kind.kind for kind in BUILT_IN.values() if kind.spreads)
}
"""Names of the kinds that OpenKruise spreads without a whitelist, each with the API groups that have such a kind."""


REVISION_LABELS = frozenset(kind.revisions for kind in BUILT_IN.values()) - {"", EACH}
"""Labels by which objects that others make say which part they are a revision of."""


def kinds_of_group(group: str) -> tuple[str, ...]:
    """List the names of the kinds of an API group."""
    return tuple(kind.kind for kind in BUILT_IN.values() if kind.group == group)


_BY_KIND: Mapping[str, tuple[WorkloadKind, ...]] = {
    name: tuple(kind for kind in BUILT_IN.values() if kind.kind == name)
    for name in (kind.kind for kind in BUILT_IN.values())
}


def kinds_named(name: str, declared: Kinds) -> list[WorkloadKind]:
    """Return the kinds of this name in all API groups."""
    own = [kind for kind in declared.values() if kind.kind == name]
    return [*own, *(kind for kind in _BY_KIND.get(name, ()) if kind.name not in declared)]


def uncounted_kind(ref: WorkloadRef, declared: Kinds) -> WorkloadKind | None:
    """Return the kind of an object of which no pod is missing elsewhere, as a DaemonSet; None for any other object."""
    kinds = [kind for kind in kinds_named(ref.kind, declared) if ref.group in ("", kind.group)]
    return None if not kinds or any(kind.counted for kind in kinds) else kinds[0]


def kind_of(manifest: Mapping[str, Json], declared: Kinds) -> WorkloadKind | None:
    """Return the workload kind of an object; None for an unknown kind, as of an object that makes no pods.

    Of a kind that wraps other objects it is that of this very object, with the fields of what it wraps.
    """
    name = group_kind(manifest)
    kind = declared.get(name) or BUILT_IN.get(name)
    if kind is None or not kind.wraps:
        return kind
    return wrapping_kind(kind, manifest, lambda inner: declared.get(inner) or BUILT_IN.get(inner))


def replica_fields(manifest: Mapping[str, Json], declared: Kinds) -> tuple[Path, ...]:
    """Return the fields that hold the replicas of an object as a whole, without those of its roles or groups."""
    kind = kind_of(manifest, declared)
    replicas_paths = kind.replicas if kind is not None else ()
    return tuple(
        replicas_path
        for replicas_path in replicas_paths
        if replicas_path[-1] == "replicas" and EACH not in replicas_path
    )


def scale_paths(manifest: Mapping[str, Json], declared: Kinds) -> tuple[Path, ...]:
    """Return the fields in which the scale subresource of an object sets its replicas; empty for none."""
    kind = kind_of(manifest, declared)
    return replica_fields(manifest, declared) if kind is None or kind.scale is None else kind.scale
