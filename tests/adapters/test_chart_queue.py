"""Charts rendered in the background by a stand-in for helm: bounds, turns, and what passes are told meanwhile."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Lock

import pytest

from reconciler.adapters.helm.chart_queue import ChartQueue, patient
from reconciler.adapters.helm.rendering import ChartManifests, Helm
from reconciler.backoff import Backoff
from reconciler.errors import InvalidInput, Pending, Transient
from reconciler.model.bounds import (
    CHART_CACHE,
    CHART_FILE,
    CHART_MEMORY,
    CHART_OBJECTS,
    CHART_PROCESSES,
    CHART_SECONDS,
    CHARTS_AWAITED,
    CHARTS_KEPT,
    CHARTS_WAITING,
)
from reconciler.model.ids import WorkspaceName
from reconciler.model.workload import HelmConfig, HelmFlags
from tests.builders.deploy_specs import chart

LLM, BEE = WorkspaceName("llm"), WorkspaceName("b")
NEVER = Backoff(first_backoff=3600, longest_backoff=3600)
AT_ONCE = Backoff(first_backoff=0, longest_backoff=0)


def stack(repository: str = "good", **values: object) -> HelmConfig:
    return chart(
        chart="stack", repo_url=f"https://{repository}.example.com", flags=HelmFlags(skip_crds=True), values=values
    )


class StandIn(Helm):
    """A helm whose charts from `hanging` repositories last until it is stopped, and that notes what it renders."""

    def __init__(self) -> None:
        super().__init__()
        self.rendered: list[tuple[str, str, object]] = []
        self.size = 10
        self.most = self._active = 0
        self.away = False
        self.held = Event()
        self._ended = Event()
        self._noting = Lock()

    def available(self) -> bool:
        return True

    def check(self, chart: HelmConfig) -> None:
        """Take every chart."""

    def stop(self) -> None:
        self._ended.set()
        self.held.set()

    def render(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> ChartManifests:
        with self._noting:
            self.rendered.append((workspace, chart.repo_url, chart.values.get("number")))
            self._active += 1
            self.most = max(self.most, self._active)
        try:
            if "hanging" in chart.repo_url:
                self._ended.wait(60)
                raise Transient("helm did not end")
            if "held" in chart.repo_url:
                self.held.wait(60)
            if self.away:
                raise Transient("the repository is away")
            if "odd" in chart.repo_url:
                raise ZeroDivisionError("odd")
            return ChartManifests(objects=({"kind": "A", "of": chart.repo_url},), size=self.size)
        finally:
            with self._noting:
                self._active -= 1


class Asked:
    """A queue with the answers that it has woken its daemon for."""

    def __init__(self, helm: Helm, again: Backoff = NEVER) -> None:
        self.woken = Event()
        self.queue = ChartQueue(helm, wake=lambda _: self.woken.set(), again=again)

    def ask(self, wanted: HelmConfig, workspace: WorkspaceName = LLM) -> object:
        """Ask as a pass does: an answer, the error, or None while there is neither."""
        try:
            return self.queue.template(wanted, hooks=False, workspace=workspace)
        except Pending:
            return None
        except Exception as error:  # noqa: BLE001 -- any answer will do
            return error

    def answer(self, wanted: HelmConfig, workspace: WorkspaceName = LLM) -> object:
        """Ask until there is an answer, once for each time that the daemon is woken."""
        while (answer := self.ask(wanted, workspace)) is None:
            assert self.woken.wait(30), "an answer wakes the daemon"
            self.woken.clear()
        return answer


@pytest.fixture
def helm() -> StandIn:
    return StandIn()


@pytest.fixture
def asked(helm: StandIn) -> Iterator[Asked]:
    asked = Asked(helm)
    yield asked
    asked.queue.close()


def test_pass_that_asks_waits_for_nothing_and_is_woken(helm: StandIn, asked: Asked) -> None:
    assert asked.ask(stack("held")) is None
    helm.held.set()
    assert asked.answer(stack("held")) == ({"kind": "A", "of": "https://held.example.com"},)
    assert asked.ask(stack("held"))
    assert len(helm.rendered) == 1, "an answer is kept"
    assert asked.ask(stack("held", number=2)) is None, "other values are another rendering"


def test_hanging_charts_of_a_workspace_cost_no_other_one_anything(helm: StandIn, asked: Asked) -> None:
    for number in range(50):
        assert asked.ask(stack(f"hanging{number}")) is None
    assert asked.answer(stack(), BEE)
    assert sum(workspace == LLM for workspace, _, _ in helm.rendered) == 1, "one of a workspace at a time"


def test_workspaces_take_turns_and_helms_at_work_are_bounded(helm: StandIn, asked: Asked) -> None:
    many = [WorkspaceName(f"w{number}") for number in range(CHART_PROCESSES.most + 3)]
    for workspace in many:
        for number in range(3):
            asked.ask(stack("held", number=number), workspace)
    helm.held.set()
    for workspace in many:
        for number in range(3):
            assert asked.answer(stack("held", number=number), workspace)
    assert helm.most <= CHART_PROCESSES.most
    firsts = [workspace for workspace, _, _ in helm.rendered[: len(many)]]
    assert sorted(firsts) == sorted(many), "each has one rendered before any has a second one"


def test_repository_that_fails_is_not_asked_at_each_pass(helm: StandIn, asked: Asked) -> None:
    helm.away = True
    assert str(asked.answer(stack())) == "the repository is away"
    assert str(asked.ask(stack())) == "the repository is away"
    assert str(asked.ask(stack(number=2))) == "the repository is away", "whatever the values are"
    assert len(helm.rendered) == 1
    assert str(asked.answer(stack(), BEE)) == "the repository is away", "another workspace finds out by itself"
    assert len(helm.rendered) == 2


def test_failure_stands_until_a_later_try_succeeds(helm: StandIn) -> None:
    asked = Asked(helm, AT_ONCE)
    helm.away = True
    helm.held.set()
    assert isinstance(asked.answer(stack("held")), Transient)
    helm.away = False
    helm.held.clear()
    assert isinstance(asked.ask(stack("held")), Transient), "told while it is tried again"
    helm.held.set()
    while not isinstance(asked.ask(stack("held")), tuple):
        assert asked.woken.wait(30)
        asked.woken.clear()
    asked.queue.close()


def test_unforeseen_error_is_raised_where_the_chart_was_asked_for(asked: Asked) -> None:
    assert isinstance(asked.answer(stack("odd")), ZeroDivisionError)
    assert asked.answer(stack()), "and its thread goes on"


def test_waiting_charts_of_a_workspace_are_bounded_and_the_newest_comes_first(helm: StandIn, asked: Asked) -> None:
    asked.ask(stack("held", number=-1))
    most = CHARTS_WAITING.most
    for number in range(most + 20):
        asked.ask(stack("held", number=number))
    helm.held.set()
    assert asked.answer(stack("held", number=0)), "what fell out is asked for again"
    while len(helm.rendered) < most:
        assert asked.woken.wait(30)
        asked.woken.clear()
    assert helm.rendered[1][2] in (0, most + 19)


def test_kept_manifests_are_bounded_at_the_cost_of_the_workspace_that_has_most(helm: StandIn, asked: Asked) -> None:
    assert asked.answer(stack(), BEE)
    helm.size = CHARTS_KEPT.most // 2
    for number in range(4):
        assert asked.answer(stack(number=number))
    before = len(helm.rendered)
    assert asked.ask(stack(), BEE)
    assert asked.ask(stack(number=3))
    assert len(helm.rendered) == before
    assert asked.ask(stack(number=0)) is None


def test_command_waits_for_its_charts_and_says_what_for(helm: StandIn) -> None:
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        helm.held.set()

    queue = patient(helm, say)
    assert queue.template(stack("held"), hooks=False, workspace=LLM)
    queue.close()
    assert lines == ["rendering chart 'vllm-app' of https://held.example.com"]
    assert CHARTS_AWAITED.most > CHART_SECONDS.most, "or one that hangs would never be told as such"


def test_command_waits_no_longer_than_its_patience_for_all_charts() -> None:
    helm = StandIn()
    queue = ChartQueue(helm, patience=0.05)
    for number in range(3):
        with pytest.raises(Pending, match="chart 'vllm-app' is being rendered"):
            queue.template(stack(f"hanging{number}"), hooks=False, workspace=LLM)
    queue.close()


Program = Callable[..., Helm]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Put a Python script in the place of helm."""

    def write(script: str, **options: int) -> Helm:
        file = tmp_path / "bin" / "helm"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{script}\n")
        file.chmod(0o755)
        return Helm(**options)

    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    return write


