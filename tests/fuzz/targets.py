"""The readers that are fuzzed: each takes one random input to its end, and may raise only what is meant for users."""

from __future__ import annotations

import hmac
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from starlette.testclient import TestClient

from reconciler.access.rate_limit import parse_rate
from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.backend import Backend
from reconciler.api.security.callers import Callers
from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits.history import bursts
from reconciler.core.commits.trailers import Trailer
from reconciler.core.engines.argocd.applications import ApplicationReports
from reconciler.core.engines.flux.reports import FluxReports
from reconciler.core.expressions import render
from reconciler.core.expressions.sandbox import TESTS
from reconciler.core.expressions.work import FILTERS, METHODS
from reconciler.core.fleet.read_file import assemble, parse_file
from reconciler.core.ledger.read import read_record
from reconciler.core.observe import observation_file
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.daemon.loop import Loop
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.pass_runner import PassRunner
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.status import status
from reconciler.errors import InvalidInput
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.ids import CommitId
from reconciler.model.tree import Identity, LoggedCommit
from reconciler.text.to_json import json_value
from tests.builders import engine_objects, kube_objects
from tests.builders.daemon import ACCESS, FILES, OWNER
from tests.builders.desk import answer_desk
from tests.builders.egs_samples import sample
from tests.builders.inputs import VLLM, cluster, desired, placement, template
from tests.builders.passes import SOURCE_FILES, START, Passes, seconds
from tests.fakes.memory_repository import OURS, MemoryRepository
from tests.fuzz.answers import ANSWER_TARGETS
from tests.fuzz.command_inputs import COMMAND_TARGETS
from tests.fuzz.foreign_files import FILE_TARGETS
from tests.fuzz.mutations import (
    FLEETS,
    ODD,
    Corpus,
    changed_bytes,
    changed_document,
    changed_file,
    encoded,
    expression,
)
from tests.fuzz.target import Target

OBSERVATIONS = Corpus(
    [
        data
        for data in Corpus.below("repo-layout/observations", "tests/golden").files
        if b"kind: Observation" in data or b"observedAt" in data
    ]
)


def _read_file(data: bytes) -> None:
    file = parse_file(data)
    for problem in file.problems:
        str(replace(problem, path="x.yaml"))
    others = {path: parse_file(text.encode()) for path, text in SOURCE_FILES.items()}
    assemble(CommitId("5" * 40), {**others, "x.yaml": file})


def _read_observation(data: bytes) -> None:
    observation_file.read(data, "x.yaml")


class _Seeing(Passes):
    """A daemon that sees what it is given beside its own clusters."""

    seen: tuple[ClusterObservation, ...] = ()

    def observe(self) -> Observed:
        observed = super().observe()
        seen = {one.cluster: replace(one, observed_at=self.moment) for one in self.seen}
        return replace(observed, clusters={**observed.clusters, **seen})


def _make_pass(random: Random) -> tuple[bytes, bytes]:
    template = SOURCE_FILES[random.choice(("template.yaml", "policies.yaml", "workspaces.yaml"))].encode()
    corpus = Corpus([template])
    file = changed_file(random, corpus) if random.random() < 0.5 else changed_file(random, FLEETS)
    return file, changed_file(random, OBSERVATIONS)


def _run_pass(made: tuple[bytes, bytes]) -> None:
    file, observed = made
    passes = _Seeing(MemoryRepository({**SOURCE_FILES, "a.yaml": file}))
    passes.missing = 3
    try:
        passes.seen = observation_file.read(observed, "x.yaml")
    except InvalidInput:
        passes.seen = ()
    for _ in range(2):
        outcome = passes.run_once()
        json.dumps(json_value(status(outcome.decision)))
        for problem in outcome.problems:
            str(problem)
        passes.advance(30)
    passes.advance(700)
    passes.run_once()


_METHODS = sorted(METHODS)
_TEMPLATE = template()
_CONTEXT = render.Context(
    replicas=3,
    cluster=cluster("worker-2", labels={"zone": "a"}),
    placement=placement("worker-2"),
    workspace=desired().workspaces[VLLM.workspace],
    template=_TEMPLATE,
)


def _make_expression(random: Random) -> str:
    text = expression(random, sorted(FILTERS), sorted(TESTS), _METHODS)
    return (
        changed_bytes(random, Corpus([b"{{ a }}"]), text.encode()).decode("utf-8", "replace")
        if random.random() < 0.1
        else text
    )


def _render(text: str) -> None:
    manifest = _TEMPLATE.spec.manifests[0]
    spec = replace(_TEMPLATE.spec, manifests=(replace(manifest, manifest={**manifest.manifest, "data": {"a": text}}),))
    render.check_expressions(spec)
    json.dumps(render.render(spec, _CONTEXT).manifests[0].manifest, allow_nan=False)


