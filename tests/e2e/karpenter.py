"""Karpenter for tests: as released, with its own KWOK provider, as a process beside a test cluster.

It adds a node when a pod with a GPU has no room, and takes the node away when that is empty. KWOK plays the node, as it
does all others, and the cluster's kube-scheduler binds the pod.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.api_server import Json
from tests.e2e.components import Missing, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import free_port
from tests.e2e.processes import Processes

NAME = "karpenter"
POOL = "gpu"
POOL_LABEL = "karpenter.sh/nodepool"
"""The label that each node has which was added for a NodePool."""

_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_NODE_CLAIMS = "/apis/karpenter.sh/v1/nodeclaims"
_KINDS = {"karpenter.sh/v1": {"nodepools", "nodeclaims"}, "karpenter.kwok.sh/v1alpha1": {"kwoknodeclasses"}}
_FOLDERS = ("pkg/apis/crds", "kwok/apis/crds")
"""Where its CustomResourceDefinitions lie in the released module."""

_NODE_CLASS_GROUP = "karpenter.kwok.sh"
_NODE_CLASS = {"apiVersion": f"{_NODE_CLASS_GROUP}/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": POOL}}


def missing() -> str:
    """Say what Karpenter lacks here; empty if it can be started."""
    released = sources(pinned(NAME))
    return missing_programs([NAME]) or (released.reason if isinstance(released, Missing) else "")


class Karpenter:
    """Karpenter on one cluster, running until `stop`, with one NodePool of one instance type."""

    def __init__(
        self, cluster: Cluster, home: Path, *, resources: Json, limits: Json, template: Json | None = None
    ) -> None:
        """Apply its kinds, start it, and let it add nodes that have these resources each, up to the limits of all.

        `template` is what the NodePool says of its nodes: labels, taints and the capacity type; else nothing.
        """
        self._cluster = cluster
        self._processes = Processes(home)
        home.mkdir(parents=True)
        types = home / "instance-types.json"
        types.write_text(json.dumps([_instance_type(resources)]))
        self._apply_kinds()
        environment = {
            "KUBECONFIG": str(cluster.kubeconfig),
            "DISABLE_LEADER_ELECTION": "true",
            "INSTANCE_TYPES_FILE_PATH": str(types),
            "METRICS_PORT": str(free_port()),
            "HEALTH_PROBE_PORT": str(free_port()),
        }
        self._processes.run(NAME, [program(NAME)], environment)
        try:
            for manifest in (_NODE_CLASS, _node_pool(limits, **(template or {}))):
                cluster.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))
        except BaseException:
            self._processes.stop()
            raise

    def nodes(self) -> list[Json]:
        """List the nodes that it has added."""
        return self._cluster.items("/api/v1/nodes", f"{POOL_LABEL}={POOL}")

    def limit(self, limits: Json) -> None:
        """Give the NodePool other limits."""
        self._change({"limits": limits})

    def refer_to(self, node_class: str) -> None:
        """Have the NodePool name a node class, which need not be there: only with one that is there it is Ready."""
        reference = {"group": _NODE_CLASS_GROUP, "kind": _NODE_CLASS["kind"], "name": node_class}
        self._change({"template": {"spec": {"nodeClassRef": reference}}})

    def _change(self, specification: Json) -> None:
        patch = json.dumps({"spec": specification})
        self._cluster.kubectl("patch", "nodepools", POOL, "--type=merge", f"--patch={patch}")

    def stop(self) -> None:
        """Have it take its nodes away, and end it; its kinds stay."""
        try:
            for kind in ("nodepools", "nodeclaims"):
                self._cluster.kubectl("delete", kind, "--all", "--wait=false")
            self._cluster.until(
                lambda: not self._cluster.items(_NODE_CLAIMS) and not self.nodes(),
                "the nodes of Karpenter are still there",
                told=self.last_words,
            )
            self._cluster.kubectl("delete", "kwoknodeclasses", "--all", "--wait=false")
        finally:
            self._processes.stop()

    def last_words(self) -> str:
        """Return its last words."""
        return self._processes.last_words()

    def _apply_kinds(self) -> None:
        released = sources(pinned(NAME))
        assert not isinstance(released, Missing), released
        for folder in _FOLDERS:
            self._cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(released / folder))
        for group, kinds in _KINDS.items():
            self._cluster.until(
                lambda group=group, kinds=kinds: self._cluster.served(group) >= kinds, f"{group} is not served"
            )


def _node_pool(limits: Json, *, labels: Json = None, taints: Json = (), capacity_type: str = "on-demand") -> Json:
    """Describe the one pool: nodes of any type, which go soon after their last pod."""
    required = {"kubernetes.io/os": "linux", _CAPACITY_TYPE: capacity_type}
    specification = {
        "requirements": [{"key": key, "operator": "In", "values": [value]} for key, value in required.items()],
        "taints": list(taints),
        "nodeClassRef": {"group": _NODE_CLASS_GROUP, "kind": _NODE_CLASS["kind"], "name": POOL},
        "expireAfter": "Never",
    }
    budgets = [{"nodes": "100%"}]
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": POOL},
        "spec": {
            "template": {"metadata": {"labels": labels or {}}, "spec": specification},
            "limits": limits,
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1s", "budgets": budgets},
        },
    }


def _instance_type(resources: Json) -> Json:
    """Describe the one type in the words of Karpenter's KWOK provider."""
    offerings = []
    for capacity_type, price in (("on-demand", 2.99), ("spot", 1.49)):
        offered = {_CAPACITY_TYPE: capacity_type, "topology.kubernetes.io/zone": "zone-a"}
        requirements = [{"key": key, "operator": "In", "values": [value]} for key, value in offered.items()]
        offerings.append({"Price": price, "Available": True, "Requirements": requirements})
    return {
        "name": "gpu-node",
        "offerings": offerings,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": resources,
    }