def test_closing_kills_a_helm_that_hangs_within_seconds(program: Program, tmp_path: Path) -> None:
    helm = program(f"open('{tmp_path}/begun', 'w').close(); time.sleep(600)")
    asked = Asked(helm)
    assert asked.ask(stack()) is None
    while not (tmp_path / "begun").exists():
        time.sleep(0.01)
    asked.queue.close()
    assert not any(thread.is_alive() for thread in asked.queue._threads)
    with pytest.raises(Transient, match="stopping"):
        helm.render(stack(), hooks=False, workspace=LLM)
    helm.close()


linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds other processes")


@linux
def test_helm_that_takes_too_much_memory_fails_alone(program: Program) -> None:
    for limit, most in ((16 << 30, CHART_MEMORY.most), (1 << 30, 384 << 20)):
        helm = program("x = bytearray(2**30); print('kind: A')", limit=limit)
        with pytest.raises(InvalidInput, match=f"helm needs more than {most >> 20} MiB of memory for it"):
            helm.render(stack(), hooks=False, workspace=LLM)
        helm.close()


def test_helms_at_work_are_as_many_as_the_memory_of_the_container_holds() -> None:
    helm = StandIn()
    helm.at_once = Helm(limit=1 << 30).at_once
    asked = Asked(helm)
    for number in range(6):
        asked.ask(stack("held"), WorkspaceName(f"w{number}"))
    helm.held.set()
    for number in range(6):
        assert asked.answer(stack("held"), WorkspaceName(f"w{number}"))
    asked.queue.close()
    assert helm.most == 1


