"""A fleet as large as promised: 1,000 clusters beside the primary, 1,000 templates, an output branch of 100,000 files.

On the full branch every workload stands on 33 clusters with two replicas each, and wants them all.

Everything is what the daemon itself would have written; only the way into the remote is shorter.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import yaml

from reconciler.core.engines import Deployment, engine
from reconciler.core.ledger import lifecycle, placement_record
from reconciler.model.capacity import (
    ClusterObservation,
    MissingReplicas,
    Node,
    Observed,
    Pool,
    ReplicaShape,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, CommitId, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.policy import EngineName, Workspace
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import (
    DeletionPolicy,
    DeploySpec,
    ManifestResource,
    Step,
    StepType,
    WorkloadRef,
)

CLUSTERS = 1000
TEMPLATES = 1000
STANDING = 33
"""Placements of each workload, and on each cluster, on the full branch."""
REPLICAS = 2
"""Replicas of every placement, and the most that a policy allows on one cluster."""
HOME = ClusterName("home")
START = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
GPU = "nvidia.com/gpu"
SHAPE = ReplicaShape(requests=Resources(amounts={GPU: ONE}))

FLEET = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: bench}\nspec: {engine: argocd}\n"
POLICY = """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {{name: {name}}}
spec:
  templates: [{templates}]
  clusters: [{clusters}]
  scaleUp: {{window: 30s}}
  coolDown: 5m
"""
TEMPLATE = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata: {{name: {name}, namespace: kubeslice-bench}}
spec:
  workspaceName: bench
  burstDuration: 1h
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: {name}, namespace: serving}}
        spec:
          replicas: "{{{{ replicas }}}}"
          selector: {{matchLabels: {{app: {name}}}}}
          template:
            metadata: {{labels: {{app: {name}}}}}
            spec:
              containers:
                - name: server
                  image: registry.example.com/serving/server:1.4.0
                  resources: {{limits: {{nvidia.com/gpu: 1}}}}
  steps:
    - {{name: server, type: manifest}}
"""


def cluster(index: int) -> ClusterName:
    return ClusterName(f"gpu-{index:04d}")


def every_cluster() -> list[ClusterName]:
    return [HOME, *(cluster(index) for index in range(CLUSTERS))]


def workload(index: int) -> WorkloadId:
    return WorkloadId(WorkspaceName("bench"), TemplateName(f"serving-{index:04d}"))


def source() -> dict[str, bytes]:
    """Return the fleet repository: every workload may burst to 38 clusters, two replicas on each."""
    files = {"fleet.yaml": FLEET}
    for each in every_cluster():
        files[f"clusters/{each}.yaml"] = (
            f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {each}, labels: {{region: eu}}}}\n"
            "spec: {pricePerGPUHour: 2.99}\n"
        )
    for index in range(TEMPLATES):
        name = workload(index).name
        files[f"templates/{name}.yaml"] = TEMPLATE.format(name=name)
        ring = [cluster((index + step) % CLUSTERS) for step in range(STANDING + 5)]
        files[f"policies/{name}.yaml"] = POLICY.format(
            name=name, templates=name, clusters=", ".join(f"{{name: {one}, maxReplicas: {REPLICAS}}}" for one in ring)
        )
    names = ", ".join(every_cluster())
    files["workspaces/bench.yaml"] = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Workspace\nmetadata: {name: bench}\n"
        f"spec: {{primaryCluster: {HOME}, clusters: [{names}], namespaces: [serving]}}\n"
    )
    return {path: text.encode() for path, text in files.items()}


def working_plan(index: int) -> Iterator[Placement]:
    """Yield the placements of one workload on the full branch."""
    for step in range(STANDING):
        name = cluster((index + step) % CLUSTERS)
        yield Placement(
            name=lifecycle.placement_name(workload(index), name, START),
            cluster=name,
            workload=workload(index),
            replicas=REPLICAS,
            created_at=START,
            changed_at=START,
            expires_at=START + timedelta(days=300),
            engine=EngineName.ARGOCD,
            policy=str(workload(index).name),
            deletion_policy=DeletionPolicy.DELETE,
            source_commit=CommitId("5" * 40),
            namespace="kubeslice-bench",
            target_namespace="serving",
            shape=SHAPE,
        )


