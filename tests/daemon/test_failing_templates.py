"""Templates that fail or take long cost their own workspace, and nobody else's time or capacity."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import EarlierFailures, PassInput
from reconciler.core.fleet.read_file import parse_file
from reconciler.daemon.reconcile import Outcome, draft
from reconciler.errors import Conflict
from reconciler.model.bounds import FILE_EXPRESSIONS, TEMPLATE_ROUNDS
from reconciler.model.plan import UNTRIED, Plan, Reason
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository, refuse_next_push

FAILS = "{{ cluster.labels.nope }}"
LONG = "x{% for i in range(90000) %}{% endfor %}"
NEIGHBOUR = "zz"


def template(name: str, *, workspace: str = "llm", note: str = "x") -> str:
    """Return a template whose annotation holds a text."""
    text = (
        SOURCE_FILES["template.yaml"].replace("vllm", name).replace("workspaceName: llm", f"workspaceName: {workspace}")
    )
    return text.replace(
        f"metadata: {{name: {name}, namespace: demo}}",
        f"metadata: {{name: {name}, namespace: demo, annotations: {{note: '{note}'}}}}",
    )


def fleet(number: int, note: str) -> Passes:
    """Return passes over a workspace with a number of bursting workloads, and another one with a single workload."""
    workspaces = SOURCE_FILES["workspaces.yaml"]
    names = [f"a{index:03}" for index in range(number)]
    files = {
        **{name: text for name, text in SOURCE_FILES.items() if name != "template.yaml"},
        "workspaces.yaml": workspaces + "---\n" + workspaces.replace("name: llm", "name: other"),
        **{f"{name}.yaml": template(name, note=note) for name in names},
        "neighbour.yaml": template(NEIGHBOUR, workspace="other"),
    }
    passes = Passes(MemoryRepository(files))
    passes.names, passes.missing, passes.free = (*names, NEIGHBOUR), 4, {"worker-2": 4}
    return passes


def reasons(outcome: Outcome, workspace: str) -> set[Reason]:
    return {
        reason
        for entry in outcome.rendered.suppressed
        if entry.workload.workspace == workspace
        for reason in (entry.reason, *(refusal.reason for refusal in entry.refusals))
    }


def test_workspace_of_failing_templates_neither_repeats_the_pass_nor_holds_capacity() -> None:
    passes = fleet(3 * TEMPLATE_ROUNDS.most, FAILS)
    decided: list[PassInput] = []

    def decide_and_count(inputs: PassInput) -> Plan:
        decided.append(inputs)
        return decide(inputs)

    _, rendered = draft(passes.world(), passes.look(), decide_and_count)
    assert len(decided) <= TEMPLATE_ROUNDS.most
    assert {entry.workload.workspace for entry in rendered.suppressed} == {"llm"}
    outcome = passes.run_once()
    assert Reason.UNTRIED in reasons(outcome, "llm")
    assert [placement.workload.name for placement in passes.placements()] == [NEIGHBOUR]


def test_few_failing_templates_keep_no_other_of_their_workspace_from_its_place() -> None:
    passes = fleet(TEMPLATE_ROUNDS.most - 1, FAILS)
    passes.repository.person("source", {"b.yaml": template("b")})
    passes.names = (*passes.names[:-1], "b")
    passes.run_once()
    assert [placement.workload.name for placement in passes.placements()] == ["b"]


def told(outcome: Outcome, name: str) -> set[Reason]:
    """Return the reasons for which a workload gets nothing."""
    return {
        reason
        for entry in outcome.rendered.suppressed
        if entry.workload.name == name
        for reason in (entry.reason, *(refusal.reason for refusal in entry.refusals))
    }


def test_template_behind_many_failing_ones_gets_its_turn_and_so_does_each_of_them_once_mended() -> None:
    failing = 3 * TEMPLATE_ROUNDS.most
    passes = fleet(failing, FAILS)
    passes.repository.person("source", {"b.yaml": template("b")})
    passes.names, passes.missing, passes.free = (*passes.names, "b"), 1, {"worker-2": 2}
    outcomes = [passes.run_once() for _ in range(5)]
    assert {placement.workload.name for placement in passes.placements()} == {NEIGHBOUR, "b"}
    assert Reason.UNTRIED in told(outcomes[0], "b")
    for name in passes.names[:failing]:
        assert any(Reason.NOT_RENDERED in told(outcome, name) for outcome in outcomes)
    assert Reason.NOT_RENDERED in told(outcomes[2], "a000")
    passes.free = {"worker-2": 3}
    passes.repository.person("source", {"a000.yaml": template("a000")})
    passes.run_once()
    assert {placement.workload.name for placement in passes.placements()} == {NEIGHBOUR, "a000", "b"}


@pytest.mark.parametrize(
    "changed",
    [
        {"README.md": "more words\n"},
        {"neighbour.yaml": template(NEIGHBOUR, workspace="other", note="changed")},
        {"policies.yaml": SOURCE_FILES["policies.yaml"] + "# the same\n"},
        {"policies.yaml": SOURCE_FILES["policies.yaml"].replace("coolDown: 1m", "coolDown: 2m")},
        {"clusters.yaml": SOURCE_FILES["clusters.yaml"].replace("spec: {}", "spec: {pricePerGPUHour: 2}")},
        {f"a{number:03}.yaml": f"# a comment\n{template(f'a{number:03}', note=FAILS)}" for number in range(20)},
    ],
)
def test_commit_to_something_else_does_not_begin_the_turns_again(changed: dict[str, str]) -> None:
    passes = fleet(2 * TEMPLATE_ROUNDS.most, FAILS)
    passes.missing, passes.free = 1, {"worker-2": 2}
    assert Reason.NOT_RENDERED in told(passes.run_once(), "a009")
    passes.repository.person("source", changed)
    outcome = passes.run_once()
    assert Reason.NOT_RENDERED in told(outcome, "a019")


def test_push_that_is_not_taken_does_not_begin_the_turns_again() -> None:
    passes = fleet(TEMPLATE_ROUNDS.most, FAILS)
    passes.repository.person("source", {"b.yaml": template("b")})
    passes.names, passes.missing, passes.free = (*passes.names, "b"), 1, {"worker-2": 2}
    assert Reason.UNTRIED in told(passes.run_once(), "b")
    refuse_next_push(passes.repository)
    with pytest.raises(Conflict):
        passes.run_once()
    passes.run_once()
    assert {placement.workload.name for placement in passes.placements()} == {NEIGHBOUR, "b"}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("fleet.yaml", "engine: manifests", "engine: flux"),
        ("clusters.yaml", "{name: worker-2}", "{name: worker-2, labels: {zone: a}}"),
        ("workspaces.yaml", "namespaces: [demo]", "namespaces: [demo, more]"),
        ("policies.yaml", "coolDown: 1m", "coolDown: 1m\n  duration: {default: 20m}"),
    ],
)
def test_change_to_what_templates_are_rendered_with_gives_them_another_try(file: str, old: str, new: str) -> None:
    passes = fleet(2 * TEMPLATE_ROUNDS.most, FAILS)
    passes.missing, passes.free = 1, {"worker-2": 2}
    passes.run_once()
    text = passes.repository.tree("source")[file].decode()
    passes.repository.person("source", {file: text.replace(old, new)})
    outcome = passes.run_once()
    assert Reason.NOT_RENDERED in told(outcome, "a009")
    assert Reason.NOT_RENDERED not in told(outcome, "a019")


def test_failures_are_tried_again_once_a_pass_has_left_nothing_untried() -> None:
    passes = fleet(TEMPLATE_ROUNDS.most, FAILS)
    passes.missing, passes.free = 1, {"worker-2": 2}
    passes.run_once()
    assert passes.memory.failures.unwritable
    passes.run_once()
    assert passes.memory.failures == EarlierFailures()


def test_template_that_was_not_written_for_want_of_a_turn_is_told_as_untried() -> None:
    passes = fleet(60, LONG)
    passes.free = {"worker-2": 300}
    _, rendered = draft(passes.world(), passes.look(), lambda inputs: decide(replace(inputs, unwritable={})))
    late = [entry for entry in rendered.suppressed if entry.message.endswith(UNTRIED)]
    assert late
    assert {entry.reason for entry in late} == {Reason.UNTRIED}


def test_long_expressions_of_a_workspace_share_one_bound_and_come_all_the_same() -> None:
    number = 60
    passes = fleet(number, LONG)
    passes.free = {"worker-2": 4 * number + 4}
    outcome = passes.run_once()
    first = {placement.workload.name for placement in passes.placements()}
    assert NEIGHBOUR in first
    assert 1 < len(first) < number
    assert Reason.UNTRIED in reasons(outcome, "llm")
    passes.run()
    assert len(passes.placements()) == number + 1


def test_compiling_is_charged_once_for_all_clusters() -> None:
    passes = fleet(1, "x")
    lines = "".join(f"    n{index}: 'compiled once {index} {{{{ replicas }}}}'\n" for index in range(900))
    data = f"""\
    - name: data
      manifest:
        apiVersion: v1
        kind: ConfigMap
        metadata: {{name: data, namespace: demo}}
        data:
{lines.replace("    n", "          n")}"""
    text = template("a000").replace("  steps:", data + "  steps:")
    clusters = [f"worker-{number}" for number in range(2, 12)]
    files = {
        "a000.yaml": text,
        "clusters.yaml": "---\n".join(
            f"apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec: {{}}\n"
            for name in ("worker-1", *clusters)
        ),
        "workspaces.yaml": SOURCE_FILES["workspaces.yaml"].replace(
            "[worker-1, worker-2, worker-3]", f"[worker-1, {', '.join(clusters)}]"
        ),
        "policies.yaml": SOURCE_FILES["policies.yaml"].replace(
            "[{name: worker-2}, {name: worker-3}]", f"[{', '.join(f'{{name: {name}}}' for name in clusters)}]"
        ),
        "neighbour.yaml": template(NEIGHBOUR),
    }
    passes.repository.person("source", files)
    passes.names, passes.missing, passes.free = ("a000",), len(clusters), dict.fromkeys(clusters, 1)
    outcome = passes.run_once()
    assert len(passes.placements()) == len(clusters)
    assert Reason.UNTRIED not in reasons(outcome, "llm")


def test_expressions_of_a_file_share_one_bound() -> None:
    note = "{{1}}" * 1_666
    number = 1 + FILE_EXPRESSIONS.most // 4_998
    documents = [template(f"a{index}", note=f"{index}{note}") for index in range(number)]
    assert parse_file("---\n".join(documents[:-2]).encode()).problems == ()
    file = parse_file("---\n".join((*documents, *documents)).encode())
    assert [problem.message for problem in file.problems] == ["the expressions of the file have over 100,000 tokens"]
    assert file.broken
