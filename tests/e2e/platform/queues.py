"""Kueue's queues for tests: a LocalQueue for a namespace in each cluster, with a ClusterQueue and a quota for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.platform.two_clusters import Lender

VERSION = "kueue.x-k8s.io/v1beta1"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""The controller of checks that lead to other clusters."""

_PATIENCE = "--timeout=90s"
"""How long Kueue may take to let go of a queue that nothing is in any more."""


def open_queue(
    lender: Lender, cluster: Cluster, name: str, quota: Mapping[str, str], *, preempts: bool = False, check: str = ""
) -> None:
    """Open a queue for the namespace with so much of each resource, and return when Kueue takes work for it.

    Where it `preempts`, work of a higher priority ends other work of the queue. `check` names its AdmissionCheck. It is
    closed once the namespace is gone: Kueue keeps a ClusterQueue for as long as anything is admitted by it.
    """
    namespace = lender.namespace
    queue: Json = {"namespaceSelector": {}, "resourceGroups": [_group(namespace, quota)]}
    queue |= {"preemption": {"withinClusterQueue": "LowerPriority"}} if preempts else {}
    queue |= {"admissionChecks": [check]} if check else {}
    _keep(lender, cluster, "ResourceFlavor", namespace, {"spec": {}})
    _keep(lender, cluster, "ClusterQueue", namespace, {"spec": queue})
    _apply(cluster, "LocalQueue", {"name": name, "namespace": namespace}, {"spec": {"clusterQueue": namespace}})
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


def _keep(lender: Lender, cluster: Cluster, kind: str, name: str, body: Json) -> None:
    """Make an object without a namespace that goes once the namespace of the fleet is gone."""
    lender.afterwards.callback(_delete, cluster, kind, name)
    _apply(cluster, kind, {"name": name}, body)


def _apply(cluster: Cluster, kind: str, metadata: Json, body: Json) -> None:
    written = {"apiVersion": VERSION, "kind": kind, "metadata": metadata, **body}
    cluster.kubectl("apply", "--filename=-", stdin=json.dumps(written))


def _delete(cluster: Cluster, kind: str, name: str) -> None:
    """Delete an object, and return when it is gone: the next one of its name would go with it."""
    cluster.kubectl("delete", f"{kind.lower()}.kueue.x-k8s.io", name, "--ignore-not-found", _PATIENCE)


def add_priority(lender: Lender, cluster: Cluster, name: str, value: int) -> None:
    """Make a priority of Kueue's own, for as long as the namespace is there."""
    _keep(lender, cluster, "WorkloadPriorityClass", name, {"value": value})


def add_check(lender: Lender, cluster: Cluster, name: str, controller: str, parameters: Json = None) -> None:
    """Make an AdmissionCheck of a controller, for as long as the namespace is there."""
    body = {"controllerName": controller} | ({"parameters": parameters} if parameters else {})
    _keep(lender, cluster, "AdmissionCheck", name, {"spec": body})


def activate_check(cluster: Cluster, name: str) -> None:
    """Say as the controller of an AdmissionCheck that it is at work."""
    said = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": _now()}
    path = f"/apis/{VERSION}/admissionchecks/{name}/status"
    cluster.call("PATCH", path, {"status": {"conditions": [said]}})


def pass_check(cluster: Cluster, namespace: str, name: str, check: str) -> None:
    """Say as the controller of an AdmissionCheck that the Workload of an object may begin."""
    workload = workloads(cluster, namespace)[name]["metadata"]["name"]
    state = {"name": check, "state": "Ready", "message": "", "lastTransitionTime": _now()}
    path = f"/apis/{VERSION}/namespaces/{namespace}/workloads/{workload}/status"
    cluster.call("PATCH", path, {"status": {"admissionChecks": [state]}})


def add_multikueue(lender: Lender, manager: Cluster, worker: Cluster, check: str) -> None:
    """Have MultiKueue run the jobs of queues with a check on another cluster, for as long as the namespace is there."""
    # Their deletion is in the order of their making, turned round: a check is in use by a queue until that is gone.
    place = {"location": str(worker.kubeconfig), "locationType": "Path"}
    _keep(lender, manager, "MultiKueueCluster", worker.name, {"spec": {"kubeConfig": place}})
    _keep(lender, manager, "MultiKueueConfig", check, {"spec": {"clusters": [worker.name]}})
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": check}
    add_check(lender, manager, check, MULTIKUEUE, parameters)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


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


def reserved(cluster: Cluster, namespace: str, name: str) -> Callable[[], bool]:
    """Tell, when asked, whether Kueue has given an object quota, and waits for its checks."""

    def has_checks() -> bool:
        found = workloads(cluster, namespace).get(name, {})
        return condition(found, "QuotaReserved")["status"] == "True" and "admissionChecks" in found["status"]

    return has_checks


def admitted(cluster: Cluster, namespace: str, name: str) -> Callable[[], bool]:
    """Tell, when asked, whether Kueue has admitted an object by now."""
    return lambda: condition(workloads(cluster, namespace).get(name, {}), "Admitted")["status"] == "True"


def is_held(explained: Json) -> bool:
    """Tell whether `explain` gives one reason for lending nothing, and that is that the workload is held."""
    return [each["reason"] for each in explained["suppressed"]] == ["Held"]
