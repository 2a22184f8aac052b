"""One workload whose overflow may go to two clusters with different engines: what the scenarios are told with.

`vllm` lives in worker-1, which has two GPUs. What does not fit there goes to worker-2, at most two replicas, by Flux,
and the rest to worker-3, by Argo CD. Each deploys a command, a manifest and a chart, in this order.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from reconciler.core.schema import yaml
from tests.e2e import flux
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.three_clusters.clusters import ARGO_CD, FLUX, GPU, HOME, NODES, ThreeClusters

if TYPE_CHECKING:
    from tests.e2e.conftest import Fleet

NAMESPACE = "vllm-stack"
ANCHORS = f"/api/v1/namespaces/{flux.NAMESPACE}/configmaps"
JOBS = "/apis/batch/v1/namespaces/kubeslice-system/jobs"
CONFIG_MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
AT_HOME = sum(count for _, count, _ in NODES[HOME])
"""Replicas that worker-1 holds by itself."""

TEMPLATE = "templates/vllm-helm.yaml"
POLICY = "policies/serving.yaml"
BY_FLUX, BY_ARGO_CD = "  - name: worker-2\n    maxReplicas: 2\n", "  - name: worker-3\n"
"""The policy's candidates, as the usual edits leave them."""

_STEPS = """\
  serviceAccount: vllm-sa
  cmdExec:
  - name: look-round
    cmd: kubectl get configmaps -n vllm-stack
  manifestResources:
  - name: settings
    manifest:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: vllm-settings, namespace: vllm-stack}
      data: {CLUSTER: "{{ cluster.name }}"}
  steps:
  - name: look-round
    type: command
  - name: settings
    type: manifest
"""
_USUAL: Mapping[str, Mapping[str, str]] = {
    TEMPLATE: {
        "  steps:\n": _STEPS,
        "metadata:\n": "metadata:\n  annotations: {overspill.dev/workload: Deployment/vllm-stack/vllm}\n",
    },
    "workspaces/llm.yaml": {
        "  primaryCluster:": f"  commandJobs: {{image: registry.invalid/kubectl@sha256:{'0' * 64}}}\n  primaryCluster:"
    },
    POLICY: {
        "headroom: 1": "headroom: 0",
        "window: 10s": "window: 1s",
        "window: 15m": "window: 3s",
        "maxReplicas: 8": "maxReplicas: 2",
        "coolDown: 5m": "coolDown: 1s",
    },
}
_ACCOUNT = {
    "apiVersion": "v1",
    "kind": "ServiceAccount",
    "metadata": {"name": "vllm-sa", "namespace": "kubeslice-system"},
}