@linux
def test_file_beyond_the_bound_ends_helm(program: Program) -> None:
    helm = program(f"with open('index', 'wb') as file: file.seek({CHART_FILE.most}); file.write(b'x')")
    with pytest.raises(InvalidInput, match="a file of it is larger than 128 MiB"):
        helm.render(stack(), hooks=False, workspace=LLM)
    helm.close()


def test_helms_directory_of_a_workspace_is_its_own_and_emptied_beyond_the_bound(program: Program) -> None:
    helm = program("print('kind: A'); print('held:', os.listdir('.').count('chart')); open('chart', 'w').close()")
    held = [helm.render(stack(), hooks=False, workspace=name).objects[0]["held"] for name in (LLM, LLM, BEE)]
    assert held == [0, 1, 0]
    large = program(
        "print('kind: A'); print('held:', os.listdir('.').count('part0'))\n"
        "for number in range(3):\n"
        f"    os.truncate(os.open(f'part{{number}}', os.O_CREAT | os.O_RDWR), {CHART_CACHE.most // 2})"
    )
    held = [large.render(stack(), hooks=False, workspace=LLM).objects[0]["held"] for _ in range(2)]
    assert held == [0, 0]
    helm.close()
    large.close()


def test_objects_of_a_chart_are_bounded(program: Program) -> None:
    helm = program(f"print('---\\nkind: A\\n' * {CHART_OBJECTS.most + 1})")
    with pytest.raises(InvalidInput, match="it becomes more than 2,000 objects"):
        helm.render(stack(), hooks=False, workspace=LLM)
    helm.close()


def test_helm_sees_no_secret_of_the_daemon(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERSPILL_GIT_PASSWORD", "secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com")
    helm = program("print('kind: A'); print('names: [' + ','.join(sorted(os.environ)) + ']')")
    (shown,) = helm.template(stack(), hooks=False, workspace=LLM)
    helm.close()
    assert "HTTPS_PROXY" in shown["names"]
    assert not [name for name in shown["names"] if "OVERSPILL" in name or "KEY" in name]
