"""One bad thing costs itself: an exception injected at every seam leaves all other items as they would have been.

Each `Seam` has a scene with two items that goes through it. The scene is played untouched, and with an exception at
the seam whenever it is passed with the victim: what becomes of the other item may not differ, and the bug is reported.
A seam without a scene, a scene that does not pass its seam, and a seam that no code uses fail the tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient
from structlog.testing import capture_logs

import reconciler
from reconciler import bulkhead
from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kube.unreadable_objects import UnreadableObjects
from reconciler.adapters.kube.view import KubeObservations
from reconciler.adapters.observations.observation_files import FileObservations
from reconciler.adapters.observations.pushed_observations import PushedObservations
from reconciler.adapters.observations.views import JoinedView
from reconciler.api.app import create_app
from reconciler.api.body import documents
from reconciler.api.serialize import ItemSerializer
from reconciler.bulkhead import Seam
from reconciler.core.commits.events import of_push
from reconciler.core.commits.history import bursts
from reconciler.core.commits.templates import RenderedTemplate
from reconciler.core.decide.decide import decide
from reconciler.core.explain.gprs import gpr_views
from reconciler.core.explain.inventory import build_inventory
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.signals.prometheus import questions
from reconciler.daemon.bug_log import BugLog
from reconciler.daemon.event_sinks import publish_events
from reconciler.daemon.loop import Vitals
from reconciler.daemon.publish import gather
from reconciler.daemon.reconcile import Outcome
from reconciler.daemon.snapshot import LatestSnapshot
from reconciler.daemon.status import status
from reconciler.errors import Bug
from reconciler.model.action import Action
from reconciler.model.capacity import Observed
from reconciler.model.ids import ClusterName, CommitId, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Change, Choice, Plan, Reason
from reconciler.model.request import Denial
from reconciler.model.rollout import EngineReport, EngineState
from reconciler.model.units import Resources
from tests.adapters.test_observation_files import text as observation
from tests.builders.changes import OURS, PLACE, logged
from tests.builders.deploy_specs import chart, spec
from tests.builders.fleet_files import load
from tests.builders.inputs import NOW, cluster, desired, free, inputs, ledger, placement, short
from tests.builders.kube_objects import node
from tests.builders.passes import SOURCE_FILES, START, Passes, seconds
from tests.builders.requests import request
from tests.daemon.test_failing_templates import told
from tests.daemon.test_untried_subsets import spreading
from tests.fakes.memory_repository import MemoryRepository
from tests.orders.test_api_orders import creating

VICTIM, OTHER = "victim", "other"

REQUEST = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata: {name: NAME-asked}
spec:
  workspaceName: llm
  clusterNames: [worker-3]
  burstDuration: 8m
  manifestResources:
    - name: settings
      manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-settings, namespace: demo}, data: {a: b}}
  steps: [{name: settings, type: manifest}]
"""
FILES = {
    **{path: text for path, text in SOURCE_FILES.items() if path != "template.yaml"},
    **{f"templates/{name}.yaml": SOURCE_FILES["template.yaml"].replace("vllm", name) for name in (VICTIM, OTHER)},
    **{f"requests/{name}.yaml": REQUEST.replace("NAME", name) for name in (VICTIM, OTHER)},
}


@dataclass(slots=True)
class Injection:
    """Raises at some seams when they are passed with the victim, and counts how often."""

    seams: frozenset[Seam] = frozenset()
    times: int = 0

    def run(self, seam: Seam, item: object, call: Callable[[], Any]) -> Any:
        if seam in self.seams and self._is_victim(seam, item, call):
            self.times += 1
            raise ZeroDivisionError("injected")
        return call()

    def _is_victim(self, seam: Seam, item: object, call: Any) -> bool:
        if seam is Seam.ORDER:
            return item == 1
        if seam is Seam.ASSEMBLY:
            return f"templates/{VICTIM}.yaml" in call.args[1]
        if seam in (Seam.FILE, Seam.OBJECT):
            return VICTIM in str(call.args)
        if seam is Seam.CANDIDATE:
            return item == "worker-2"
        return VICTIM in str(item).lower()


@dataclass(frozen=True, slots=True)
class Played:
    """What became of the items that are not the victim, and the bugs that were told."""

    others: object
    bugs: Sequence[Bug | str]


class Reporting(Passes):
    """A daemon whose engines say that all that stands is healthy, once they have had time for it."""

    def observe(self) -> Observed:
        reports = {
            placement.path: EngineReport(
                cluster=placement.cluster,
                placement=placement.name,
                digest=placement.digest,
                revision=str(self.repository.tips().output or ""),
                state=EngineState.HEALTHY,
            )
            for placement in (self.placements() if self.moment > START else ())
        }
        return replace(super().observe(), reports=reports)


