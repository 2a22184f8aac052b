"""Observations that are pushed: by whom, in which form, and which of several stands."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

from reconciler.adapters.observations import pushed_observations as pushing
from reconciler.adapters.observations.observation_files import FileObservations
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.adapters.observations.views import JoinedView
from reconciler.api.app import create_app
from reconciler.api.server import HttpServer
from reconciler.daemon.loop import Vitals
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.manifest_source import RepositorySource
from reconciler.model.policy import EngineName
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.model.signal import ReplicaRequest

TOKEN = "between" + "-us-" + "alone"
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
WAITING = Vitals(passes=1, bugs=0, idle=timedelta(0), stuck_after=timedelta(minutes=5))
WORKER_1 = ClusterName("worker-1")


@dataclass
class Clock:
    at: datetime = NOON

    def now(self) -> datetime:
        return self.at


class SecuredApi:
    """The endpoint, what came through it, and what woke the loop."""

    def __init__(self, token: str = TOKEN) -> None:
        self.pushed = PushedObservations()
        self.clock = Clock()
        self.woken: list[str] = []
        self.app = create_app(
            pushed=self.pushed,
            wake=self.woken.append,
            clock=self.clock,
            vitals=lambda: WAITING,
            branches=("main",),
            push_token=token,
        )
        self.client = TestClient(self.app, raise_server_exceptions=False)

    def push(self, body: object, *, token: str = TOKEN, kind: str = "application/json"):
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": kind}
        return self.client.post("/api/v1/observations", content=content, headers=headers)


def seen(cluster: str = "worker-1", *, at: str = "2026-11-20T11:59:30Z") -> dict[str, object]:
    return {"apiVersion": "overspill.dev/v1alpha1", "kind": "Observation", "cluster": cluster, "observedAt": at}


def test_pushed_observation_is_seen_and_wakes_the_loop() -> None:
    secured = SecuredApi()
    answer = secured.push(seen())
    assert (answer.status_code, answer.json()["taken"], answer.json()["ignored"]) == (200, ["worker-1"], [])
    assert secured.pushed.observe().clusters[WORKER_1].observed_at == NOON - timedelta(seconds=30)
    assert secured.woken == ["observation"]


def test_several_clusters_come_in_one_list() -> None:
    secured = SecuredApi()
    assert secured.push({"items": [seen("worker-2"), seen("worker-1")]}).json()["taken"] == ["worker-1", "worker-2"]
    assert secured.woken == ["observation"]


@pytest.mark.parametrize("kind", ["application/yaml", "text/yaml; charset=utf-8", "application/x-yaml"])
def test_yaml_is_as_good_as_json(kind: str) -> None:
    body = "\n".join(f'{field}: "{value}"' for field, value in seen().items()).encode()
    assert SecuredApi().push(body, kind=kind).json()["taken"] == ["worker-1"]


def test_other_content_is_refused_with_the_header_to_send() -> None:
    answer = SecuredApi().push(seen(), kind="application/x-www-form-urlencoded")
    assert answer.status_code == 415
    assert "Content-Type" in answer.json()["error"]["hint"]


@pytest.mark.parametrize("token", ["", "guessed", TOKEN + "x", TOKEN[:-1]])
def test_wrong_token_is_refused_and_kept_out_of_the_log(token: str) -> None:
    secured = SecuredApi()
    with capture_logs() as logs:
        answer = secured.push(seen(), token=token)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert secured.woken == []
    assert logs[0]["event"] == "request refused"
    assert not token or token not in str(logs)


def test_refused_calls_cannot_fill_the_log() -> None:
    secured = SecuredApi()
    with capture_logs() as logs:
        for _ in range(50):
            secured.push(seen(), token="guessed")
        secured.clock.at += timedelta(minutes=2)
        secured.push(seen(), token="guessed")
    assert [entry.get("more_before") for entry in logs] == [None, 49]


def test_missing_header_is_refused() -> None:
    assert SecuredApi().client.post("/api/v1/observations", json=seen()).status_code == 401


def test_other_scheme_with_the_right_token_is_refused() -> None:
    headers = {"Authorization": f"Basic {TOKEN}"}
    assert SecuredApi().client.post("/api/v1/observations", json=seen(), headers=headers).status_code == 401


@pytest.mark.parametrize("token", ["", TOKEN])
def test_without_a_configured_token_nobody_is_let_in(token: str) -> None:
    answer = SecuredApi(token="").push(seen(), token=token)
    assert answer.status_code == 403
    assert "OVERSPILL_PUSH_TOKEN" in answer.json()["error"]["hint"]


def test_older_observation_is_ignored_and_said_so() -> None:
    secured = SecuredApi()
    secured.push(seen())
    answer = secured.push({"items": [seen(at="2026-11-20T11:59:00Z"), seen("worker-2")]})
    assert answer.json()["taken"] == ["worker-2"]
    assert [ignored["cluster"] for ignored in answer.json()["ignored"]] == ["worker-1"]
    assert secured.pushed.observe().clusters[WORKER_1].observed_at == NOON - timedelta(seconds=30)


def test_nothing_new_wakes_nobody() -> None:
    secured = SecuredApi()
    secured.push(seen())
    secured.push(seen(at="2026-11-20T11:00:00Z"))
    assert secured.woken == ["observation"]


def test_observation_from_the_future_is_refused() -> None:
    secured = SecuredApi()
    answer = secured.push(seen(at="2026-11-20T14:00:00Z"))
    assert answer.status_code == 422
    assert "7200 s ahead" in answer.json()["error"]["problems"][0]["message"]
    assert secured.push(seen(at="2026-11-20T12:00:30Z")).status_code == 200


def test_all_problems_are_told_with_their_place_and_nothing_is_taken() -> None:
    secured = SecuredApi()
    body = b"kind: Observation\napiVersion: overspill.dev/v1alpha1\ncluster: ../x\nobservedAt: soon\n"
    answer = secured.push(body, kind="application/yaml")
    problems = answer.json()["error"]["problems"]
    assert answer.status_code == 422
    assert {problem["field"] for problem in problems} == {"cluster", "observedAt"}
    assert {problem["line"] for problem in problems} == {3, 4}
    assert all(set(problem) == {"path", "line", "field", "message", "hint"} for problem in problems)
    assert dict(secured.pushed.observe().clusters) == {}


@pytest.mark.parametrize("body", [b"", b"[", b"\xff\xfe", b"[" * 50_000, b"null", b"42", b"{}"])
def test_nonsense_is_refused_in_the_envelope(body: bytes) -> None:
    answer = SecuredApi().push(body)
    assert (answer.status_code, answer.json()["status"]) == (422, "Error")
    assert "Traceback" not in answer.text


def test_body_over_a_mebibyte_is_refused() -> None:
    assert SecuredApi().push(b" " * (2**20 + 1)).status_code == 413


def test_body_that_hides_its_length_is_cut_off_at_a_mebibyte() -> None:
    server = HttpServer(SecuredApi().app, host="127.0.0.1", port=0)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
            head = f"POST /api/v1/observations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
            connection.sendall(f"{head}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
            connection.sendall(b"100001\r\n" + b" " * 0x100001 + b"\r\n")
            assert b" 413 " in connection.recv(4096)
    finally:
        server.stop()


def observation(cluster: str, minute: int, *, message: str = "") -> ClusterObservation:
    at = NOON + timedelta(minutes=minute)
    return ClusterObservation(cluster=ClusterName(cluster), observed_at=at, message=message)


def test_same_moment_replaces_so_that_a_correction_counts() -> None:
    pushed = PushedObservations()
    pushed.take([observation("worker-1", 1)])
    pushed.take([observation("worker-1", 1, message="corrected")])
    assert pushed.observe().clusters[WORKER_1].message == "corrected"


def test_clusters_are_bounded_and_an_overflow_takes_none() -> None:
    pushed = PushedObservations()
    with pytest.raises(InvalidInput, match="more than 10000 clusters"):
        pushed.take(observation(f"c{number}", 1) for number in range(pushing.MAX_CLUSTERS + 1))
    assert dict(pushed.observe().clusters) == {}


def test_when_full_the_clusters_not_heard_of_for_longest_are_forgotten() -> None:
    pushed = PushedObservations()
    pushed.take(observation(f"c{number}", 5) for number in range(pushing.MAX_CLUSTERS))
    pushed.take([observation("c0", 6), observation("c1", 1)])  # older news of c1 is news of c1
    assert len(pushed.take([observation("new-1", 0), observation("new-2", 0)]).taken) == 2
    clusters = pushed.observe().clusters
    assert len(clusters) == pushing.MAX_CLUSTERS
    assert {"c0", "c1", "new-1", "new-2", "c4"} <= clusters.keys()
    assert not {"c2", "c3"} & clusters.keys()


def test_joined_views_show_the_newest_of_each_cluster(tmp_path: Path) -> None:
    first, second = PushedObservations(), PushedObservations()
    first.take([observation("worker-1", 1), observation("worker-2", 2, message="first")])
    second.take([observation("worker-1", 3), observation("worker-2", 2, message="second")])
    (tmp_path / "broken.yaml").write_text("][")
    joined = JoinedView(first, second, FileObservations(tmp_path)).observe()
    assert {name: seen.observed_at.minute for name, seen in joined.clusters.items()} == {"worker-1": 3, "worker-2": 2}
    assert joined.clusters[ClusterName("worker-2")].message == "first"
    assert len(joined.problems) == 1


class Shown:
    def __init__(self, observed: Observed) -> None:
        self.observed = observed

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        return self.observed


def test_charts_can_be_rendered_when_one_view_says_so() -> None:
    assert JoinedView(PushedObservations(), Shown(Observed(helm=True))).observe().helm
    assert not JoinedView(PushedObservations()).observe().helm


def test_joined_views_keep_all_that_is_asked_for_a_workload() -> None:
    vllm, triton = (WorkloadId(WorkspaceName("llm"), TemplateName(name)) for name in ("vllm", "triton"))
    queue, planned = (
        ReplicaRequest(signal=signal, replicas=2, since=NOON, cause="", beyond=False)
        for signal in ("prometheus queue-depth", "schedule office-hours")
    )
    first, second = Shown(Observed(asks={vllm: (queue,)})), Shown(Observed(asks={vllm: (planned,), triton: (planned,)}))
    assert JoinedView(first, second).observe().asks == {vllm: (queue, planned), triton: (planned,)}


def test_joined_views_keep_what_applications_have_deployed() -> None:
    sources = [RepositorySource(url="u", revision="", path=path, at="1" * 40) for path in ("vllm", "chat")]
    views = [Shown(Observed(applications={source.path: source})) for source in sources]
    assert JoinedView(*views, Shown(Observed())).observe().applications == dict(
        zip(("vllm", "chat"), sources, strict=True)
    )


def said(name: str, state: EngineState = EngineState.HEALTHY) -> EngineReport:
    return EngineReport(cluster=WORKER_1, placement=PlacementName(name), digest="", revision="", state=state)


def test_reports_are_joined_and_those_of_engines_own_objects_go_first() -> None:
    own, carried = said("a"), said("a", EngineState.FAILED)
    watched = Shown(Observed(reports={own.path: own}, reporting={WORKER_1: EngineName.FLUX}))
    told = {one.path: one for one in (carried, said("b"))}
    seen = ClusterObservation(cluster=WORKER_1, observed_at=NOON, reports=told)
    joined = JoinedView(Shown(Observed(clusters={WORKER_1: seen})), watched).observe()
    assert joined.reports == {own.path: own, said("b").path: said("b")}
    assert joined.reporting == {WORKER_1: EngineName.FLUX}


def test_reports_are_the_same_object_until_one_of_them_changes() -> None:
    first, second = Shown(Observed(reports={"a": said("a")})), Shown(Observed(reports={"b": said("b")}))
    view = JoinedView(first, second)
    before = view.observe().reports
    assert view.observe().reports is before
    second.observed = Observed(reports={"b": said("b", EngineState.FAILED)})
    assert view.observe().reports["b"].state is EngineState.FAILED
