"""Calls of EGS's that are not answered, and what is there instead."""

from __future__ import annotations

import pytest

from tests.builders.daemon import PATH, Daemon


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/v1/auth"),
        ("PUT", f"{PATH}/bookinfo/enable-egs"),
        ("POST", "/api/v1/slice-workspace"),
        ("PUT", "/api/v1/slice-workspace"),
        ("DELETE", "/api/v1/slice-workspace"),
        ("POST", "/api/v1/slice-workspace/kube-config"),
        ("GET", "/api/v1/workspace-policies"),
        ("PUT", "/api/v1/workspace-policies/llm"),
        ("GET", "/api/v1/gpr-template/list"),
        ("POST", "/api/v1/gpr-template"),
        ("GET", "/api/v1/continuum-group"),
        ("POST", "/api/v1/prices"),
        ("GET", "/api/v1/inventory"),
    ],
)
def test_what_is_a_file_of_the_fleet_repository_has_no_call(running: Daemon, method: str, path: str) -> None:
    reply = running.call(method, path, {} if method in ("POST", "PUT") else None)
    assert (reply.status, reply.body["statusCode"], reply.body["status"]) == (404, 404, "Error")
    assert reply.body["error"]["hint"] == "GET /docs shows every call"


def test_reservation_is_made_by_a_file_and_not_by_a_call(running: Daemon) -> None:
    reply = running.call("POST", "/api/v1/gpr", {"sliceName": "abc", "numberOfGPUNodes": 1})
    assert reply.status == 405


def test_node_is_told_with_what_is_observed_of_it_and_nothing_else(running: Daemon) -> None:
    node, *_ = running.call("GET", "/api/v1/inventory/list").body["data"]["managedNodes"]
    assert (node["clusterName"], node["gpuCount"], node["availableGPUs"]) == ("worker-1", None, 8)
    assert {"gpuNodeName", "gpuShape", "gpuModelName", "instanceType", "region", "memory", "nodeHealth"} <= {*node}
    assert node["gpuNodeState"] == "NODE_AVAILABLE"
    assert not {"gpuTempThreshold", "gpuPowerThreshold", "cloudProvider"} & {*node}
