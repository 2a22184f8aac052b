"""Argo CD for tests: its controllers, repo server and API server, and the Redis they need.

They are processes beside a test cluster that holds their objects, and that they deploy to.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e import webhooks
from tests.e2e.api_server import Access, Json
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import GitServer, free_port
from tests.e2e.processes import Processes

if TYPE_CHECKING:
    from tests.e2e.conftest import Fleet

NAMESPACE = "argocd"
APPLICATIONS = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}/applications"
KINDS = "github.com/argoproj/argo-cd/v3@v3.3.18"
"""Whose kinds a cluster is taught: a release's that knows every field that the bootstrap writes."""

CUSTOM_KINDS = ("application", "appproject", "applicationset")


def missing() -> str:
    """Say what Argo CD lacks here; empty if it can be started."""
    redis = "" if shutil.which("redis-server") else "redis-server: not on the PATH (apt-get install redis-server)"
    return "; ".join(reason for reason in (missing_programs(("argocd", "helm", "kustomize")), redis) if reason)


def teach(cluster: Cluster, sources: Path) -> None:
    """Apply the kinds of Argo CD as a release has them, and make its namespace."""
    for name in CUSTOM_KINDS:
        file = sources / "manifests" / "crds" / f"{name}-crd.yaml"
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(file))
    wanted = {f"{name}s" for name in CUSTOM_KINDS}
    cluster.until(lambda: cluster.served("argoproj.io/v1alpha1") >= wanted, "Argo CD's kinds are not served")
    cluster.ensure_namespace(NAMESPACE)


