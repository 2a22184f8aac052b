"""What a person asks for runs in clusters with different engines, and goes when nobody asks for it any more."""

from __future__ import annotations

import hashlib
import json
import socket

from reconciler.client import Client
from tests.e2e.control_plane import Cluster
from tests.e2e.three_clusters.scenario import AT_HOME, NAMESPACE, Scenario, deployment, running

FILE = "requests/evaluation.yaml"
SPOT = {"key": "capacity", "value": "spot", "effect": "NoSchedule"}
TOKEN = "ovs_" + "Ab3-" * 10 + "xyz"  # put together here, so that no scanner takes this file for a leak


def spec(*clusters: str) -> dict[str, object]:
    """Ask for one replica on each cluster, as both a file and a body say it."""
    manifest = deployment(1, name="evaluation")
    manifest["metadata"]["namespace"] = NAMESPACE
    manifest["spec"]["template"]["spec"]["tolerations"] = [SPOT]
    return {
        "workspaceName": "llm",
        "clusterNames": list(clusters),
        "burstDuration": "30m",
        "manifestResources": [{"name": "evaluation", "manifest": manifest}],
        "steps": [{"name": "evaluation", "type": "manifest"}],
    }


def file(*clusters: str) -> str:
    """Write the request as EGS's resource; JSON is YAML."""
    document = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadPlacement",
        "metadata": {"name": "evaluation", "namespace": "kubeslice-avesha"},
        "spec": spec(*clusters),
    }
    return json.dumps(document, indent=2)


def test_request_of_a_file_runs_by_two_engines_until_the_file_goes(scenario: Scenario) -> None:
    scenario.begin()
    with scenario.daemon():
        scenario.fleet.add(FILE, file(scenario.by_flux.name, scenario.by_argo_cd.name))
        scenario.until_lent(by_flux=1, by_argo_cd=1)
        assert [subject for subject in scenario.fleet.subjects() if subject.startswith("request(")] == [
            "request(llm/evaluation): received",
            "request(llm/evaluation): 1 replica on worker-2 for 30m",
            "request(llm/evaluation): 1 replica on worker-3 for 30m",
        ]
        scenario.fleet.remove(FILE)
        scenario.until_as_before()
    assert running(scenario.home) == AT_HOME


def test_call_from_a_laptop_runs_in_a_cluster_until_it_is_deleted(scenario: Scenario) -> None:
    scenario.begin()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    held = {"name": "Ada", "email": "ada@example.com", "sha256": hashlib.sha256(TOKEN.encode()).hexdigest()}
    tokens = json.dumps({"tokens": [{**held, "roles": {"llm": "Editor"}}]})
    with scenario.daemon(LISTEN=f"127.0.0.1:{port}", API_TOKENS=tokens):
        with Client(f"http://127.0.0.1:{port}", token=TOKEN) as client:
            receipt = client.create({"name": "evaluation", **spec(scenario.by_argo_cd.name)})
            scenario.until_lent(by_flux=0, by_argo_cd=1)
            until_it_runs(client, scenario.by_argo_cd)
            author = scenario.fleet.git("show", "-s", "--format=%an <%ae>", receipt.commit, at=scenario.fleet.bare)
            assert author.strip() == "Ada <ada@example.com>"
            client.delete("evaluation")
        scenario.until_as_before()


def until_it_runs(client: Client, cluster: Cluster) -> None:
    """Wait until the daemon has seen what runs in the cluster."""
    cluster.until(lambda: client.placement("evaluation").status.phase == "Running", "the API does not say that it runs")
