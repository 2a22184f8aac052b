"""A Kubernetes cluster for tests: etcd, API server, controller manager, scheduler as released, and KWOK for its nodes.

All of it runs on loopback ports, from one directory that holds certificates, tokens and logs. Pods are really scheduled
and really counted; KWOK only plays the kubelets, so that nothing is pulled or run.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

from tests.e2e.api_server import Access, ApiServer, Json, Refused
from tests.e2e.components import Missing, Ready, find
from tests.e2e.git_server import free_port
from tests.e2e.processes import Processes

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
STAGES = Path(__file__).with_name("stages.yaml")
_LEADERS = frozenset({"kube-controller-manager", "kube-scheduler"})
START_TIMEOUT = 90
SETTLE_TIMEOUT = 180
_USERS = {
    # token file of the API server: user, groups. The names are what Kubernetes' own RBAC rules are made for.
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
}


def missing(names: Iterable[str] = NEEDED) -> str:
    """Say what a cluster lacks here; empty if it can be started."""
    reasons: dict[str, list[str]] = {}
    for name in names:
        if isinstance(found := find(name), Missing):
            reasons.setdefault(found.reason, []).append(name)
    return "; ".join(f"{', '.join(lacking)}: {reason}" for reason, lacking in reasons.items())


def program(name: str) -> str:
    """Return the path of a program that is there."""
    found = find(name)
    assert isinstance(found, Ready), f"{name}: {found.reason}"
    return str(found.path)


class Cluster:
    """One cluster, running until `stop`."""

    def __init__(self, name: str, home: Path, *, controllers: bool = True) -> None:
        """Make its keys and start its processes; returns when it takes pods.

        Without `controllers` it is an API server that stores objects, and nothing comes of them.
        """
        self.name = name
        self._controllers = controllers
        self._home = home
        home.mkdir(parents=True)
        self._port, self._etcd = free_port(), free_port()
        self._tokens = {user: secrets.token_hex(16) for user in _USERS}
        self._processes = Processes(home)
        self._make_keys()
        self._server = ApiServer(self.access)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self._home / "admin.kubeconfig"

    @property
    def access(self) -> Access:
        """The administrator's login in parts."""
        server = f"https://127.0.0.1:{self._port}"
        return Access(server=server, token=self._tokens["admin"], authority=self._home / "server.crt")

    def stop(self) -> None:
        """End every process."""
        self._processes.stop()

    def kill(self, name: str) -> None:
        """Kill one of its processes: etcd, kube-apiserver, kube-controller-manager, kube-scheduler or kwok."""
        self._processes.kill(name)

    def start(self, name: str) -> None:
        """Start a killed process again; returns when the API server answers, if it can.

        The controller manager and the scheduler of an API server start anew with it: elsewhere they lose their leases
        without it, and end. Watches that it answers before it is ready may stay silent for minutes.
        """
        self._processes.start(name)
        running = {*self._processes.names()}
        if {"etcd", "kube-apiserver"} <= running:
            self._await("/readyz", name)
        if name == "kube-apiserver":
            for leader in _LEADERS & running:
                self._processes.kill(leader)
                self._processes.start(leader)

    def paused(self, name: str) -> AbstractContextManager[None]:
        """Hold one of its processes where it is. A KWOK that was killed is not taken for the same for 40 s."""
        return self._processes.paused(name)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """Run kubectl as the administrator and return what it printed. Its refusal is an assertion with its words."""
        done = subprocess.run(
            [program("kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HOME": str(self._home)},
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def call(self, method: str, path: str, body: Json = None) -> Json:
        """Make one request of the API as the administrator; a PATCH is a merge patch. Raises Refused."""
        return self._server.call(method, path, body)

    def apply(self, path: str, body: Json) -> Json:
        """Apply an object on the server's side. Raises Refused."""
        return self._server.apply(path, body)

    def items(self, path: str, selector: str = "") -> list[Json]:
        """List objects, those that labels select."""
        found: list[Json] = self.call("GET", f"{path}?labelSelector={selector}")["items"]
        return found

    def create(self, path: str, body: Json) -> Json:
        """Create an object; a namespace that is not quite ready is waited for."""
        deadline = time.monotonic() + SETTLE_TIMEOUT
        while True:
            try:
                return self.call("POST", path, body)
            except Refused as refused:
                # A pod is refused until the controller manager has made the namespace's service account.
                if refused.status != 403 or "serviceaccount" not in str(refused) or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def add_node(
        self,
        name: str,
        *,
        allocatable: Mapping[str, str],
        labels: Mapping[str, str] | None = None,
        taints: Iterable[Mapping[str, str]] = (),
        cordoned: bool = False,
    ) -> None:
        """Add a node for KWOK to play."""
        capacity = {"pods": "110", **allocatable}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
            "spec": {"taints": list(taints), "unschedulable": cordoned},
            "status": {"allocatable": capacity, "capacity": capacity},
        }
        self.create("/api/v1/nodes", node)

    def occupy(
        self,
        node: str,
        requests: Mapping[str, str],
        *,
        namespace: str = "others",
        name: str = "",
        labels: Mapping[str, str] | None = None,
        ports: Iterable[int] = (),
        affinity: Json = None,
        leaving: bool = False,
    ) -> None:
        """Put somebody else's pod on a node, past the scheduler, to use these resources and host ports up.

        One that is `leaving` has been deleted, and a finalizer keeps it.
        """
        self.ensure_namespace(namespace)
        container = {
            "name": "busy",
            "image": "registry.invalid/busy:1",
            "resources": {"requests": dict(requests), "limits": {k: v for k, v in requests.items() if "/" in k}},
            "ports": [{"containerPort": port, "hostPort": port} for port in ports],
        }
        pod: Json = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name or f"busy-{node}", "labels": dict(labels or {})},
            "spec": {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]},
        }
        if affinity:
            pod["spec"]["affinity"] = affinity
        if leaving:
            pod["metadata"]["finalizers"] = ["overspill.dev/kept"]
        made = self.create(f"/api/v1/namespaces/{namespace}/pods", pod)
        if leaving:
            self.call("DELETE", f"/api/v1/namespaces/{namespace}/pods/{made['metadata']['name']}")

    def ensure_namespace(self, name: str) -> None:
        """Make a namespace unless it is there."""
        with contextlib.suppress(Refused):
            self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def served(self, group: str) -> set[str]:
        """Name the resources of a group and version that the API server serves by now."""
        try:
            return {resource["name"] for resource in self.call("GET", f"/apis/{group}")["resources"]}
        except Refused:
            return set()

    def inventory(self, *, selector: str = "") -> frozenset[str]:
        """Name every object that the API server holds, of every kind it serves, but events and leases."""
        kinds = self.kubectl("api-resources", "--verbs=list", "--output=name").split()
        lasting = [kind for kind in kinds if not kind.startswith(("events", "leases", "componentstatuses"))]
        form = "--output=go-template={{range .items}}{{.kind}} {{.metadata.namespace}}/{{.metadata.name}}\n{{end}}"
        told = self.kubectl("get", ",".join(lasting), "--all-namespaces", f"--selector={selector}", form)
        return frozenset(told.splitlines())

    def until(
        self,
        condition: Callable[[], object],
        what: str,
        *,
        timeout: float = SETTLE_TIMEOUT,
        told: Callable[[], str] = str,
    ) -> None:
        """Wait for something to become true in the cluster; `told` returns the last words of who should do it."""
        deadline = time.monotonic() + timeout
        while not condition():
            self._processes.alive()
            assert time.monotonic() < deadline, f"{self.name}: {what}: not within {timeout} s\n{told()}"
            time.sleep(0.1)

    def _start(self) -> None:
        home, url = self._home, f"http://127.0.0.1:{self._etcd}"
        peer = f"http://127.0.0.1:{free_port()}"
        self._run(
            "etcd", "--data-dir", str(home / "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync",
        )  # fmt: skip # a command line, word by word
        self._run(
            "kube-apiserver", f"--etcd-servers={url}", f"--secure-port={self._port}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--authorization-mode=RBAC", f"--token-auth-file={home / 'tokens.csv'}",
            f"--tls-cert-file={home / 'server.crt'}", f"--tls-private-key-file={home / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={home / 'accounts.crt'}",
            f"--service-account-signing-key-file={home / 'accounts.key'}",
            # What serves a part of its API knows by these whom a request is from.
            f"--requestheader-client-ca-file={home / 'server.crt'}", "--requestheader-allowed-names=server",
            "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={home / 'server.crt'}", f"--proxy-client-key-file={home / 'server.key'}",
        )  # fmt: skip # a command line, word by word
        self._await("/readyz", "kube-apiserver")
        if self._controllers:
            self._start_controllers(home)

    def _start_controllers(self, home: Path) -> None:
        self._run(
            "kube-controller-manager", f"--kubeconfig={home / 'controller-manager.kubeconfig'}", "--leader-elect=false",
            "--use-service-account-credentials=true", f"--service-account-private-key-file={home / 'accounts.key'}",
            f"--root-ca-file={home / 'server.crt'}", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            "--kube-api-qps=200", "--kube-api-burst=400", "--horizontal-pod-autoscaler-sync-period=1s",
        )  # fmt: skip # a command line, word by word
        self._run(
            "kube-scheduler", f"--kubeconfig={home / 'scheduler.kubeconfig'}", "--leader-elect=false",
            "--bind-address=127.0.0.1", f"--secure-port={free_port()}", "--kube-api-qps=200", "--kube-api-burst=400",
        )  # fmt: skip # a command line, word by word
        self._run(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            f"--config={STAGES}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
        )
        accounts = "/api/v1/namespaces/default/serviceaccounts"
        self.until(lambda: self.items(accounts), "no service account", timeout=START_TIMEOUT)

    def _run(self, name: str, *arguments: str) -> None:
        self._processes.run(name, [program(name), *arguments])

    def _await(self, path: str, name: str) -> None:
        """Wait until the API server answers, or say what it said before it ended."""
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            with contextlib.suppress(OSError, Refused):
                if self.call("GET", path) == "ok":
                    return
            self._processes.alive()
            assert time.monotonic() < deadline, f"{name} is not ready: {self._processes.said(name)}"
            time.sleep(0.1)

    def _make_keys(self) -> None:
        """Make a key and certificate for the API server and one for service accounts' tokens, and who may log in."""
        for name in ("server", "accounts"):
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
                 "-keyout", str(self._home / f"{name}.key"), "-out", str(self._home / f"{name}.crt")],
                check=True, capture_output=True,
            )  # fmt: skip # a command line, word by word
        rows = [f'{self._tokens[key]},{user},{key},"{groups}"' for key, (user, groups) in _USERS.items()]
        (self._home / "tokens.csv").write_text("\n".join(rows) + "\n")
        for user, token in self._tokens.items():
            config = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": self.name,
                "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": user}}],
                "clusters": [
                    {
                        "name": self.name,
                        "cluster": {
                            "server": f"https://127.0.0.1:{self._port}",
                            "certificate-authority": str(self._home / "server.crt"),
                        },
                    }
                ],
                "users": [{"name": user, "user": {"token": token}}],
            }
            (self._home / f"{user}.kubeconfig").write_text(json.dumps(config))


@contextlib.contextmanager
def lone_server(home: Path, namespace: str) -> Iterator[Cluster]:
    """Start an API server alone, with a namespace: nothing but its validation is asked."""
    made = Cluster(home.name, home, controllers=False)
    made.ensure_namespace(namespace)
    made.call("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    yield made
    made.stop()


def path_of(server: Cluster, manifest: Json) -> str:
    """Return where the objects of a kind are, as the server says."""
    version, kind = manifest["apiVersion"], manifest["kind"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = manifest["metadata"].get("namespace")
    around = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{around}/{_plural(server, root, kind)}"


@cache
def _plural(server: Cluster, root: str, kind: str) -> str:
    resources = server.call("GET", root)["resources"]
    (name,) = (entry["name"] for entry in resources if entry["kind"] == kind and "/" not in entry["name"])
    return str(name)