class Scenario:
    """The workload at home and what becomes of it elsewhere; `begin` comes first."""

    def __init__(self, three: ThreeClusters, fleet: Fleet) -> None:
        self.three, self.fleet = three, fleet
        self.home, self.by_flux, self.by_argo_cd = (three.clusters[name] for name in (HOME, FLUX, ARGO_CD))
        self._before: dict[str, frozenset[str]] = {}

    def begin(self, edits: Mapping[str, Mapping[str, str]] | None = None, *, replicas: int = AT_HOME) -> None:
        """Describe the fleet, and fill worker-1. The usual edits come first; `edits` replace those of the same text."""
        both = {name: dict(changes) for name, changes in _USUAL.items()}
        for name, changes in (edits or {}).items():
            both[name] = both.get(name, {}) | dict(changes)
        for cluster in (self.by_flux, self.by_argo_cd):
            cluster.ensure_namespace("kubeslice-system")
            cluster.kubectl("apply", "--filename=-", stdin=json.dumps(_ACCOUNT))
        self.three.describe(both)
        self.home.create(DEPLOYMENTS, deployment(replicas))
        self.home.until(lambda: running(self.home) == min(replicas, AT_HOME), "worker-1 does not run its own")
        self._kubeconfig = self.three.kubeconfig()

    @contextmanager
    def daemon(self, **more: str) -> Iterator[subprocess.Popen[str]]:
        """Run the daemon with a login to each cluster and to each engine's webhook, and no other help but `more`.

        The first time, it yields once the branch has begun and the clusters are as they are to be again in the end.
        """
        engines = [f"argocd={url}" for url in self.three.argo_cd.webhook_urls]
        if not flux.lacking(flux.NOTIFICATION):
            engines.append(f"flux={self.three.flux.webhook_url()}")
        settings = {
            "NOTIFY": " ".join(engines),
            "NOTIFY_SECRET_ARGOCD": self.three.argo_cd.webhook_secret,
            "NOTIFY_SECRET_FLUX": self.three.flux.hook_token,
            **more,
        }
        with self.fleet.daemon("--kubeconfig", str(self._kubeconfig), settings=settings) as process:
            if not self._before:
                self.by_flux.until(lambda: self.by_flux.items(ANCHORS, "kustomize.toolkit.fluxcd.io/name"), "no anchor")
                self._before = {cluster.name: cluster.inventory() for cluster in (self.by_flux, self.by_argo_cd)}
            yield process

    def wants(self, replicas: int) -> None:
        """Scale the workload at home, as its autoscaler would."""
        self.home.kubectl("scale", "deployment/vllm", f"--namespace={NAMESPACE}", f"--replicas={replicas}")

    def until_lent(self, *, by_flux: int, by_argo_cd: int) -> None:
        """Wait until so many replicas run away from home."""
        for cluster, wanted in ((self.by_flux, by_flux), (self.by_argo_cd, by_argo_cd)):
            try:
                cluster.until(
                    lambda cluster=cluster, wanted=wanted: running(cluster) == wanted, f"not {wanted} replicas"
                )
            except AssertionError as error:
                raise AssertionError(f"{error}\n{self.last_words()}") from None

    def until_as_before(self) -> None:
        """Wait until neither cluster holds any object that it did not hold before the daemon came."""
        for cluster in (self.by_flux, self.by_argo_cd):
            try:
                cluster.until(lambda cluster=cluster: not self._more(cluster), "not as before")
            except AssertionError as error:
                raise AssertionError(f"{error}: {sorted(self._more(cluster))}\n{self.last_words()}") from None

    def until_committed(self, *wanted: str) -> None:
        """Wait until the branch tells these changes last, each recognised by words of its subject."""

        def pushed() -> bool:
            last = self.fleet.subjects()[-len(wanted) :]
            return len(last) == len(wanted) and all(
                words in subject for words, subject in zip(wanted, last, strict=True)
            )

        self.fleet.until(pushed, f"{wanted}, but {self.fleet.subjects()}")

    def until_placed(self, **replicas: int) -> None:
        """Wait until the branch places so many replicas on each cluster, in however many commits.

        Pods that the scheduler refuses in different seconds have windows that end in different passes.
        """
        wanted = {name.replace("_", "-"): count for name, count in replicas.items()}
        self.fleet.until(lambda: self._placed() == wanted, f"not {wanted}, but {self._placed()}")

    def expiry(self) -> datetime:
        """Tell when the newest burst ends."""
        told = self.fleet.log("--format=%(trailers:key=Overspill-Expires,valueonly,separator=)")
        return datetime.fromisoformat([moment for moment in told if moment][-1])

    def tree(self) -> str:
        """Name the tree of all that engines apply."""
        return self.fleet.git("rev-parse", "placements:clusters", at=self.fleet.bare).strip()

    def last_words(self) -> str:
        """Return what everybody said last, and how Flux's objects are."""
        conditions = "\n".join(
            f"{each['kind']} {each['metadata']['name']}: {json.dumps(each.get('status', {}).get('conditions'))}"
            for path in (flux.KUSTOMIZATIONS, flux.RELEASES)
            for each in self.by_flux.items(path)
        )
        speakers = (self.fleet, self.three.flux, self.three.argo_cd)
        return "\n".join((conditions, *(speaker.last_words() for speaker in speakers)))

    def _placed(self) -> dict[str, int]:
        listed = self.fleet.git("ls-tree", "-r", "--name-only", "placements", "clusters", at=self.fleet.bare)
        files = [PurePosixPath(path) for path in listed.splitlines() if path.endswith("/placement.yaml")]
        told: Counter[str] = Counter()
        for path in files:
            text = self.fleet.git("show", f"placements:{path}", at=self.fleet.bare)
            [record] = yaml.parse(text.encode(), str(path))
            told[path.parts[1]] += int(record.value["metadata"]["annotations"]["overspill.dev/replicas"])
        return dict(told)

    def _more(self, cluster: Cluster) -> frozenset[str]:
        return cluster.inventory() - self._before[cluster.name]


def running(cluster: Cluster) -> int:
    """Count the pods of the workload that run in a cluster."""
    return sum(pod["status"].get("phase") == "Running" for pod in cluster.items(PODS))


def deployment(replicas: int, *, name: str = "vllm") -> Json:
    """Write the object in worker-1 whose replicas are counted: a GPU each, of any model."""
    labels = {"app": name}
    container = {"name": "main", "image": "registry.invalid/vllm:1", "resources": {"limits": {GPU: "1"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
