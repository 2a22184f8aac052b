"""Flux for tests: its controllers as processes beside a test cluster, following what `overspill bootstrap flux` prints.

Where the source controller cannot be built a stand-in of ours plays it (`source_stand_in`); the kustomize controller
has to be real. Without the helm or the notification controller it runs all the same: `lacking` says what is not there.
"""

from __future__ import annotations

import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.api_server import Json, Refused
from tests.e2e.components import Missing, find, pinned, sources
from tests.e2e.control_plane import Cluster, program
from tests.e2e.control_plane import missing as missing_programs
from tests.e2e.git_server import free_port
from tests.e2e.processes import Processes

if TYPE_CHECKING:
    from tests.e2e.conftest import Fleet

NAMESPACE = "overspill"
CHECKOUT = Path(__file__).parents[2]
SOURCE, KUSTOMIZE, HELM, NOTIFICATION = (
    f"{name}-controller" for name in ("source", "kustomize", "helm", "notification")
)
STAND_IN = "source-stand-in"
SOURCES = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}"
KUSTOMIZATIONS = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations"
RELEASES = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{NAMESPACE}/helmreleases"
RECEIVERS = f"/apis/notification.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/receivers"
_KINDS = {
    "source.toolkit.fluxcd.io/v1": {"gitrepositories", "helmrepositories", "helmcharts", "ocirepositories"},
    "kustomize.toolkit.fluxcd.io/v1": {"kustomizations"},
    "helm.toolkit.fluxcd.io/v2": {"helmreleases"},
    "notification.toolkit.fluxcd.io/v1": {"receivers"},
}
_LOCKED = ("--no-cross-namespace-refs=true", "--default-service-account=default")
"""What the bootstrap advises for those that apply."""


def missing() -> str:
    """Say what Flux lacks here; empty if it can be started."""
    reasons = [missing_programs([KUSTOMIZE])]
    reasons += [found.reason for name in _CONTROLLERS if isinstance(found := sources(pinned(name)), Missing)]
    return "; ".join(reason for reason in reasons if reason)


def lacking(name: str) -> str:
    """Say why a controller is not there; empty if it is."""
    found = find(name)
    return f"{name}: {found.reason}" if isinstance(found, Missing) else ""


_CONTROLLERS = (SOURCE, KUSTOMIZE, HELM, NOTIFICATION)


def teach(cluster: Cluster) -> None:
    """Apply the kinds of each controller as released."""
    for name in _CONTROLLERS:
        found = sources(pinned(name))
        assert not isinstance(found, Missing), found
        for file in sorted((found / "config" / "crd" / "bases").iterdir()):
            cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename", str(file))
    for group, kinds in _KINDS.items():
        cluster.until(lambda group=group, kinds=kinds: cluster.served(group) >= kinds, f"{group} is not served")
    cluster.ensure_namespace(NAMESPACE)


