"""Spans of a daemon, as a collector gets them: passes with their phases and calls, and calls of the API."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from reconciler.adapters.traces import NoTraces, open_traces
from reconciler.model.outward_call import OutwardCall, Peer
from tests.daemon.test_daemon_process import Fleet, git, until
from tests.fakes.otlp_collector import attributes, collecting

TRACE = "0af7651916cd43dd8448eb211c80319c"
FAILED = 2


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    return Fleet(tmp_path)


def test_spans_and_lines_of_the_log_follow_a_burst_from_its_pass_to_its_push(fleet: Fleet) -> None:
    with (
        collecting() as collector,
        fleet.daemon("--listen", "127.0.0.1:0", OVERSPILL_TRACES=collector.url, OVERSPILL_LOG_FORMAT="json") as process,
    ):
        until(fleet.bursts)
        listening = json.loads(process.stdout.readline())["line"]
        (address,) = re.findall(r"listening at ([\d.:]+)", listening)
        request = urllib.request.Request(
            f"http://{address}/api/v1/status",
            headers={"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"},
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        with refused.value as answer:
            assert (answer.code, answer.headers["X-Request-Id"]) == (403, TRACE)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        lines = [json.loads(line) for line in process.stdout.read().splitlines()]
    assert collector.services == {"overspill"}
    (push, *_) = collector.named("pass push")
    (whole,) = [span for span in collector.named("pass") if span.span_id == push.parent_span_id]
    together = {span.name for span in collector.spans if span.trace_id == whole.trace_id}
    assert together >= {"pass", "pass fetch", "git fetch", "pass read", "pass decide", "pass write", "git push"}
    (pushed,) = [span for span in collector.named("git push") if span.parent_span_id == push.span_id]
    assert attributes(pushed)["overspill.git.result"] == "ok"
    committed = next(line for line in lines if line["event"] == "committed")
    assert committed["pass"] == whole.trace_id.hex()
    (call,) = collector.named("GET /api/v1/status")
    assert call.trace_id.hex() == attributes(call)["overspill.request_id"] == TRACE
    assert attributes(call)["http.response.status_code"] == 403


def test_calls_that_fail_are_marked() -> None:
    with collecting() as collector:
        traces = open_traces(f"{collector.url}/")
        for target, code in (("worker-1", "200"), ("worker-2", "503"), ("worker-3", "")):
            with traces.call(OutwardCall(peer=Peer.KUBERNETES, verb="list", target=target)) as note:
                if code:
                    note(code)
        with pytest.raises(ZeroDivisionError), traces.whole_pass(), traces.phase("read"):
            raise ZeroDivisionError
        traces.close()
    failed = {attributes(span)["k8s.cluster.name"]: span.status.code for span in collector.named("kubernetes list")}
    assert failed == {"worker-1": 0, "worker-2": FAILED, "worker-3": FAILED}
    assert [span.status.code for name in ("pass", "pass read") for span in collector.named(name)] == [FAILED, FAILED]


def test_without_a_collector_there_are_ids_and_no_spans() -> None:
    traces = open_traces("")
    assert isinstance(traces, NoTraces)
    with traces.whole_pass(), traces.phase("read"), traces.answer("GET", {}, "a") as note:
        note("/metrics", 200)


def test_a_collector_that_is_away_costs_spans_alone(fleet: Fleet) -> None:
    with fleet.daemon(OVERSPILL_TRACES="http://127.0.0.1:1") as process:
        until(fleet.bursts)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert "Traceback (most" not in process.stdout.read()
    assert "burst(" in git("log", "--format=%s", "placements", at=fleet.remote)


def test_a_daemon_without_opentelemetry_says_what_to_install(fleet: Fleet) -> None:
    """The program is one that finds none of its packages, as where the extra is not installed."""
    program = "import sys; sys.modules['opentelemetry'] = None; from reconciler.cli import main; main()"
    with fleet.daemon(command=[sys.executable, "-c", program], OVERSPILL_TRACES="http://127.0.0.1:1") as process:
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "OVERSPILL_TRACES: OpenTelemetry is not installed here (try pip install 'overspill[otel]')" in told