def daemon() -> Reporting:
    passes = Reporting(MemoryRepository(FILES))
    passes.names, passes.free = (VICTIM, OTHER), {"worker-2": 100, "worker-3": 100}
    return passes


def play_passes(tmp_path: Path) -> Played:
    """Burst, order, edit by hand, restart, give back, expire: and keep what git and callers are told of the other."""
    passes, bugs = daemon(), list[Bug]()
    repository = passes.repository
    assert isinstance(repository, MemoryRepository)
    told: list[object] = []

    def run(**changed: object) -> Outcome:
        for name, value in changed.items():
            setattr(passes, name, value)
        outcome = passes.run_once()
        bugs.extend(outcome.bugs)
        passes.restart()
        return outcome

    orders = [creating(replace(request("worker-2"), name=f"{name}-order")) for name in (VICTIM, OTHER)]
    numbered = tuple(replace(order, number=number) for number, order in enumerate(orders, start=1))
    answers = run(missing=3, orders=numbered).plan.answers
    assert answers[2].denial is None
    told.append(answers[1].denial in (None, Denial.BUG))
    run(orders=(), missing=4)
    passes.advance(30)
    edited = {path: data + b"# by hand\n" for path, data in repository.tree().items() if "-deployment-" in path}
    repository.person("output", edited)
    for at in (30, 30, 400, 700, 30):
        passes.advance(at)
        run(missing=3 if at == 30 else 0)
    told += [subject for subject in repository.subjects() if OTHER in subject]
    told.append({path: data for path, data in repository.tree().items() if OTHER in path})
    return Played(told, bugs)


def play_status(tmp_path: Path) -> Played:
    """List what a pass leaves, in every list of the command line and of the API."""
    passes, bugs = daemon(), list[Bug]()
    passes.missing = 3
    passes.run_once()
    passes.missing = 5
    outcome = passes.run_once()
    fleet = status(outcome.decision)
    latest = LatestSnapshot(passes.memory.branch)
    latest.post(outcome)
    snapshot = latest.read()
    items = snapshot.catalogue.page(None, limit=100).items
    told = {str(item.key): snapshot.status(item) for item in items}
    assert any(VICTIM in key for key in told), "what cannot be told of it is told"
    inputs, plan = snapshot.decision.inputs, snapshot.decision.plan
    gprs = gpr_views(inputs, plan, bugs.append)
    assert any(VICTIM in gpr.name for gpr in gprs), "a GPR that cannot be described is listed"
    stock = build_inventory(inputs, None, bugs.append)
    texts = ItemSerializer(passes.repository).serialize(snapshot, items)
    assert len(texts) == len(items), "an item that cannot be written is listed"
    templates = documents(sorted(map(str, inputs.desired.templates)), lambda name: {"name": name}, lambda name: name)
    rows = [workload for workload in fleet.workloads if workload.workload.name == OTHER]
    others = (
        rows,
        {key: status for key, status in told.items() if OTHER in key},
        [gpr for gpr in gprs if OTHER in gpr.name],
        (stock.managed, stock.clusters, [row for row in stock.allocations if OTHER in str(row)]),
        [text for text in texts if OTHER in str(text)],
        [template for template in templates if OTHER in template["name"]],
    )
    return Played(others, [*bugs, *(problem.bug for problem in fleet.problems if problem.bug is not None)])


class VictimView:
    """A view that is the victim by its name."""

    def follow(self, desired: object) -> None:
        """Follow anything."""

    def observe(self) -> Observed:
        return Observed(clusters={ClusterName("worker-3"): free("worker-3", 8)})


class OtherView(VictimView):
    def observe(self) -> Observed:
        return Observed(clusters={ClusterName("worker-2"): free("worker-2", 8)})


OtherView.__name__ = "Other"


def play_views(tmp_path: Path) -> Played:
    view = JoinedView(VictimView(), OtherView())
    view.follow(load(SOURCE_FILES))
    seen = view.observe()
    bugs = [problem.bug for problem in seen.problems if problem.bug is not None]
    return Played(seen.clusters[ClusterName("worker-2")], bugs)


