"""A whole daemon beside the test: its loop in a thread, a bare repository, and HTTP on loopback."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.message import Message
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.access.rate_limit import parse_rate
from reconciler.access.rights import Access, AccessRole, Token, digest
from reconciler.adapters.access.oidc_client import OidcPages
from reconciler.adapters.clock import SystemClock
from reconciler.adapters.git import GitRepository
from reconciler.adapters.helm.rendering import Helm
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.api.app import create_app
from reconciler.api.backend import Backend
from reconciler.api.security.callers import Callers, IssuerLogin
from reconciler.api.server import HttpServer
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.branch import BranchReader
from reconciler.daemon.loop import Loop
from reconciler.daemon.metrics.process_metrics import ProcessMetrics
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.pass_runner import PassRunner
from reconciler.daemon.reconcile import Memory, Outcome, World
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.source import SourceReader
from reconciler.model.capacity import ClusterObservation, MissingReplicas, Observed, SucceededPods, WorkloadObservation
from reconciler.model.ids import ClusterName, PlacementName, WorkspaceName
from reconciler.model.workload import WorkloadRef
from reconciler.ports import Clock
from reconciler.web.lab import LabReports
from reconciler.web.live import LiveStreams
from reconciler.web.session import Seal
from reconciler.web.site import install
from tests.builders.egs_samples import body
from tests.builders.inputs import free, shape
from tests.builders.openapi import Contract
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.fakes.memory_repository import OURS

PATH = "/api/v1/workload-placement"
ABC, LLM = WorkspaceName("abc"), WorkspaceName("llm")

ABC_FILE = """\
apiVersion: overspill.dev/v1alpha1
kind: Workspace
metadata: {name: abc}
spec:
  primaryCluster: worker-1
  clusters: [worker-1, worker-2]
  namespaces: [bookinfo]
  allowUnpinnedCharts: true
  allowUnknownNeeds: true
"""
"""The workspace of the seed's samples."""

FILES = {
    **SOURCE_FILES,
    "fleet.yaml": SOURCE_FILES["fleet.yaml"].replace("manifests", "argocd"),
    "workspaces/abc.yaml": ABC_FILE,
}


# Put together here, so that no scanner takes this file for a leak.
OWNER, EDITOR, VIEWER, STRANGER, NAMELESS, LLM_OWNER, ABC_OWNER = (
    "ovs_" + letters * 10 + "xyz" for letters in ("Ab3-", "Cd4_", "Ef5g", "Gh6i", "Ij7k", "Kl8m", "Mn9o")
)


def held(token: str, name: str, email: str = "", **roles: AccessRole) -> Token:
    """Make the entry of a token; the role `everywhere` is that of all workspaces."""
    given = {"*" if scope == "everywhere" else WorkspaceName(scope): role for scope, role in roles.items()}
    return Token(name=name, email=email, digest=digest(token), roles=given)


ACCESS = Access(
    tokens=(
        held(OWNER, "Ada", "ada@example.com", everywhere=AccessRole.OWNER),
        held(EDITOR, "Ed", "ed@example.com", abc=AccessRole.EDITOR, llm=AccessRole.VIEWER),
        held(VIEWER, "Vi", "vi@example.com", abc=AccessRole.VIEWER),
        held(STRANGER, "Sam", "sam@example.com", llm=AccessRole.EDITOR),
        held(NAMELESS, "Release Robot", everywhere=AccessRole.EDITOR),
        held(LLM_OWNER, "Lia", "lia@example.com", llm=AccessRole.OWNER),
        held(ABC_OWNER, "Abe", "abe@example.com", abc=AccessRole.OWNER),
    )
)


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: Message
    body: Any = field(default=None)


