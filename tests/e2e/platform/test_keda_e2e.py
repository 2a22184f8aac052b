"""KEDA's own operator and metrics server on both clusters, with Kubernetes' HorizontalPodAutoscaler controller.

KEDA's sample of a ScaledObject scales by the requests that wait, as vLLM counts them, from zero and back to zero.
"""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.e2e.api_server import Json
from tests.e2e.control_plane import Cluster
from tests.e2e.flux import KUSTOMIZATIONS
from tests.e2e.long_run import clock as clocks
from tests.e2e.long_run.clock import ShiftedClock
from tests.e2e.platform.keda import KEDA, METRIC, Queue, queue, sample
from tests.e2e.platform.two_clusters import GPU, HOME, NODES, Lender

CONTROLLERS = (KEDA,)
NAMESPACE = "serving"
EACH = 10
"""Requests that a replica takes. One has a node of eight GPUs, of which each cluster has four."""

GROWTH = "resize(llm/vllm): 2 to 3 replicas on away"

DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
SCALED = f"/apis/keda.sh/v1alpha1/namespaces/{NAMESPACE}/scaledobjects"
HPAS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
SCALED_DOWN = "0 run elsewhere, 2 scaled down on away by its ScaledObject"
PASSES = 30
"""How many look at both clusters within the hour at least."""
TOKEN = "ovs_" + "Kd7-" * 10 + "xyz"  # put together here, so that no scanner takes this file for a leak
BURST = "burst(llm/vllm): 2 replicas on away"
"""One that is missing, and one spare: the headroom that `lend` writes."""


@pytest.fixture
def requests() -> Iterator[Queue]:
    """Serve the requests that wait at home."""
    with queue() as served:
        yield served


@pytest.fixture
def requests_away() -> Iterator[Queue]:
    """Serve the requests that wait at the other cluster."""
    with queue() as served:
        yield served


def test_home_scales_from_zero_the_rest_bursts_and_nothing_is_left_once_the_queue_is_empty(
    lender: Lender, requests: Queue
) -> None:
    home, away = lender.home, lender.away
    begin(lender, scaled_object(requests.url))
    lender.lend("deployment/vllm")
    with lender.daemon():
        requests.waiting = 5 * EACH
        lender.until_at(home, lambda: wanted(home) == 5, "KEDA and its HorizontalPodAutoscaler do not scale")
        lender.until_committed(BURST)
        assert "1 replica missing on home" in lender.told()
        lender.until_at(away, lambda: len(lender.running(away)) == 2, "the replicas do not run away")
        assert wanted(home) == 5
        # Nothing at the other cluster owns the count but the placement.
        assert not away.items(SCALED)
        requests.waiting = 6 * EACH
        lender.until_committed(BURST, GROWTH)
        lender.until_at(away, lambda: len(lender.running(away)) == 3, "the third replica does not run away")
        requests.waiting = 0
        lender.until_at(home, lambda: wanted(home) == 0 and not lender.pods(home), "KEDA does not scale to zero")
        lender.until_committed(BURST, GROWTH, 'Revert "burst(llm/vllm)')
        lender.until_at(away, lambda: not left(lender, away), "something is left away")
        lender.until_answered(("explain", "llm/vllm"), lambda told: "runs 0 of 0" in " ".join(told["conclusion"]))
        # And from zero again.
        requests.waiting = 1
        lender.until_at(home, lambda: len(lender.running(home)) == 1, "KEDA does not scale from zero")
        lender.until_committed(BURST, GROWTH, 'Revert "burst(llm/vllm)')


