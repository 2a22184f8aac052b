"""A run of a job on a test cluster with its real controller, and what `read_end` says of each status on the way."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Self

from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.core.workloads.ends import RunEnd, asks_for_nothing, read_end
from tests.builders.workload_kinds import SAMPLES
from tests.e2e.api_server import Json, Refused
from tests.e2e.control_plane import Cluster, path_of
from tests.e2e.platform.controllers import Started
from tests.e2e.platform.pods import end_pod, runs

LONGEST = 120
"""Seconds that a step of a run may take."""


@dataclass(slots=True)
class Run:
    """One object on a cluster, from its creation to its deletion."""

    cluster: Cluster
    controller: Started
    made: Json

    def __enter__(self) -> Self:
        """Create it."""
        self.cluster.ensure_namespace(self.made["metadata"]["namespace"])
        self.cluster.create(path_of(self.cluster, self.made), self.made)
        return self

    def __exit__(self, *_: object) -> None:
        """Delete it with its pods, and return when they are gone."""
        self.cluster.call("DELETE", f"{self._path}?propagationPolicy=Background")
        self._wait(lambda: not self._found() and not self.pods(), lambda _: True)

    def live(self) -> Json:
        """Read it."""
        return self.cluster.call("GET", self._path)

    def status(self) -> Json:
        """Read its status; empty while it has none."""
        return self.live().get("status", {})

    def change(self, spec: Json) -> None:
        """Change fields of its spec."""
        self.cluster.call("PATCH", self._path, {"spec": spec})

    def touch(self) -> None:
        """Change nothing of it that its controller reads, so that this looks at it again."""
        self.cluster.call("PATCH", self._path, {"metadata": {"annotations": {"overspill.dev/touched": "true"}}})

    def pods(self) -> list[Json]:
        """Return the pods of its namespace."""
        return self.cluster.items(f"/api/v1/namespaces/{self.made['metadata']['namespace']}/pods")

    def running(self, number: int) -> Callable[[], bool]:
        """Return whether this number of pods runs, once it is called."""
        return lambda: sum(map(runs, self.pods())) == number

    def refusal(self, owner: str) -> str:
        """Return what its controller wrote in an Event on a kind since pods were refused; empty while it did not."""
        events = self.cluster.items(f"/api/v1/namespaces/{self.made['metadata']['namespace']}/events")
        refused = (
            each["message"] for each in events if "is forbidden" in each["message"] and self._is_about(each, owner)
        )
        return str(next(refused, ""))

    def end_pods(self, exit_code: int = 0, named: str = "") -> None:
        """Have the pods end that run now and have this in their names; returns when the API server says so of each."""
        ending = {pod["metadata"]["uid"] for pod in self.pods() if named in pod["metadata"]["name"]}

        def have_ended() -> bool:
            left = [pod for pod in self.pods() if pod["metadata"]["uid"] in ending and runs(pod)]
            for pod in left:
                end_pod(self.cluster, pod, exit_code)
            return not left

        self._wait(have_ended, lambda _: True)

    def goes_on(self, until: Callable[[], object]) -> None:
        """Wait for something, all the while the run is not over."""
        self._wait(until, lambda raw: self._end(raw) is None)

    def over(self) -> RunEnd:
        """Wait until the run is over by its own status, and return how it ended."""
        found: list[RunEnd] = []

        def ended() -> bool:
            raw = self.live()
            found.extend(end for end in [self._end(raw)] if end is not None)
            return bool(found)

        self._wait(ended, lambda _: True)
        raw = self.live()
        kind = kind_of(raw, NO_KINDS)
        assert kind is not None
        assert asks_for_nothing(kind, raw)
        return found[0]

    @property
    def _path(self) -> str:
        return f"{path_of(self.cluster, self.made)}/{self.made['metadata']['name']}"

    def _is_about(self, event: Json, owner: str) -> bool:
        about = event["involvedObject"]
        return bool(about["kind"] == owner and about["name"].startswith(self.made["metadata"]["name"]))

    def _end(self, raw: Json) -> RunEnd | None:
        kind = kind_of(raw, NO_KINDS)
        assert kind is not None
        return read_end(kind, raw)

    def _found(self) -> Json:
        """Read it; empty once it is gone."""
        try:
            return self.live()
        except Refused as refused:
            if refused.status == 404:
                return {}
            raise

    def _wait(self, until: Callable[[], object], holds: Callable[[Json], bool]) -> None:
        deadline = time.monotonic() + LONGEST
        while not until():
            raw = self._found()
            assert not raw or holds(raw), raw["status"]
            assert time.monotonic() < deadline, (
                f"{raw.get('status')}\n{[(pod['metadata']['name'], pod['status']) for pod in self.pods()]}\n"
                f"{self.controller.last_words()}"
            )
            time.sleep(0.1)


_NUMBERS = count(1)


@contextmanager
def quota_used_up(cluster: Cluster, namespace: str = "demo") -> Iterator[None]:
    """Let a namespace have no GPU for a while."""
    cluster.ensure_namespace(namespace)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    cluster.create(path, {"metadata": {"name": "gpus"}, "spec": {"hard": {"requests.nvidia.com/gpu": "0"}}})
    cluster.until(lambda: "hard" in cluster.items(path)[0].get("status", {}), "the quota is not counted")
    try:
        yield
    finally:
        cluster.call("DELETE", f"{path}/gpus")


UNENDED = "registry.invalid/trainer:1"
"""The image of a container that runs until a test ends it, in pods of a Job of whatever group."""


def sample(name: str, spec: Mapping[str, Json] | None = None) -> Json:
    """Return a sample of a kind by a name of its own, with other fields in its spec.

    Volcano's controllers stumble over a Job that comes by the name of one that has just gone.
    """
    made = copy.deepcopy(SAMPLES[name][0])
    made["metadata"]["name"] = f"model-{next(_NUMBERS)}"
    made["spec"] |= spec or {}
    return made
