"""A fleet as large as promised: 1,000 clusters, 1,000 templates, and an output branch of 100,000 files.

Everything is what the daemon itself would have written; only the way into the remote is shorter.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reconciler.core import lifecycle, record, templates
from reconciler.core.engines import Deployment, engine
from reconciler.model.capacity import (
    ClusterObservation,
    Node,
    Observed,
    Pool,
    ReplicaShape,
    Waiting,
    WorkloadObservation,
)
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Placement
from reconciler.model.policy import Cluster, EngineName, Workspace
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import (
    DeletionPolicy,
    DeploySpec,
    ManifestResource,
    Step,
    StepType,
    WorkloadRef,
    WorkloadTemplate,
)

CLUSTERS = 1000
TEMPLATES = 1000
PLACEMENTS_A_CLUSTER = 33
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


def workload(index: int) -> WorkloadId:
    return WorkloadId(WorkspaceName("bench"), TemplateName(f"serving-{index:04d}"))


def source() -> dict[str, bytes]:
    """Return the fleet repository: every workload may burst to four clusters of its own and one beside."""
    files = {"fleet.yaml": FLEET}
    for index in range(CLUSTERS):
        name = cluster(index)
        files[f"clusters/{name}.yaml"] = (
            f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}, labels: {{region: eu}}}}\n"
            "spec: {pricePerGPUHour: 2.99}\n"
        )
    for index in range(TEMPLATES):
        name = workload(index).name
        files[f"templates/{name}.yaml"] = TEMPLATE.format(name=name)
        ring = [cluster((index + step) % (CLUSTERS - 1) + 1) for step in range(5)]
        files[f"policies/{name}.yaml"] = POLICY.format(
            name=name, templates=name, clusters=", ".join(f"{{name: {one}, maxReplicas: 8}}" for one in ring)
        )
    names = ", ".join(cluster(index) for index in range(CLUSTERS))
    files["workspaces/bench.yaml"] = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Workspace\nmetadata: {name: bench}\n"
        f"spec: {{primaryCluster: {cluster(0)}, clusters: [{names}], namespaces: [serving]}}\n"
    )
    return {path: text.encode() for path, text in files.items()}


def placed() -> Iterator[tuple[str, bytes]]:
    """Yield the 100,000 files of an output branch: 33 placements of three files and a note of somebody's, a cluster."""
    deploy = DeploySpec(
        manifests=(
            ManifestResource(
                name="server",
                manifest={
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "metadata": {"name": "standing", "namespace": "serving"},
                    "spec": {"replicas": "{{ replicas }}", "selector": {"matchLabels": {"app": "standing"}}},
                },
            ),
        ),
        steps=(Step(name="server", type=StepType.MANIFEST),),
    )
    workspace = Workspace(name=WorkspaceName("bench"), primary=cluster(0), clusters=())
    for index in range(CLUSTERS):
        yield f"clusters/{cluster(index)}/NOTES.txt", b"not ours\n"
        for step in range(PLACEMENTS_A_CLUSTER):
            standing = TemplateName(f"standing-{index:04d}-{step:02d}")
            target = Cluster(name=cluster(index))
            made = Placement(
                name=lifecycle.placement_name(WorkloadId(WorkspaceName("bench"), standing), target.name, START),
                cluster=target.name,
                workload=WorkloadId(WorkspaceName("bench"), standing),
                replicas=2,
                created_at=START,
                changed_at=START,
                expires_at=START + timedelta(days=300),
                engine=EngineName.ARGOCD,
                policy="standing",
                deletion_policy=DeletionPolicy.DELETE,
                source_commit=CommitId("5" * 40),
                namespace="kubeslice-bench",
                target_namespace="serving",
                shape=SHAPE,
            )
            template = WorkloadTemplate(
                name=standing,
                workspace=WorkspaceName("bench"),
                namespace="kubeslice-bench",
                spec=deploy,
                ref=WorkloadRef(namespace="serving", name=standing),
            )
            spec = templates.render(
                deploy,
                templates.Context(replicas=2, cluster=target, placement=made, workspace=workspace, template=template),
            )
            yield from _files(made, spec, workspace)


def _files(made: Placement, spec: DeploySpec, workspace: Workspace) -> Iterator[tuple[str, bytes]]:
    chosen = engine(made.engine)
    files: Mapping[str, bytes] = chosen.files(Deployment(placement=made, spec=spec, workspace=workspace, charts={}))
    made = replace(made, digest=record.digest(files, made, spec))
    yield f"{made.path}/placement.yaml", record.write_placement(made, spec, charts=chosen.charts_mode(spec))
    for path, data in {**files, **chosen.marker(made)}.items():
        yield f"{made.path}/{path}", data


def observe(short: Mapping[int, int], now: datetime, *, nodes: int = 4, free: int = 8) -> Observed:
    """Observe every cluster with room, and the workloads of `short` with so many replicas missing on the primary."""
    room = Resources(amounts={GPU: Quantity(free * ONE)})
    pool = Pool(name="gpu", nodes=tuple(Node(name=f"node-{index}", free=room) for index in range(nodes)))
    clusters = {
        cluster(index): ClusterObservation(cluster=cluster(index), observed_at=now, pools=(pool,))
        for index in range(1, CLUSTERS)
    }
    clusters[cluster(0)] = ClusterObservation(
        cluster=cluster(0),
        observed_at=now,
        workloads=tuple(
            WorkloadObservation(
                ref=WorkloadRef(namespace="serving", name=workload(index).name),
                wanted=4 + short.get(index, 0),
                running=4,
                waiting=(Waiting(replicas=short[index], since=now - timedelta(minutes=1)),) if index in short else (),
                shape=SHAPE,
            )
            for index in range(TEMPLATES)
        ),
    )
    return Observed(clusters=clusters)


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
