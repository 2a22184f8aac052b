"""How long a burst takes from the shortage to pods that are ready, and its end to the last pod that is gone.

``python -m tests.e2e.times`` plays ten rounds over the three clusters and prints, for each step, the median and the
longest, in seconds; then the bounds that are promised (``name value bound``), and ends with 1 where one is missed.
Where the programs cannot be had, nothing is measured, and it says which. API servers are asked every twentieth of a
second. Moments of the daemon are those of its log; of the push, those of a hook on the git server.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.e2e import control_plane
from tests.e2e.api_server import Json, Refused
from tests.e2e.argo_cd import APPLICATIONS
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import KUSTOMIZATIONS
from tests.e2e.three_clusters.clusters import missing as missing_engines
from tests.e2e.three_clusters.own_clusters import own_clusters
from tests.e2e.three_clusters.scenario import AT_HOME, Scenario, deployment

ROUNDS = 10
SCALE = ("scale", "deployment/vllm", "--namespace=vllm-demo")
WINDOW = 3
"""Seconds of both windows of the policy: long enough for the demand to be whole when they end."""
GLANCE = 0.05
PATIENCE = 300
"""Seconds that a step may take: an engine that misses a webhook looks by itself, Argo CD within three minutes."""
_LAST_WORDS = 20_000
DEPLOYMENTS = "/apis/apps/v1/namespaces/vllm-demo/deployments"
PODS = "/api/v1/namespaces/vllm-demo/pods"
OURS = "overspill.dev/placement"
_ANY_MODEL = "            nodeSelector:\n              nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3\n"
_EDITS = {
    "templates/vllm.yaml": {_ANY_MODEL: ""},
    "policies/serving.yaml": {
        "headroom: 1": "headroom: 0",
        "window: 10s": f"window: {WINDOW}s",
        "window: 15m": f"window: {WINDOW}s",
        "coolDown: 5m": "coolDown: 1s",
        "maxReplicas: 8": "maxReplicas: 1",
    },
}
_HOOK = '#!/bin/sh\ndate +%s.%N >> "{file}"\n'


@dataclass(slots=True)
class Times:
    """Seconds by step, one for each round, in the order in which the steps came up."""

    of: dict[str, list[float]] = field(default_factory=dict)

    def add(self, step: str, seconds: float) -> None:
        """Take one figure."""
        self.of.setdefault(step, []).append(seconds)

    def median(self, step: str) -> float:
        """Return the middle one."""
        return statistics.median(self.of[step])

    def __str__(self) -> str:
        """Write a table."""
        width = max(map(len, self.of))
        rows = [f"{step:<{width}}  {self.median(step):7.2f}  {max(them):7.2f}" for step, them in self.of.items()]
        return "\n".join([f"{'':<{width}}   median  longest", *rows])


class Apart(Exception):  # noqa: N818 - not an error: a cluster that is busy tells of two pods a second apart
    """What a round asked for at once was seen, and so decided and pushed, in parts."""


class Stopwatch:
    """Plays the rounds on a scenario whose daemon runs."""

    def __init__(self, scenario: Scenario, pushes: Path) -> None:
        self._scenario, self._pushes = scenario, pushes
        self.times = Times()

    def round(self) -> None:
        """Burst a replica to each cluster, and take both back; once more if the machine or a server got in the way."""
        try:
            self._round()
        except (Apart, AssertionError, OSError, Refused) as error:
            sys.stderr.write(f"# played again: {type(error).__name__}: {error}\n")
            self._scenario.home.kubectl(*SCALE, f"--replicas={AT_HOME}")
            self._settle()
            self._round()

    def _round(self) -> None:
        scenario, tip = self._scenario, self._scenario.fleet.tip()
        home, engines = scenario.home, {"Flux": scenario.by_flux, "Argo CD": scenario.by_argo_cd}
        fetched: dict[str, Callable[[], object]] = {
            "Flux": lambda: scenario.three.flux.fetched() != tip,
            "Argo CD": lambda: scenario.by_argo_cd.items(APPLICATIONS),
        }
        wanted: dict[str, Callable[[], object]] = {"short": lambda: len(unschedulable(home)) == len(engines)}
        for name, cluster in engines.items():
            wanted[f"{name} fetched"] = fetched[name]
            wanted[f"{name} object"] = lambda cluster=cluster: cluster.items(DEPLOYMENTS)
            wanted[f"{name} ready"] = lambda cluster=cluster: running(cluster) == 1
        moments, decided, pushed = self._play(AT_HOME + len(engines), wanted)
        note = self.times.add
        note("burst: unschedulable to decision (window included)", decided - moments["short"])
        note("burst: window's end to decision", decided - max(unschedulable(home)) - WINDOW)
        note("burst: decision to pushed", pushed - decided)
        for name in engines:
            note(f"burst, {name}: pushed to fetched", moments[f"{name} fetched"] - pushed)
            note(f"burst, {name}: pushed to object", moments[f"{name} object"] - pushed)
            note(f"burst, {name}: object to ready", moments[f"{name} ready"] - moments[f"{name} object"])
            note(f"burst, {name}: unschedulable to ready", moments[f"{name} ready"] - moments["short"])
        tip = scenario.fleet.tip()
        fetched["Argo CD"] = lambda: all(going(each) for each in scenario.by_argo_cd.items(APPLICATIONS))
        wanted = {"short": lambda: not unschedulable(home)}
        for name, cluster in engines.items():
            wanted[f"{name} fetched"] = fetched[name]
            wanted[f"{name} object"] = lambda cluster=cluster: not cluster.items(DEPLOYMENTS)
            wanted[f"{name} gone"] = lambda cluster=cluster: not cluster.items(PODS)
        moments, decided, pushed = self._play(AT_HOME, wanted)
        note("removal: demand gone to decision (window included)", decided - moments["short"])
        note("removal: decision to pushed", pushed - decided)
        for name in engines:
            note(f"removal, {name}: pushed to fetched", moments[f"{name} fetched"] - pushed)
            note(f"removal, {name}: pushed to object gone", moments[f"{name} object"] - pushed)
            note(f"removal, {name}: pushed to last pod gone", moments[f"{name} gone"] - pushed)
        self._settle()

    def _settle(self) -> None:
        """Wait until nothing of a round is left."""
        scenario = self._scenario
        scenario.by_argo_cd.until(lambda: not scenario.by_argo_cd.items(APPLICATIONS), "the Application stays")
        scenario.by_flux.until(lambda: not scenario.by_flux.items(KUSTOMIZATIONS, OURS), "the Kustomization stays")

    def _play(self, replicas: int, wanted: Mapping[str, Callable[[], object]]) -> tuple[dict[str, float], float, float]:
        """Scale, and return when each thing was first so, when it was decided, and when it was pushed."""
        known = len(self._log())
        with ThreadPoolExecutor(len(wanted)) as pool:
            watching = {name: pool.submit(first, name, condition) for name, condition in wanted.items()}
            self._scenario.home.kubectl(*SCALE, f"--replicas={replicas}")
            try:
                moments = {name: future.result() for name, future in watching.items()}
            except AssertionError as late:
                raise AssertionError(f"{late}\n{self._scenario.last_words()[-_LAST_WORDS:]}") from None
        told = self._log()[known:]
        if len(told) != 1:
            raise Apart(f"pushed {len(told)} times: {told}")
        pushed = float(self._pushes.read_text().split()[-1])
        return moments, pushed - float(told[0]["took"].removesuffix("s")), pushed

    def _log(self) -> list[Json]:
        """Return what the daemon said of its pushes."""
        lines = [json.loads(line) for line in self._scenario.fleet.last_words().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == "pushed"]


def first(name: str, condition: Callable[[], object]) -> float:
    """Wait for something, and return when it was first so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"{name}: not within {PATIENCE} s"
        time.sleep(GLANCE)
    return time.time()


