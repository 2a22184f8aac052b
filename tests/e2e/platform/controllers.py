"""Controllers of a GPU platform for tests: as released, as processes beside a test cluster, with their own rights.

Their kinds, accounts, roles, webhooks and configuration come out of the released module, by Kustomize as a person would
install them. What is changed are addresses: a Service of webhooks leads to this machine, and not to pods.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import yaml

from tests.e2e.api_server import Json
from tests.e2e.components import Missing, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import free_port
from tests.e2e.processes import Processes

ADDED = frozenset(
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


class Started(Protocol):
    """What runs beside a cluster."""

    def stop(self) -> None:
        """End it."""
        ...

    def last_words(self) -> str:
        """Return its last words."""
        ...


class Startable(Protocol):
    """What can be installed and run beside a cluster."""

    @property
    def name(self) -> str:
        """Its name, that of its component."""
        ...

    def missing(self) -> str:
        """Say what it lacks here; empty if it can be started."""
        ...

    def start(self, cluster: Cluster, home: Path) -> Started:
        """Install it and start it in a directory of its own; returns when it is ready."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A controller of the platform: its component, and how its project installs it."""

    name: str
    kinds: tuple[str, ...]
    """A group and version of it, and the resources that have to be served."""
    overlay: str = "config/default"
    """The Kustomization in the released module."""
    without: str = ""
    """A line of the Kustomization that is left out, as its comment says: what it names is installed already."""
    certifies: bool = True
    """Whether it makes the certificate of its webhooks itself, as it does when installed; it reads it from a directory
    of our choice then."""
    certificates: str = "certificates"
    """That directory, below its own ``TMPDIR``."""
    stamp: str = ""
    """A file that it waits for without reading it, whose path nothing changes; empty for none. It comes once the
    certificate is there."""
    flags: tuple[str, ...] = ("--config={configuration}",)
    """Its arguments, with the path of its configuration and the ports of its health and its webhooks."""
    ready: str = "http://127.0.0.1:{health}/readyz"
    """Where it says that it is ready."""
    afterwards: str = ""
    """A Kustomization of objects that its webhooks have to let in; empty for none."""
    settings: Mapping[str, Json] = field(default_factory=dict)
    """Fields of its configuration that tests want otherwise than released."""

    def missing(self) -> str:
        """Say what it lacks here; empty if it can be started."""
        if reason := missing_programs([self.name, "kustomize"]):
            return reason
        released = sources(pinned(self.name))
        return released.reason if isinstance(released, Missing) else ""

    def start(self, cluster: Cluster, home: Path, environment: Mapping[str, str] | None = None) -> Started:
        """Install it and start it, with more variables if given; returns when its webhooks answer."""
        return _Running(self, cluster, home, environment or {})


