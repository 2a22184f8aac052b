"""The stage: three clusters full of nodes and of others' pods, the fleet's files, and the objects at home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.e2e import flux
from tests.e2e.api_server import Json, Refused
from tests.e2e.conftest import Fleet
from tests.e2e.control_plane import Cluster
from tests.e2e.long_run.scale import Scale
from tests.e2e.long_run.watches import NAMESPACE
from tests.e2e.three_clusters.clusters import ARGO_CD, FLUX, GPU, H100, HOME, NODES, ThreeClusters
from tests.e2e.three_clusters.own_clusters import own_clusters
from tests.e2e.three_clusters.scenario import ANCHORS, deployment

WINDOW = 5.0
"""Seconds for which demand has to be gone before it is given back."""
FIRST_CHOICE = 2
"""Replicas that go to a workload's first cluster; more go to the other one, so that a burst is on both."""
_PER_NODE = 8
_AT_ONCE = 16
_OTHERS = "others"
_SCALES = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_TEMPLATE = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata:
  name: {name}
  annotations: {{overspill.dev/workload: Deployment/{namespace}/{name}}}
spec:
  workspaceName: llm
  namespaces: [{namespace}]
  burstDuration: 5m
  deletionPolicy: Delete
  manifestResources:
  - name: server
    manifest:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {{name: {name}, namespace: {namespace}}}
      spec:
        replicas: "{{{{ replicas }}}}"
        selector: {{matchLabels: {{app: {name}}}}}
        template:
          metadata: {{labels: {{app: {name}}}}}
          spec:
            containers:
            - {{name: main, image: "registry.invalid/vllm:1", resources: {{limits: {{{gpu}: 1}}}}}}
  steps:
  - {{name: server, type: manifest}}
"""
_POLICY = """\
apiVersion: overspill.dev/v1alpha1
kind: BurstPolicy
metadata: {{name: {name}}}
spec:
  templates: [{templates}]
  clusters:
  - {{name: {first}, maxReplicas: {most}}}
  - {{name: {second}}}
  tolerations:
  - {{key: capacity, operator: Equal, value: spot, effect: NoSchedule}}
  scaleUp: {{window: 2s}}
  scaleDown: {{window: {window:g}s}}
  coolDown: 1s
  duration: {{renew: WhileNeeded, max: 4h}}
