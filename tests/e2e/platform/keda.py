"""KEDA for tests: its operator and its metrics server, as released, as processes beside a test cluster.

An API server asks KEDA's metrics server for external metrics (`external.metrics.k8s.io`), and that asks the operator,
which asks the triggers. Between them are certificates: KEDA's own rotation restarts the operator once it has made them,
so that they are given here, as its documentation allows (``--enable-cert-rotation=false``). The webhooks, which KEDA
lets the API server pass over where they do not answer, are not there.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.api_server import Json
from tests.e2e.components import Missing, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import free_port
from tests.e2e.platform.controllers import ADDED, Started, apply, built, lead_here, login
from tests.e2e.processes import Processes
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

OPERATOR, ADAPTER = "keda-operator", "keda-adapter"
NAMESPACE = "keda"
VERSION = "keda.sh/v1alpha1"
EXTERNAL = "external.metrics.k8s.io/v1beta1"
_SERVICES = {OPERATOR: "keda-operator", ADAPTER: "keda-metrics-apiserver"}
"""The Service of each, by whose name the others know its certificate."""


@dataclass(frozen=True, slots=True)
class Keda:
    """KEDA as its project installs it."""

    name: str = "keda"

    def missing(self) -> str:
        """Say what it lacks here; empty if it can be started."""
        if reason := missing_programs([OPERATOR, ADAPTER, "kustomize"]):
            return reason
        released = sources(pinned(OPERATOR))
        return released.reason if isinstance(released, Missing) else ""

    def start(self, cluster: Cluster, home: Path) -> Started:
        """Install it and start it; returns when the API server has metrics from it."""
        return _Running(cluster, home)


KEDA = Keda()


def sample() -> str:
    """Return KEDA's sample of a ScaledObject, as released."""
    return (_released() / "config/samples/keda_v1alpha1_scaledobject.yaml").read_text()


class _Running:
    """Operator and metrics server on one cluster, running until `stop`."""

    def __init__(self, cluster: Cluster, home: Path) -> None:
        """Install them, start them, and return when the API server has metrics from them."""
        self._cluster, self._home = cluster, home
        self._processes = Processes(home)
        self._health, self._metrics, self._served = free_port(), free_port(), free_port()
        home.mkdir(parents=True)
        self._make_certificate()
        objects = self._install()
        try:
            self._start(objects)
            cluster.until(self._ready, "KEDA is not ready", told=self.last_words)
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
        """Apply what its project installs, with external metrics served by the process, and return all of it."""
        objects = built(_released() / "config" / "default")
        apply(self._cluster, [each for each in objects if each["kind"] in ADDED])
        [served] = [each for each in objects if each["kind"] == "APIService"]
        lead_here(self._cluster, served["spec"]["service"]["name"], NAMESPACE)
        served["spec"]["service"]["port"] = self._served
        served["spec"]["caBundle"] = base64.b64encode((self._home / "tls.crt").read_bytes()).decode()
        apply(self._cluster, [served])
        self._cluster.until(
            lambda: self._cluster.served(VERSION) >= {"scaledobjects", "triggerauthentications"},
            f"{VERSION} is not served",
        )
        return objects

    def _make_certificate(self) -> None:
        """Make one certificate for both, each of which is a client of the other's, or of the API server's."""
        names = ",".join(f"DNS:{service}.{NAMESPACE}.svc" for service in _SERVICES.values())
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=keda", "-addext", f"subjectAltName={names}",
             "-keyout", str(self._home / "tls.key"), "-out", str(self._home / "tls.crt")],
            check=True, capture_output=True,
        )  # fmt: skip # a command line, word by word
        shutil.copyfile(self._home / "tls.crt", self._home / "ca.crt")

    def _start(self, objects: list[Json]) -> None:
        deployments = {each["metadata"]["name"]: each for each in objects if each["kind"] == "Deployment"}
        # Both have the operator's account.
        account = login(self._cluster, deployments[_SERVICES[OPERATOR]], self._home)
        environment = {
            "KUBECONFIG": str(account),
            "POD_NAMESPACE": NAMESPACE,
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
            "WATCH_NAMESPACE": "",
            "TMPDIR": str(self._home),
        }
        operator = (
            "--leader-elect=false", "--enable-cert-rotation=false", f"--cert-dir={self._home}",
            "--zap-log-level=info", "--zap-encoder=console", "--zap-time-encoding=rfc3339",
            f"--health-probe-bind-address=127.0.0.1:{self._health}", "--metrics-bind-address=0",
            f"--metrics-service-bind-address=127.0.0.1:{self._metrics}",
        )  # fmt: skip # a command line, word by word
        self._processes.run(OPERATOR, [program(OPERATOR), *operator], environment)
        adapter = (
            f"--secure-port={self._served}", "--bind-address=127.0.0.1", f"--port={free_port()}",
            f"--client-ca-file={self._home / 'ca.crt'}", f"--cert-dir={self._home}",
            f"--tls-cert-file={self._home / 'tls.crt'}", f"--tls-private-key-file={self._home / 'tls.key'}",
            f"--metrics-service-address=127.0.0.1:{self._metrics}",
            f"--metrics-service-grpc-authority={_SERVICES[OPERATOR]}.{NAMESPACE}.svc",
            *(f"--{whose}-kubeconfig={account}" for whose in ("authentication", "authorization", "lister")),
        )  # fmt: skip # a command line, word by word
        self._processes.run(ADAPTER, [program(ADAPTER), *adapter], environment)

    def _ready(self) -> bool:
        self._processes.alive()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._health}/readyz", timeout=5):
                pass
        except OSError:
            return False
        return bool(self._cluster.served(EXTERNAL))


class Queue:
    """The requests that wait, served as vLLM's servers serve their metrics, until `stop`."""

    def __init__(self) -> None:
        """Begin with none."""
        self.waiting = 0
        outer = self

        class Metrics(LoopbackHandler):
            def do_GET(self) -> None:
                text = f'# TYPE {METRIC} gauge\n{METRIC}{{model_name="llm"}} {outer.waiting}.0\n'.encode()
                self.reply(200, text, {"Content-Type": "text/plain; version=0.0.4"})

        self._server = LoopbackServer(Metrics)
        self._server.start()

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"{self._server.url}/metrics"

    def stop(self) -> None:
        """Serve it no more."""
        self._server.stop()


METRIC = "vllm:num_requests_waiting"


@contextmanager
def queue() -> Iterator[Queue]:
    """Serve a queue for a while."""
    served = Queue()
    try:
        yield served
    finally:
        served.stop()


def _released() -> Path:
    released = sources(pinned(OPERATOR))
    assert not isinstance(released, Missing), released
    return released
