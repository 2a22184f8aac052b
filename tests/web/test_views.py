"""What each view shows, of what is there and of what is not, and to whom."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from reconciler.access.rights import AccessRole, Caller
from reconciler.core.commits.trailers import Trailer
from reconciler.daemon.answers.history import HistorySelection
from reconciler.daemon.snapshot import Snapshot
from reconciler.model.capacity import Observed
from reconciler.model.ids import TemplateName, WorkloadId
from reconciler.web.lab import LabReports
from reconciler.web.money import first_month
from reconciler.web.now import NowIndex, now_view
from reconciler.web.pages import Assets, Pages
from reconciler.web.paging import page_of
from reconciler.web.timeline import SPANS
from reconciler.web.viewer import Viewer
from reconciler.web.why import FACTS, NO_FACTS
from tests.builders.browser import Browser
from tests.builders.daemon import EDITOR, LLM, OWNER, VIEWER, Daemon, Sight, daemon
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import MORNING, Remote
from tests.pictures.page_fleet import PictureClock
from tests.web.conftest import signed_in


@pytest.fixture(scope="module")
def visitor(shared: Daemon) -> Browser:
    return signed_in(shared, OWNER)


def test_now_tells_what_is_wanted_where_the_rest_runs_and_until_when(visitor: Browser) -> None:
    text = visitor.get("/").text
    assert "llm/vllm bursts worker-1 · policy gpu 7 4 3 3 0 /3 worker-2 Pending until" in text
    assert "Everything has its room: 3 elsewhere, 4 at home." in text


def test_now_tells_what_replicas_wait_for_and_what_would_change_that(running: Daemon, browser: Browser) -> None:
    running.sight.free = {"worker-1": 8, "worker-2": 0, "worker-3": 0}
    running.sight.missing = 2
    running.wake("observation")
    running.until(lambda: "2 replicas wait for room" in browser.get("/").text)
    text = browser.get("/").text
    assert "NothingFits" in text
    assert "worker-2 : " in text


def test_workloads_are_found_by_name_and_workspace(visitor: Browser) -> None:
    assert "llm/vllm" in visitor.get("/?find=vll").page.form("/").action + visitor.get("/?find=vll").text
    nothing = visitor.get("/?find=nothing").text
    assert "No workload is called so" in nothing
    assert "llm/vllm" not in nothing


def test_fleet_without_workloads_says_how_to_get_one(tmp_path: Path) -> None:
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as one:
        one.edit({"template.yaml": None, "policies.yaml": None})
        text = signed_in(one, OWNER).get("/").text
    assert "No workload may burst yet." in text
    assert "overspill init" in text


def test_cluster_shows_its_gpus_by_use_its_nodes_and_how_fresh_they_are(visitor: Browser) -> None:
    text = visitor.get("/clusters").text
    assert "40 GPUs, 3 starting, 37 free" in text
    assert "All 3 are seen." in text
    assert "node-0" in text
    assert "worker-3" not in visitor.get("/clusters?find=worker-2").text


def test_partition_of_slurm_is_no_cluster_that_is_not_seen(tmp_path: Path) -> None:
    partition = (
        "---\napiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: hpc}\n"
        "spec: {slurm: {partition: gpu-h100}}\n"
    )
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as one:
        workspaces = SOURCE_FILES["workspaces.yaml"].replace("worker-3]", "worker-3, hpc]")
        assert workspaces != SOURCE_FILES["workspaces.yaml"]
        one.edit({"clusters.yaml": SOURCE_FILES["clusters.yaml"] + partition, "workspaces.yaml": workspaces})
        browser = signed_in(one, OWNER)
        one.until(lambda: "hpc" in browser.get("/clusters").text)
        text, now = browser.get("/clusters").text, browser.get("/").text
        scrape = urllib.request.Request(
            f"http://127.0.0.1:{one.port}/metrics", headers={"Authorization": f"Bearer {OWNER}"}
        )
        with urllib.request.urlopen(scrape, timeout=60) as answer:
            metrics = answer.read().decode()
    assert "All 3 are seen." in text
    assert "worker-3 lends to llm" in text
    assert "hpc Slurm partition gpu-h100 of Slurm: Argo CD and Flux apply no manifests there" in text
    assert "not seen" not in now
    assert 'overspill_cluster_observed{cluster="worker-3"} 1' in metrics
    assert 'cluster="hpc"' not in metrics


def test_time_shows_a_placement_from_its_commit_on_with_its_reason(visitor: Browser) -> None:
    text = visitor.get("/time").text
    assert "llm/vllm missed 3 at most" in text
    assert "3 pods unschedulable on worker-1" in text
    assert "stands until" in text


def test_time_goes_back_to_any_commit(running: Daemon, browser: Browser) -> None:
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: len(running.latest.read().decision.inputs.ledger.placements))
    first = running.latest.read().decision.inputs.ledger.commit
    name = next(iter(running.latest.read().decision.inputs.ledger.placements.values())).name
    browser.submit(browser.get(f"/do/revert?placement={name}").page.form("/do/revert"))
    now = browser.get("/time").text
    assert "requested" in now
    then = browser.get(f"/time?at={first}").text
    assert "requested" not in then
    assert "stands until" in then
    assert "Commit after" in then
    assert "is in sight; this is the present" in browser.get("/time?at=0123456789").text


@pytest.mark.parametrize("span", SPANS)
def test_time_has_any_length(visitor: Browser, span: str) -> None:
    assert "llm/vllm" in visitor.get(f"/time?span={span}").text


def test_why_shows_every_candidate_with_its_verdict(visitor: Browser) -> None:
    text = visitor.get("/why?workload=llm/vllm").text
    assert "1 worker-2 37 3 37 GPUs" in text
    assert "2 worker-3 40 0 40 GPUs" in text


def test_why_shows_a_commit_with_its_reasons(shared: Daemon, visitor: Browser) -> None:
    commit = shared.latest.read().decision.inputs.ledger.commit
    text = visitor.get(f"/why?commit={commit}").text
    assert "burst(llm/vllm): 3 replicas on worker-2 for 10m" in text
    assert "worker-2 chosen" in text
    assert "Candidates" in text


@pytest.mark.parametrize(
    "query", ["workload=llm/nothing", "workload=nothing", "commit=0123456789abcdef", "commit=../../etc", "workload=/"]
)
def test_why_of_what_is_not_there_says_so(visitor: Browser, query: str) -> None:
    assert visitor.get(f"/why?{query}").status == 404


def test_money_without_budgets_and_prices_says_how_to_set_them(visitor: Browser) -> None:
    text = visitor.get("/money").text
    assert "No budget is set" in text


def test_money_is_told_by_workspace_workload_cluster_and_month_against_its_budget(tmp_path: Path) -> None:
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as one:
        cluster = (
            "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {}}}\nspec: {{pricePerGPUHour: 3}}\n"
        )
        files = {"clusters.yaml": "---\n".join(cluster.format(f"worker-{number}") for number in (1, 2, 3))}
        workspace = (
            "apiVersion: overspill.dev/v1alpha1\nkind: Workspace\nmetadata: {name: llm}\nspec:"
            " {primaryCluster: worker-1, clusters: [worker-1, worker-2, worker-3], namespaces: [demo],"
            " budget: {perDay: 100}}\n"
        )
        one.edit({**files, "workspaces.yaml": workspace})
        one.sight.missing = 3
        one.wake("observation")
        one.until(lambda: len(one.latest.read().decision.inputs.ledger.placements))
        text = signed_in(one, OWNER).get("/money").text
    assert "Now, an hour 9.00 $" in text
    assert "workspace llm" in text
    assert "100.00 $" in text


def test_caller_has_one_page_at_a_time_that_is_read_from_git(running: Daemon, browser: Browser) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def select(_: Snapshot) -> HistorySelection:
        begun.set()
        assert go_on.wait(60)
        return HistorySelection(limit=1)

    other = signed_in(running, EDITOR)
    views = ("/time", "/why", "/why?commit=0123456", "/money")
    with ThreadPoolExecutor(max_workers=6) as pool:
        first = pool.submit(running.answers.history, select)
        assert begun.wait(60)
        beside = pool.submit(other.get, "/money")
        refused = None
        while refused is None and first.running():  # on a busy machine one may give up before the next one comes
            calls = [pool.submit(browser.get, path) for path in views]
            answers = (call.result() for call in as_completed(calls, 60))
            refused = next((answer for answer in answers if answer.status == 429), None)
        go_on.set()
    assert first.exception() is None
    assert beside.result().status != 429
    assert refused is not None
    assert "Another question of yours is being answered. Try again in 2 s. Try again" in refused.text
    assert refused.headers["retry-after"] == "2"
    assert refused.headers["content-type"].startswith("text/html")
    assert {urlsplit(link).path for link in refused.page.links()} <= {"/", "/time", "/why", "/money"}
    assert len(refused.page.links()) == 2


def test_months_are_added_up_from_the_first_of_the_third() -> None:
    assert first_month(MORNING).isoformat() == "2026-09-01T00:00:00+00:00"
    assert first_month(MORNING.replace(month=1)).isoformat() == "2025-11-01T00:00:00+00:00"


def test_lab_lists_reports_and_shows_each_where_it_may_do_nothing(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "owners.html").write_text("<title>Overspill lab</title><h2 id='x'>no</h2><h2 id=\"a\">owners</h2>")
    (reports / "secret.txt").write_text("no report")
    (reports / "link.html").symlink_to("/etc/hostname")
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache", reports=reports) as one:
        browser = signed_in(one, OWNER)
        assert "Overspill lab owners.html owners" in browser.get("/lab").text
        report = browser.get("/lab/owners.html")
        assert report.status == 200
        assert "sandbox" in report.headers["content-security-policy"]
        for name in ("secret.txt", "link.html", "..%2fsecret.txt", "none.html"):
            assert browser.get(f"/lab/{name}").status == 404


def test_lab_is_for_those_who_see_all_workspaces_and_no_link_leads_others_there(
    shared: Daemon, visitor: Browser
) -> None:
    browser = signed_in(shared, VIEWER)
    assert "/lab" in visitor.get("/").page.links()
    assert "/lab" not in browser.get("/").page.links()
    assert "/money" in browser.get("/").page.links()
    assert browser.get("/lab").status == 403
    assert browser.get("/lab/owners.html").status == 403


def test_lab_without_a_directory_says_how_to_set_one(visitor: Browser) -> None:
    assert "OVERSPILL_LAB_REPORTS" in visitor.get("/lab").text
    assert LabReports(Path("/nowhere")).all() == ()


def test_viewer_of_one_workspace_sees_nothing_of_another(shared: Daemon) -> None:
    other = signed_in(shared, VIEWER)
    commit = shared.latest.read().decision.inputs.ledger.commit
    for path in ("/", "/clusters", "/time", "/why", "/money"):
        answer = other.get(path)
        assert answer.status == 200
        assert b"vllm" not in answer.body, path
    assert "worker-3" not in other.get("/clusters").text
    for query in (f"commit={commit}", "workload=llm/vllm"):
        assert other.get(f"/why?{query}").status == 404
    assert other.get(f"/time?at={commit}").status == 200
    assert b"vllm" not in other.get(f"/time?at={commit}").body


def test_viewer_of_a_workspace_sees_it_without_actions(shared: Daemon) -> None:
    page = signed_in(shared, EDITOR).get("/").page
    assert "llm/vllm" in page.text
    assert not [link for link in page.links() if link.startswith("/do/revert")]


def test_backticks_of_a_hint_are_shown_as_code_and_what_stands_between_them_stays_text(visitor: Browser) -> None:
    answer = visitor.get("/why?commit=0123456789abcdef")
    assert b"<code>git log</code> of the branch lists them" in answer.body.lower()
    values = {"phrase": "No", "message": "try `<b>&` or `", "hint": "", "problems": ["`a` and `b`"], "again": ""}
    body = bytes(Pages(Assets()).render("error.html", values).body)
    assert b"Try <code>&lt;b&gt;&amp;</code> or `." in body
    assert b"<code>a</code> and <code>b</code>" in body


def test_page_makes_the_rows_that_it_shows_and_no_others() -> None:
    made: list[int] = []

    def row(item: int) -> int:
        made.append(item)
        return item

    page = page_of(range(10_000), 3, 50, row)
    assert page.rows == tuple(range(100, 150)) == tuple(made)
    assert (page.pages, page.first, page.last) == (200, 101, 150)
    assert page_of([], 9, 50, row).pages == 1
    assert page_of(range(10), 9, 50, row).number == 1


def test_events_tell_of_a_new_pass_and_end_with_the_daemon(running: Daemon, browser: Browser) -> None:
    heard: list[bytes] = []
    request = urllib.request.Request(f"http://127.0.0.1:{running.port}/events")
    request.add_header("Cookie", f"overspill-session={browser.cookies['overspill-session']}")
    response = urllib.request.urlopen(request, timeout=60)
    assert response.headers["content-type"].startswith("text/event-stream")

    def listen() -> None:
        heard.extend(iter(response.readline, b""))

    listener = threading.Thread(target=listen)
    listener.start()
    running.until(lambda: heard)
    running.sight.missing = 1
    running.wake("observation")
    running.until(lambda: b"event: look\n" in heard)
    running.live.close()
    listener.join(30)
    assert not listener.is_alive()
    response.close()


def test_workload_of_an_unforeseen_kind_costs_its_own_row_alone(shared: Daemon) -> None:
    snapshot = shared.latest.read()
    decision = snapshot.decision
    broken = WorkloadId(LLM, TemplateName("broken"))
    silent = WorkloadId(LLM, TemplateName("silent"))
    demand = decision.inputs.demands[WorkloadId(LLM, TemplateName("vllm"))]
    demands = {
        **decision.inputs.demands,
        broken: demand._replace(workload=broken, waiting=(None,)),
        silent: demand._replace(workload=silent, missing=None),
    }
    templates = dict(decision.inputs.desired.templates)
    templates |= dict.fromkeys((broken, silent), next(iter(templates.values())))
    desired = replace(decision.inputs.desired, templates=templates)
    inputs = replace(decision.inputs, demands=demands, desired=desired)
    snapshot = replace(snapshot, decision=replace(decision, inputs=inputs))
    ada = Caller(name="Ada", roles={"*": AccessRole.OWNER}, kind="token")
    view = now_view(Viewer(caller=ada, snapshot=snapshot), NowIndex.of(snapshot))
    shown = {str(row.figures.workload) for row in view.workloads.rows}
    assert "llm/vllm" in shown
    assert "llm/silent" not in shown


def test_commit_of_long_ago_is_found_by_its_name(tmp_path: Path) -> None:
    clock = PictureClock(timedelta(days=40))
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache", clock=clock, sight=PastSight(clock)) as one:
        one.sight.missing = 3
        one.wake("observation")
        one.until(lambda: len(one.latest.read().decision.inputs.ledger.placements))
        old = one.latest.read().decision.inputs.ledger.commit
        clock.lag = timedelta()
        one.sight.missing = 0
        one.wake("observation")
        one.until(lambda: not len(one.latest.read().decision.inputs.ledger.placements))
        browser = signed_in(one, OWNER)
        assert "burst(llm/vllm): 3 replicas on worker-2" in browser.get(f"/why?commit={old}").text
        then = browser.get(f"/time?at={old}").text
        assert "As it stood at" in then
        assert "stands until" in then


class PastSight(Sight):
    """Clusters as they are seen by a clock that is not right."""

    def __init__(self, clock: PictureClock) -> None:
        super().__init__()
        self._clock = clock

    def observe(self) -> Observed:
        observed, now = super().observe(), self._clock.now()
        clusters = {
            name: replace(
                seen,
                observed_at=now,
                workloads=tuple(
                    replace(
                        workload,
                        waiting=tuple(replace(step, since=now - timedelta(minutes=5)) for step in workload.waiting),
                    )
                    for workload in seen.workloads
                ),
            )
            for name, seen in observed.clusters.items()
        }
        return replace(observed, clusters=clusters)


class BrokenDirectory(type(Path())):
    """A directory that cannot be listed, for a reason that nothing foresees."""

    def iterdir(self) -> Iterator[Path]:
        raise RuntimeError("words that are nobody's business")


def test_bug_of_a_view_is_told_as_a_page_without_its_traceback(tmp_path: Path) -> None:
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache", reports=BrokenDirectory(tmp_path)) as one:
        browser = signed_in(one, OWNER)
        answer = browser.get("/lab")
        assert answer.status == 500
        assert "This is a bug in Overspill" in answer.text
        assert "nobody's business" not in answer.text
        assert "content-security-policy" in answer.headers
        assert browser.get("/").status == 200


def test_home_that_is_not_seen_is_told_before_all_else(tmp_path: Path) -> None:
    clock = PictureClock(timedelta(hours=2))
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache", clock=clock, sight=BlindSight(clock)) as one:
        text = signed_in(one, OWNER).get("/").text
    assert "The home of 1 workload is not seen" in text
    assert "Clusters seen 0 of 3" in text
    assert "llm/vllm unseen" in text


class BlindSight(PastSight):
    """Clusters whose observations are an hour old."""

    def observe(self) -> Observed:
        observed = super().observe()
        old = {
            name: replace(seen, observed_at=seen.observed_at - timedelta(hours=1))
            for name, seen in observed.clusters.items()
        }
        return replace(observed, clusters=old)


def test_page_of_a_commit_shows_each_trailer_or_leaves_it_out_on_purpose() -> None:
    assert FACTS.keys() | NO_FACTS == {*Trailer}
    assert not FACTS.keys() & NO_FACTS
