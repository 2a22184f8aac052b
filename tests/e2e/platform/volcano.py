"""Volcano for tests: its controller manager and its scheduler, as released, as processes beside a test cluster.

Its webhooks are not there: an object has to have what they would add (`pkg/webhooks/admission/jobs/mutate`).
"""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.e2e.api_server import Json
from tests.e2e.components import Missing, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import free_port
from tests.e2e.platform.controllers import ADDED, Started, apply, login
from tests.e2e.processes import Processes

CONTROLLERS, SCHEDULER = "volcano-controller-manager", "volcano-scheduler"
SERVED = {
    "batch.volcano.sh/v1alpha1": {"jobs"},
    "scheduling.volcano.sh/v1beta1": {"podgroups", "queues"},
}
_DEPLOYMENTS = {CONTROLLERS: "volcano-controllers", SCHEDULER: "volcano-scheduler"}
"""The Deployment of each, whose account it has."""
_INSTALLER = "installer/volcano-development.yaml"
_QUEUES = "/apis/scheduling.volcano.sh/v1beta1/queues"


@dataclass(frozen=True, slots=True)
class Volcano:
    """Volcano as its project installs it."""

    name: str = "volcano"

    def missing(self) -> str:
        """Say what it lacks here; empty if it can be started."""
        if reason := missing_programs([CONTROLLERS, SCHEDULER]):
            return reason
        released = sources(pinned(SCHEDULER))
        return released.reason if isinstance(released, Missing) else ""

    def start(self, cluster: Cluster, home: Path) -> Started:
        """Install it and start it; returns when its default queue is open."""
        return _Running(cluster, home)


VOLCANO = Volcano()


class _Running:
    """Controller manager and scheduler on one cluster, running until `stop`."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        """Install them, start them, and return when the default queue is open."""
        self._cluster, self._home = cluster, home
        self._processes = Processes(home)
        self._health = {name: free_port() for name in _DEPLOYMENTS}
        home.mkdir(parents=True)
        objects = self._install()
        try:
            self._start(objects)
            cluster.until(self._ready, "Volcano is not ready", told=self.last_words)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End both; what is installed stays."""
        self._processes.stop()

    def last_words(self) -> str:
        """Return the last words of both."""
        return self._processes.last_words()

    def _install(self) -> list[Json]:
        """Apply what its project installs but for the webhooks, and return all of it."""
        released = sources(pinned(SCHEDULER))
        assert not isinstance(released, Missing), released
        documents = yaml.load_all((released / _INSTALLER).read_text(), yaml.CSafeLoader)
        objects = [document for document in documents if document]
        apply(self._cluster, [each for each in objects if each["kind"] in ADDED])
        self._cluster.until(self._serves_kinds, f"{', '.join(SERVED)} are not served")
        return objects

    def _serves_kinds(self) -> bool:
        return all(self._cluster.served(group) >= kinds for group, kinds in SERVED.items())

    def _start(self, objects: list[Json]) -> None:
        found = {(each["kind"], each["metadata"]["name"]): each for each in objects}
        for name, deployment in _DEPLOYMENTS.items():
            home = self._home / name
            home.mkdir()
            account = login(self._cluster, found["Deployment", deployment], home)
            flags = [
                f"--kubeconfig={account}", "--leader-elect=false", "--logtostderr", "--v=3", "--enable-healthz=true",
                f"--healthz-address=127.0.0.1:{self._health[name]}",
            ]  # fmt: skip # a command line, word by word
            if name == SCHEDULER:
                configured = home / "volcano-scheduler.conf"
                configured.write_text(found["ConfigMap", "volcano-scheduler-configmap"]["data"][configured.name])
                flags += [f"--scheduler-conf={configured}", "--schedule-period=1s", "--cache-dumper=false"]
            variables = {"KUBE_POD_NAMESPACE": "volcano-system", "HELM_RELEASE_NAME": "volcano"}
            self._processes.run(name, [program(name), *flags], {**variables, "DEBUG_SOCKET_DIR": str(home)})

    def _ready(self) -> bool:
        self._processes.alive()
        try:
            for port in self._health.values():
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5):
                    pass
        except OSError:
            return False
        queues = {each["metadata"]["name"]: each for each in self._cluster.items(_QUEUES)}
        return bool(queues.get("default", {}).get("status", {}).get("state") == "Open")