def _records() -> dict[str, bytes]:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = 3
    passes.run()
    passes.missing = 0
    passes.advance(700)
    passes.run()
    repository = passes.repository
    assert isinstance(repository, MemoryRepository)
    trees = [snapshot.tree for snapshot in repository.commits.values()]
    return {
        path: repository.blobs[blob]
        for tree in trees
        for path, blob in tree.items()
        if path.endswith(("placement.yaml", "vllm.yaml"))
    }


_RECORDS = _records()
_RECORD_CORPUS = Corpus([*_RECORDS.values()])


def _make_record(random: Random) -> tuple[str, bytes]:
    path = random.choice(sorted({*_RECORDS, "ledger/llm/requests/a.yaml", "ledger/llm/vllm.yaml"}))
    return path, changed_file(random, _RECORD_CORPUS)


def _read_record(made: tuple[str, bytes]) -> None:
    path, data = made
    read_record(data, path)


_SPECS: dict[str, Any] = {"spec": {"replicas": 3, "template": {"spec": {"containers": kube_objects.containers()}}}}
_OBJECTS: tuple[tuple[Resource, dict[str, Any]], ...] = (
    (Resource.NODES, kube_objects.node("gpu-1", labels={"a": "b"})),
    (Resource.PODS, kube_objects.pod("vllm-1-a", "gpu-1", labels={"app": "vllm"})),
    (Resource.PODS, kube_objects.pod("vllm-1-b", waits=kube_objects.NO_GPU)),
    (Resource.DEPLOYMENTS, {"metadata": {"name": "vllm", "namespace": "demo"}, **_SPECS}),
    (Resource.REPLICA_SETS, kube_objects.workload("vllm-1", 3, owner=("Deployment", "vllm"))),
    (Resource.JOBS, kube_objects.workload("train", 3)),
    (Resource.SLICES, kube_objects.resource_slice("s", [kube_objects.device("gpu-0")])),
    (Resource.CLASSES, kube_objects.device_class()),
    (Resource.CLAIMS, kube_objects.claim("c", "gpu-0")),
    (Resource.TEMPLATES, kube_objects.claim_template(kube_objects.exactly())),
)
_ENGINES: tuple[tuple[Callable[[], Any], dict[str, Any]], ...] = (
    (lambda: ApplicationReports("overspill"), engine_objects.application("worker-2")),
    (lambda: FluxReports(cluster("worker-2").name), engine_objects.kustomization("vllm-1")),
)


def _make_object(random: Random) -> tuple[int, Any]:
    number = random.randrange(len(_OBJECTS) + len(_ENGINES))
    raw = _OBJECTS[number][1] if number < len(_OBJECTS) else _ENGINES[number - len(_OBJECTS)][1]
    corpus = Corpus([encoded(raw)])
    return number, changed_document(random, corpus, raw)


def _take_object(made: tuple[int, Any]) -> None:
    number, raw = made
    if number >= len(_OBJECTS):
        for part in _ENGINES[number - len(_OBJECTS)][0]().parts.values():
            attempt(Seam.WATCHED_OBJECT, "an object", lambda part=part: part.apply(raw))
        return
    state = ClusterState()
    for resource, good in _OBJECTS:
        state.apply(resource, good)
    attempt(Seam.WATCHED_OBJECT, "an object", lambda: state.apply(_OBJECTS[number][0], raw))
    attempt(Seam.CLUSTER, "a cluster", lambda: state.observation(cluster("worker-2").name, START))


def _make_log(random: Random) -> list[LoggedCommit]:
    def text() -> str:
        value = random.choice(ODD)
        return value if isinstance(value, str) else json.dumps(value)

    words = (
        "place",
        "resize",
        "extend",
        "revert",
        "move",
        "hold",
        "worker-2",
        "demand-gone",
        "llm/vllm",
        "2026-11-20T10:00:00Z",
    )
    return [
        LoggedCommit(
            id=CommitId(f"{number:040d}"),
            at=START + seconds(random.randrange(10_000)),
            author=OURS,
            committer=random.choice((OURS, Identity(name="Mallory", email="m@example.com"))),
            subject=random.choice(("place(llm/vllm): 3 replicas", text())),
            body=random.choice(("", "a\n\nb\n\nc: d", text())),
            trailers={key: random.choice((*words, text())) for key in Trailer if random.random() < 0.7},
        )
        for number in range(random.randrange(1, 5))
    ]


def _read_log(log: list[LoggedCommit]) -> None:
    for burst in bursts(log):
        json.dumps(json_value(burst))


