"""Pushes reach engines, whatever the engines do, and nobody waits for them."""

from __future__ import annotations

import socket
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.engine_webhooks import EndpointReport, EngineWebhooks, WebhookTiming
from reconciler.model.events.event import Endpoint, Push
from reconciler.model.ids import CommitId
from reconciler.model.policy import EngineName
from tests.fakes.engine_webhooks import ARGOCD, FLUX, SECRET, Engine, listening

A, B, C, D, E = (CommitId(letter * 40) for letter in "abcde")
PUSH = Push(
    branch="placements",
    old=A,
    new=B,
    commits=1,
    repo_url="https://git.example.com/fleet.git",
    paths=frozenset({"clusters/worker-2/one"}),
)
Make = Callable[..., EngineWebhooks]

QUICK = WebhookTiming(answer=15, tries=3, first_backoff=0.02, longest_backoff=0.05)
ENOUGH = timedelta(seconds=20)


def move(old: CommitId, new: CommitId, path: str) -> Push:
    return replace(PUSH, old=old, new=new, paths=frozenset({f"clusters/worker-2/{path}"}))


def argo_cd(engine: Engine, *, secret: str = SECRET) -> Endpoint:
    return Endpoint(engine=EngineName.ARGOCD, url=engine.url + ARGOCD, secret=secret)


def flux(engine: Engine, *, secret: str = SECRET) -> Endpoint:
    return Endpoint(engine=EngineName.FLUX, url=engine.url + FLUX, secret=secret)


