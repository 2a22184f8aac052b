"""Argo CD for tests: its application controller, ApplicationSet controller and repo server, and the Redis they need.

They are processes beside a test cluster that holds their objects, and that they deploy to.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.e2e.control_plane import Access, Cluster, Json, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import GitServer, free_port

NAMESPACE = "argocd"
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


class ArgoCD:
    """Argo CD on one cluster, running until `stop`."""

    def __init__(self, cluster: Cluster, home: Path, *, known_as: str) -> None:
        """Make its settings and start its processes; it deploys to its own cluster, by that name."""
        self._cluster = cluster
        self._home = home
        self._processes: list[subprocess.Popen[bytes]] = []
        self._settings: list[str] = []
        home.mkdir(parents=True)
        try:
            self._configure(known_as)
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End every process, and take its settings away."""
        while self._processes:
            process = self._processes.pop()
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        while self._settings:
            self._cluster.call("DELETE", self._settings.pop())

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

    def look(self) -> None:
        """Have the ApplicationSet read the branch now, as a webhook would."""
        patch = '{"metadata": {"annotations": {"argocd.argoproj.io/application-set-refresh": "true"}}}'
        self._cluster.kubectl(
            "patch", "applicationset", "overspill", "--namespace", NAMESPACE, "--type=merge", "--patch", patch
        )

    def told(self) -> str:
        """Return the last words of each process."""
        logs = sorted(self._home.glob("*.log"))
        return "\n".join(f"{log.name}:\n{chr(10).join(log.read_text().splitlines()[-8:])}" for log in logs)

    def _configure(self, known_as: str) -> None:
        part = {"app.kubernetes.io/part-of": "argocd"}
        for name, data in (("argocd-cm", {"application.resourceTrackingMethod": "annotation"}), ("argocd-rbac-cm", {})):
            body = {"metadata": {"name": name, "labels": part}, "data": data}
            self._make("configmaps", body)
        key = base64.b64encode(os.urandom(32)).decode()
        body = {"metadata": {"name": "argocd-secret", "labels": part}, "stringData": {"server.secretkey": key}}
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
        )  # fmt: skip
        self._run(
            "argocd-applicationset-controller",
            [
                program("argocd"), *kube, *server, "--argocd-repo-server", f"127.0.0.1:{repo}",
                "--metrics-addr", f"127.0.0.1:{free_port()}", "--probe-addr", f"127.0.0.1:{free_port()}",
                "--webhook-addr", f"127.0.0.1:{free_port()}",
            ],
        )  # fmt: skip
        self._run(
            "argocd-application-controller",
            [
                program("argocd"), *kube, *server, "--repo-server", f"127.0.0.1:{repo}",
                "--redis", f"127.0.0.1:{redis}", "--metrics-port", str(free_port()),
            ],
        )  # fmt: skip

    def _run(self, name: str, command: list[str]) -> None:
        """Start a process; all of Argo CD is one program, which asks for its name."""
        programs = {Path(program(each)).parent for each in ("argocd", "helm", "kustomize")}
        env = os.environ | {
            "ARGOCD_BINARY_NAME": name,
            "ARGOCD_GPG_ENABLED": "false",
            "HOME": str(self._home),
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "PATH": os.pathsep.join([*map(str, sorted(programs)), os.environ["PATH"]]),
            "TMPDIR": str(self._home),
        }
        with (self._home / f"{name}.log").open("wb") as log:
            self._processes.append(subprocess.Popen(command, cwd=self._home, stdout=log, stderr=log, env=env))
