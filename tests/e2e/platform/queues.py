"""Kueue's queues for tests: a LocalQueue for a namespace in each cluster, with a ClusterQueue and a quota for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.two_clusters import Lender

VERSION = "kueue.x-k8s.io/v1beta1"
_PATIENCE = "--timeout=90s"
"""How long Kueue may take to let go of a queue that nothing is in any more."""


def open_queue(lender: Lender, cluster: Cluster, name: str, quota: Mapping[str, str]) -> None:
    """Open a queue for the namespace with so much of each resource, and return when Kueue takes work for it.

    It is closed once the namespace is gone: Kueue keeps a ClusterQueue for as long as anything is admitted by it.
    """
    namespace = lender.namespace
    made: list[tuple[str, Json, Json]] = [
        ("ResourceFlavor", {"name": namespace}, {}),
        ("ClusterQueue", {"name": namespace}, {"namespaceSelector": {}, "resourceGroups": [_group(namespace, quota)]}),
        ("LocalQueue", {"name": name, "namespace": namespace}, {"clusterQueue": namespace}),
    ]
    lender.afterwards.callback(_close, cluster, namespace)
    for kind, metadata, spec in made:
        written = {"apiVersion": VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        cluster.kubectl("apply", "--filename=-", stdin=json.dumps(written))
    paths = (f"clusterqueues/{namespace}", f"namespaces/{namespace}/localqueues/{name}")

    def is_active() -> bool:
        found = [cluster.call("GET", f"/apis/{VERSION}/{path}") for path in paths]
        return all(condition(each, "Active")["status"] == "True" for each in found)

    lender.until_at(cluster, is_active, f"Kueue does not take work for {name}")


def set_quota(lender: Lender, cluster: Cluster, quota: Mapping[str, str]) -> None:
    """Give the queue of the namespace so much of each resource instead."""
    groups = {"resourceGroups": [_group(lender.namespace, quota)]}
    cluster.call("PATCH", f"/apis/{VERSION}/clusterqueues/{lender.namespace}", {"spec": groups})


def _group(flavor: str, quota: Mapping[str, str]) -> Json:
    resources = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
    return {"coveredResources": [*quota], "flavors": [{"name": flavor, "resources": resources}]}


def _close(cluster: Cluster, name: str) -> None:
    """Delete a queue, and return when it is gone: the next one of its name would go with it."""
    for kind in ("clusterqueue", "resourceflavor"):
        cluster.kubectl("delete", kind, name, "--ignore-not-found", _PATIENCE)


def workloads(cluster: Cluster, namespace: str) -> dict[str, Json]:
    """Return Kueue's Workloads of a namespace by the name of the object that each is of."""
    found = cluster.items(f"/apis/{VERSION}/namespaces/{namespace}/workloads")
    return {owners[0]["name"]: each for each in found if (owners := each["metadata"].get("ownerReferences"))}


def condition(workload: Json, kind: str) -> Json:
    """Return a condition of a Workload; an empty one while Kueue has not said it."""
    found = [each for each in workload.get("status", {}).get("conditions", []) if each["type"] == kind]
    return found[0] if found else {"status": "", "reason": "", "message": ""}


def waits(cluster: Cluster, namespace: str, name: str, said: str) -> Callable[[], bool]:
    """Tell, when asked, whether Kueue holds an object back by now, and says so in these words."""

    def held_back() -> bool:
        found = workloads(cluster, namespace).get(name)
        reserved = condition(found or {}, "QuotaReserved")
        return reserved["status"] == "False" and said in reserved["message"]

    return held_back


def admitted(cluster: Cluster, namespace: str, name: str) -> Callable[[], bool]:
    """Tell, when asked, whether Kueue has admitted an object by now."""
    return lambda: condition(workloads(cluster, namespace).get(name, {}), "Admitted")["status"] == "True"


def is_held(explained: Json) -> bool:
    """Tell whether `explain` gives one reason for lending nothing, and that is that the workload is held."""
    return [each["reason"] for each in explained["suppressed"]] == ["Held"]
