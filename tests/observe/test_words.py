"""What components say of pods that wait is classified by their own grammar: a lack of room, or what else it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.observe.kubernetes.words import kubelet, kueue, refusals, scheduler
from reconciler.core.observe.kubernetes.words.gates import GATES, gate_wait
from reconciler.core.observe.kubernetes.words.pod_condition import unscheduled_wait
from reconciler.core.observe.kubernetes.words.sayings import Sayings
from reconciler.model.wait_reason import WaitReason

Said = dict[str, Any]
SAID: dict[str, list[Said]] = yaml.safe_load((Path(__file__).parent / "said.yaml").read_text())
NODES = "0/5 nodes are available: "
UNHELPFUL = " preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."


@pytest.mark.parametrize("case", SAID["room"], ids=lambda case: case["message"][:60])
def test_a_lack_of_room_is_told_by_what_lacks(case: Said) -> None:
    wait = scheduler.scheduling_wait(case["message"])
    assert (wait.reason.lacks_room, wait.cause, wait.way_out) == (True, case["cause"], "")


@pytest.mark.parametrize("case", SAID["scheduler"], ids=lambda case: case["message"][:60])
def test_a_node_that_names_what_a_pod_waits_for_had_room(case: Said) -> None:
    wait = scheduler.scheduling_wait(case["message"])
    assert wait.reason is WaitReason(case["reason"])
    assert not wait.reason.lacks_room
    assert "{" not in wait.cause + wait.way_out


@pytest.mark.parametrize("case", SAID["refusals"], ids=lambda case: case["message"][:60])
def test_a_refusal_is_told_by_the_plugin_that_refuses(case: Said) -> None:
    wait = refusals.refusal_wait(case["message"])
    assert wait.reason is WaitReason(case["reason"])
    assert case["words"] in wait.cause
    assert refusals.refusal_wait(f"Error creating: {case['message']}").reason is wait.reason  # as Events have it


@pytest.mark.parametrize("case", SAID["kubelet"], ids=lambda case: case["message"][:60])
def test_a_rejection_is_told_by_what_its_kubelet_says(case: Said) -> None:
    wait = kubelet.rejection_wait(case["said"], f"Pod was rejected: {case['message']}")
    assert wait is not None
    assert wait.reason is WaitReason(case["reason"])
    assert case["words"] in wait.cause


@pytest.mark.parametrize("case", SAID["kueue"], ids=lambda case: f"{case['said']}: {case['message'][:60]}")
def test_a_workload_of_kueue_waits_for_what_its_message_says(case: Said) -> None:
    wait = kueue.quota_wait(case["said"], case["message"], case.get("requeued", ""))
    assert wait.reason is WaitReason(case["reason"])


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["kueue.x-k8s.io/admission"], WaitReason.QUOTA),
        (["kueue.x-k8s.io/topology"], WaitReason.QUOTA),
        (["scheduling.volcano.sh/queue-allocation-gate"], WaitReason.QUOTA),
        (["example.com/wait-for-data"], WaitReason.GATE),
        (["kueue.x-k8s.io/admission", "example.com/wait-for-data"], WaitReason.GATE),
        (["kueue.x-k8s.io/admission-of-another"], WaitReason.GATE),
        ([], WaitReason.GATE),
    ],
)
def test_only_the_gates_of_queues_are_a_lack_of_quota(names: list[str], reason: WaitReason) -> None:
    assert gate_wait(names).reason is reason


def test_the_foreign_one_of_several_gates_is_named() -> None:
    wait = gate_wait(["kueue.x-k8s.io/admission", "example.com/wait-for-data"])
    assert wait.cause == "held by scheduling gate example.com/wait-for-data"


@pytest.mark.parametrize("case", SAID["conditions"], ids=lambda case: f"{case['said']}: {case['message'][:60]}")
def test_the_reason_of_a_condition_goes_before_its_message(case: Said) -> None:
    wait = unscheduled_wait({"reason": case["said"], "message": case["message"]}, None)
    assert wait.reason is WaitReason(case["reason"])


TABLES = {
    "scheduler.BLOCKS": scheduler.BLOCKS, "scheduler.LACKS": scheduler.LACKS, "scheduler.BOUND": scheduler.BOUND,
    "scheduler.QUOTA": scheduler.QUOTA, "scheduler.GROUP": scheduler.GROUP, "refusals": refusals.REFUSALS,
    "kueue": kueue.MESSAGES, "gates": GATES, "kubelet": kubelet.REJECTIONS,
}  # fmt: skip # a table


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_each_saying_has_its_own_meaning_and_names_its_source(table: Sayings) -> None:
    for saying in table:
        said = saying.says.replace("…", "words ").removesuffix("$").replace("{", "").replace("}", "")
        wait = table.wait(said)
        assert wait is not None, saying.says
        assert wait.reason is saying.reason, saying.says
        assert not (wait.reason.lacks_room and wait.way_out), saying.says
        assert ", " in saying.source, saying.says


PIECES = [
    *(f"{saying.says}x" for name in TABLES if name.startswith("scheduler") for saying in TABLES[name]),
    *("node(s) had untolerated taint {a: b, 3 c}", "node(s) were unschedulable"),
]


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from(PIECES)), max_size=6), st.sampled_from(["", UNHELPFUL]))
def test_a_node_that_had_room_is_never_outvoted(reasons: list[tuple[int, str]], after: str) -> None:
    wait = scheduler.scheduling_wait(NODES + ", ".join(f"{number} {says}" for number, says in reasons) + f".{after}")
    blocks = any(scheduler.BLOCKS.wait(says) for _, says in reasons)
    lacks = any(scheduler.LACKS.wait(says) for _, says in reasons)
    if blocks or lacks:
        assert wait.reason.lacks_room is not blocks


@given(st.text(max_size=300))
def test_any_text_is_classified(text: str) -> None:
    assert scheduler.scheduling_wait(text).cause
    assert scheduler.scheduler_error(text).cause
    assert refusals.refusal_wait(text).cause
    assert kueue.quota_wait("Pending", text, text).cause
    assert gate_wait([text]).cause
