"""Two clusters with the same controllers of a GPU platform: home has the workloads, away Flux, which applies bursts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from tests.e2e import flux
from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import Flux
from tests.e2e.platform.controllers import Startable, Started
from tests.e2e.platform.pods import end_pod, runs

if TYPE_CHECKING:
    from tests.e2e.conftest import Fleet

CHECKOUT = Path(__file__).parents[3]
GPU = "nvidia.com/gpu"
HOME, AWAY = "home", "away"
NODES = {HOME: 4, AWAY: 4}
"""How many nodes of eight GPUs each cluster has."""
NODE = {"cpu": "192", "memory": "2Ti", "ephemeral-storage": "4Ti", GPU: "8"}
SHORTENED = {"window: 10s": "window: 1s", "window: 15m": "window: 3s", "coolDown: 5m": "coolDown: 1s"}
"""Times of the policy that `lend` writes, as short as a test is."""


_ANNOTATIONS = "\n  annotations:\n"
"""Of a template, as `lend` writes it."""


class TwoClusters:
    """The clusters with what runs on them, and while `with_fleet` lasts, one fleet over them."""

    def __init__(self, path: Path) -> None:
        """Start the clusters and Flux; controllers come by `run`."""
        self._path = path
        self._running: dict[str, list[Started]] = {}
        self.clusters: dict[str, Cluster] = {}
        self._flux: list[Flux] = []
        try:
            with ThreadPoolExecutor(len(NODES)) as pool:
                started = {name: pool.submit(Cluster, name, path / name) for name in NODES}
                self.clusters = {name: future.result() for name, future in started.items() if not future.exception()}
            for future in started.values():
                future.result()  # raises what has kept a cluster from starting
            for name, nodes in NODES.items():
                for index in range(nodes):
                    self.clusters[name].add_node(f"{name}-{index}", allocatable=NODE)
            flux.teach(self.away)
            self._flux.append(Flux(self.away, path / "flux", known_as=AWAY))
        except BaseException:
            self.stop()
            raise

    @property
    def home(self) -> Cluster:
        """Where workloads live."""
        return self.clusters[HOME]

    @property
    def away(self) -> Cluster:
        """Where they burst to."""
        return self.clusters[AWAY]

    def run(self, controller: Startable) -> None:
        """Have a controller run on both clusters from now on."""
        if controller.name not in self._running:
            running = self._running[controller.name] = []
            running.extend(
                controller.start(cluster, self._path / f"{controller.name}-{cluster.name}")
                for cluster in self.clusters.values()
            )

    @contextmanager
    def with_fleet(self, fleet: Fleet, namespace: str) -> Iterator[Lender]:
        """Lend the clusters to a fleet whose workloads are in one namespace, and clean up behind it."""
        with ExitStack() as ends:
            lender = Lender(self, fleet, namespace)
            ends.callback(lender.afterwards.close)
            for cluster in self.clusters.values():
                cluster.ensure_namespace(namespace)
                ends.callback(cluster.kubectl, "delete", "namespace", namespace, "--timeout=90s")
            ends.callback(self.flux.forget)
            yield lender

    @property
    def flux(self) -> Flux:
        """What applies to the cluster away."""
        return self._flux[0]

    def last_words(self) -> str:
        """Return the last words of all that runs on the clusters."""
        speakers: list[Flux | Started] = [*self._flux]
        for running in self._running.values():
            speakers += running
        return "\n".join(speaker.last_words() for speaker in speakers)

    def stop(self) -> None:
        """End everything."""
        for running in self._running.values():
            for each in running:
                each.stop()
        for engine in self._flux:
            engine.stop()
        for cluster in self.clusters.values():
            cluster.stop()


class Lender:
    """A person who lends a live workload by commands alone, and the daemon on what they have pushed."""

    def __init__(self, clusters: TwoClusters, fleet: Fleet, namespace: str) -> None:
        """Lay out a home with the logins of an administrator."""
        self.clusters, self.fleet, self.namespace = clusters, fleet, namespace
        self.home, self.away = clusters.home, clusters.away
        self.afterwards = ExitStack()
        """What is undone once the namespace is gone."""
        self._files, self._logins = fleet.path / "ours", fleet.path / "daemon.kubeconfig"
        self._admin = fleet.path / "admin.kubeconfig"
        _administrator(self._admin, *clusters.clusters.values())

    def apply(self, manifest: str) -> None:
        """Apply an object at home, as it is, in the namespace of the fleet."""
        self.home.kubectl("apply", f"--namespace={self.namespace}", "--filename=-", stdin=manifest)

    def lend(
        self, workload: str, *, two_copies: bool = False, beside: Sequence[Json] = (), spec: Json = None, **terms: str
    ) -> str:
        """Describe both clusters and the workload, push it, give the daemon its rights, and have Flux follow.

        With `two_copies` the template says that another one may run beside it. Objects `beside` it go with it, and
        `spec` has other fields of the template. `terms` are fields of the policy beside those that `lend` writes.
        Returns what `lend` printed.
        """
        admin = ("--kubeconfig", str(self._admin))
        files, namespace = ("--fleet", str(self._files)), ("--namespace", self.namespace)
        init = ("init", str(self._files), "--from-kubeconfig", *admin, "--primary", HOME, "--workspace", "llm")
        self.overspill(*init, "--engine", "flux", *namespace, "--repo-url", self.fleet.url)
        printed = self.overspill("lend", workload, *namespace, *files, *admin)
        for template in self._files.glob("templates/*.yaml") if two_copies else ():
            text = template.read_text()
            assert text.count(_ANNOTATIONS) == 1
            template.write_text(text.replace(_ANNOTATIONS, f'{_ANNOTATIONS}    overspill.dev/runs-once: "false"\n'))
        for template in self._files.glob("templates/*.yaml") if beside or spec else ():
            template.write_text(_with_more(template.read_text(), beside, spec or {}))
        for policy in self._files.glob("policies/*.yaml"):
            text = policy.read_text()
            for long, short in SHORTENED.items():
                text = text.replace(long, short)
            written = yaml.safe_load(text)
            policy.write_text(yaml.safe_dump({**written, "spec": {**written["spec"], **terms}}) if terms else text)
        self.overspill("check", str(self._files))
        for words in (
            ("init", "-q", "--initial-branch=main"),
            ("add", "-A"),
            ("commit", "-q", "--message=Lend"),
            ("push", "-q", str(self.fleet.bare), "HEAD:main"),
        ):
            self.fleet.git(*words, at=self._files)
        contexts = ("--context", HOME, "--context", AWAY)
        self.overspill("grant", *files, *contexts, *admin, "--kubeconfig-out", str(self._logins), "--yes")
        self.clusters.flux.follow(self.fleet)
        return printed

    @contextmanager
    def daemon(self, *arguments: str, settings: Mapping[str, str] | None = None) -> Iterator[None]:
        """Run the daemon with the login that `grant` has made, which tells Flux of each push.

        It may have other arguments and settings, as those of `Fleet.daemon`.
        """
        told = self.clusters.flux
        settings = dict(settings or {})
        if not flux.lacking(flux.NOTIFICATION):
            settings |= {"NOTIFY": f"flux={told.webhook_url()}", "NOTIFY_SECRET_FLUX": told.hook_token}
        with self.fleet.daemon("--kubeconfig", str(self._logins), *arguments, settings=settings):
            self.fleet.until(self.fleet.log, "the daemon has not begun the branch")
            yield

    def overspill(self, *words: str) -> str:
        """Run a command as the person does, and return what it printed; its refusal is an assertion with its words."""
        done = subprocess.run(
            [sys.executable, "-m", "reconciler", *words],
            cwd=self.fleet.path,
            env={"HOME": str(self.fleet.path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"overspill {' '.join(words)}:\n{done.stdout}{done.stderr}"
        return done.stdout

    def asks(self, *words: str) -> str:
        """Ask a command of the fleet, with the daemon's logins."""
        return self.overspill(*words, "--repo", str(self.fleet.bare), "--kubeconfig", str(self._logins))

    def told(self) -> str:
        """Return the messages of all commits, each paragraph on one line."""
        return " ".join(" ".join(self.fleet.log("--format=%B")).split())

    def until_committed(self, *wanted: str) -> None:
        """Wait until these are the only changes that the branch tells, each recognised by words of its subject."""

        def pushed() -> bool:
            told = self.fleet.subjects()
            return len(told) == len(wanted) and all(
                words in subject for words, subject in zip(wanted, told, strict=True)
            )

        try:
            self.fleet.until(pushed, f"{wanted} are not what is committed")
        except AssertionError as error:
            raise AssertionError(f"{self.fleet.subjects()}\n{error}\n{self.clusters.last_words()}") from None

    def until_answered(self, question: Sequence[str], right: Callable[[Json], object]) -> None:
        """Wait until a command's answer in JSON is right, and show the last one if that is not in time."""
        last: list[Json] = []

        def is_right() -> object:
            last[:] = [json.loads(self.asks(*question, "--output", "json"))]
            return right(last[0])

        try:
            self.fleet.until(is_right, f"overspill {' '.join(question)}: another answer")
        except AssertionError as error:
            raise AssertionError(f"{json.dumps(last, indent=1)}\n{error}\n{self.clusters.last_words()}") from None

    def until_at(self, cluster: Cluster, condition: Callable[[], object], what: str) -> None:
        """Wait for something to become true in a cluster."""
        cluster.until(condition, what, told=lambda: f"{self._logged()}\n{self.clusters.last_words()}")

    def _logged(self) -> str:
        """Return what the daemon has logged; nothing before it has begun."""
        return self.fleet.last_words() if (self.fleet.path / "daemon.log").exists() else ""

    def pods(self, cluster: Cluster) -> list[Json]:
        """List the pods of the namespace."""
        return cluster.items(f"/api/v1/namespaces/{self.namespace}/pods")

    def running(self, cluster: Cluster) -> set[str]:
        """Name the pods of the namespace that run in a cluster and are to stay."""
        return {pod["metadata"]["name"] for pod in self.pods(cluster) if runs(pod)}

    def end_pods(self, cluster: Cluster, exit_code: int = 0) -> None:
        """Have the pods of the namespace that run in a cluster now end, as their kubelets would say.

        Returns when the API server says so of each: pods that begin in the meantime run on.
        """
        ending = {pod["metadata"]["uid"] for pod in self.pods(cluster) if runs(pod)}

        def have_ended() -> bool:
            left = [pod for pod in self.pods(cluster) if pod["metadata"]["uid"] in ending and runs(pod)]
            for pod in left:
                end_pod(cluster, pod, exit_code)
            return not left

        self.until_at(cluster, have_ended, "the pods do not end")

    def uids(self, cluster: Cluster) -> set[str]:
        """Return what tells the pods of the namespace apart from later ones of the same names."""
        return {pod["metadata"]["uid"] for pod in self.pods(cluster)}


def _with_more(template: str, beside: Sequence[Json], spec: Json) -> str:
    """Write a template with objects beside its own, in its first step's order, and with other fields."""
    written = yaml.safe_load(template)
    for manifest in beside:
        name = f"{manifest['kind']}-{manifest['metadata']['name']}".lower()
        written["spec"]["manifestResources"].append({"name": name, "manifest": manifest})
        written["spec"]["steps"].append({"name": name, "type": "manifest"})
    written["spec"] |= spec
    return yaml.safe_dump(written)


def _administrator(target: Path, *clusters: Cluster) -> None:
    """Write a kubeconfig with all rights in each cluster, by contexts of their names."""
    kinds: dict[str, list[Json]] = {"clusters": [], "users": [], "contexts": []}
    for cluster in clusters:
        server = {"server": cluster.access.server, "certificate-authority": str(cluster.access.authority)}
        kinds["clusters"].append({"name": cluster.name, "cluster": server})
        kinds["users"].append({"name": cluster.name, "user": {"token": cluster.access.token}})
        kinds["contexts"].append({"name": cluster.name, "context": {"cluster": cluster.name, "user": cluster.name}})
    target.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **kinds}))