def play_clusters(tmp_path: Path) -> Played:
    view = KubeObservations(None, clock=SystemClock())
    for name in (VICTIM, OTHER):
        view._clusters[ClusterName(name)] = SimpleNamespace(
            observation=lambda name=name: free(name, 8),
            trouble=lambda: "",
            unwatched=lambda: (),
            problems=lambda _: (),
            reports=lambda name=name: {name: name},
            target=SimpleNamespace(engine="argocd"),
        )
    seen = view.observe()
    bugs = [problem.bug for problem in seen.problems if problem.bug is not None]
    return Played((seen.clusters[ClusterName(OTHER)], seen.reports[OTHER]), bugs)


def play_watch(tmp_path: Path) -> Played:
    state, unreadable = ClusterState(), UnreadableObjects()
    for name in (VICTIM, OTHER):
        unreadable.apply(Resource.NODES, node(name), state.steps(Resource.NODES, node(name)))
    seen = state.observation(cluster("worker-2").name, START)
    nodes = [(one.name, one.free) for pool in seen.pools for one in pool.nodes if one.name == OTHER]
    return Played(nodes, [problem.bug for problem in unreadable.problems("cluster worker-2") if problem.bug])


def play_observations(tmp_path: Path) -> Played:
    for name in (VICTIM, OTHER):
        (tmp_path / f"{name}.yaml").write_text(observation(f"worker-{name}"))
    seen = FileObservations(tmp_path).observe()
    bugs = [problem.bug for problem in seen.problems if problem.bug is not None]
    return Played(seen.clusters[ClusterName(f"worker-{OTHER}")], bugs)


def play_signals(tmp_path: Path) -> Played:
    query = '\n  signals: [{name: queue, prometheus: {query: "sum(up)", perReplica: 10}}]\n'
    asked, problems = questions(load({**FILES, "policies.yaml": SOURCE_FILES["policies.yaml"].rstrip() + query}))
    others = [question for question in asked if question.workload.name == OTHER]
    assert others
    return Played(others, [problem.bug for problem in problems if problem.bug is not None])


def play_sinks(tmp_path: Path) -> Played:
    told: list[str] = []
    kinds = [type(name, (), {"publish": lambda self, *_: told.append(type(self).__name__)}) for name in (VICTIM, OTHER)]
    with capture_logs() as log:
        publish_events([kind() for kind in kinds], (), ())
    return Played([name for name in told if name == OTHER], [entry["line"] for entry in log])


def play_commits(tmp_path: Path) -> Played:
    bugs: list[Bug] = []
    victim = replace(logged(PLACE, 1), id=CommitId(VICTIM))
    other = logged(replace(PLACE, after=replace(PLACE.placement, name="other-1")), 2)
    histories = bursts((victim, other), bugs.append)
    return Played([burst for burst in histories if OTHER in burst.id], bugs)


def play_charts(tmp_path: Path) -> Played:
    names = [WorkloadId(WorkspaceName("llm"), TemplateName(name)) for name in (VICTIM, OTHER)]
    placements = [placement("worker-2", workload=name) for name in names]
    templates = {number: RenderedTemplate(placement=one, spec=spec(chart())) for number, one in enumerate(placements)}
    charts = SimpleNamespace(template=lambda chart, hooks, workspace: [{"of": chart.name, "in": workspace}])
    passes, choice = daemon(), Choice(cluster=ClusterName("worker-2"), rank=1, fits=3, free=Resources())
    plan = Plan(
        changes=tuple(Change(action=Action.PLACE, after=one, shortage=None, choice=choice) for one in placements)
    )
    made = gather(passes.repository, charts, plan, templates, passes.repository.tips(), author=OURS)
    return Played(made.charts[1], made.bugs)


def play_events(tmp_path: Path) -> Played:
    bugs: list[Bug] = []
    events = of_push((PLACE, PLACE), (CommitId(VICTIM), CommitId(OTHER)), (), START, bugs.append)
    return Played([event for event in events if OTHER in str(event)], bugs)


SCENES: dict[Seam, Callable[[Path], Played]] = {
    **dict.fromkeys(
        (
            Seam.FILE, Seam.OBJECT, Seam.ASSEMBLY, Seam.WARNING, Seam.RECORD, Seam.EDIT, Seam.ENROLMENT, Seam.GANG,
            Seam.OBJECTS, Seam.DEMAND, Seam.ROLLOUT, Seam.DECISION, Seam.EXPIRY, Seam.ORDER, Seam.TEMPLATE,
            Seam.CHANGE, Seam.END, Seam.PENDING,
        ),
        play_passes,
    ),
    Seam.CHART: play_charts,
    Seam.EVENT: play_events,
    Seam.STATUS: play_status,
    Seam.VIEW: play_views,
    Seam.CLUSTER: play_clusters,
    Seam.ENGINE: play_clusters,
    Seam.WATCHED_OBJECT: play_watch,
    Seam.OBSERVATION_FILE: play_observations,
    Seam.SIGNAL: play_signals,
    Seam.SINK: play_sinks,
    Seam.COMMIT: play_commits,
}  # fmt: skip # a table, filled line by line
ALONE = frozenset({Seam.CANDIDATE, Seam.DRAFTS, Seam.REQUEST, Seam.RECORDING, Seam.CHECK, Seam.CACHE, Seam.PROPOSAL})
"""Seams with a test of their own: below, with those of `doctor` and with those of approval."""
TOGETHER = {Seam.END: frozenset({Seam.END, Seam.CHANGE})}
"""Seams that are passed only after another one has failed."""


