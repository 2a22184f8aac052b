"""How long a page of a hundred takes where ten thousand requests are listed, and where there are none."""

from __future__ import annotations

import http.client
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import perf_counter

from reconciler.access.rate_limit import parse_rate
from reconciler.access.rights import Access, AccessRole, Token, digest
from reconciler.adapters.clock import SystemClock
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.backend import Backend
from reconciler.api.security.callers import Callers
from reconciler.api.server import HttpServer
from reconciler.core.commits.write import RenderedPlan
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.loop import Vitals
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.model.ids import CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Ledger
from reconciler.model.request import Asker, Request, RequestRecord
from reconciler.model.workload import DeploySpec, ManifestResource, Step, StepType
from tests.builders.desk import answer_desk
from tests.builders.passes import SOURCE_FILES, START, Passes
from tests.fakes.memory_repository import MemoryRepository

REQUESTS = 10_000
RUNS = 300
WARM = 20
_TOKEN = "ovs_" + "Ab3-" * 10 + "xyz"


def list_over_empty() -> float:
    """Divide the median of the first page of the full list by that of the empty one."""
    full, empty = _median(REQUESTS), _median(0)
    print(
        f"# a page of 100 of {REQUESTS:,} requests: {full * 1e3:.2f} ms, of none {empty * 1e3:.2f} ms", file=sys.stderr
    )
    return full / empty


def _median(requests: int) -> float:
    with _serving(requests) as connection:
        times = []
        for _ in range(RUNS):
            begin = perf_counter()
            headers = {"Authorization": f"Bearer {_TOKEN}"}
            connection.request("GET", "/api/v1/workload-placement?limit=100", headers=headers)
            answer = connection.getresponse()
            answer.read()
            times.append(perf_counter() - begin)
            if answer.status != http.client.OK:
                raise RuntimeError(f"the list was answered with {answer.status}")
    return statistics.median(times[WARM:])


@contextmanager
def _serving(requests: int) -> Iterator[http.client.HTTPConnection]:
    repository, clock = MemoryRepository(SOURCE_FILES), SystemClock()
    decision = Passes(repository).look()
    ledger = Ledger(commit=CommitId("7" * 40), requests=_records(requests))
    decision = replace(decision, inputs=replace(decision.inputs, ledger=ledger))
    latest = LatestSnapshot(BranchReader(repository))
    latest.post(Outcome(decision=decision, rendered=RenderedPlan(commits=(), changes=(), suppressed=()), commits=()))
    access = Access(tokens=(Token(name="bench", digest=digest(_TOKEN), roles={"*": AccessRole.VIEWER}),))
    app = create_app(
        pushed=PushedObservations(),
        wake=lambda _: None,
        clock=clock,
        vitals=_vitals,
        branches=("main",),
        callers=Callers(clock, access=lambda: access, rate=parse_rate("100000/s")),
        backend=Backend(
            latest=latest,
            shelf=repository,
            queue=OrderQueue(lambda _: None),
            answers=answer_desk(latest, repository),
        ),
    )
    server = HttpServer(app, host="127.0.0.1", port=0)
    server.start()
    try:
        yield http.client.HTTPConnection("127.0.0.1", server.port)
    finally:
        server.stop()


def _records(number: int) -> dict[WorkloadId, RequestRecord]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "demo"}}
    spec = DeploySpec(
        manifests=(ManifestResource(name="settings", manifest={**manifest, "data": {"a": "b" * 500}}),),
        steps=(Step(name="settings", type=StepType.MANIFEST),),
    )
    records = [
        RequestRecord(
            request=Request(
                name=TemplateName(f"job-{index:05}"),
                workspace=WorkspaceName("llm"),
                namespace="kubeslice-llm",
                spec=spec,
            ),
            asker=Asker.API,
            author="Ada",
            received_at=START,
            changed_at=START,
            source_commit=CommitId("5" * 40),
        )
        for index in range(number)
    ]
    return {record.workload: record for record in records}


def _vitals() -> Vitals:
    raise RuntimeError("nobody is asked how the loop is doing")
