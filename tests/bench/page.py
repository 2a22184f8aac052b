"""How much CPU the page takes of a thousand clusters, four thousand workloads and ten thousand placements."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from time import process_time

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
from reconciler.daemon.reconcile import Outcome, PassDecision
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.model.demand import Demand
from reconciler.model.ids import ClusterName, PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.ledger import Placements
from reconciler.model.placement import Placement
from reconciler.model.plan import Reason, Refusal, Suppressed
from reconciler.model.policy import EngineName
from reconciler.model.workload import DeletionPolicy
from reconciler.web.session import Seal
from reconciler.web.site import install
from tests.builders.browser import Browser
from tests.builders.desk import answer_desk
from tests.builders.inputs import SOURCE, VLLM, cluster, free, shape
from tests.builders.passes import SOURCE_FILES, START, Passes
from tests.fakes.memory_repository import MemoryRepository

CLUSTERS, WORKLOADS, PLACEMENTS, WAITING = 1_000, 4_000, 10_000, 2_000
NODES = 4
RUNS = 20
_TOKEN = "ovs_" + "Ab3-" * 10 + "xyz"


def page_figures() -> Iterator[tuple[str, float, float]]:
    """Yield the CPU of the first page after a pass, of a further one, and of a page of clusters, over the floor's.

    The time of whoever asks is in them.
    """
    floor = _floor()
    with _browser() as browser:
        first = _milliseconds(browser, "/")
        further = min(_milliseconds(browser, "/?page=50") for _ in range(RUNS))
        clusters = min(_milliseconds(browser, "/clusters?page=7") for _ in range(RUNS))
    print(
        f"# a page of {PLACEMENTS:,} placements: {first:.0f} ms of CPU at first, then {further:.0f} ms; of"
        f" {CLUSTERS:,} clusters {clusters:.0f} ms; floor {floor:.0f} ms",
        file=sys.stderr,
    )
    yield "page_first_over_floor", first / floor, 4.0
    yield "page_further_over_floor", further / floor, 1.5
    yield "page_clusters_over_floor", clusters / floor, 1.5


def _floor() -> float:
    """Return the CPU milliseconds that any answer about all placements takes: to sort them, and to write them down."""
    placements = list(_placements())
    began = process_time()
    json.dumps(
        [
            {
                "name": placement.name,
                "cluster": placement.cluster,
                "workload": str(placement.workload),
                "replicas": placement.replicas,
                "created": placement.created_at.isoformat(),
                "path": placement.path,
            }
            for placement in sorted(placements, key=lambda each: (each.workload, each.cluster, each.name))
        ]
    )
    return 1000 * (process_time() - began)


def _milliseconds(browser: Browser, path: str) -> float:
    began = process_time()
    answer = browser.get(path)
    took = process_time() - began
    if answer.status != HTTPStatus.OK:
        raise RuntimeError(f"{path} was answered with {answer.status}")
    return 1000 * took


@contextmanager
def _browser() -> Iterator[Browser]:
    repository, clock = MemoryRepository(SOURCE_FILES), SystemClock()
    latest = LatestSnapshot(BranchReader(repository))
    decision = _large(Passes(repository).look())
    latest.post(Outcome(decision=decision, rendered=_rendered(decision), commits=()))
    access = Access(tokens=(Token(name="bench", digest=digest(_TOKEN), roles={"*": AccessRole.OWNER}),))
    callers = Callers(clock, access=lambda: access, rate=parse_rate("100000/s"))
    answers = answer_desk(latest, repository)
    backend = Backend(latest=latest, shelf=repository, queue=OrderQueue(lambda _: None), answers=answers)
    app = create_app(
        pushed=PushedObservations(),
        wake=lambda _: None,
        clock=clock,
        vitals=_vitals,
        branches=("main",),
        callers=callers,
        backend=backend,
    )
    install(app, backend=backend, callers=callers, clock=clock, seal=Seal())
    server = HttpServer(app, host="127.0.0.1", port=0)
    server.start()
    try:
        browser = Browser(f"http://127.0.0.1:{server.port}")
        browser.sign_in(_TOKEN)
        yield browser
    finally:
        server.stop()


def _large(decision: PassDecision) -> PassDecision:
    """Enlarge what a pass has seen and decided."""
    inputs = decision.inputs
    names, workloads = _names(), _workloads()
    clusters = {name: cluster(name) for name in names}
    workspaces = {
        name: replace(workspace, primary=names[0], clusters=tuple(names))
        for name, workspace in inputs.desired.workspaces.items()
    }
    desired = replace(
        inputs.desired,
        clusters=clusters,
        workspaces=workspaces,
        templates=dict.fromkeys(workloads, inputs.desired.templates[VLLM]),
        policies=dict.fromkeys(workloads, inputs.desired.policies[VLLM]),
    )
    seen = {name: free(name, *[8] * NODES, at=inputs.now) for name in names}
    base = inputs.demands[VLLM]
    if not isinstance(base, Demand):
        raise TypeError("the pass has seen no demand")
    demands = {workload: base._replace(workload=workload, wanted=12, missing=8) for workload in workloads}
    refusals = tuple(
        Refusal(cluster=name, reason=Reason.NO_CAPACITY, message="has no GPU free", remedy="free or add nodes there")
        for name in names
    )
    waiting = tuple(
        Suppressed(workload=workload, reason=Reason.NOTHING_FITS, message="fits nowhere", refusals=refusals)
        for workload in workloads[:WAITING]
    )
    ledger = replace(inputs.ledger, placements=Placements({entry.path: entry for entry in _placements()}))
    return replace(
        decision,
        inputs=replace(
            inputs, desired=desired, observed=replace(inputs.observed, clusters=seen), ledger=ledger, demands=demands
        ),
        plan=replace(decision.plan, suppressed=waiting, changes=()),
    )


def _names() -> list[ClusterName]:
    return [ClusterName(f"cluster-{number:04}") for number in range(CLUSTERS)]


def _workloads() -> list[WorkloadId]:
    return [WorkloadId(WorkspaceName("llm"), TemplateName(f"model-{number:04}")) for number in range(WORKLOADS)]


def _placements() -> Iterator[Placement]:
    names, workloads = _names(), _workloads()
    for number in range(PLACEMENTS):
        yield _placement(number, names[number % CLUSTERS], workloads[number % WORKLOADS])


def _placement(number: int, where: ClusterName, workload: WorkloadId) -> Placement:
    return Placement(
        name=PlacementName(f"{workload.name}-{number:05}"),
        cluster=where,
        workload=workload,
        replicas=2,
        created_at=START,
        changed_at=START,
        expires_at=START + timedelta(hours=1),
        engine=EngineName.ARGOCD,
        policy="gpu",
        deletion_policy=DeletionPolicy.DELETE,
        source_commit=SOURCE,
        namespace="demo",
        target_namespace="demo",
        shape=shape(),
    )


def _rendered(decision: PassDecision) -> RenderedPlan:
    return RenderedPlan(commits=(), changes=(), suppressed=decision.plan.suppressed)


def _vitals() -> Vitals:
    raise NotImplementedError