def unschedulable(cluster: Cluster) -> list[float]:
    """Return since when each pod that has no room has none, as the API server says: in whole seconds."""
    return [
        datetime.fromisoformat(condition["lastTransitionTime"]).timestamp()
        for pod in cluster.items(PODS)
        if "deletionTimestamp" not in pod["metadata"]
        for condition in pod["status"].get("conditions", ())
        if condition.get("reason") == "Unschedulable"
    ]


def running(cluster: Cluster) -> int:
    """Count the pods that are ready."""
    return sum(pod["status"].get("phase") == "Running" for pod in cluster.items(PODS))


def going(manifest: Json) -> bool:
    """Tell whether an object is being deleted."""
    return "deletionTimestamp" in manifest["metadata"]


@contextmanager
def stage(home: Path) -> Iterator[Stopwatch]:
    """Start everything, and the daemon last."""
    with ExitStack() as stack:
        three, fleet = stack.enter_context(own_clusters(home))
        pushes = home / "pushes"
        hook = fleet.bare / "hooks" / "post-receive"
        hook.write_text(_HOOK.format(file=pushes))
        hook.chmod(0o755)
        scenario = Scenario(three, fleet)
        scenario.begin(_EDITS, replicas=0)
        scenario.home.create(DEPLOYMENTS, deployment(AT_HOME))
        scenario.home.until(lambda: running(scenario.home) == AT_HOME, "worker-1 does not run its own")
        stack.enter_context(scenario.daemon(LOG_FORMAT="json"))
        yield Stopwatch(scenario, pushes)


def main() -> int:
    """Measure, print, judge."""
    if reason := control_plane.missing() or missing_engines():
        sys.stdout.write(f"nothing measured: {reason}\n")
        return 0
    home = Path(tempfile.mkdtemp(prefix="overspill-times-"))
    try:
        with stage(home) as stopwatch:
            for number in range(ROUNDS):
                stopwatch.round()
                sys.stderr.write(f"# round {number + 1} of {ROUNDS}\n")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    times = stopwatch.times
    sys.stdout.write(f"{times}\n")
    missed = 0
    for name, step, bound in BOUNDS:
        figure = times.median(step)
        missed += figure > bound
        sys.stdout.write(f"{name} {figure:.2f} {bound:.2f}\n")
    return 1 if missed else 0


BOUNDS = (
    ("window_to_decision_seconds", "burst: window's end to decision", 0.5),
    ("push_to_object_flux_seconds", "burst, Flux: pushed to object", 5.0),
    ("push_to_object_argo_cd_seconds", "burst, Argo CD: pushed to object", 5.0),
)
"""Name, step, and the most that its median may be."""


if __name__ == "__main__":
    sys.exit(main())
