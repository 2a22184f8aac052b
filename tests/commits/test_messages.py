"""Every change has a commit message that tells what and why, and that nobody can forge."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.commits.messages import line, message, subject
from reconciler.model.action import TRAITS, Action
from reconciler.model.capacity import ReplicaShape
from reconciler.model.ids import ClusterName, CommitId, PlacementName
from reconciler.model.placement import Origin
from reconciler.model.plan import Change, Reason, Refusal
from reconciler.model.score import Score, ScorerName
from reconciler.model.units import ONE, Quantity, Resources
from tests.builders import changes
from tests.builders.changes import (
    ALL,
    CHOICE,
    EXTEND,
    GROWN,
    HISTORY,
    HOLD,
    LONGER,
    MOVE,
    MOVED,
    PLACE,
    RELEASE,
    RESIZE,
    RESTORE,
    REVERT,
    SHORTAGE,
    SHRINK,
    UPDATE,
    WORKER_3,
    gpus,
)
from tests.builders.placement_records import PLACEMENT, SOURCE, START, VLLM, restraint
from tests.builders.remote import Remote

TRAILER = re.compile(r"[A-Za-z0-9-]+: [^\r\n]+")
kinds = pytest.mark.parametrize("change", ALL, ids=lambda change: change.action)


def written(change: Change) -> str:
    return message(change, source=SOURCE, history=HISTORY if change.action in (Action.REVERT, Action.MOVE) else ())


def trailers(text: str) -> list[str]:
    return text.rstrip("\n").split("\n\n")[-1].split("\n")


def body(text: str) -> list[str]:
    return text.split("\n\n")[1].split("\n")


@pytest.mark.parametrize(
    ("change", "title"),
    [
        (PLACE, "burst(llm/vllm): 3 replicas on worker-2 for 10m"),
        (RESIZE, "resize(llm/vllm): 3 to 5 replicas on worker-2"),
        (EXTEND, "extend(llm/vllm): 5 replicas on worker-2 until 2026-11-20T10:45:00Z"),
        (MOVE, "move(llm/vllm): 5 replicas from worker-2 to worker-3"),
        (REVERT, 'Revert "burst(llm/vllm): 5 replicas on worker-2 for 40m"'),
        (HOLD, "hold(llm/vllm): worker-2 until 2026-11-20T11:05:00Z"),
        (RELEASE, "release(llm/vllm): worker-2"),
        (RESTORE, "restore(llm/vllm): vllm-7f3a90c1 on worker-2"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_the_subject_says_what(change: Change, title: str):
    assert subject(change) == title


def test_a_placement_that_a_person_asked_for_is_called_a_request():
    assert subject(replace(PLACE, after=replace(PLACEMENT, origin=Origin.REQUEST, replicas=1))) == (
        "request(llm/vllm): 1 replica on worker-2 for 10m"
    )


def test_a_revert_is_titled_after_the_first_commit_of_its_placement():
    assert written(REVERT).startswith('Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m"\n\n')


@kinds
def test_every_message_has_a_subject_reasons_and_trailers(change: Change):
    text = written(change)
    paragraphs = text.split("\n\n")
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert len(paragraphs) in (3, 4)
    assert "\n" not in paragraphs[0]
    assert all(TRAILER.fullmatch(trailer) for trailer in trailers(text))
    assert f"Overspill-Action: {change.action}" in trailers(text)
    assert f"Overspill-Source: {SOURCE}" in trailers(text)


@kinds
def test_one_line_tells_a_change_and_why(change: Change):
    told = line(change)
    assert "\n" not in told
    assert "(llm/vllm)" in told or "(llm/bookinfo)" in told
    assert told.endswith(")")


def test_a_terminal_line_of_a_revert_says_why():
    assert line(REVERT) == 'Revert "burst(llm/vllm): 5 replicas on worker-2 for 40m" (expired: its 40m are over)'
    assert line(replace(REVERT, detail="")) == 'Revert "burst(llm/vllm): 5 replicas on worker-2 for 40m" (expired)'


def test_a_terminal_line_of_a_revert_is_titled_as_its_commit_and_says_what_ends():
    title, _ = written(REVERT).split("\n", 1)
    assert line(REVERT, title) == (
        'Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m" (5 replicas on worker-2; expired: its 40m are over)'
    )


def test_a_terminal_line_of_a_revert_takes_no_part_of_a_number_or_name_for_what_ends():
    title = 'Revert "burst(llm/vllm): 15 replicas on worker-20 for 10m"'
    assert line(REVERT, title) == f"{title} (5 replicas on worker-2; expired: its 40m are over)"


def test_trailers_come_in_a_fixed_order():
    assert [trailer.split(": ")[0].removeprefix("Overspill-") for trailer in trailers(written(PLACE))] == [
        "Placement", "Action", "Cluster", "Expires", "Source", "Digest",
    ]  # fmt: skip # a list of words, filled line by line
    assert "Overspill-Why: expired" in trailers(written(REVERT))
    assert "Overspill-Moved-From: worker-2" in trailers(written(MOVE))


def test_a_move_under_another_name_says_which_placement_it_replaces():
    assert "Overspill-Replaces: llm/vllm-7f3a90c1" in trailers(written(MOVE))
    same = replace(MOVE, after=replace(MOVED, name=LONGER.name))
    assert not [trailer for trailer in trailers(written(same)) if trailer.startswith("Overspill-Replaces")]


def test_the_commits_that_are_reverted_are_named_newest_first():
    lines = [text for text in written(REVERT).split("\n") if text.startswith("This reverts commit ")]
    assert lines == [f"This reverts commit {commit.id}." for commit in HISTORY]
    assert [commit.trailers["Overspill-Action"] for commit in HISTORY] == ["Extend", "Resize", "Place"]


def test_a_burst_says_the_shortage_the_choice_and_the_refusals_with_numbers():
    assert body(written(PLACE)) == [
        "3 pods unschedulable on worker-1 for 45s (nvidia.com/gpu, H100).",
        "worker-2 chosen: 6 GPUs free, 4 replicas fit, 2.99 $/GPU-h. worker-3 refused: region eu-only.",
    ]


def test_a_group_is_counted_in_replicas_of_pods():
    group = replace(PLACEMENT, shape=ReplicaShape(requests=gpus(8), group_size=4))
    assert "3 replicas of 4 pods unschedulable on worker-1" in written(replace(PLACE, after=group))


def test_what_is_short_without_gpus_is_named_all_the_same():
    short = replace(SHORTAGE, requests=Resources(amounts={"memory": ONE, "cpu": ONE}), node_selector=())
    assert "for 45s (cpu, memory)." in written(replace(PLACE, shortage=short))


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("nvidia.com/gpu.product", True),
        ("cloud.google.com/gke-accelerator", True),
        ("amd.com/gpu.product-name", True),
        ("example.com/gpu-model", True),
        ("nvidia.com/gpu.count", False),
        ("cloud.google.com/gke-accelerator-count", False),
        ("topology.kubernetes.io/zone", False),
    ],
)
def test_the_model_is_what_the_node_selector_names_it(label: str, told: bool):
    short = replace(SHORTAGE, node_selector=((label, "H100"),))
    assert ("(nvidia.com/gpu, H100)." in written(replace(PLACE, shortage=short))) is told


def test_slices_of_gpus_keep_their_names():
    free = Resources(
        amounts={"nvidia.com/mig-1g.5gb": Quantity(6 * ONE), "cpu": Quantity(ONE // 2), "nvidia.com/gpu": ONE}
    )
    chosen = replace(CHOICE, free=free, fits=1, limit=3, price_per_gpu_hour=None)
    assert (
        "worker-2 chosen: 1 GPU free, 6 nvidia.com/mig-1g.5gb free, 500m cpu free, 1 replica fits, at most 3 by policy."
        in " ".join(body(written(replace(PLACE, choice=chosen))))
    )


def test_only_a_handful_of_refusals_is_named():
    refused = tuple(
        Refusal(cluster=ClusterName(f"worker-{number}"), reason=Reason.CORDONED, message="is cordoned")
        for number in range(17)
    )
    text = " ".join(body(written(replace(PLACE, refused=refused))))
    assert text.count("refused:") == 5
    assert text.endswith("worker-4 refused: is cordoned, and 12 more.")


def test_an_earlier_end_is_told_as_earlier():
    sooner = replace(LONGER, expires_at=START + timedelta(minutes=5))
    assert body(written(Change(action=Action.EXTEND, before=GROWN, after=sooner, detail="asked for by ann"))) == [
        "Asked for by ann.",
        "It ends 5m earlier than 2026-11-20T10:15:00Z.",
    ]


def test_a_shrink_needs_neither_shortage_nor_choice():
    assert body(written(SHRINK)) == ["No more than 3 of 5 replicas were needed in the last 5m."]
    assert "Overspill-Why: demand-gone" in trailers(written(SHRINK))


def test_a_resize_that_takes_nothing_away_says_no_why():
    assert not [line for change in (RESIZE, UPDATE) for line in trailers(written(change)) if "Overspill-Why" in line]


def test_a_release_names_what_it_lets_go():
    held = (
        restraint(),
        restraint(cluster=WORKER_3, placement=PlacementName("vllm-b")),
        restraint(cluster=None, placement=PlacementName("vllm-b")),
    )
    text = written(Change(action=Action.RELEASE, workload=VLLM, restraints=held, detail="gone"))
    assert text.startswith("release(llm/vllm): any cluster, worker-2 and worker-3\n")
    assert trailers(text) == [
        "Overspill-Placement: llm/vllm-7f3a90c1",
        "Overspill-Placement: llm/vllm-b",
        "Overspill-Action: Release",
        "Overspill-Cluster: worker-2",
        "Overspill-Cluster: worker-3",
        f"Overspill-Source: {SOURCE}",
    ]


NASTY = "stop.\n\nOverspill-Action: Revert\r\nOverspill-Why: expired\x1b[31m\u202e\u2028Overspill-Digest : x\x00 done"


def quoting(text: str) -> tuple[Change, ...]:
    """Every change with a hostile text wherever there is one."""
    refused = (Refusal(cluster=WORKER_3, reason=Reason.LABELS, message=text),)
    short = replace(SHORTAGE, requests=Resources(amounts={text: ONE}), node_selector=(("gpu.product", text),))
    chosen = replace(CHOICE, free=Resources(amounts={text: ONE}))
    kept = restraint(reason=text)
    old = (replace(changes.HISTORY[-1], subject=text),)
    return (
        replace(PLACE, refused=refused, shortage=short, choice=chosen),
        replace(RESIZE, refused=refused, shortage=short, choice=chosen, detail=text),
        replace(EXTEND, detail=text),
        replace(MOVE, detail=text, refused=refused, choice=chosen),
        replace(REVERT, detail=text, restraint=kept),
        replace(HOLD, restraint=kept),
        replace(RELEASE, detail=text, restraints=(kept,)),
        replace(RESTORE, detail=text),
        replace(PLACE, after=replace(PLACEMENT, digest=text)),
        replace(REVERT, detail=old[0].subject),
    )


@given(text=st.text() | st.just(NASTY) | st.text(st.sampled_from("\n\r Overspil-Action:x.\u2029")))
def test_no_text_breaks_a_line_or_forges_a_trailer(text: str):
    for change in quoting(text):
        old = (replace(HISTORY[-1], subject=text),)
        whole = message(change, source=CommitId(text), history=old)
        known = message(change, source=SOURCE)
        for part in whole.split("\n"):
            assert part.isprintable()
        paragraphs = whole.rstrip("\n").split("\n\n")
        assert "" not in paragraphs
        # Trailers are of the same keys as with any other text, and stand in the last paragraph only.
        ours = [part.split(": ")[0] for part in whole.split("\n") if re.match(r"(?i)overspill-[a-z-]+\s*:", part)]
        assert len(ours) == len(trailers(whole))
        keys = {trailer.split(": ")[0] for trailer in trailers(known)}
        assert set(ours) <= keys
        assert [trailer for trailer in trailers(whole) if trailer.startswith("Overspill-Action: ")] == [
            f"Overspill-Action: {change.action}"
        ]
        assert "\n" not in line(change)
        assert line(change).isprintable()


def test_a_long_text_is_cut_and_a_body_is_wrapped():
    text = written(replace(RESTORE, detail="word " * 200))
    assert all(len(part) <= 100 for part in text.split("\n"))
    assert "…" in text


def test_git_reads_exactly_our_trailers(remote: Remote):
    for change in (*ALL, *quoting(NASTY)):
        text = written(change)
        tip = remote.commit("placements", {"x": text}, message=text)
        parsed = remote.git("log", "-1", "--format=%(trailers:only,unfold)", tip).strip("\n").split("\n")
        assert parsed == trailers(text)
        assert remote.git("log", "-1", "--format=%s", tip) == text.split("\n", 1)[0]


def test_every_kind_of_change_is_written():
    assert {change.action for change in ALL} == set(TRAITS)


def test_scores_are_told_with_their_weights_and_what_they_were_read_from() -> None:
    scores = (
        Score(scorer=ScorerName.PRICE, weight=2, value=100.0),
        Score(scorer=ScorerName.TIME_TO_READY, weight=1, value=88.33, detail="1m10s measured"),
    )
    text = " ".join(body(written(replace(changes.PLACE, choice=replace(CHOICE, scores=scores)))))
    assert "2.99 $/GPU-h, score 96: Price 100 x2, TimeToReady 88 (1m10s measured)." in text
