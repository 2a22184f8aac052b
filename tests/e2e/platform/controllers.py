"""Controllers of a GPU platform for tests: as released, as processes beside a test cluster, with their own rights.

Their kinds, accounts, roles, webhooks and configuration come out of the released module, by Kustomize as a person would
install them. What is changed are addresses: a Service of webhooks leads to this machine, and not to pods.
"""

from __future__ import annotations

import base64
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.e2e.api_server import Json
from tests.e2e.components import Missing, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import free_port
from tests.e2e.processes import Processes

_ADDED = frozenset(
    {
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "Secret",
    }
)
"""What is applied as released; the Deployment is the process."""
_WEBHOOKS = frozenset({"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A controller of the platform: its component, and how its project installs it."""

    name: str
    kinds: tuple[str, ...]
    """A group and version of it, and the resources that have to be served."""
    overlay: str = "config/default"
    """The Kustomization in the released module."""
    certifies: bool = True
    """Whether it makes the certificate of its webhooks itself, as it does when installed; it reads it from a directory
    of our choice then."""
    flags: tuple[str, ...] = ()
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Fields of its configuration that tests want otherwise than released."""


LEADER_WORKER_SET = Controller(name="lws", kinds=("leaderworkerset.x-k8s.io/v1", "leaderworkersets"))
JOB_SET = Controller(name="jobset", kinds=("jobset.x-k8s.io/v1alpha2", "jobsets"), certifies=False)
KUEUE = Controller(
    name="kueue",
    kinds=("kueue.x-k8s.io/v1beta1", "workloads", "localqueues", "clusterqueues", "resourceflavors"),
    # Its server of pending workloads has an API of its own, behind a Service.
    flags=("--feature-gates=VisibilityOnDemand=false",),
    # As its pages on LeaderWorkerSets tell: they need the integrations of pods and StatefulSets, which are off.
    settings={
        "integrations": {
            "frameworks": [
                "batch/job",
                "jobset.x-k8s.io/jobset",
                "pod",
                "statefulset",
                "leaderworkerset.x-k8s.io/leaderworkerset",
            ]
        }
    },
)


def missing(controller: Controller) -> str:
    """Say what a controller lacks here; empty if it can be started."""
    if reason := missing_programs([controller.name, "kustomize"]):
        return reason
    released = sources(pinned(controller.name))
    return released.reason if isinstance(released, Missing) else ""


def example(controller: Controller, path: str) -> str:
    """Return an example of a controller's project as released, unchanged."""
    return (_released(controller) / path).read_text()


class Running:
    """A controller on one cluster, running until `stop`."""

    def __init__(self, controller: Controller, cluster: Cluster, home: Path) -> None:
        """Install it, start it, and return when its webhooks answer."""
        self._controller, self._cluster, self._home = controller, cluster, home
        self._processes = Processes(home)
        self._health, self._port = free_port(), free_port()
        home.mkdir(parents=True)
        objects = self._install()
        self._certificates = home / "certificates"
        self._certificates.mkdir()
        if not controller.certifies:
            authority = cluster.access.authority
            self._put_certificate(authority.read_bytes(), authority.with_suffix(".key").read_bytes())
        configuration = home / "configuration.yaml"
        configuration.write_text(json.dumps(self._configuration(objects)))
        self._processes.run(
            controller.name,
            [program(controller.name), f"--config={configuration}", *controller.flags],
            {"KUBECONFIG": str(self._login(objects)), "TMPDIR": str(home)},
        )
        try:
            if controller.certifies:
                [secret] = [each["metadata"] for each in objects if each["kind"] == "Secret"]
                self._mount(f"/api/v1/namespaces/{secret['namespace']}/secrets/{secret['name']}")
            cluster.until(self._ready, f"{controller.name} is not ready", told=self.last_words)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it; what it has installed stays."""
        self._processes.stop()

    def last_words(self) -> str:
        """Return its last words."""
        return self._processes.last_words()

    def _install(self) -> list[Json]:
        """Apply what its project installs, and return all of it."""
        overlay = _released(self._controller) / self._controller.overlay
        built = subprocess.run(
            [program("kustomize"), "build", str(overlay)], check=True, capture_output=True, text=True
        ).stdout
        objects = list(yaml.safe_load_all(built))
        self._apply([each for each in objects if each["kind"] in _ADDED])
        self._apply([self._at_our_port(each) for each in objects if each["kind"] in _WEBHOOKS])
        group, *kinds = self._controller.kinds
        self._cluster.until(lambda: self._cluster.served(group) >= {*kinds}, f"{group} is not served")
        return objects

    def _apply(self, objects: list[Json]) -> None:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self._cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)

    def _configuration(self, objects: list[Json]) -> Json:
        """Return its configuration as released, with loopback ports and the directory of its certificate."""
        [released] = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
        configuration = yaml.safe_load(released["controller_manager_config.yaml"])
        return {
            **configuration,
            "leaderElection": {"leaderElect": False},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self._port, "certDir": str(self._certificates)},
            "internalCertManagement": {
                **configuration.get("internalCertManagement", {}),
                "enable": self._controller.certifies,
            },
            **self._controller.settings,
        }

    def _login(self, objects: list[Json]) -> Path:
        """Log in with the account that its Deployment has."""
        [deployment] = [each for each in objects if each["kind"] == "Deployment"]
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        namespace = deployment["metadata"]["namespace"]
        token = self._cluster.kubectl("create", "token", account, f"--namespace={namespace}", "--duration=8h").strip()
        access, name = self._cluster.access, self._cluster.name
        cluster = {"server": access.server, "certificate-authority": str(access.authority)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": account, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": account}}],
        }
        target = self._home / "kubeconfig"
        target.write_text(json.dumps(config))
        return target

    def _at_our_port(self, configuration: Json) -> Json:
        """Lead a configuration of webhooks to the process, by name where it makes a certificate for that name."""
        authority = base64.b64encode(self._cluster.access.authority.read_bytes()).decode()
        for webhook in configuration["webhooks"]:
            service = webhook["clientConfig"]["service"]
            if self._controller.certifies:
                self._lead_here(service)
                service["port"] = self._port
            else:
                url = f"https://127.0.0.1:{self._port}{service['path']}"
                webhook["clientConfig"] = {"url": url, "caBundle": authority}
        return configuration

    def _lead_here(self, service: Json) -> None:
        """Make a Service an alias of this machine, for an API server that looks for its address."""
        metadata = {"name": service["name"], "namespace": service["namespace"]}
        alias = {"type": "ExternalName", "externalName": "localhost"}
        self._apply([{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": alias}])

    def _mount(self, secret: str) -> None:
        """Put the certificate that it has made where it reads it, as a kubelet mounts a Secret."""
        made: Json = {}

        def is_made() -> bool:
            self._processes.alive()
            made.update(self._cluster.call("GET", secret).get("data", {}))
            return "tls.crt" in made

        self._cluster.until(is_made, f"{self._controller.name} has no certificate", told=self.last_words)
        self._put_certificate(*(base64.b64decode(made[name]) for name in ("tls.crt", "tls.key")))

    def _put_certificate(self, certificate: bytes, key: bytes) -> None:
        (self._certificates / "tls.key").write_bytes(key)
        (self._certificates / "tls.crt").write_bytes(certificate)

    def _ready(self) -> bool:
        self._processes.alive()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/readyz", timeout=5):
                pass
        except (OSError, urllib.error.URLError):
            return False
        return True


def _released(controller: Controller) -> Path:
    released = sources(pinned(controller.name))
    assert not isinstance(released, Missing), released
    return released
