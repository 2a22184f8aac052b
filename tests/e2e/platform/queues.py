"""Kueue's queues for tests: a LocalQueue for a namespace in each cluster, with a ClusterQueue and a quota for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster

VERSION = "kueue.x-k8s.io/v1beta1"


@contextmanager
def queue(cluster: Cluster, namespace: str, name: str, quota: Mapping[str, str]) -> Iterator[None]:
    """Open a queue for a namespace with so much of each resource, and close it in the end."""
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
    group = {"coveredResources": [*quota], "flavors": [{"name": namespace, "resources": resources}]}
    made: list[tuple[str, Json, Json]] = [
        ("ResourceFlavor", {"name": namespace}, {}),
        ("ClusterQueue", {"name": namespace}, {"namespaceSelector": {}, "resourceGroups": [group]}),
        ("LocalQueue", {"name": name, "namespace": namespace}, {"clusterQueue": namespace}),
    ]
    for kind, metadata, spec in made:
        written = {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        cluster.kubectl("apply", "--filename=-", stdin=json.dumps(written))
    try:
        yield
    finally:
        for kind in ("clusterqueue", "resourceflavor"):
            cluster.kubectl("delete", kind, namespace, "--wait=false")


def workloads(cluster: Cluster, namespace: str) -> dict[str, Json]:
    """Return Kueue's Workloads of a namespace by the name of the object that each is of."""
    path = f"/apis/{VERSION}/namespaces/{namespace}/workloads"
    return {each["metadata"]["ownerReferences"][0]["name"]: each for each in cluster.items(path)}


def condition(workload: Json, kind: str) -> Json:
    """Return a condition of a Workload; an empty one while Kueue has not said it."""
    found = [each for each in workload.get("status", {}).get("conditions", []) if each["type"] == kind]
    return found[0] if found else {"status": "", "reason": "", "message": ""}


def waits(cluster: Cluster, namespace: str, name: str) -> Callable[[], bool]:
    """Tell, when asked, whether Kueue holds an object back by now for want of quota."""

    def held_back() -> bool:
        found = workloads(cluster, namespace).get(name)
        return found is not None and condition(found, "QuotaReserved")["status"] == "False"

    return held_back