def test_what_keda_wants_beyond_its_maximum_bursts(lender: Lender, requests: Queue) -> None:
    home, away = lender.home, lender.away
    begin(lender, scaled_object(requests.url, maxReplicaCount=NODES[HOME]))
    lender.lend("deployment/vllm")
    with lender.daemon():
        requests.waiting = 5 * EACH
        lender.until_committed(BURST)
        assert f"hpa {NAMESPACE}/keda-hpa-vllm stands at its maximum of {NODES[HOME]}" in lender.told()
        lender.until_at(away, lambda: len(lender.running(away)) == 2, "the replicas do not run away")
        requests.waiting = 0
        lender.until_at(home, lambda: wanted(home) == 0, "KEDA does not scale to zero")
        lender.until_committed(BURST, f'Revert "{BURST}')
        lender.until_at(away, lambda: not left(lender, away), "something is left away")


def test_keda_owns_the_count_of_a_burst_to_zero_and_back_and_nobody_fights_over_it_for_an_hour(
    lender: Lender, requests: Queue, requests_away: Queue, hours: Hours
) -> None:
    home, away = lender.home, lender.away
    begin(lender, scaled_object(requests.url))
    bounded = scaled_object(requests_away.url, maxReplicaCount="{{ replicas }}")
    bounded["metadata"]["namespace"] = NAMESPACE
    lender.lend("deployment/vllm", beside=[bounded], spec={"burstDuration": "6h"}, headroomDuration="6h")
    requests_away.waiting = 2 * EACH
    with hours.daemon(lender):
        requests.waiting = 5 * EACH
        lender.until_committed(BURST)
        for replicas in (2, 0, 2):
            requests_away.waiting = replicas * EACH
            lender.until_at(
                away,
                lambda replicas=replicas: wanted(away) == len(lender.running(away)) == replicas,
                f"KEDA does not scale to {replicas} away",
            )
            if not replicas:
                lender.until_answered(("explain", "llm/vllm"), lambda told: SCALED_DOWN in told["conclusion"][0])
            before = [generation(cluster) for cluster in (home, away)]
            hours.go_on(lender, minutes=10)
            apply_again(lender)
            hours.go_on(lender, minutes=10)
            assert [generation(cluster) for cluster in (home, away)] == before
            lender.until_committed(BURST)
        assert hours.passes() > PASSES
        requests.waiting = 0
        lender.until_committed(BURST, f'Revert "{BURST}')
        lender.until_at(away, lambda: not left(lender, away), "something is left away")


