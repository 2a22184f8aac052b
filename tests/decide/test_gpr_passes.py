"""Eviction and reservations, pass by pass on a real bare repository: what git says of them is enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.explain.gprs import gpr_views
from reconciler.model.capacity import Node, Observed, Pool
from reconciler.model.gpr import GprState
from tests.builders.inputs import gpus
from tests.builders.passes import QUIET, SOURCE_FILES, Passes
from tests.builders.remote import Remote

ASKED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {{name: {name}, namespace: kubeslice-demo}}
spec:
  workspaceName: llm
  clusterNames: {clusters}
  numPlacements: 1
  burstDuration: 1h
  gprDetails:
    {{numberOfGPUs: 4, numberOfGPUNodes: 1, priority: {priority}, enableEviction: true, requeueOnFailure: true,
      memoryPerGpu: 1, enableAutoGpuSelection: true}}
  manifestResources:
    - name: server
      manifest:
        apiVersion: apps/v1
        kind: Deployment
        metadata: {{name: {name}, namespace: demo}}
        spec:
          selector: {{matchLabels: {{app: {name}}}}}
          template:
            metadata: {{labels: {{app: {name}}}}}
            spec: {{containers: [{{name: server, image: registry.example.com/server:1.0}}]}}
  steps: [{{name: server, type: manifest}}]
"""
RESERVED = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: GPUProvisioningRequest
metadata: {name: hold, namespace: kubeslice-demo}
spec:
  sliceName: llm
  numberOfGPUNodes: 1
  numberOfGPUs: 4
  memoryPerGpu: 1
  preferredClusters: [worker-2]
  enableAutoGpuSelection: true
  priority: 50
  exitDuration: 1h
"""


class Nodes(Passes):
    """Passes over clusters of one node of H100s each, whose size is told."""

    def observe(self) -> Observed:
        seen = super().observe()
        labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
        clusters = {
            name: replace(one, pools=(self._pool(name, sum(one.bound.values())),), workloads=())
            for name, one in seen.clusters.items()
            if name in self.free
        }
        clusters = {
            name: replace(one, pools=tuple(replace(pool, labels=labels) for pool in one.pools))
            for name, one in clusters.items()
        }
        return replace(seen, clusters={**seen.clusters, **clusters})

    def _pool(self, name: str, bound: int) -> Pool:
        size = self.free[name]
        node = Node(name=f"{name}-a", free=gpus(max(0, size - 4 * bound)), allocatable=gpus(size))
        return Pool(name="a", nodes=(node,))


@pytest.fixture
def passes(remote: Remote, repository: GitRepository) -> Nodes:
    """Watch a fleet with one node of four GPUs on worker-2, and one on worker-3."""
    remote.commit("main", QUIET)
    made = Nodes(repository)
    made.free = {"worker-2": 4, "worker-3": 0}
    return made


def ask(remote: Remote, name: str, priority: int, clusters: str = "[worker-2, worker-3]") -> None:
    text = ASKED.format(name=name, priority=priority, clusters=clusters)
    remote.commit("main", {f"{name}.yaml": text})


def test_eviction_is_a_revert_a_note_and_a_place_in_one_push(remote: Remote, passes: Nodes) -> None:
    ask(remote, "low", 50)
    passes.run()
    passes.advance(60)
    ask(remote, "high", 250)
    passes.run()
    assert remote.subjects("placements")[:4] == [
        "request(llm/high): 1 replica on worker-2 for 1h",
        "request(llm/low): changed",
        'Revert "request(llm/low): 1 replica on worker-2 for 1h"',
        "request(llm/high): received",
    ]
    passes.restart()
    passes.advance(60)
    assert passes.run().commits == ()
    passes.free["worker-3"] = 4
    passes.advance(60)
    passes.run()
    assert remote.subjects("placements")[0] == "request(llm/low): 1 replica on worker-3 for 1h"


def test_what_was_evicted_says_by_whom_in_the_ledger_and_waits(remote: Remote, passes: Nodes) -> None:
    ask(remote, "low", 50)
    passes.run()
    passes.advance(60)
    ask(remote, "high", 250)
    outcome = passes.run()
    record = remote.files("placements", "ledger")["ledger/llm/requests/6c/low.yaml"].decode()
    assert "overspill.dev/evicted-by: llm/high" in record
    assert "overspill.dev/began-at" not in record
    (low,) = [one for one in gpr_views(outcome.decision.inputs, outcome.plan) if one.name == "low"]
    assert (low.state, low.evicted_by) == (GprState.QUEUED, "llm/high")


def test_a_reservation_holds_from_git_alone_until_it_is_over(remote: Remote, passes: Nodes) -> None:
    remote.commit("main", {"hold.yaml": RESERVED})
    passes.run()
    assert remote.subjects("placements")[:2] == [
        "request(llm/hold): reserved on worker-2",
        "request(llm/hold): received",
    ]
    other = SOURCE_FILES["workspaces.yaml"].replace("name: llm", "name: vision").replace("[demo]", "[other]")
    asked = ASKED.format(name="train", priority=250, clusters="[worker-2]").replace("llm", "vision")
    remote.commit(
        "main", {"workspaces/vision.yaml": other, "train.yaml": asked.replace("namespace: demo", "namespace: other")}
    )
    passes.restart()
    passes.run()
    assert remote.subjects("placements")[0] == "request(vision/train): received"
    passes.advance(3600)
    passes.run()
    assert remote.subjects("placements")[:2] == [
        "request(vision/train): 1 replica on worker-2 for 1h",
        "request(llm/hold): completed",
    ]
