"""A frame of the demo fits the screen, and shows every GPU, replica, commit and reason that it has room for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from reconciler.demo.branch_log import LandedCommit
from reconciler.demo.live import opened_view
from reconciler.demo.picture import Frame, draw_frame
from reconciler.demo.view import ClusterScene, PlacementScene, WallTime
from reconciler.text.gpu_cells import GpuUse

BURST = LandedCommit(
    id="4ee14e6",
    author="Overspill",
    at=100,
    subject="burst(llm/vllm): 3 replicas on worker-2 for 20s",
    reasons=("3 pods unschedulable on worker-1 for 3s.",),
    placement="vllm-1",
    expires=datetime.fromtimestamp(120, UTC),
)
FRAME = Frame(
    chapter="2. A shortage",
    says="The autoscaler asks for more.",
    lapse=12.0,
    now=110.0,
    clusters=(
        ClusterScene(name="worker-1", nodes=({GpuUse.HOME: 8}, {GpuUse.HOME: 8}), waiting=5, home=True),
        ClusterScene(
            name="worker-2",
            nodes=({GpuUse.BURST: 3, GpuUse.OTHER: 4, GpuUse.FREE: 1},),
            placements=(PlacementScene(name="vllm-1", replicas=3, begins=100.0, ends=120.0),),
        ),
        ClusterScene(name="worker-3", nodes=({GpuUse.FREE: 8}, {GpuUse.OTHER: 4, GpuUse.FREE: 4})),
    ),
    commits=((BURST, 11.0),),
    reason="3 pods unschedulable on worker-1 for 3s.",
    voice=("Overspill", "pushed 1 commit to placements"),
    keys=True,
)


def drawn(frame: Frame, width: int = 100, height: int = 30) -> str:
    return "\n".join(line.plain for line in draw_frame(frame, width, height))


@pytest.mark.parametrize(("width", "height"), [(20, 5), (60, 16), (80, 24), (140, 40), (300, 90)])
def test_a_frame_is_as_large_as_the_screen(width: int, height: int) -> None:
    many = replace(FRAME, commits=((BURST, 1.0),) * 60, says="Said. " * 90, reason="Because. " * 90)
    for frame in (FRAME, many, Frame()):
        lines = draw_frame(frame, width, height)
        assert len(lines) == height
        assert max(line.cell_len for line in lines) <= width


def test_gpus_replicas_and_what_is_left_of_a_burst_are_shown() -> None:
    text = drawn(FRAME)
    assert "▣ ▣ ▣ ▣ ▣ ▣ ▣ ▣   ▣ ▣ ▣ ▣ ▣ ▣ ▣ ▣" in text
    assert "■ ■ ■ ▪ ▪ ▪ ▪ □" in text
    assert "!!✓✓✓ 5 find no node, 3 elsewhere" in text
    assert "7 of 8 GPUs" in text
    (bar,) = [line for line in text.splitlines() if "vllm-1 " in line]
    assert "10s left" in bar
    assert bar.count("━") == pytest.approx(bar.count("─"), abs=1)


def test_a_small_screen_keeps_the_newest_commits_and_the_keys() -> None:
    newest = replace(BURST, id="fffffff")
    text = drawn(replace(FRAME, commits=(*((BURST, 1.0),) * 20, (newest, 11.0))), 80, 24)
    assert "fffffff" in text
    assert " q  end" in text.splitlines()[-1]
    assert " q  end" not in drawn(replace(FRAME, keys=False))


def test_a_new_commit_stands_out_and_one_by_hand_names_its_author() -> None:
    def styles(lapse: float) -> set[str]:
        return {
            str(span.style)
            for line in draw_frame(replace(FRAME, lapse=lapse), 100, 30)
            for span in line.spans
            if line.plain[span.start : span.end] == BURST.id
        }

    assert (styles(12.0), styles(60.0)) == ({"reverse yellow"}, {"yellow"})
    assert "Ann: burst(" in drawn(replace(FRAME, commits=((replace(BURST, author="Ann"), 11.0),)))


def test_a_screen_of_ascii_gets_ascii_cells() -> None:
    text = drawn(replace(FRAME, ascii_only=True, says="Said. " * 90))
    assert "# # # x x x x ." in text
    assert text.isascii()


def test_forced_colours_draw_no_picture_into_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with opened_view(WallTime(), plain=False) as view:
        view.chapter("A shortage")
    assert capsys.readouterr().out.endswith("between them.\n\nA shortage\n")