@cache
def play_untouched(scene: Callable[[Path], Played]) -> Played:
    """Play a scene without an exception; several seams share one."""
    with TemporaryDirectory() as directory:
        return scene(Path(directory))


@pytest.mark.parametrize("seam", [seam for seam in Seam if seam not in ALONE], ids=lambda seam: seam.name.lower())
@pytest.mark.exhaustive(one_in=4)
def test_an_exception_at_one_item_leaves_the_others_as_they_are(
    seam: Seam, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    untouched = play_untouched(SCENES[seam])
    assert not untouched.bugs
    injection = Injection(TOGETHER.get(seam, frozenset({seam})))
    monkeypatch.setattr(bulkhead, "_run", injection.run)
    injured = SCENES[seam](tmp_path)
    assert injection.times, "the scene does not pass the seam with the victim"
    assert injured.others == untouched.others
    if seam not in (Seam.EDIT, Seam.GANG, Seam.OBJECTS):  # logged, or met again where the workload is decided on
        assert any("injected" in str(bug) for bug in injured.bugs), "nobody is told"


def test_every_seam_is_passed_somewhere() -> None:
    package = Path(reconciler.__file__).parent
    uses = {use for path in package.rglob("*.py") for use in re.findall(r"\bSeam\.(\w+)", path.read_text())}
    assert {seam.name for seam in Seam} <= uses


def test_no_exception_is_caught_whole_outside_of_the_bulkhead_and_the_ends_of_threads() -> None:
    package = Path(reconciler.__file__).parent
    catches = sorted(
        f"{path.relative_to(package)}" for path in package.rglob("*.py") if "except Exception" in path.read_text()
    )
    assert catches == [
        "adapters/engine_webhooks.py", "adapters/helm/chart_queue.py", "adapters/kube/server.py",
        "adapters/kube/stream.py", "adapters/kube/tasks.py", "adapters/kube/view.py",
        "adapters/notification/courier.py", "adapters/notification/workers.py", "api/orders.py", "bulkhead.py",
        "cli/completion.py", "cli/root.py",
        "daemon/loop.py", "daemon/orders/order_queue.py", "daemon/proposals/follower.py", "daemon/sweeper.py",
    ]  # fmt: skip # a list of paths, filled line by line


def test_a_cluster_that_cannot_be_assessed_is_passed_over_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulkhead, "_run", Injection(frozenset({Seam.CANDIDATE})).run)
    passes = daemon()
    passes.missing = 3
    outcome = passes.run_once()
    assert outcome.bugs
    placed = {str(one.workload): one.cluster for one in passes.placements() if not one.workload.request}
    assert placed == {"llm/victim": "worker-3", "llm/other": "worker-3"}


def test_a_bug_in_looking_for_warnings_takes_no_file_out_of_force(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulkhead, "_run", Injection(frozenset({Seam.WARNING})).run)
    passes = daemon()
    passes.missing = 3
    outcome = passes.run_once()
    assert {VICTIM, f"{VICTIM}-asked"} < {str(one.workload.name) for one in passes.placements()}
    told = [problem for problem in outcome.problems if problem.bug is not None]
    assert {problem.path for problem in told} == {f"templates/{VICTIM}.yaml", f"requests/{VICTIM}.yaml"}
    assert {problem.severity for problem in told} == {reconciler.errors.Severity.WARNING}


def test_pods_of_subsets_that_cannot_be_kept_are_rendered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = spreading()
    passes.run_once()
    with monkeypatch.context() as patched:
        patched.setattr(bulkhead, "_run", raise_in_drafts)
        passes.advance(30)
        outcome = passes.run_once()
    (bug,) = outcome.bugs
    assert str(bug) == "all: a bug in keeping the pods of subsets: ZeroDivisionError: injected"
    assert Reason.UNTRIED in told(outcome, "b")
    passes.advance(30)
    passes.run_once()
    assert [(each.workload.name, each.subset) for each in passes.placements()] == [("b", "own")]