class Sight:
    """Clusters that are seen as of now: the GPUs that are free on each, and replicas of llm/vllm that are missing."""

    def __init__(self) -> None:
        self.free = {"worker-1": 80, "worker-2": 40, "worker-3": 40}
        self.missing = 0
        self.complete: dict[str, str] = {}
        """The placement of a cluster whose run has just been complete."""

    def follow(self, desired: object) -> None:
        """Show the same whatever is asked for."""

    def observe(self) -> Observed:
        now = SystemClock().now()
        waiting = (MissingReplicas(replicas=self.missing, since=now - timedelta(minutes=5)),) if self.missing else ()
        short = WorkloadObservation(
            ref=WorkloadRef(namespace="demo", name="vllm"),
            wanted=4 + self.missing,
            running=4,
            waiting=waiting,
            shape=shape(),
        )
        seen: list[ClusterObservation] = [
            free(
                name,
                *[8] * (gpus // 8),
                at=now,
                workloads=(short,) if name == "worker-1" else (),
                succeeded={
                    PlacementName(placement): SucceededPods(pods=None, at=now)
                    for cluster, placement in self.complete.items()
                    if cluster == name
                },
            )
            for name, gpus in self.free.items()
        ]
        return Observed(clusters={ClusterName(one.cluster): one for one in seen})


class Daemon:
    """What a caller reaches by HTTP, and the remote that it writes to."""

    def __init__(self, remote: Remote, sight: Sight, latest: LatestSnapshot) -> None:
        self.remote = remote
        self.sight = sight
        self.latest = latest
        self.answers: AnswerDesk
        self.log_lines: tuple[str, ...] = ()
        self.live: LiveStreams
        self.port = 0
        self.contract: Contract | None = None
        self.wake: Callable[[str], None] = lambda _: None
        self.pushes = Path(remote.url) / "pushes"
        hook = Path(remote.url) / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\necho >> '{self.pushes}'\n")
        hook.chmod(0o755)

    def call(
        self, method: str, path: str, body: object = None, token: str = OWNER, *, raw: bytes | None = None, **more: str
    ) -> Reply:
        """Send a request, a body as JSON; `more` are headers. What comes back is held against the OpenAPI document."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        if data is not None:
            headers["Content-Type"] = "application/json"
        headers |= {name.replace("_", "-"): value for name, value in more.items()}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        reply = self._reply(request)
        if self.contract is not None:
            self.contract.check(method, path, reply.status, reply.body)
        return reply

    def _reply(self, request: urllib.request.Request) -> Reply:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Reply(response.status, response.headers, json.load(response))
        except urllib.error.HTTPError as error:
            with error:
                return Reply(error.code, error.headers, json.load(error))

    def clear(self) -> None:
        """End every placement that was asked for."""
        for item in self.call("GET", f"{PATH}?origin=request").body["data"]:
            assert self.call("DELETE", f"{PATH}/{item['name']}").status == 200

    def pushed(self) -> int:
        """Count the pushes that the remote has taken."""
        return len(self.pushes.read_text().splitlines()) if self.pushes.exists() else 0

    def edit(self, files: Mapping[str, str | None]) -> None:
        """Change files of the source branch, and have them looked at."""
        tip = self.remote.commit("main", files)
        self.wake("hint")
        self.until(lambda: self.latest.read().decision.tips.source == tip)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for something that comes of itself."""
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "it never came"
            time.sleep(0.02)


_CONTRACTS: dict[bool, Contract] = {}
"""What daemons promise, by whether they are strict: to write it down takes longer than most tests or refusals."""


@contextmanager
def daemon(
    remote: Remote,
    cache: Path,
    *,
    strict: bool = False,
    poll: timedelta = timedelta(hours=1),
    login: IssuerLogin | None = None,
    issuer: OidcPages | None = None,
    reports: Path | None = None,
    files: Mapping[str, str] = FILES,
    clock: Clock | None = None,
    sight: Sight | None = None,
) -> Iterator[Daemon]:
    """Run a daemon on a remote that has `files` on its source branch."""
    remote.commit("main", files)
    clock, sight = clock or SystemClock(), sight or Sight()
    process = ProcessMetrics(output_branch="placements", orders=lambda: len(queue), bugs=lambda: loop.vitals().bugs)
    with GitRepository(remote.url, cache=cache, committer=OURS, measure=process.call) as repository:
        world = World(
            repository=repository, clusters=sight, charts=Helm(), clock=clock, author=OURS,
            sinks=(process,), measure=process.phase,
        )  # fmt: skip # a world
        memory = Memory(source=SourceReader(repository), branch=BranchReader(repository))
        latest = LatestSnapshot(memory.branch)
        running = Daemon(remote, sight, latest)
        queue = OrderQueue(lambda reason: running.wake(reason))  # noqa: PLW0108 - the loop does not exist yet
        loop: Loop[Outcome] = Loop(
            PassRunner(world, memory, queue, latest),
            clock=clock,
            alarm=_Silent(),
            tell=lambda outcome: process.follow(outcome.decision.inputs),
            maintain=repository.maintain,
            keep=memory.branch.keep,
            random=random.random,
            count=process.count_pass,
            poll=poll,
            longest_backoff=timedelta(milliseconds=200),
        )
        running.wake = loop.wake
        mirror = partial(GitRepository, remote.url, cache=cache, committer=OURS)
        answers = AnswerDesk(
            latest, mirror, charts=world.charts, clock=clock, author=OURS, output_branch=world.output_branch
        )
        running.answers = answers
        backend = Backend(latest=latest, shelf=repository.shelf, queue=queue, answers=answers, strict=strict)
        callers = Callers(clock, access=lambda: ACCESS, login=login, rate=parse_rate("10000/s"))
        app = create_app(
            pushed=PushedObservations(),
            wake=loop.wake,
            clock=clock,
            vitals=loop.vitals,
            branches=("main", "placements"),
            callers=callers,
            backend=backend,
            process=process,
            log_lines=lambda: running.log_lines,
        )
        live = running.live = install(
            app, backend=backend, callers=callers, clock=clock, seal=Seal(), issuer=issuer, reports=LabReports(reports)
        )
        if strict not in _CONTRACTS:
            _CONTRACTS[strict] = Contract(app)
        running.contract = _CONTRACTS[strict]
        app.openapi_schema = running.contract.document
        server = HttpServer(app, host="127.0.0.1", port=0)
        server.start()
        running.port = server.port
        thread = threading.Thread(target=loop.run)
        thread.start()
        try:
            running.until(lambda: loop.vitals().passes)
            yield running
        finally:
            loop.stop()
            thread.join(30)
            queue.close()
            live.close()
            server.stop()
            answers.close()


class _Silent:
    def at(self, moment: object) -> None:
        """Ring never."""


ASKED: Mapping[str, Any] = body("create.json")
"""The body of EGS's own sample, word by word."""


def small(name: str, **fields: object) -> dict[str, Any]:
    """Ask for a placement of one config map of the same name."""
    metadata = {"name": name, "namespace": "bookinfo"}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    return {
        "workspaceName": "abc",
        "name": name,
        "clusters": ["worker-1"],
        "burstDuration": "15m",
        "manifestResources": [{"name": "settings", "manifest": config}],
        "steps": [{"name": "settings", "type": "manifest"}],
        **fields,
    }