LEADER_WORKER_SET = Controller(name="lws", kinds=("leaderworkerset.x-k8s.io/v1", "leaderworkersets"))
JOB_SET = Controller(name="jobset", kinds=("jobset.x-k8s.io/v1alpha2", "jobsets"), certifies=False)
KUEUE = Controller(
    name="kueue",
    kinds=("kueue.x-k8s.io/v1beta1", "workloads", "localqueues", "clusterqueues", "resourceflavors"),
    # Its server of pending workloads has an API of its own, behind a Service.
    flags=("--config={configuration}", "--feature-gates=VisibilityOnDemand=false"),
    # As its pages on LeaderWorkerSets tell: they need the integrations of pods and StatefulSets, which are off.
    settings={
        "integrations": {
            "frameworks": [
                "batch/job",
                "jobset.x-k8s.io/jobset",
                "pod",
                "statefulset",
                "leaderworkerset.x-k8s.io/leaderworkerset",
                "trainer.kubeflow.org/trainjob",
            ]
        }
    },
)
TRAINER = Controller(
    name="trainer",
    kinds=("trainer.kubeflow.org/v1alpha1", "trainjobs", "clustertrainingruntimes"),
    overlay="manifests/overlays/manager",
    # It asks for JobSet's release by its address; JobSet runs here already.
    without="- ../../third-party/jobset",
    # Where controller-runtime looks for it; Trainer itself asks only for a file below /tmp (pkg/util/cert).
    certificates="k8s-webhook-server/serving-certs",
    stamp="/tmp/k8s-webhook-server/serving-certs/tls.crt",
    flags=("--health-probe-bind-address=127.0.0.1:{health}", "--webhook-server-port={port}"),
    afterwards="manifests/overlays/runtimes",
)
KUBERAY = Controller(
    name="kuberay-operator",
    kinds=("ray.io/v1", "rayclusters", "rayjobs"),
    certifies=False,
    flags=("--health-probe-bind-address=127.0.0.1:{health}", "--metrics-addr=0", "--enable-leader-election=false"),
)
TRAINING_OPERATOR = Controller(
    name="training-operator",
    kinds=("kubeflow.org/v1", "jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs"),
    overlay="manifests/overlays/standalone",
    # As Trainer has it, which came out of it.
    certificates=TRAINER.certificates,
    stamp=TRAINER.stamp,
    flags=(
        "--health-probe-bind-address=127.0.0.1:{health}",
        "--metrics-bind-address=0",
        "--webhook-server-port={port}",
    ),
)
MPI_OPERATOR = Controller(
    name="mpi-operator",
    kinds=("kubeflow.org/v2beta1", "mpijobs"),
    overlay="manifests/overlays/standalone",
    certifies=False,
    flags=("-alsologtostderr", "--lock-namespace=mpi-operator"),
    # It has no flag for the port.
    ready="http://127.0.0.1:8080/healthz",
)

QUEUED = (LEADER_WORKER_SET, JOB_SET, TRAINER, KUEUE)
"""Kueue with all whose kinds it queues: it looks for these when it starts, and admits none that comes before."""


def example(controller: Controller, path: str, kind: str = "") -> str:
    """Return an example of a controller's project as released, unchanged; that of a kind on a page of text."""
    text = (_released(controller) / path).read_text()
    if not kind:
        return text
    shown = re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return next(each for each in shown if f"\nkind: {kind}\n" in each)


