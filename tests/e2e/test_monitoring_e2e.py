"""A real Prometheus scrapes a daemon through a burst and back, and promtool and it judge the rules to copy."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import LAYOUT, PATIENCE, Fleet
from tests.e2e.prometheus_server import Prometheus, missing, prometheus, promtool

MONITORING = LAYOUT / "monitoring"
TOKEN = "ovs_" + "Ab3-" * 10 + "xyz"  # put together here, so that no scanner takes this file for a leak
VLLM = 'workspace="llm",workload="vllm"'

pytestmark = pytest.mark.skipif(bool(missing("prometheus", "promtool")), reason=missing("prometheus", "promtool"))


def test_promtool_takes_the_rules_and_their_tests() -> None:
    assert "SUCCESS" in promtool("check", "rules", str(MONITORING / "alerts.yaml"))
    assert "SUCCESS" in promtool("test", "rules", str(MONITORING / "alerts.test.yaml"))


def test_promtool_parses_every_query_of_the_dashboard(tmp_path: Path) -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert len(queries) > 20
    rules = [
        {"record": f"panel:{number}", "expr": query.replace("$__rate_interval", "5m")}
        for number, query in enumerate(queries)
    ]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", str(file))


@contextmanager
def scraped(fleet: Fleet) -> Iterator[tuple[Prometheus, subprocess.Popen[str]]]:
    """Run a daemon that listens, and a Prometheus beside it, whose rules wait for a second where they wait at all."""
    access = fleet.path / "access.yaml"
    digest = sha256(TOKEN.encode()).hexdigest()
    access.write_text(f"tokens:\n- {{name: prometheus, sha256: {digest}, roles: {{'*': Viewer}}}}\n")
    token = fleet.path / "prometheus.token"
    token.write_text(TOKEN)
    rules = fleet.path / "alerts.yaml"
    rules.write_text(re.sub(r"for: \d+m$", "for: 1s", (MONITORING / "alerts.yaml").read_text(), flags=re.MULTILINE))
    with fleet.daemon(
        "--observations", str(fleet.seen), "--listen", "127.0.0.1:0", settings={"API_TOKENS_FILE": str(access)}
    ) as daemon:
        fleet.until(lambda: "listening at" in fleet.last_words(), "it does not listen")
        found = re.search(r"listening at (127\.0\.0\.1:\d+)", fleet.last_words())
        assert found is not None
        job = {
            "job_name": "overspill",
            "authorization": {"credentials_file": str(token)},
            "static_configs": [{"targets": [found[1]]}],
        }
        with prometheus(fleet.path, rules=rules, jobs=[job]) as server:
            yield server, daemon


def test_figures_of_a_burst_and_back_are_what_happened(fleet: Fleet) -> None:
    fleet.describe(
        {
            "fleet.yaml": {"engine: argocd": "engine: manifests"},
            "policies/serving.yaml": {"headroom: 1": "headroom: 0", "window: 10s": "window: 1s", "15m": "3s"},
        }
    )
    fleet.observe(missing=0)
    with scraped(fleet) as (server, _):
        fleet.until(lambda: server.value(f"overspill_workload_wanted_replicas{{{VLLM}}}") == 16, "not scraped")
        assert server.scraped() == [""]
        assert {*server.rules().values()} == {"ok"}
        assert server.query("overspill_burst_replicas") == {}
        assert server.value("sum(overspill_cluster_observed)") == 3
        fleet.until(lambda: server.firing() == set(), "an alert without a reason")

        fleet.observe(missing=3)
        fleet.until(lambda: any("3 replicas on" in subject for subject in fleet.subjects()), "no burst")
        fleet.until(lambda: server.value("sum(overspill_burst_replicas)") == 3, "the burst is not scraped")
        cluster = is_placed(fleet, server)
        fleet.until(lambda: len(server.firing()) >= 2, "no alert")
        assert server.firing() == {"OverspillUnserved", "OverspillNoNode"}

        (name,) = (path.name for path in (fleet.check_out() / "clusters" / cluster).iterdir())
        serve(fleet, cluster, name, 3)
        wait(lambda: server.value("overspill_ready_delay_seconds_count") == 1, fleet)
        is_ready(fleet, server)
        wait(lambda: server.firing() == set(), fleet)

        fleet.give_back()
        fleet.until(lambda: not server.query("overspill_burst_replicas"), "the revert is not scraped")
        assert server.value(f"overspill_workload_placed_replicas{{{VLLM}}}") == 0
        assert server.value("overspill_commits_total") == len(fleet.log("--format=%H"))
        assert server.value('overspill_events_total{kind="ended"}') == 1
        assert server.value("sum(overspill_bugs_total)") == 0
        assert datetime.now(UTC).timestamp() - (server.value("overspill_pass_timestamp_seconds") or 0) < 60


def is_placed(fleet: Fleet, server: Prometheus) -> str:
    """Hold the figures against the commit of a burst, and return its cluster."""
    (burst,) = server.query("overspill_burst_replicas")
    cluster = dict(burst)["cluster"]
    (subject,) = fleet.subjects()
    assert f"on {cluster}" in subject
    for name in ("workload_missing_gpus", "workload_unserved_gpus", "burst_gpus", "workload_placed_replicas"):
        assert server.value(f"overspill_{name}{{{VLLM}}}") == 3, name
    assert server.value('overspill_placements{phase="Pending"}') == 1
    commits = len(fleet.log("--format=%H"))
    assert server.value("overspill_commits_total") == commits
    assert server.value('overspill_git_calls_total{command="push",result="ok"}') == commits  # a pass each
    assert server.value('overspill_events_total{kind="placed"}') == 1
    assert server.value("overspill_commit_delay_seconds_count") == 1
    # They were missing for a minute when they were first observed.
    assert 60 <= (server.value("overspill_commit_delay_seconds_sum") or 0) < 60 + PATIENCE
    exemplars = server.exemplars("overspill_commit_delay_seconds_bucket")
    assert [each["commit"] for each in exemplars] == [fleet.tip()[:12]]
    expiry = " ".join(fleet.log("--format=%(trailers:key=Overspill-Expires,valueonly)")).split()[-1]
    assert server.value("overspill_burst_expiry_timestamp_seconds") == datetime.fromisoformat(expiry).timestamp()
    return cluster


def is_ready(fleet: Fleet, server: Prometheus) -> None:
    """Hold the figures against a burst whose pods are ready."""
    assert server.value("overspill_apply_delay_seconds_count") == 1
    delays = [server.value(f"overspill_{name}_delay_seconds_sum") or 0 for name in ("commit", "apply", "ready")]
    assert delays == sorted(delays)
    exemplars = server.exemplars("overspill_ready_delay_seconds_bucket")
    assert [each["commit"] for each in exemplars] == [fleet.tip()[:12]]
    assert server.value(f"overspill_workload_unserved_gpus{{{VLLM}}}") == 0
    assert server.value('overspill_placements{phase="Running"}') == 1


def serve(fleet: Fleet, cluster: str, placement: str, pods: int) -> None:
    """Observe so many pods of a placement with nodes, all of them ready."""
    file = fleet.seen / f"{cluster}.yaml"
    unfinished = fleet.seen / f".{cluster}.yaml"
    unfinished.write_text(f"{file.read_text()}\nplacements:\n- {{name: {placement}, bound: {pods}, ready: {pods}}}\n")
    unfinished.rename(file)


def wait(condition: Callable[[], object], fleet: Fleet) -> None:
    """Wait without observing anew."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, fleet.last_words()
        time.sleep(0.1)


def test_a_daemon_that_is_gone_is_told_of(fleet: Fleet) -> None:
    fleet.describe({"fleet.yaml": {"engine: argocd": "engine: manifests"}})
    fleet.observe(missing=0)
    with scraped(fleet) as (server, daemon):
        fleet.until(lambda: server.value("overspill_pass_timestamp_seconds"), "not scraped")
        fleet.until(lambda: server.firing() == set(), "an alert without a reason")
        daemon.kill()
        daemon.wait()
        fleet.until(lambda: "OverspillGone" in server.firing(), "no alert")
