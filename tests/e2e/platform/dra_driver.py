"""The example driver of Kubernetes' DRA as released: a process for each node, in place of the kubelet's DaemonSet.

It publishes the slices of its node and waits for a kubelet, which is never there: its sockets and the files of its
container devices (CDI) lie in a directory of its own. It has the administrator's rights.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.e2e.api_server import Json
from tests.e2e.components import Missing, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.processes import Processes

NAME = "dra-example-kubeletplugin"
DRIVER = "gpu.example.com"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def missing() -> str:
    """Say what it lacks here; empty if it can be started."""
    if reason := missing_programs([NAME]):
        return reason
    released = sources(pinned(NAME))
    return released.reason if isinstance(released, Missing) else ""


def demo(number: int) -> list[Json]:
    """Return the objects of one of the project's demos, ``demo/gpu-test1.yaml`` and so on of the released module."""
    released = sources(pinned(NAME))
    assert isinstance(released, Path), released
    return [one for one in yaml.safe_load_all((released / f"demo/gpu-test{number}.yaml").read_text()) if one]


class DraDriver:
    """The driver on the nodes of a cluster, running until `stop`."""

    def __init__(self, cluster: Cluster, devices: Mapping[str, int]) -> None:
        """Start it on each node with so many devices; returns when their slices are there."""
        # The path of a Unix socket has at most 107 characters, which a directory of tests may need alone.
        self._home = Path(tempfile.mkdtemp(prefix="dra-"))
        self._processes = Processes(self._home)
        # As deployments/helm/dra-example-driver/templates/deviceclass.yaml has it.
        selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
        cluster.create(
            "/apis/resource.k8s.io/v1/deviceclasses", {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}}
        )
        try:
            for node, number in devices.items():
                self._run(cluster, node, number)
            cluster.until(
                lambda: len(cluster.items(SLICES)) == len(devices), "no slices", told=self._processes.last_words
            )
        except BaseException:
            self.stop()
            raise

    def _run(self, cluster: Cluster, node: str, devices: int) -> None:
        home = self._home / node
        for directory in ("registry", "plugins", "cdi"):
            (home / directory).mkdir(parents=True)
        command = [
            program(NAME),
            f"--node-name={node}",
            f"--num-devices={devices}",
            f"--kubeconfig={cluster.kubeconfig}",
            f"--cdi-root={home / 'cdi'}",
            f"--kubelet-registrar-directory-path={home / 'registry'}",
            f"--kubelet-plugins-directory-path={home / 'plugins'}",
        ]
        self._processes.run(node, command, {"NODE_NAME": node})

    def stop(self) -> None:
        """End it on every node; its slices stay."""
        self._processes.stop()
        shutil.rmtree(self._home, ignore_errors=True)