def prepare(cluster: Cluster, sources: Path) -> None:
    """Make a cluster that Argo CD runs on, with eight GPUs and the namespaces of the layout's templates."""
    teach(cluster, sources)
    cluster.add_node(
        "gpu",
        allocatable={"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": "8"},
        labels={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    )
    for namespace in ("vllm-demo", "vllm-stack"):
        cluster.ensure_namespace(namespace)


class ArgoCD:
    """Argo CD on one cluster, running until `stop`."""

    def __init__(self, cluster: Cluster, home: Path, *, known_as: str) -> None:
        """Make its settings and start its processes; it deploys to its own cluster, by that name."""
        self._cluster = cluster
        self._home = home
        self._processes = Processes(home)
        self._settings: list[str] = []
        self.webhook_secret = secrets.token_hex(16)
        self._api, self._refresh = free_port(), free_port()
        self._socket = Path(tempfile.gettempdir()) / f"overspill-{secrets.token_hex(4)}.sock"  # short: 108 characters
        home.mkdir(parents=True)
        try:
            self._configure(known_as)
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def webhook_urls(self) -> tuple[str, str]:
        """Where a push is announced: to the API server, for Applications, and to the ApplicationSet controller."""
        return f"http://127.0.0.1:{self._api}/api/webhook", f"http://127.0.0.1:{self._refresh}/api/webhook"

    def stop(self) -> None:
        """End every process, and take its settings away."""
        self._processes.stop()
        self._socket.unlink(missing_ok=True)
        while self._settings:
            self._cluster.call("DELETE", self._settings.pop())

    def kill(self, name: str) -> None:
        """Kill one of its processes: redis or an argocd-* (see `_start`)."""
        self._processes.kill(name)

    def start(self, name: str) -> None:
        """Start a killed process again."""
        self._processes.start(name)

    def trust(self, server: GitServer, repository: str) -> None:
        """Give it the account of a git server for a repository."""
        login = {"url": server.url(repository), "username": server.username, "password": server.password, "type": "git"}
        self._secret("fleet", "repository", login)

    def know(self, name: str, access: Access) -> None:
        """Register a cluster under a name, as `argocd cluster add` does."""
        config = {
            "bearerToken": access.token,
            "tlsClientConfig": {"caData": base64.b64encode(access.authority.read_bytes()).decode()},
        }
        self._secret(name, "cluster", {"name": name, "server": access.server, "config": json.dumps(config)})

    def follow(self, fleet: Fleet) -> None:
        """Do as the bootstrap tells an admin: give Argo CD a login, and apply what is printed."""
        self.trust(fleet.server, fleet.bare.name)
        self._cluster.kubectl("apply", "--server-side", "--filename=-", stdin=fleet.bootstrap("argocd"))

    def forget(self) -> None:
        """Take everything of a fleet away, and wait until its finalizers have let it go."""
        kinds = f"/apis/argoproj.io/v1alpha1/namespaces/{NAMESPACE}"
        for path in (f"{kinds}/applicationsets", f"{kinds}/applications", f"{kinds}/appprojects"):
            self._cluster.call("DELETE", path)
            self._cluster.until(lambda path=path: not self._cluster.items(path), f"{path} are still there")
        login = f"/api/v1/namespaces/{NAMESPACE}/secrets/repository-fleet"
        if login in self._settings:  # else somebody has followed by hand
            self._settings.remove(login)
        self._cluster.kubectl("delete", "secret/repository-fleet", "--namespace", NAMESPACE, "--ignore-not-found")

    def announce(self, url: str, *, before: str, after: str, changed: Sequence[str]) -> None:
        """Announce a push to both endpoints, as a git host would; `changed` are the paths in it."""
        for endpoint in self.webhook_urls:
            status = webhooks.github(
                endpoint, self.webhook_secret, repository=url, before=before, after=after, changed=changed
            )
            assert status == 200, f"{endpoint}: {status}"

    def look(self) -> None:
        """Have the ApplicationSet read the branch now, as a webhook would."""
        patch = '{"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}}'
        self._cluster.kubectl(
            "patch", "applicationset", "overspill", "--namespace", NAMESPACE, "--type=merge", "--patch", patch
        )

    def last_words(self) -> str:
        """Return the last words of each process."""
        return self._processes.last_words()

    def _configure(self, known_as: str) -> None:
        part = {"app.kubernetes.io/part-of": "argocd"}
        settings = {"application.resourceTrackingMethod": "annotation", "admin.enabled": "false"}
        for name, data in (("argocd-cm", settings), ("argocd-rbac-cm", {})):
            body = {"metadata": {"name": name, "labels": part}, "data": data}
            self._make("configmaps", body)
        key = base64.b64encode(os.urandom(32)).decode()
        keys = {"server.secretkey": key, "webhook.github.secret": self.webhook_secret}
        body = {"metadata": {"name": "argocd-secret", "labels": part}, "stringData": keys}
        self._make("secrets", body)
        self.know(known_as, self._cluster.access)

    def _secret(self, name: str, kind: str, data: dict[str, str]) -> None:
        labels = {"argocd.argoproj.io/secret-type": kind}
        body = {"metadata": {"name": f"{kind}-{name}", "labels": labels}, "stringData": data}
        self._make("secrets", body)

    def _make(self, kind: str, body: Json) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/{kind}"
        self._cluster.create(path, body)
        self._settings.append(f"{path}/{body['metadata']['name']}")

    def _start(self) -> None:
        redis, repo = free_port(), free_port()
        kube = ["--kubeconfig", str(self._cluster.kubeconfig), "--namespace", NAMESPACE]
        server = ["--repo-server-plaintext"]
        self._run("redis", ["redis-server", "--bind", "127.0.0.1", "--port", str(redis), "--save", ""])
        self._run(
            "argocd-repo-server",
            [
                program("argocd"), "--port", str(repo), "--address", "127.0.0.1", "--metrics-address", "127.0.0.1",
                "--metrics-port", str(free_port()), "--redis", f"127.0.0.1:{redis}", "--disable-tls",
            ],
        )  # fmt: skip # a command line, word by word
        self._run(
            "argocd-applicationset-controller",
            [
                program("argocd"), *kube, *server, "--argocd-repo-server", f"127.0.0.1:{repo}",
                "--metrics-addr", f"127.0.0.1:{free_port()}", "--probe-addr", f"127.0.0.1:{free_port()}",
                "--webhook-addr", f"127.0.0.1:{self._refresh}",
            ],
        )  # fmt: skip # a command line, word by word
        self._run(
            "argocd-server",
            [
                program("argocd"), *kube, *server, "--insecure", "--address", "127.0.0.1", "--port", str(self._api),
                "--metrics-address", "127.0.0.1", "--metrics-port", str(free_port()),
                "--repo-server", f"127.0.0.1:{repo}", "--redis", f"127.0.0.1:{redis}",
            ],
        )  # fmt: skip # a command line, word by word
        self._run(
            "argocd-application-controller",
            [
                program("argocd"), *kube, *server, "--repo-server", f"127.0.0.1:{repo}",
                "--redis", f"127.0.0.1:{redis}", "--metrics-port", str(free_port()),
            ],
        )  # fmt: skip # a command line, word by word

    def _run(self, name: str, command: list[str]) -> None:
        """Start a process; all of Argo CD is one program, which asks for its name."""
        programs = {Path(program(each)).parent for each in ("argocd", "helm", "kustomize")}
        env = {
            "ARGOCD_BINARY_NAME": name,
            # Where git asks for the login. It is one path of the machine unless told: two would answer each other's.
            "ARGOCD_ASK_PASS_SOCK": str(self._socket),
            "ARGOCD_GPG_ENABLED": "false",
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "PATH": os.pathsep.join([*map(str, sorted(programs)), os.environ["PATH"]]),
            "TMPDIR": str(self._home),
        }
        self._processes.run(name, command, env)


def gone(cluster: Cluster, argo_cd: ArgoCD) -> None:
    """Wait until Argo CD has taken the Application away."""
    argo_cd.look()
    cluster.until(lambda: not cluster.items(APPLICATIONS), "the Application is still there", told=argo_cd.last_words)


def settled(cluster: Cluster) -> tuple[str, str] | None:
    """Return sync and health of the one Application; None while there is none."""
    found: list[Json] = cluster.items(APPLICATIONS)
    if not found:
        return None
    status = found[0].get("status", {})
    return status.get("sync", {}).get("status", ""), status.get("health", {}).get("status", "")
