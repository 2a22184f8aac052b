"""Calls of EGS's that are not answered, and what is there instead."""

from __future__ import annotations

import pytest

from tests.builders.daemon import PATH, Daemon


@pytest.mark.parametrize(
    ("method", "path", "way_out"),
    [
        ("POST", "/api/v1/auth", "`overspill token` makes"),
        ("PUT", f"{PATH}/bookinfo/enable-egs", "no call to enable EGS"),
        ("POST", "/api/v1/slice-workspace", "each is a file"),
        ("PUT", "/api/v1/slice-workspace", "each is a file"),
        ("DELETE", "/api/v1/slice-workspace", "each is a file"),
        ("POST", "/api/v1/slice-workspace/kube-config", "each is a file"),
        ("GET", "/api/v1/workspace-policies", "a WorkspacePolicy is a file"),
        ("PUT", "/api/v1/workspace-policies/llm", "a WorkspacePolicy is a file"),
        ("GET", "/api/v1/gpr-template/list", "a GPRTemplate is a file"),
        ("POST", "/api/v1/gpr-template", "a GPRTemplate is a file"),
        ("POST", "/api/v1/gpr-template-binding", "a GPRTemplateBinding is a file"),
        ("GET", "/api/v1/continuum-group", "Cluster files"),
        ("POST", "/api/v1/prices", "Cluster files"),
        ("GET", "/api/v1/inventory", "GET /api/v1/inventory/list"),
        ("GET", "/workload-placement", "every call begins with /api/v1"),
        ("GET", "/api/v1/elsewhere", "GET /docs shows every call"),
    ],
)
def test_what_is_a_file_of_the_fleet_repository_has_no_call(
    shared: Daemon, method: str, path: str, way_out: str
) -> None:
    reply = shared.call(method, path, {} if method in ("POST", "PUT") else None)
    assert (reply.status, reply.body["statusCode"], reply.body["status"]) == (404, 404, "Error")
    assert way_out in reply.body["error"]["hint"]


@pytest.mark.parametrize(
    ("method", "path", "way_out"),
    [
        ("POST", "/api/v1/gpr", "a GPUProvisioningRequest is a file of the fleet repository"),
        ("DELETE", "/api/v1/gpr/gpr-72b2aba0", "earlyRelease"),
        ("POST", "/api/v1/inventory/list", "GET /api/v1/inventory/list"),
        ("DELETE", PATH, "try GET, POST; GET /docs shows every call"),
    ],
)
def test_reservation_is_made_by_a_file_and_not_by_a_call(shared: Daemon, method: str, path: str, way_out: str) -> None:
    reply = shared.call(method, path, {"sliceName": "abc", "numberOfGPUNodes": 1})
    assert reply.status == 405
    assert way_out in reply.body["error"]["hint"]


def test_node_is_told_with_what_is_observed_of_it_and_nothing_else(shared: Daemon) -> None:
    node, *_ = shared.call("GET", "/api/v1/inventory/list").body["data"]["managedNodes"]
    assert (node["clusterName"], node["gpuCount"], node["availableGPUs"]) == ("worker-1", None, 8)
    assert {"gpuNodeName", "gpuShape", "gpuModelName", "instanceType", "region", "memory", "nodeHealth"} <= {*node}
    assert node["gpuNodeState"] == "NODE_AVAILABLE"
    assert not {"gpuTempThreshold", "gpuPowerThreshold", "cloudProvider"} & {*node}