"""


class Stage:
    """Clusters, engines, git server and fleet, ready for a daemon."""

    def __init__(self, three: ThreeClusters, fleet: Fleet, workloads: Sequence[str]) -> None:
        """Take what has been started."""
        self.three, self.fleet = three, fleet
        self.home = three.clusters[HOME]
        self.targets: Mapping[str, Cluster] = {name: three.clusters[name] for name in (FLUX, ARGO_CD)}
        self._workloads = workloads
        self._before: dict[str, frozenset[str]] = {}

    def fill(self, scale: Scale) -> None:
        """Add nodes and others' pods: home keeps one GPU for each workload, the others half of all theirs."""
        for name, cluster in self.three.clusters.items():
            cluster.ensure_namespace(_OTHERS)
            nodes = [f"{name}-{number:04}" for number in range(scale.nodes // len(NODES))]
            free = len(self._workloads) if name == HOME else None
            pods = list(_pods_of_others(nodes, scale.pods // len(NODES), free))
            if name == HOME:
                pods += [_pod(node, "all", str(gpus)) for node, gpus, _ in NODES[HOME]]
            allocatable, labels = {"cpu": "256", "memory": "2Ti", GPU: str(_PER_NODE)}, {"nvidia.com/gpu.product": H100}
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(partial(cluster.add_node, allocatable=allocatable, labels=labels), nodes))
                list(pool.map(partial(cluster.create, f"/api/v1/namespaces/{_OTHERS}/pods"), pods))

    def describe(self) -> None:
        """Commit the fleet, have the engines follow it, and begin each workload at home with what fits there."""
        self.three.describe({})
        half = len(self._workloads) // 2
        for name, workloads, order in (
            ("flux-first", self._workloads[half:], (FLUX, ARGO_CD)),
            ("argocd-first", self._workloads[:half], (ARGO_CD, FLUX)),
        ):
            if workloads:
                self.fleet.add(f"policies/{name}.yaml", _policy(name, workloads, order))
        templates = (_TEMPLATE.format(name=name, namespace=NAMESPACE, gpu=GPU) for name in self._workloads)
        self.fleet.add("templates/long-run.yaml", "---\n".join(templates))
        for name in self._workloads:
            self.home.create(_SCALES, deployment(1, name=name))

    def scale_to(self, workload: str, more: int) -> None:
        """Set the replicas of a workload at home to one and so many more. Raises OSError where home is away."""
        try:
            self.home.call("PATCH", f"{_SCALES}/{workload}/scale", {"spec": {"replicas": 1 + more}})
        except Refused as refused:
            raise OSError(str(refused)) from refused

    def daemon_settings(self) -> tuple[list[str], dict[str, str]]:
        """Return arguments of `overspill run` and settings: logins, and the engines' webhooks."""
        password = self.fleet.path / "password"
        password.write_text(self.fleet.server.password)
        engines = [f"argocd={url}" for url in self.three.argo_cd.webhook_urls]
        if not flux.lacking(flux.NOTIFICATION):
            engines.append(f"flux={self.three.flux.webhook_url()}")
        settings = {
            "GIT_USERNAME": self.fleet.server.username,
            "GIT_PASSWORD_FILE": str(password),
            "NOTIFY": " ".join(engines),
            "NOTIFY_SECRET_ARGOCD": self.three.argo_cd.webhook_secret,
            "NOTIFY_SECRET_FLUX": self.three.flux.hook_token,
            "LOG_FORMAT": "json",
        }
        return ["--kubeconfig", str(self.three.kubeconfig()), "--poll-interval", "5s"], settings

    def remember(self) -> None:
        """Note what the targets hold once the daemon has begun the branch and the engines have applied that."""
        cluster = self.targets[FLUX]
        cluster.until(lambda: cluster.items(ANCHORS, "kustomize.toolkit.fluxcd.io/name"), "no anchor")
        self._before = {name: each.inventory() for name, each in self.targets.items()}

    def left(self) -> tuple[str, ...]:
        """Name the objects that the targets hold now and did not hold then."""
        return tuple(
            f"{name}: {each}"
            for name, cluster in self.targets.items()
            for each in sorted(cluster.inventory() - self._before[name])
        )


@contextmanager
def stage(home: Path, scale: Scale, workloads: Sequence[str]) -> Iterator[Stage]:
    """Start everything but the daemon, and stop it in the end."""
    with own_clusters(home) as (three, fleet):
        made = Stage(three, fleet, workloads)
        made.fill(scale)
        made.describe()
        yield made


def _policy(name: str, workloads: Sequence[str], order: tuple[str, str]) -> str:
    first, second = order
    templates = ", ".join(workloads)
    return _POLICY.format(name=name, templates=templates, first=first, second=second, most=FIRST_CHOICE, window=WINDOW)


def _pods_of_others(nodes: Sequence[str], pods: int, free: int | None) -> Iterator[Json]:
    """Yield others' pods, the first of each node with GPUs: all but `free` ones, or half of each node's.

    There are so many as take the GPUs up, however few are asked for.
    """
    left = free or 0
    for number, node in enumerate(nodes):
        kept = min(left, _PER_NODE) if free is not None else _PER_NODE // 2
        left -= kept if free is not None else 0
        if kept < _PER_NODE:
            yield _pod(node, "0", str(_PER_NODE - kept))
        for index in range(1, pods // len(nodes) + (number < pods % len(nodes))):
            yield _pod(node, str(index), "")
    assert left == 0, f"home has no room for {free} workloads: give it more nodes"


def _pod(node: str, name: str, gpus: str) -> Json:
    """Write a pod that is on a node past the scheduler."""
    resources = {"requests": {"cpu": "10m"}, "limits": {GPU: gpus} if gpus else {}}
    container = {"name": "busy", "image": "registry.invalid/busy:1", "resources": resources}
    spec = {"nodeName": node, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"busy-{node}-{name}"}, "spec": spec}