class Flux:
    """Flux on one cluster, running until `stop`; it follows one fleet after another."""

    def __init__(self, cluster: Cluster, home: Path, *, known_as: str) -> None:
        """Start its processes; the fleet knows its cluster by that name."""
        self._cluster, self._home, self._known_as = cluster, home, known_as
        self._processes = Processes(home)
        self._receiver = free_port()
        self.hook_token = secrets.token_hex(16)
        home.mkdir(parents=True)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    @property
    def source(self) -> str:
        """The name of the process that fetches: the source controller, or the stand-in."""
        return STAND_IN if lacking(SOURCE) else SOURCE

    def stop(self) -> None:
        """End every process."""
        self._processes.stop()

    def kill(self, name: str) -> None:
        """Kill a controller in the middle of whatever it does; see `source` for the one that fetches."""
        self._processes.kill(name)

    def start(self, name: str) -> None:
        """Start a killed controller again."""
        self._processes.start(name)

    def last_words(self) -> str:
        """Return the last words of each process."""
        return self._processes.last_words()

    def follow(self, fleet: Fleet) -> None:
        """Do as the bootstrap tells an admin: apply it, and give Flux a login and the webhook its token."""
        login = {"username": fleet.server.username, "password": fleet.server.password}
        for name, data in (("placements-read", login), ("placements-hook", {"token": self.hook_token})):
            self._cluster.create(
                f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": name}, "stringData": data}
            )
        self._cluster.kubectl(
            "apply", "--server-side", "--filename=-", stdin=fleet.bootstrap("flux", "--cluster", self._known_as)
        )

    def forget(self) -> None:
        """Take everything of a fleet away, and wait until its finalizers have let it go; namespaces stay."""
        for path in (KUSTOMIZATIONS, RELEASES, RECEIVERS, *(f"{SOURCES}/{kind}" for kind in _KINDS_OF_SOURCES)):
            self._cluster.call("DELETE", path)
            self._cluster.until(lambda path=path: not self._cluster.items(path), f"{path} are still there")
        made = ("secret/placements-read", "secret/placements-hook")
        self._cluster.kubectl("delete", *made, "--namespace", NAMESPACE, "--ignore-not-found")

    def look(self) -> None:
        """Have the source read the branch now, as `flux reconcile source git` does."""
        annotations = {"reconcile.fluxcd.io/requestedAt": datetime.now(UTC).isoformat()}
        self._cluster.call("PATCH", f"{SOURCES}/gitrepositories/placements", {"metadata": {"annotations": annotations}})

    def fetched(self) -> str:
        """Return the commit that the source has; empty while it has none."""
        try:
            status = self._cluster.call("GET", f"{SOURCES}/gitrepositories/placements").get("status", {})
        except Refused:
            return ""
        revision: str = status.get("artifact", {}).get("revision", "")
        return revision.rpartition(":")[2]

    def webhook_url(self) -> str:
        """Return the Receiver's address once it has one; waits for it."""
        ready: list[Json] = []

        def has_path() -> bool:
            status = self._cluster.call("GET", f"{RECEIVERS}/placements").get("status", {})
            ready[:] = [status["webhookPath"]] if status.get("webhookPath") else []
            return bool(ready)

        self._cluster.until(has_path, "the Receiver is not ready", told=self.last_words)
        return f"http://127.0.0.1:{self._receiver}{ready[0]}"

    def _start(self) -> None:
        events = free_port()
        if not lacking(NOTIFICATION):
            self._run(NOTIFICATION, f"--receiverAddr=127.0.0.1:{self._receiver}", f"--events-addr=127.0.0.1:{events}")
        sent = () if lacking(NOTIFICATION) else (f"--events-addr=http://127.0.0.1:{events}",)
        if lacking(SOURCE):
            self._stand_in()
        else:
            served = f"127.0.0.1:{free_port()}"
            self._run(
                SOURCE,
                *sent,
                f"--storage-path={self._home / 'storage'}",
                f"--storage-addr={served}",
                f"--storage-adv-addr={served}",
            )
        # What the bootstrap advises: the next stage is looked at soon, and a revert need not wait for its burst.
        self._run(
            KUSTOMIZE, *sent, *_LOCKED, "--requeue-dependency=5s", "--feature-gates=CancelHealthCheckOnNewRevision=true"
        )
        if not lacking(HELM):
            self._run(HELM, *sent, *_LOCKED, "--feature-gates=CancelHealthCheckOnNewRevision=true")

    def _run(self, name: str, *arguments: str) -> None:
        command = [program(name), "--enable-leader-election=false", "--watch-all-namespaces=true", *arguments]
        command += [f"--metrics-addr=127.0.0.1:{free_port()}", f"--health-addr=127.0.0.1:{free_port()}"]
        scratch = self._home / f"{name}-tmp"
        scratch.mkdir()
        env = {
            "KUBECONFIG": str(self._cluster.kubeconfig),
            "RUNTIME_NAMESPACE": NAMESPACE,
            "TMPDIR": str(scratch),
        }
        self._processes.run(name, command, env)

    def _stand_in(self) -> None:
        access = self._cluster.access
        command = [sys.executable, "-m", "tests.e2e.source_stand_in", access.server, str(access.authority)]
        command += [str(self._home / "storage"), str(free_port())]
        self._processes.run(STAND_IN, command, {"KUBE_TOKEN": access.token, "PYTHONPATH": str(CHECKOUT)})


_KINDS_OF_SOURCES = ("gitrepositories", "helmrepositories", "ocirepositories")
