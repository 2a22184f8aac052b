"""Kinds that train, and kinds whose pods only run in groups: what is known of them, as data."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.describing import REPLICAS, SUSPEND, at_a_time, template
from reconciler.model.workloadkind import Count, Group, Mark, Path, PodTemplate, WorkloadKind, path

_JOBSET = Mark(label="jobset.sigs.k8s.io/jobset-name")


def sets() -> Iterator[WorkloadKind]:
    """Describe sets of pods, or of jobs, of which some only run together."""
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
        ),
        apart="leaderworkerset.sigs.k8s.io/exclusive-topology",
        marks=(Mark(label="leaderworkerset.sigs.k8s.io/name"),),
        checked="LeaderWorkerSet 060ab4d (2026-08-21)",
    )
    jobs = "spec.replicatedJobs.*"
    yield WorkloadKind(
        group="jobset.x-k8s.io",
        kind="JobSet",
        versions=("v1alpha2",),
        replicas=(path(f"{jobs}.replicas"),),
        templates=(template(f"{jobs}.template.spec.template", f"{jobs}.replicas", at_a_time(f"{jobs}.template.spec")),),
        together=Group(called="set"),
        suspended=SUSPEND,
        apart="alpha.jobset.sigs.k8s.io/exclusive-topology",
        marks=(_JOBSET,),
        checked="JobSet 08dfbdf (2026-08-18)",
    )
    cliques, scaling = "spec.template.cliques.*", "spec.template.podCliqueScalingGroups.*"
    sizes = path(f"{scaling}.replicas")
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
                    Count(path=REPLICAS),
                    Count(path=sizes, among=("cliqueNames", "name"), enough=path(f"{scaling}.minAvailable")),
                    Count(path=path(f"{cliques}.spec.replicas"), enough=path(f"{cliques}.spec.minAvailable")),
                ),
            ),
        ),
        together=Group(
            called="replica of the set", counts=(Count(path=REPLICAS),), label="grove.io/podcliqueset-replica-index"
        ),
        marks=(Mark(label="app.kubernetes.io/part-of", beside=(("app.kubernetes.io/managed-by", "grove-operator"),)),),
        checked="Grove fcc3b3b (2026-08-19)",
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
        marks=(Mark(label="volcano.sh/job-name"),),
        checked="Volcano APIs 536f121 (2026-06-22)",
    )
    checked = "Training Operator 1.9.0"
    for kind, field in (("TFJob", "tfReplicaSpecs"), ("PyTorchJob", "pytorchReplicaSpecs")):
        roles = f"spec.{field}.*"
        own = f"{kind.lower()}-controller"
        # A master beside elastic workers is one pod, so that the minimum holds for it as well.
        enough = path("spec.elasticPolicy.minReplicas") if kind == "PyTorchJob" else ()
        made = (template(f"{roles}.template", Count(path=path(f"{roles}.replicas"), enough=enough)),)
        ordered = ((enough, path("spec.elasticPolicy.maxReplicas")),) if enough else ()
        yield _kubeflow(kind, ("v1",), field, made, checked, operators=(own,), ordered=ordered)
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
        ordered=ordered,
        marks=tuple(
            Mark(label="training.kubeflow.org/job-name", beside=(("training.kubeflow.org/operator-name", name),))
            for name in operators
        ),
        checked=checked,
    )


def ray() -> Iterator[WorkloadKind]:
    """Describe what runs on a cluster of Ray's."""
    yield _ray_kind("RayCluster", "spec", mark=Mark(label=_RAY))
    made = Mark(label=_RAY, made_up=True)
    yield _ray_kind(
        "RayJob",
        "spec.rayClusterSpec",
        template("spec.submitterPodTemplate", optional=True),
        mark=made,
        optional=True,
    )
    yield _ray_kind("RayService", "spec.rayClusterConfig", mark=made)


_RAY = "ray.io/cluster"


def _ray_kind(kind: str, root: str, *more: PodTemplate, mark: Mark, optional: bool = False) -> WorkloadKind:
    """Describe a kind of Ray's by where its cluster is described: a head, and groups of workers."""
    workers = f"{root}.workerGroupSpecs.*"
    hosts = Count(
        path=path(f"{workers}.replicas"),
        default=0,
        least=path(f"{workers}.minReplicas"),
        most=path(f"{workers}.maxReplicas"),
    )
    return WorkloadKind(
        group="ray.io",
        kind=kind,
        versions=("v1",),
        replicas=(path(f"{workers}.replicas"),),
        templates=(
            template(f"{root}.headGroupSpec.template", optional=optional),
            template(f"{workers}.template", hosts, f"{workers}.numOfHosts"),
            *more,
        ),
        together=Group(called="cluster"),
        suspended=SUSPEND,
        marks=(mark,),
        checked="KubeRay feeaf72 (2026-08-19)",
    )