TARGETS: tuple[Target, ...] = (
    Target(name="file", make=lambda random: changed_file(random, FLEETS), run=_read_file),
    Target(name="observation", make=lambda random: changed_file(random, OBSERVATIONS), run=_read_observation),
    Target(name="expression", make=_make_expression, run=_render),
    Target(name="record", make=_make_record, run=_read_record),
    Target(name="pass", make=_make_pass, run=_run_pass),
    Target(name="object", make=_make_object, run=_take_object, contained=True),
    Target(name="log", make=_make_log, run=_read_log),
    *ANSWER_TARGETS,
    *FILE_TARGETS,
    *COMMAND_TARGETS,
)
"""All but those that need a daemon or a server."""


BODIES = Corpus(
    [
        *(sample(name).encode() for name in ("create.json", "update-running.json", "update-waiting.json")),
        encoded({"requests": [{"gpuShape": "H100", "numberOfGPUs": 1, "numberOfGPUNodes": 1, "exitDuration": "1h"}]}),
        *OBSERVATIONS.files[:6],
    ]
)
_CALLS = (
    ("POST", "/api/v1/workload-placement"),
    ("PUT", "/api/v1/workload-placement/settings"),
    ("POST", "/api/v1/observations"),
    ("POST", "/api/v1/gpr/waittime"),
    ("PUT", "/api/v1/gpr"),
    ("POST", "/api/v1/webhooks/github"),
    ("GET", "/api/v1/workload-placement"),
    ("GET", "/api/v1/gpr"),
    ("GET", "/api/v1/workload-template"),
    ("GET", "/api/v1/inventory"),
    ("DELETE", "/api/v1/workload-placement/settings"),
)

_SECRET = "of no one"

Call = tuple[str, str, bytes, dict[str, str]]


def make_call(random: Random) -> Call:
    """Make a request with any body, and now and then odd parameters and headers."""
    method, path = random.choice(_CALLS)
    if random.random() < 0.1:
        path += "?" + random.choice(
            ("limit=0", "limit=-1", "limit=1e9", "after=x", "after=%00", "workspace=%ff", "a=b", "limit=5")
        )
    if random.random() < 0.05:
        path += "/" + random.choice(("..", "%2e%2e", "a%00b", "%ff", "a" * 300, "{x}", "é"))
    headers = {"Authorization": f"Bearer {OWNER}", "Content-Type": "application/json"}
    if random.random() < 0.1:
        headers[
            random.choice(("Content-Type", "Idempotency-Key", "Content-Length", "Authorization", "X-GitHub-Event"))
        ] = random.choice(("", "a", "application/json; charset=x", "-1", "9" * 30, "\u00e9".encode().decode("latin-1")))
    data = changed_file(random, BODIES) if method != "GET" else b""
    if "webhooks" in path and random.random() < 0.9:
        data = encoded({"ref": random.choice(ODD)}) if random.random() < 0.5 else data
        headers["X-Hub-Signature-256"] = "sha256=" + hmac.new(_SECRET.encode(), data, "sha256").hexdigest()
        headers.setdefault("X-GitHub-Event", "push")
    return method, path, data, headers


@contextmanager
def serving() -> Iterator[Callable[[Call], None]]:
    """Run a daemon over a repository in memory, and take calls to its application in this process."""
    repository, clock = MemoryRepository(FILES), SystemClock()
    passes = Passes(repository)
    world = replace(passes.world(), clock=clock)
    latest = LatestSnapshot(passes.memory.branch)
    with ExitStack() as stack:
        queue = OrderQueue(lambda reason: loop.wake(reason))  # noqa: PLW0108 - the loop does not exist yet
        loop: Loop[Outcome] = Loop(
            PassRunner(world, passes.memory, queue, latest),
            clock=clock,
            alarm=_Silent(),
            tell=lambda _: None,
            maintain=lambda: None,
            keep=lambda: None,
            random=Random(1).random,
            poll=timedelta(hours=1),
            longest_backoff=timedelta(milliseconds=50),
        )
        app = create_app(
            pushed=PushedObservations(),
            wake=loop.wake,
            clock=clock,
            vitals=loop.vitals,
            branches=("main", "placements"),
            push_token=OWNER,
            webhook_secret=_SECRET,
            callers=Callers(clock, access=lambda: ACCESS, rate=parse_rate("100000/s")),
            backend=Backend(latest=latest, shelf=repository, queue=queue, answers=answer_desk(latest, repository)),
        )
        thread = threading.Thread(target=loop.run, daemon=True)
        thread.start()
        stack.callback(thread.join, 10)
        stack.callback(queue.close)
        stack.callback(loop.stop)
        client = stack.enter_context(TestClient(app, raise_server_exceptions=True))

        def call(made: Call) -> None:
            method, path, data, headers = made
            try:
                answer = client.request(method, path, content=data, headers=headers)
            except UnicodeEncodeError:  # the client's own: no such header can be sent
                return
            if answer.status_code >= 500 and answer.status_code != 503:
                raise AssertionError(f"{answer.status_code}: {answer.text[:300]}")

        yield call


class _Silent:
    def at(self, moment: object) -> None:
        """Never wake."""