class Hours:
    """A daemon whose clock is put ahead from pass to pass."""

    def __init__(self, home: Path) -> None:
        """Begin at the true time."""
        self._clock = ShiftedClock(home / "clock")
        self._token, self._access = home / "hours.token", home / "access.yaml"
        self._ahead = 0
        self._address = ""
        digest = sha256(TOKEN.encode()).hexdigest()
        self._access.write_text(f"tokens:\n- {{name: hours, sha256: {digest}, roles: {{'*': Viewer}}}}\n")

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables of a process that is to have this clock."""
        return self._clock.environment

    @contextmanager
    def daemon(self, lender: Lender) -> Iterator[None]:
        """Run the daemon, which says when its passes look."""
        settings = {"API_TOKENS_FILE": str(self._access)}
        with lender.daemon("--listen", "127.0.0.1:0", settings=settings):
            lender.fleet.until(lambda: "listening at" in lender.fleet.last_words(), "it does not listen")
            found = re.search(r"listening at (127\.0\.0\.1:\d+)", lender.fleet.last_words())
            assert found is not None
            self._address = found[1]
            yield

    def go_on(self, lender: Lender, *, minutes: int) -> None:
        """Let time pass, two minutes at a time, each of which a pass has seen on both clusters."""
        for _ in range(0, minutes, 2):
            self._ahead += 120
            moment = time.time() + self._ahead
            self._clock.put(self._ahead)
            lender.fleet.until(lambda moment=moment: min(self._seen()) >= moment, "no pass has seen both clusters")

    def passes(self) -> int:
        """Count the passes so far that have ended well."""
        return int(sum(self._values("overspill_passes_total")))

    def _seen(self) -> list[float]:
        """Return when each cluster was seen last, of which there are two."""
        seen = self._values("overspill_cluster_observed_timestamp_seconds")
        return seen if len(seen) == len(NODES) else [0]

    def _values(self, metric: str) -> list[float]:
        return [float(value) for value in re.findall(rf"^{metric}\{{.*\}} (\S+)$", self._metrics(), re.MULTILINE)]

    def _metrics(self) -> str:
        asked = urllib.request.Request(f"http://{self._address}/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            text: str = answer.read().decode()
        return text


@pytest.fixture
def hours(lender: Lender, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hours:
    """Have a clock for the daemon alone: what runs on the clusters has begun already."""
    if reason := clocks.missing():
        pytest.skip(reason)
    made = Hours(tmp_path)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


def begin(lender: Lender, scaled: Json) -> None:
    """Apply the server and what scales it at home, and return when KEDA has taken both."""
    lender.apply(json.dumps(deployment()))
    lender.apply(json.dumps(scaled))
    lender.until_at(lender.home, lambda: said(lender.home, "Ready") == "True", "KEDA does not take the ScaledObject")


def apply_again(lender: Lender) -> None:
    """Have Flux apply what lies on the branch once more, as it does every ten minutes."""
    asked = datetime.now(UTC).isoformat()
    names = [each["metadata"]["name"] for each in lender.away.items(KUSTOMIZATIONS)]
    for name in names:
        annotations = {"reconcile.fluxcd.io/requestedAt": asked}
        lender.away.call("PATCH", f"{KUSTOMIZATIONS}/{name}", {"metadata": {"annotations": annotations}})

    def applied() -> bool:
        found = lender.away.items(KUSTOMIZATIONS)
        return all(each.get("status", {}).get("lastHandledReconcileAt") == asked for each in found)

    lender.until_at(lender.away, applied, "Flux does not apply again")


def generation(cluster: Cluster) -> tuple[int, int]:
    """Return what counts the changes of the Deployment in a cluster, and its replicas."""
    [found] = cluster.items(DEPLOYMENTS)
    return found["metadata"]["generation"], found["spec"]["replicas"]


def deployment() -> Json:
    """Write a server whose replicas have a node each; it begins with none."""
    container = {
        "name": "server",
        "image": "registry.invalid/vllm:1",
        "resources": {"requests": {"cpu": "8"}, "limits": {GPU: "8"}},
    }
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "vllm"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"}, "spec": spec}


def scaled_object(url: str, **terms: Json) -> Json:
    """Write KEDA's sample for the server and the requests at an address, with times as short as a test is."""
    written = yaml.safe_load(sample())
    metadata = {"url": url, "format": "prometheus", "valueLocation": METRIC, "targetValue": str(EACH)}
    written["metadata"]["name"] = written["spec"]["scaleTargetRef"]["name"] = "vllm"
    written["spec"] |= {"pollingInterval": 1, "cooldownPeriod": 1, **terms}
    written["spec"]["triggers"] = [{"type": "metrics-api", "metadata": metadata}]
    return written


def said(cluster: Cluster, condition: str) -> str:
    """Return a condition of the ScaledObject; empty while KEDA has not said it."""
    found = [
        each["status"]
        for scaled in cluster.items(SCALED)
        for each in scaled.get("status", {}).get("conditions", [])
        if each["type"] == condition
    ]
    return found[0] if found else ""


def wanted(cluster: Cluster) -> int:
    """Return the replicas that the Deployment in a cluster is to have."""
    return sum(int(each["spec"]["replicas"]) for each in cluster.items(DEPLOYMENTS))


def left(lender: Lender, cluster: Cluster) -> list[str]:
    """Name what is in the namespace of a cluster of all that a burst makes."""
    objects = [each for path in (DEPLOYMENTS, SCALED, HPAS) for each in cluster.items(path)]
    return [each["metadata"]["name"] for each in (*objects, *lender.pods(cluster))]
