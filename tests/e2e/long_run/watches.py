"""What is seen from outside: the branch in the git server's repository, and objects by the API servers."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from reconciler.core.schema import yaml
from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster
from tests.e2e.long_run.journal import Deployed, Journal

NAMESPACE = "vllm-demo"
MARK = "overspill.dev/placement"
"""The label of everything that is placed, with the placement's name."""
_ANNOTATION = "overspill.dev"
_DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
_MARKED = (_DEPLOYMENTS, f"/api/v1/namespaces/{NAMESPACE}/configmaps", f"/api/v1/namespaces/{NAMESPACE}/pods")
_PENDING = f"/api/v1/namespaces/{NAMESPACE}/pods?fieldSelector=status.phase%3DPending"
_BRANCH = "refs/heads/placements"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedObject:
    """A placement as its record on the branch has it."""

    name: str
    cluster: str
    workload: str
    replicas: int


class Branch:
    """The output branch, read in the bare repository itself: a git server that is away hides nothing from it."""

    def __init__(self, bare: Path) -> None:
        """Begin with nothing read."""
        self._bare = bare
        self._read: tuple[str, tuple[PlacedObject, ...]] = "", ()
        self._records: dict[str, PlacedObject] = {}

    def placements(self) -> tuple[PlacedObject, ...]:
        """Return what the tip places; the same object while the tip stays."""
        tip = self._git("for-each-ref", "--format=%(objectname)", _BRANCH).strip()
        if tip and tip != self._read[0]:
            listed = self._git("ls-tree", "-r", tip, "clusters").splitlines()
            files = (line.partition("\t") for line in listed if line.endswith("/placement.yaml"))
            self._read = tip, tuple(self._record(entry.split()[2], path) for entry, _, path in files)
        return self._read[1]

    def subjects(self) -> tuple[str, ...]:
        """Return the subjects of all its commits, oldest first."""
        return tuple(self._git("log", "--reverse", "--format=%s", _BRANCH).splitlines())

    def _record(self, blob: str, path: str) -> PlacedObject:
        key = f"{blob} {path}"
        if key not in self._records:
            [record] = yaml.parse(self._git("cat-file", "blob", blob).encode(), path)
            annotations = record.value["metadata"]["annotations"]
            self._records[key] = PlacedObject(
                name=record.value["metadata"]["name"],
                cluster=PurePosixPath(path).parts[1],
                workload=annotations[f"{_ANNOTATION}/workload"],
                replicas=int(annotations[f"{_ANNOTATION}/replicas"]),
            )
        return self._records[key]

    def _git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self._bare, check=True, capture_output=True, text=True)
        return done.stdout


def deployed(cluster: Cluster) -> Mapping[str, Deployed]:
    """Return the objects that bursts have brought to a cluster, by workload."""
    return {
        each["metadata"]["name"]: Deployed(
            replicas=each["spec"]["replicas"], ready=each.get("status", {}).get("readyReplicas", 0)
        )
        for each in cluster.items(_DEPLOYMENTS, MARK)
    }


def marked(cluster: Cluster) -> Mapping[str, frozenset[str]]:
    """Name the objects in a cluster that bear a placement's name, by that name."""
    names: dict[str, set[str]] = {}
    for path in _MARKED:
        kind = path.rpartition("/")[2]
        for each in cluster.items(path, MARK):
            names.setdefault(each["metadata"]["labels"][MARK], set()).add(f"{kind}/{each['metadata']['name']}")
    return {name: frozenset(objects) for name, objects in names.items()}


def short(home: Cluster) -> frozenset[str]:
    """Name the workloads with unschedulable pods at home."""
    pods: list[Json] = home.call("GET", _PENDING)["items"]
    return frozenset(
        pod["metadata"]["labels"]["app"]
        for pod in pods
        if "app" in pod["metadata"].get("labels", {}) and "deletionTimestamp" not in pod["metadata"]
        for condition in pod["status"].get("conditions", ())
        if condition.get("reason") == "Unschedulable"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A look that is taken again and again; one that a server away spoils is left out."""

    look: Callable[[], object]
    every: float
    """Seconds."""

    def run(self, stopped: threading.Event) -> None:
        """Look until stopped."""
        while not stopped.wait(self.every):
            try:
                self.look()
            except (OSError, Refused):
                continue


def watches(journal: Journal, branch: Branch, home: Cluster, targets: Mapping[str, Cluster]) -> tuple[Watch, ...]:
    """Make the watches of a run; the branch has one of its own, since no server can hold it up."""

    def look_at_branch() -> None:
        placements, at = branch.placements(), time.time()
        journal.sees_branch({(each.cluster, each.workload): each.replicas for each in placements}, at)

    def look_at(name: str, cluster: Cluster) -> None:
        journal.sees_cluster(name, deployed(cluster), time.time())

    return (
        Watch(look=look_at_branch, every=0.2),
        Watch(look=lambda: journal.sees_short(short(home), time.time()), every=0.25),
        *(
            Watch(look=lambda name=name, cluster=cluster: look_at(name, cluster), every=0.25)
            for name, cluster in targets.items()
        ),
    )
