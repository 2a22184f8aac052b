"""Targets for what others answer: git hosts, issuers, Slurm, Prometheus, API servers, and the words of git and ssh."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, cast

import jwt

from reconciler.access.oidc import Issuer, caller_of_claims
from reconciler.access.rights import IssuerRule
from reconciler.adapters.access.oidc import OpenIdProvider
from reconciler.adapters.git.remote import Credentials, check_address
from reconciler.adapters.git.remote_errors import failure, reason, rejection
from reconciler.adapters.kube.answers import EVENT, PAGE, event_lines, parsed
from reconciler.adapters.kube.input_budget import InputBudget
from reconciler.adapters.kube.stream import Stream
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.pull_requests import HostPullRequests
from reconciler.bulkhead import Seam, attempt
from reconciler.core.observe.gpu_use import GpuQuestion, read_answer
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource, Watched
from reconciler.core.readiness.branch_rules import BranchRules, HostAnswer, HostSoftware, rule_paths, rules_result
from reconciler.core.readiness.proposal_rights import ProposalRights, proposal_paths, proposal_result
from reconciler.core.signals import prometheus, slurm
from reconciler.errors import Transient
from reconciler.http_client import json_in
from reconciler.model.bounds import CLUSTER_REASON
from reconciler.model.workload import Json
from reconciler.text.json_input import UnreadableJson
from tests.builders import kube_objects
from tests.fakes.git_host import PROJECT, TOKEN, GitHost, hosting
from tests.fakes.oidc_issuer import AUDIENCE, issuing, published, rsa_key
from tests.fakes.slurm import job, number
from tests.fuzz.mutations import ODD, Corpus, changed_bytes, changed_document, encoded
from tests.fuzz.target import Target

_DEEP = tuple(begin * 2000 + end * 2000 for begin, end in ((b"[", b"]"), (b'{"a":', b"}")))
_LONG = 10_000
"""Characters that no sentence about an answer has."""


def _changed_json(random: Random, document: Json) -> bytes:
    """Return JSON near a document, or bytes near it."""
    corpus = Corpus([encoded(document), *_DEEP])
    if random.random() < 0.2:
        return changed_bytes(random, corpus, corpus.files[0])
    return encoded(changed_document(random, Corpus([encoded({"document": document})]), document))


# Git hosts

_BRANCH = "overspill/proposals/llm/vllm-0123456789ab"
_PULL: Json = {
    "number": 7,
    "html_url": f"https://git.example.com/{PROJECT}/pulls/7",
    "state": "closed",
    "merged_at": None,
    "head": {"ref": _BRANCH, "label": _BRANCH, "repo": {"full_name": PROJECT}},
    "closed_by": {"login": "ada"},
}
_MERGE_REQUEST: Json = {
    "iid": 7,
    "web_url": f"https://git.example.com/{PROJECT}/-/merge_requests/7",
    "state": "closed",
    "closed_by": {"username": "ada"},
    "source_project_id": 1,
    "target_project_id": 1,
}
_HOST_CALLS = (
    "GET pulls", "POST pulls", "GET pulls/7", "PATCH pulls/7", "GET issues/7", "POST comments",
    "GET merge_requests", "POST merge_requests", "GET merge_requests/7", "PUT merge_requests/7", "POST notes",
)  # fmt: skip # a table of calls
_HOST_STATUSES = (200, 200, 200, 200, 200, 201, 204, 301, 401, 404, 409, 422, 429, 500)

HostCall = tuple[HostSoftware, str, int, bytes]


def _make_host_call(random: Random) -> HostCall:
    software = random.choice(list(HostSoftware))
    item = _MERGE_REQUEST if software is HostSoftware.GITLAB else _PULL
    call = random.choice(("find", "known", "open", "comment", "close"))
    listed = [item, item] if call in ("find", "open") and random.random() < 0.8 else item
    return software, call, random.choice(_HOST_STATUSES), _changed_json(random, listed)


def _call_host(host: GitHost, requests: HostPullRequests, made: HostCall) -> None:
    _, call, status, body = made
    host.answers = dict.fromkeys(_HOST_CALLS, (status, body))
    known = f"https://git.example.com/{PROJECT}/pulls/7"
    match call:
        case "find":
            requests.find(_BRANCH)
        case "known":
            requests.find(_BRANCH, known=known)
        case "open":
            requests.open(_BRANCH, "placements", title="A burst", body="Why.")
        case _:
            found = requests.find(_BRANCH, known=known)
            if found is not None and call == "comment":
                requests.comment(found, "A sentence.")
            elif found is not None:
                requests.close(found, comment="A sentence.")


_RULES: Json = [{"type": "pull_request", "parameters": {}}, {"type": "required_signatures"}]
_BRANCH_FACTS: Json = {"name": "placements", "protected": True, "user_can_push": False, "permissions": {"push": True}}


def _make_rules(random: Random) -> tuple[HostSoftware, list[tuple[int, bytes]]]:
    answers = [
        (random.choice(_HOST_STATUSES), _changed_json(random, random.choice((_RULES, _BRANCH_FACTS, _PULL))))
        for _ in range(4)
    ]
    return random.choice(list(HostSoftware)), answers


def _judge_rules(made: tuple[HostSoftware, list[tuple[int, bytes]]]) -> None:
    software, given = made
    answers = itertools.cycle(HostAnswer(status=status, body=json_in(body)) for status, body in given)
    paths = rule_paths(software, PROJECT, "placements")
    rules = BranchRules(
        software=software, project=PROJECT, page="", signed=True, answers=dict(zip(paths, answers, strict=False))
    )
    rules_result("placements", rules)
    paths = proposal_paths(software, PROJECT)
    rights = ProposalRights(software=software, answers=dict(zip(paths, answers, strict=False)))
    proposal_result(("llm",), PROJECT, rights)


# Issuers

_NOW = datetime(2026, 11, 28, tzinfo=UTC)
_CLAIMS: Mapping[str, Json] = {
    "iss": "https://issuer.example.com",
    "aud": [AUDIENCE],
    "sub": "u-1",
    "email": "ada@example.com",
    "email_verified": True,
    "groups": ["llm"],
    "exp": int(_NOW.timestamp()) + 300,
    "nbf": int(_NOW.timestamp()),
}
_KEYS: Json = [published("one", rsa_key("one"), alg="RS256"), published("two", rsa_key("two"))]
_ABOUT: Json = {"issuer": "", "jwks_uri": "", "authorization_endpoint": "https://issuer.example.com/a"}
_TOKEN = jwt.encode(dict(_CLAIMS), rsa_key("one"), algorithm="RS256", headers={"kid": "one"})

IssuerAnswer = tuple[str, Any, str]


def _make_issuer_answer(random: Random) -> IssuerAnswer:
    token = _TOKEN
    if random.random() < 0.3:
        token = changed_bytes(random, Corpus([_TOKEN.encode()]), _TOKEN.encode()).decode("latin-1")
    match random.randrange(4):
        case 0:
            return "about", changed_document(random, Corpus([encoded(_ABOUT)]), _ABOUT), token
        case 1:
            return "body", _changed_json(random, _ABOUT), token
        case _:
            return "keys", changed_document(random, Corpus([encoded({"keys": _KEYS})]), _KEYS), token


def _make_claims(random: Random) -> Json:
    return json.loads(encoded(changed_document(random, Corpus([encoded(_CLAIMS)]), _CLAIMS)))


def _read_claims(claims: Json) -> None:
    issuer = Issuer(url="https://issuer.example.com", audience=AUDIENCE, name_claim="")
    rules = tuple(IssuerRule(claim=claim, value="llm", roles={}) for claim in ("group", "subject", "email"))
    caller_of_claims(claims, issuer, rules, _NOW)


# Signals

_JOBS: Json = {
    "jobs": [job(1), job(2, 4, array_job_id=number(9), array_task_string="0-7%2"), job(3, tres_per_job="gres/gpu:8")],
    "errors": [],
}
_SERIES: Json = {
    "status": "success",
    "data": {
        "resultType": "vector",
        "result": [
            {
                "metric": {"cluster": "worker-2", "namespace": "llm", "pod": "a", "gpu": "0", "overspill_value": kind},
                "value": [1, "2"],
            }
            for kind in ("most", "now", "covered")
        ],
    },
}
_PENDING = slurm.PendingGpus(name="gpu", partition="gpu-h100", gpus_per_replica=8)


def _read_jobs(body: bytes) -> None:
    document = json_in(body)
    slurm.answer_error(document)
    jobs = slurm.pending_jobs(document)
    _PENDING.replicas_for(jobs)
    _PENDING.lasting(jobs, None, _NOW)
    _PENDING.cause(jobs)


def _read_series(body: bytes) -> None:
    document = json_in(body)
    prometheus.answer_error(document)
    read_answer(document, GpuQuestion(idle=timedelta(hours=1), text="q", label="cluster"))


def _read_value(body: bytes) -> None:
    prometheus.answer_value(json_in(body))


# API servers

_LISTED: tuple[tuple[Resource, Json], ...] = (
    (Resource.NODES, kube_objects.node("gpu-1", labels={"a": "b"})),
    (Resource.PODS, kube_objects.pod("vllm-1-a", "gpu-1", labels={"app": "vllm"})),
    (Resource.CLASSES, kube_objects.device_class()),
)

ServerAnswers = tuple[int, list[bytes], list[bytes]]


def _make_server_answers(random: Random) -> ServerAnswers:
    which = random.randrange(len(_LISTED))
    raw = _LISTED[which][1]
    page = {"metadata": {"resourceVersion": "1", "continue": "next"}, "items": [raw, raw]}
    last = {"metadata": {"resourceVersion": "2"}, "items": [raw]}
    events = [{"type": random.choice(("ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR")), "object": raw}] * 3
    pages = [_changed_json(random, each) if random.random() < 0.6 else encoded(each) for each in (page, last)]
    lines = [_changed_json(random, each) if random.random() < 0.6 else encoded(each) for each in events]
    stream = b"\n".join(lines) + b"\n"
    cut = random.randrange(len(stream))
    return which, pages, [stream[:cut], stream[cut:]]


class _Server:
    """An API server that answers with given bytes, read and parsed as those of any other; then it is gone."""

    def __init__(self, pages: list[bytes], chunks: list[bytes]) -> None:
        self._pages, self._chunks = pages, chunks
        self._budget = InputBudget()
        self.work = self._budget.work_credit()

    async def get(self, _path: str, _query: Mapping[str, object], *, within: float) -> Json:
        del within
        if not self._pages:
            raise Transient("cannot be reached")
        with _transient():
            return parsed(self._pages.pop(0), PAGE)

    async def watch(self, _path: str, _query: Mapping[str, object]) -> AsyncGenerator[Json]:
        yield None
        with self._budget.answer() as answer, _transient():
            while self._chunks:
                for line in event_lines(self._budget, answer, self._chunks.pop(0)):
                    yield parsed(line, EVENT)
        raise Transient("cannot be reached")


@contextmanager
def _transient() -> Iterator[None]:
    """Translate what is no JSON, as the client of API servers does."""
    try:
        yield
    except UnreadableJson as error:
        raise Transient(f"sent what {error}") from error


class _State:
    """Takes pages and events into the state of a cluster, each object behind the bulkhead of watched objects."""

    def __init__(self) -> None:
        self.state = ClusterState()

    def page(self, resource: Watched, items: list[Json], seen: set[str]) -> None:
        for raw in items:
            seen.add(raw["metadata"]["name"])
            self._apply(resource, raw)

    def _apply(self, resource: Watched, raw: Json) -> None:
        attempt(Seam.WATCHED_OBJECT, "an object", lambda: self.state.apply(resource, raw))

    def listed(self, resource: Watched, seen: set[str]) -> None: ...

    def refused(self, resource: Watched) -> None: ...

    def event(self, resource: Watched, type_: str, raw: Json) -> None:
        del type_
        self._apply(resource, raw)

    def heard(self) -> None: ...


def _follow(made: ServerAnswers) -> None:
    which, pages, chunks = made
    stream = Stream(
        cast("Any", _Server([*pages], [*chunks])), _LISTED[which][0], _State(), WatchTiming(first_backoff=0.001)
    )

    async def follow() -> None:
        ended = asyncio.Event()
        running = asyncio.create_task(stream.run(ended.set))
        await ended.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    asyncio.run(follow())
    if "cannot be read" in stream.trouble or len(stream.trouble) > 2 * CLUSTER_REASON.most:
        raise AssertionError(stream.trouble[:_LONG])


# Words of git and ssh

_SAID = Corpus(
    [
        b"remote: GitLab: You are not allowed to push code to protected branches on this project.\n",
        b"remote: error: GH006: Protected branch update failed for refs/heads/placements.\nremote: error: Required\n",
        b"fatal: unable to access 'https://git.example.com/acme/fleet/': The requested URL returned error: 403\n",
        b"@@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@@@@@\nHost key verification failed.\n",
        b"git@git.example.com: Permission denied (publickey).\nfatal: Could not read from remote repository.\n",
        b"remote: ====\nremote: \nremote: ERROR: Your IP is not on the allow list\nremote: \nfatal: Could not read\n",
        b"error: RPC failed; curl 92 HTTP/2 stream 5 was not closed cleanly\nfatal: early EOF\n",
        b"remote: You have exceeded a secondary rate limit. Please wait 60 seconds\n",
        b"Load key \"/k\": error in libcrypto\nPermissions 0644 for '/k' are too open.\n",
    ]
)
_REMOTES = tuple(
    check_address(url, None)
    for url in ("https://git.example.com/acme/fleet.git", "git@git.example.com:quota/maintenance.git")
)


def _make_words(random: Random) -> tuple[int, str, str]:
    said = changed_bytes(random, _SAID, random.choice(_SAID.files)) * random.choice((1, 1, 1, 1, 400))
    summary = random.choice(("[rejected] (fetch first)", "[remote rejected] (hook declined)", str(random.choice(ODD))))
    return random.randrange(len(_REMOTES)), said.decode(errors="replace"), summary


def _read_words(made: tuple[int, str, str]) -> None:
    which, said, summary = made
    errors = (
        failure("pushing", said, _REMOTES[which]),
        rejection("pushing", summary, said, _REMOTES[which], branch="placements"),
    )
    for text in (reason(said), *map(str, errors)):
        if len(text) > _LONG or not text.isprintable():
            raise AssertionError(f"{len(text)}: {text[:300]!r}")


ANSWER_TARGETS: tuple[Target, ...] = (
    Target(name="rules", make=_make_rules, run=_judge_rules),
    Target(name="claims", make=_make_claims, run=_read_claims),
    Target(name="slurm", make=lambda random: _changed_json(random, _JOBS), run=_read_jobs),
    Target(name="series", make=lambda random: _changed_json(random, _SERIES), run=_read_series),
    Target(name="value", make=lambda random: _changed_json(random, _SERIES), run=_read_value),
    Target(name="server", make=_make_server_answers, run=_follow, contained=True),
    Target(name="words", make=_make_words, run=_read_words),
)
"""Those that need no server."""


@contextmanager
def answering() -> Iterator[tuple[Target, ...]]:
    """Serve git hosts and an issuer on loopback, and return the targets that ask them."""
    with ExitStack() as stack:
        hosts = {software: stack.enter_context(hosting(software, cast("Any", None))) for software in HostSoftware}
        requests: dict[HostSoftware, HostPullRequests] = {}
        for software, host in hosts.items():
            login = Credentials(username="overspill", password=TOKEN)
            requests[software] = HostPullRequests(host.repository, login, timeout=5)
            stack.callback(requests[software].shut)
        issuer = stack.enter_context(issuing())
        keys: list[Any] = issuer.keys
        hours = itertools.count(0, 7200).__next__  # so that the keys are asked for at each token
        provider = OpenIdProvider(issuer.url, ticks=hours)

        def ask_host(made: HostCall) -> None:
            _call_host(hosts[made[0]], requests[made[0]], made)

        def ask_issuer(made: IssuerAnswer) -> None:
            part, value, token = made
            issuer.body, issuer.about, issuer.keys = None, {}, keys
            if part == "about":
                own = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
                given = value.items() if isinstance(value, dict) else ()
                issuer.about = {name: value or own.get(name) for name, value in given}
            else:
                setattr(issuer, part, value)
            provider.claims(token)

        yield (
            Target(name="host", make=_make_host_call, run=ask_host),
            Target(name="issuer", make=_make_issuer_answer, run=ask_issuer),
        )