def test_where_decisions_fail_in_each_round_all_bugs_are_told_and_what_has_expired_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    workloads = tuple(WorkloadId(WorkspaceName("llm"), TemplateName(f"w{index:02}")) for index in range(20))
    failed: list[WorkloadId] = []

    def run(seam: Seam, item: object, call: Callable[[], Any]) -> Any:
        if seam is Seam.DECISION and item == workloads[-1 - len(failed)]:
            failed.append(workloads[-1 - len(failed)])
            raise ZeroDivisionError(str(item))
        return raise_in_drafts(seam, item, call)

    expired = placement("worker-2", workload=workloads[0], created=NOW - timedelta(hours=2))
    wanted = desired(workloads=workloads)
    seen = [short(1, workload=workload).workloads[0] for workload in workloads]
    primary = replace(short(1), workloads=tuple(seen))
    given = inputs(primary, free("worker-2", 99), wanted=wanted, there=ledger(expired))
    monkeypatch.setattr(bulkhead, "_run", run)
    made = decide(given)
    assert [change.action for change in made.changes] == [Action.REVERT]
    errors = {bug.error for bug in made.bugs}
    assert errors == {"ZeroDivisionError: injected", *(f"ZeroDivisionError: {workload}" for workload in failed)}
    assert len(made.bugs) == len(errors)
    assert 5 <= len(failed) < len(workloads), "a round has passed without a failure"


def raise_in_drafts(seam: Seam, item: object, call: Callable[[], Any]) -> Any:
    if seam is Seam.DRAFTS:
        raise ZeroDivisionError("injected")
    return call()


def test_nothing_of_a_workload_ends_while_nothing_can_be_decided_on_it_and_then_it_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passes = daemon()
    passes.missing = 3
    passes.run()
    monkeypatch.setattr(bulkhead, "_run", Injection(frozenset({Seam.DECISION})).run)
    passes.missing = 0
    stands = [one for one in passes.placements() if VICTIM in one.name]
    passes.advance(300)
    passes.run()
    passes.advance(100)
    outcome = passes.run_once()
    assert [one for one in passes.placements() if VICTIM in one.name] == stands
    (held,) = (one for one in outcome.plan.suppressed if one.workload.name == VICTIM)
    assert held.message.endswith("its placements stay as they are until they expire")
    passes.advance(400)
    passes.run_once()
    assert passes.placements() == []


def test_a_bug_is_counted_once_and_logged_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulkhead, "_run", Injection(frozenset({Seam.TEMPLATE})).run)
    passes = daemon()
    passes.missing = 3
    bug = min(passes.run_once().bugs)
    assert str(bug) == "llm/victim: a bug in rendering the template: ZeroDivisionError: injected"
    assert "Traceback" in bug.trace


def test_errors_on_purpose_and_a_lack_of_memory_are_not_contained() -> None:
    for error in (MemoryError, KeyboardInterrupt, reconciler.errors.Conflict, reconciler.errors.Transient):

        def fail(error: type[BaseException] = error) -> None:
            raise error

        with pytest.raises(error):
            bulkhead.attempt(Seam.FILE, "x", fail)


def test_a_request_that_meets_a_bug_is_answered_500_and_logged_once() -> None:
    well = Vitals(passes=1, bugs=0, idle=seconds(5), stuck_after=seconds(300))
    asked: list[None] = []

    def vitals() -> Vitals:
        asked.append(None)
        if len(asked) < 3:
            raise ZeroDivisionError("injected")
        return well

    app = create_app(
        pushed=PushedObservations(), wake=lambda _: None, clock=SystemClock(), vitals=vitals, branches=("main",)
    )
    with capture_logs() as log:
        client = TestClient(app, raise_server_exceptions=False)
        answers = [client.get("/healthz").status_code for _ in range(3)]
    assert answers == [500, 500, 200]
    assert [entry["line"] for entry in log if entry["event"] == "bug"] == [
        "GET /healthz: a bug in answering the request: ZeroDivisionError: injected"
    ]


def test_recording_that_fails_costs_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    untouched, passes = daemon(), daemon()
    passes.recording = SimpleNamespace(append=lambda _: 1 / 0)
    monkeypatch.setattr("reconciler.daemon.reconcile.BUGS", BugLog())
    with capture_logs() as log:
        outcome = passes.run_once()
    assert outcome.commits == untouched.run_once().commits
    assert ["recording the pass: ZeroDivisionError" in entry["line"] for entry in log] == [True]