class _Running:
    """A controller on one cluster, running until `stop`."""

    def __init__(self, controller: Controller, cluster: Cluster, home: Path, environment: Mapping[str, str]) -> None:
        """Install it, start it, and return when its webhooks answer."""
        self._controller, self._cluster, self._home = controller, cluster, home
        self._processes = Processes(home)
        self._health, self._port = free_port(), free_port()
        home.mkdir(parents=True)
        objects = self._install()
        self._certificates = home / controller.certificates
        self._certificates.mkdir(parents=True)
        if not controller.certifies:
            authority = cluster.access.authority
            self._put_certificate(authority.read_bytes(), authority.with_suffix(".key").read_bytes())
        configuration = home / "configuration.yaml"
        configuration.write_text(json.dumps(self._configuration(objects)))
        stamp = Path(controller.stamp) if controller.stamp else None
        if stamp is not None:
            stamp.unlink(missing_ok=True)
        given = {"configuration": configuration, "health": self._health, "port": self._port}
        self._processes.run(
            controller.name,
            [program(controller.name), *(flag.format(**given) for flag in controller.flags)],
            {"KUBECONFIG": str(self._account(objects)), "TMPDIR": str(home), **environment},
        )
        try:
            if controller.certifies:
                [secret] = [each["metadata"] for each in objects if each["kind"] == "Secret"]
                self._mount(f"/api/v1/namespaces/{secret['namespace']}/secrets/{secret['name']}")
            if stamp is not None:
                stamp.parent.mkdir(parents=True, exist_ok=True)
                stamp.touch()
            cluster.until(self._ready, f"{controller.name} is not ready", told=self.last_words)
            if controller.afterwards:
                apply(cluster, built(_released(controller) / controller.afterwards))
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
        objects = self._released_objects()
        apply(self._cluster, [each for each in objects if each["kind"] in ADDED])
        apply(self._cluster, [self._at_our_port(each) for each in objects if each["kind"] in _WEBHOOKS])
        group, *kinds = self._controller.kinds
        self._cluster.until(lambda: self._cluster.served(group) >= {*kinds}, f"{group} is not served")
        return objects

    def _released_objects(self) -> list[Json]:
        """Return what the Kustomization of its project makes, without the line that is left out."""
        released, controller = _released(self._controller), self._controller
        if not controller.without:
            return built(released / controller.overlay)
        top = controller.overlay.partition("/")[0]
        copied = self._home / top
        shutil.copytree(released / top, copied, copy_function=shutil.copyfile)
        # Nothing in a module may be written, and neither may copies of its folders.
        for folder in (copied, *copied.rglob("*/")):
            folder.chmod(0o755)
        file = self._home / controller.overlay / "kustomization.yaml"
        lines = file.read_text().splitlines()
        kept = [line for line in lines if not line.strip().startswith(controller.without)]
        assert len(kept) == len(lines) - 1, f"{file} has no one line {controller.without!r}"
        file.write_text("\n".join(kept))
        return built(file.parent)

    def _configuration(self, objects: list[Json]) -> Json:
        """Return its configuration as released, with loopback ports and the directory of its certificate."""
        released = [each["data"] for each in objects if each["kind"] == "ConfigMap"]
        configuration = yaml.safe_load(released[0]["controller_manager_config.yaml"]) if released else {}
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

    def _account(self, objects: list[Json]) -> Path:
        """Log in with the account that its Deployment has."""
        [deployment] = [each for each in objects if each["kind"] == "Deployment"]
        return login(self._cluster, deployment, self._home)

    def _at_our_port(self, configuration: Json) -> Json:
        """Lead a configuration of webhooks to the process, by name where it makes a certificate for that name."""
        authority = base64.b64encode(self._cluster.access.authority.read_bytes()).decode()
        for webhook in configuration["webhooks"]:
            service = webhook["clientConfig"]["service"]
            if self._controller.certifies:
                lead_here(self._cluster, service["name"], service["namespace"])
                service["port"] = self._port
            else:
                url = f"https://127.0.0.1:{self._port}{service['path']}"
                webhook["clientConfig"] = {"url": url, "caBundle": authority}
        return configuration

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
            with urllib.request.urlopen(self._controller.ready.format(health=self._health), timeout=5):
                pass
        except (OSError, urllib.error.URLError):
            return False
        return True


def apply(cluster: Cluster, objects: list[Json]) -> None:
    """Apply objects as the administrator; kubectl refuses to be given none."""
    if not objects:
        return
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", stdin=text)


def login(cluster: Cluster, deployment: Json, home: Path) -> Path:
    """Write a kubeconfig with the account of a Deployment."""
    spec = deployment["spec"]["template"]["spec"]
    account = spec.get("serviceAccountName") or spec["serviceAccount"]  # its former name
    namespace = deployment["metadata"]["namespace"]
    token = cluster.kubectl("create", "token", account, f"--namespace={namespace}", "--duration=8h").strip()
    access, name = cluster.access, cluster.name
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [
            {"name": name, "cluster": {"server": access.server, "certificate-authority": str(access.authority)}}
        ],
        "users": [{"name": account, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": account}}],
    }
    target = home / "kubeconfig"
    target.write_text(json.dumps(config))
    return target


def lead_here(cluster: Cluster, name: str, namespace: str) -> None:
    """Make a Service an alias of this machine, for an API server that looks for its address."""
    alias = {"type": "ExternalName", "externalName": "localhost"}
    metadata = {"name": name, "namespace": namespace}
    apply(cluster, [{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": alias}])


def built(overlay: Path) -> list[Json]:
    """Return the objects of a Kustomization."""
    command = [program("kustomize"), "build", str(overlay)]
    return list(yaml.safe_load_all(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def _released(controller: Controller) -> Path:
    released = sources(pinned(controller.name))
    assert not isinstance(released, Missing), released
    return released