def paths(event: dict[str, list[dict[str, list[str]]]]) -> list[str]:
    return [path.rpartition("/")[2] for commit in event["commits"] for path in commit["modified"]]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no proxy of whoever runs the tests stand between."""
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture
def engine() -> Iterator[Engine]:
    with listening() as engine:
        yield engine


@pytest.fixture
def endpoint_reports() -> list[EndpointReport]:
    """Gather what is reported."""
    return []


@pytest.fixture
def notify(endpoint_reports: list[EndpointReport]) -> Iterator[Make]:
    """Make notifiers, and end them."""
    made: list[EngineWebhooks] = []

    def make(*endpoints: Endpoint, pace: WebhookTiming = QUICK) -> EngineWebhooks:
        made.append(EngineWebhooks(endpoints, report=endpoint_reports.append, pace=pace))
        return made[-1]

    yield make
    for one in made:
        one.close(timedelta())


def test_both_kinds_of_engines_take_the_event_and_its_signature(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    webhooks = notify(argo_cd(engine), flux(engine))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.taken) == 2)
    for event in engine.taken:
        assert (event["ref"], event["before"], event["after"]) == ("refs/heads/placements", A, B)
        assert event["repository"]["html_url"] == "https://git.example.com/fleet"
        assert paths(event) == ["one"]
    assert webhooks.close(ENOUGH) == ()
    assert endpoint_reports == []


def test_pushes_while_an_engine_is_slow_become_one_event(engine: Engine, notify: Make) -> None:
    webhooks = notify(argo_cd(engine))
    engine.held.clear()
    webhooks.publish((), [move(A, B, "one")])
    engine.until(lambda: len(engine.tries) == 1)
    for old, new, path in ((B, C, "two"), (C, D, "three"), (D, E, "four")):
        webhooks.publish((), [move(old, new, path)])
    assert (len(engine.tries), engine.taken) == (1, []), "it waited for the engine"
    engine.held.set()
    assert webhooks.close(ENOUGH) == ()
    assert [(event["before"], event["after"]) for event in engine.taken] == [(A, B), (B, E)]
    assert paths(engine.taken[1]) == ["four", "three", "two"]


def test_a_slow_and_a_dead_engine_hold_up_no_other(engine: Engine, notify: Make) -> None:
    with socket.socket() as dead, listening() as slow:
        dead.bind(("127.0.0.1", 0))  # and does not listen
        slow.held.clear()
        nobody = Engine(url=f"http://127.0.0.1:{dead.getsockname()[1]}")
        webhooks = notify(flux(slow), flux(nobody), argo_cd(engine))
        webhooks.publish((), [move(A, B, "one")])
        engine.until(lambda: len(engine.taken) == 1)
        webhooks.publish((), [move(B, C, "two")])
        engine.until(lambda: len(engine.taken) == 2)
        assert slow.taken == []


def test_an_engine_that_fails_is_tried_again_and_reported_once_each_way(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    engine.answers = [500, 503]
    webhooks = notify(argo_cd(engine))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.taken) == 1)
    assert webhooks.close(ENOUGH) == ()
    assert [(report.why, report.tries) for report in endpoint_reports] == [("it answers 500", 0), ("", 2)]


def test_what_could_not_be_told_goes_along_with_the_next_push(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    engine.answers = [502] * QUICK.tries
    webhooks = notify(argo_cd(engine))
    webhooks.publish((), [move(A, B, "one")])
    engine.until(lambda: len(engine.tries) == QUICK.tries)
    time.sleep(4 * QUICK.longest_backoff)
    assert len(engine.tries) == QUICK.tries
    webhooks.publish((), [move(B, C, "two")])
    engine.until(lambda: len(engine.taken) == 1)
    assert (engine.taken[0]["before"], engine.taken[0]["after"]) == (A, C)
    assert paths(engine.taken[0]) == ["one", "two"]
    assert webhooks.close(ENOUGH) == ()
    assert [report.tries for report in endpoint_reports] == [0, QUICK.tries]


def test_pushes_do_not_hurry_the_tries_of_an_engine_that_fails(engine: Engine, notify: Make) -> None:
    engine.answers = [500] * 100
    webhooks = notify(argo_cd(engine), pace=replace(QUICK, first_backoff=0.4, longest_backoff=0.4))
    webhooks.publish((), [move(A, B, "one")])
    engine.until(lambda: len(engine.tries) == 1)
    for number in range(20):
        webhooks.publish((), [move(B, B, f"more-{number}")])
    engine.until(lambda: len(engine.tries) == 3)
    waits = [later - earlier for earlier, later in zip(engine.tries, engine.tries[1:], strict=False)]
    assert min(waits) >= 0.19


@pytest.mark.parametrize(
    ("endpoint", "path", "says"),
    [
        (argo_cd, ARGOCD, "it answers 400 (is its secret the one that is given here?)"),
        (flux, FLUX, "it answers 400 (is its secret the one that is given here?)"),
        (flux, "/hook/other", "it answers 404 (`kubectl get receiver` shows the path)"),
        (argo_cd, "/webhook", "it answers 404 (the path ends in /api/webhook)"),
    ],
)
def test_a_refusal_is_not_tried_again_until_the_next_push(
    engine: Engine, notify: Make, endpoint: Callable[[Engine], Endpoint], path: str, says: str
) -> None:
    engine.secret = SECRET if "404" in says else "another-" * 3
    webhooks = notify(replace(endpoint(engine), url=engine.url + path))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.tries) == 1)
    time.sleep(4 * QUICK.longest_backoff)
    assert len(engine.tries) == 1
    webhooks.publish((), [move(B, C, "two")])
    engine.until(lambda: len(engine.tries) == 2)
    (problem,) = webhooks.close(ENOUGH)
    assert problem.message == f"was not told of the last push, and sees it when it polls: {says}"
    assert engine.taken == []


def test_a_redirect_to_no_address_is_a_refusal_like_any_other(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    engine.answers = [(307, {"Location": "https://[::1"})]
    (problem,) = _told_once(notify(argo_cd(engine)))
    assert problem.endswith("it redirects (307) (name the address that this leads to)")


def test_a_redirect_is_told_and_not_followed(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    with listening() as other:
        engine.answers = [(307, {"Location": other.url + ARGOCD})]
        webhooks = notify(argo_cd(engine))
        webhooks.publish((), [PUSH])
        engine.until(lambda: len(engine.tries) == 1)
        assert len(webhooks.close(ENOUGH)) == 1
        assert other.tries == []
    assert endpoint_reports[0].why == f"it redirects to {other.url} (name the address that this leads to)"


def test_the_end_brings_what_is_waiting_without_its_back_off(engine: Engine, notify: Make) -> None:
    engine.answers = [500]
    webhooks = notify(argo_cd(engine), pace=replace(QUICK, first_backoff=60, longest_backoff=60))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.tries) == 1)
    assert webhooks.close(ENOUGH) == ()
    assert len(engine.taken) == 1


def test_the_end_does_not_wait_for_an_engine_longer_than_it_was_told(engine: Engine, notify: Make) -> None:
    engine.held.clear()
    webhooks = notify(flux(engine), pace=replace(QUICK, answer=120))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.tries) == 1)
    began = time.monotonic()
    (problem,) = webhooks.close(timedelta(seconds=0.3))
    assert time.monotonic() - began > 0.2
    # The engine breaks the connection off after a minute: who waited for that would say so.
    assert problem.message.endswith("it does not answer in time")


def test_the_end_gives_up_where_no_time_is_left_for_a_try(engine: Engine, notify: Make) -> None:
    engine.answers = [500] * 10
    webhooks = notify(argo_cd(engine), pace=replace(QUICK, first_backoff=60, longest_backoff=60))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.tries) == 1)
    assert len(webhooks.close(ENOUGH)) == 1
    assert len(engine.tries) == 2


def test_without_a_push_nobody_is_told_and_the_end_is_at_once(engine: Engine, notify: Make) -> None:
    assert notify(argo_cd(engine), flux(engine)).close(ENOUGH) == ()
    assert engine.tries == []


def test_a_silent_engine_is_given_up_after_its_time_out(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    engine.held.clear()
    webhooks = notify(argo_cd(engine), pace=replace(QUICK, answer=0.1))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.tries) == 2)
    assert [report.why for report in endpoint_reports] == ["it does not answer in time"]


def test_argo_cd_is_not_asked_about_a_repository_without_an_address_and_flux_is(
    engine: Engine, notify: Make, endpoint_reports: list[EndpointReport]
) -> None:
    webhooks = notify(argo_cd(engine), flux(engine))
    webhooks.publish((), [replace(PUSH, repo_url="")])
    engine.until(lambda: len(engine.taken) == 1)
    (problem,) = webhooks.close(ENOUGH)
    assert "spec.repoURL" in problem.message
    assert [report.endpoint.engine for report in endpoint_reports] == [EngineName.ARGOCD]


def test_a_pass_that_could_not_read_the_fleet_tells_the_address_that_was_known(engine: Engine, notify: Make) -> None:
    webhooks = notify(argo_cd(engine))
    webhooks.publish((), [PUSH])
    engine.until(lambda: len(engine.taken) == 1)
    webhooks.publish((), [replace(move(B, C, "two"), repo_url="")])
    engine.until(lambda: len(engine.taken) == 2)
    assert engine.taken[1]["repository"] == engine.taken[0]["repository"]


def test_https_needs_a_certificate_that_somebody_vouches_for(
    tmp_path: Path, notify: Make, endpoint_reports: list[EndpointReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", str(key), "-out", str(certificate), "-days", "1", "-subj", "/CN=argocd",
            "-addext", "subjectAltName=IP:127.0.0.1",
        ],
        check=True, capture_output=True,
    )  # fmt: skip # a command line, word by word
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with listening(tls) as engine:
        (problem,) = _told_once(notify(argo_cd(engine)))
        assert "its certificate is not trusted" in problem
        assert "SSL_CERT_FILE" in endpoint_reports[0].why
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert _told_once(notify(argo_cd(engine))) == []
        assert len(engine.taken) == 1


def _told_once(webhooks: EngineWebhooks) -> list[str]:
    webhooks.publish((), [PUSH])
    return [problem.message for problem in webhooks.close(ENOUGH)]