def placed() -> Iterator[tuple[str, bytes]]:
    """Yield the 100,000 files of the full branch: 33 placements of three files and a note of somebody's, a cluster."""
    for index in range(CLUSTERS):
        yield f"clusters/{cluster(index)}/NOTES.txt", b"not ours\n"
    workspace = Workspace(name=WorkspaceName("bench"), primary=HOME, clusters=())
    for index in range(TEMPLATES):
        document = yaml.safe_load(TEMPLATE.format(name=workload(index).name))["spec"]["manifestResources"][0][
            "manifest"
        ]
        document["spec"]["replicas"] = REPLICAS
        spec = DeploySpec(
            manifests=(ManifestResource(name="server", manifest=document),),
            steps=(Step(name="server", type=StepType.MANIFEST),),
        )
        for made in working_plan(index):
            yield from _files(made, spec, workspace)


def _files(made: Placement, spec: DeploySpec, workspace: Workspace) -> Iterator[tuple[str, bytes]]:
    chosen = engine(made.engine)
    deployment = Deployment(placement=made, spec=spec, workspace=workspace, charts={})
    files: Mapping[str, bytes] = chosen.files(deployment)
    made = replace(made, digest=placement_record.digest(files, made, spec))
    marker = chosen.marker(replace(deployment, placement=made))
    yield f"{made.path}/placement.yaml", placement_record.write_placement(made, spec, charts=chosen.charts_mode(spec))
    for path, data in {**files, chosen.marker_path(made): marker}.items():
        yield f"clusters/{made.cluster}/{path}", data


def observe(short: Mapping[int, int], now: datetime, *, full: bool = False) -> Observed:
    """Observe every cluster with room, and the workloads of `short` with so many replicas missing beyond what stands.

    On the full branch everything that stands is needed and has its nodes.
    """
    room = Resources(amounts={GPU: Quantity(8 * ONE)})
    pool = Pool(name="gpu", nodes=tuple(Node(name=f"node-{index}", free=room) for index in range(4)))
    bound: dict[ClusterName, dict[PlacementName, int]] = {}
    for index in range(TEMPLATES if full else 0):
        for made in working_plan(index):
            bound.setdefault(made.cluster, {})[made.name] = REPLICAS
    clusters = {
        name: ClusterObservation(cluster=name, observed_at=now, pools=(pool,), bound=bound.get(name, {}))
        for name in every_cluster()
    }
    base = STANDING * REPLICAS if full else 0
    clusters[HOME] = ClusterObservation(
        cluster=HOME,
        observed_at=now,
        workloads=tuple(_seen(index, base + short.get(index, 0), now) for index in range(TEMPLATES)),
    )
    return Observed(clusters=clusters)


def again(observed: Observed, short: Mapping[int, int], now: datetime, *, full: bool = False) -> Observed:
    """Observe everything once more, a moment later, with another shortage."""
    base = STANDING * REPLICAS if full else 0
    clusters = {name: replace(one, observed_at=now) for name, one in observed.clusters.items()}
    workloads = tuple(_seen(index, base + short.get(index, 0), now) for index in range(TEMPLATES))
    return Observed(clusters=clusters | {HOME: replace(clusters[HOME], workloads=workloads)})


def _seen(index: int, missing: int, now: datetime) -> WorkloadObservation:
    return WorkloadObservation(
        ref=WorkloadRef(namespace="serving", name=workload(index).name),
        wanted=4 + missing,
        running=4,
        waiting=(MissingReplicas(replicas=missing, since=now - timedelta(minutes=1)),) if missing else (),
        shape=SHAPE,
    )


def remote(path: Path, *, output: Iterator[tuple[str, bytes]] | None = None) -> Path:
    """Make a bare remote with the fleet repository and, if given, an output branch, and pack it as a server would."""
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    with subprocess.Popen(["git", "-C", str(path), "fast-import", "--quiet"], stdin=subprocess.PIPE) as importer:
        assert importer.stdin is not None
        for branch, files in (("main", iter(source().items())), ("placements", output)):
            if files is None:
                continue
            importer.stdin.write(
                f"commit refs/heads/{branch}\ncommitter Ada <ada@example.com> {int(START.timestamp())} +0000\n"
                "data 6\nbegin\n\n".encode()
            )
            for name, data in files:
                importer.stdin.write(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data))
    if importer.returncode:
        raise RuntimeError("git fast-import failed")
    subprocess.run(["git", "-C", str(path), "gc", "--quiet"], check=True)
    return path
