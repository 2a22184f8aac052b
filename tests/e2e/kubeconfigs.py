"""A kubeconfig for the daemon, with the rights that it asks for."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster

LAYOUT = Path(__file__).parents[2] / "repo-layout"


def kubeconfig(path: Path, *clusters: Cluster) -> Path:
    """Log in with the rights of bootstrap/rbac.yaml and no others."""
    config: Json = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    for cluster in clusters:
        cluster.kubectl("apply", "-f", str(LAYOUT / "bootstrap" / "rbac.yaml"))
        token = cluster.kubectl(
            "create", "token", "overspill", "--namespace=overspill-system", "--duration=24h"
        ).strip()
        authority = base64.b64encode(cluster.access.authority.read_bytes()).decode()
        server = {"server": cluster.access.server, "certificate-authority-data": authority}
        config["clusters"].append({"name": cluster.name, "cluster": server})
        config["users"].append({"name": cluster.name, "user": {"token": token}})
        config["contexts"].append({"name": cluster.name, "context": {"cluster": cluster.name, "user": cluster.name}})
    target = path / "kubeconfig"
    target.write_text(json.dumps(config))
    return target
