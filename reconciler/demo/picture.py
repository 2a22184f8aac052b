"""One frame of the demo as lines of a screen: clusters, commits, the reason, and the keys. Pure.

Values and a size come in; exactly so many lines come out, none of them wider than the screen.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rich.text import Text

from reconciler.demo.branch_log import OVERSPILL, LandedCommit
from reconciler.demo.keys import LEGEND, Key
from reconciler.demo.view import ClusterScene, PlacementScene
from reconciler.text.gpu_cells import GpuUse, draw_gpus, legend
from reconciler.text.wording import count

_GAP = 3
_FRESH = 2.5
"""Seconds for which a commit that has just landed stands out."""
_ASCII = str.maketrans("✓━─…", "v=-~")
_TALL = 20
"""Lines for commits from which on their reasons are shown as well."""
_KINDS: Mapping[str, str] = {"burst": "green", "Revert": "red", "Remove": "red", "resize": "yellow", "extend": "cyan"}
"""Colours of commits by the first word of their subjects."""
_VOICES: Mapping[str, str] = {"Ann": "magenta", "Overspill": "green", "check": "cyan"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a frame shows."""

    chapter: str = ""
    says: str = ""
    lapse: float = 0.0
    """Seconds since the beginning."""
    now: float = 0.0
    """Seconds since the epoch."""
    clusters: tuple[ClusterScene, ...] = ()
    commits: tuple[tuple[LandedCommit, float], ...] = ()
    """Commits with the lapse at which they landed, the newest last."""
    reason: str = ""
    """Why the newest change was made."""
    voice: tuple[str, str] = ("", "")
    """Who spoke last beside the clusters, and what was said."""
    keys: bool = False
    """Whether keys do anything."""
    pressed: Key | None = None
    """The key that has just been pressed."""
    ascii_only: bool = False


def draw_frame(frame: Frame, width: int, height: int) -> list[Text]:
    """Draw a frame on a screen of so many columns and lines."""
    head = [_title(frame, width), Text(), *_wrapped(frame.says, width - 2, 3, "bold"), Text()]
    foot = _foot(frame, width, max(1, min(5, (height - 15) // 3)))
    room = max(0, height - len(head) - len(foot))
    left = min(56, max(38, (width - _GAP) // 3))
    clusters = _clusters(frame, left, room)
    commits = _commits(frame, width - left - _GAP, room)
    middle = [
        _beside(clusters[row] if row < len(clusters) else Text(), commits[row] if row < len(commits) else Text(), left)
        for row in range(room)
    ]
    lines = [*head, *middle, *foot][:height]
    for line in lines:
        line.truncate(width)
        if frame.ascii_only:
            line.plain = line.plain.translate(_ASCII)
    return lines


def _title(frame: Frame, width: int) -> Text:
    seconds = int(frame.lapse)
    title = Text.assemble((" Overspill ", "bold black on green"), f"  {frame.chapter}", style="bold")
    clock = f"{seconds // 60}:{seconds % 60:02} "
    title.append(" " * max(1, width - title.cell_len - len(clock)) + clock, "dim")
    return title


def _clusters(frame: Frame, width: int, room: int) -> list[Text]:
    """Draw each cluster: its name and numbers, its GPUs, and its placements or the replicas that wait."""
    lines: list[Text] = []
    wide = all(sum(sum(node.values()) + 1 for node in cluster.nodes) * 2 <= width for cluster in frame.clusters)
    elsewhere = sum(placement.replicas for cluster in frame.clusters for placement in cluster.placements)
    for cluster in frame.clusters:
        uses = {use: sum(node.get(use, 0) for node in cluster.nodes) for use in GpuUse}
        total = sum(uses.values())
        numbers = f"{total - uses[GpuUse.FREE]} of {count(total, 'GPU')}"
        name = Text.assemble((f" {cluster.name}", "bold"), ("  the primary" if cluster.home else "", "dim"))
        name.append(" " * max(1, width - name.cell_len - len(numbers)) + numbers, "dim")
        lines.append(name)
        cells = draw_gpus(cluster.nodes, width=width - 2, lines=2, ascii_only=frame.ascii_only)
        for row in cells.lines:
            line = Text("  ")
            for text, colour in row:
                line.append("".join(f"{cell} " for cell in text) if wide else text, colour)
            lines.append(line)
        lines += _waiting(cluster, elsewhere, width) if cluster.home else []
        lines += [_placement(placement, frame.now, width) for placement in cluster.placements]
        lines.append(Text())
    shown = [use for use in GpuUse if any(node.get(use) for cluster in frame.clusters for node in cluster.nodes)]
    explained = Text("  ")
    for text, colour in legend(shown, ascii_only=frame.ascii_only):
        explained.append(text, colour or "dim")
    return [*lines, explained] if len(lines) < room else lines


def _waiting(cluster: ClusterScene, elsewhere: int, width: int) -> list[Text]:
    """Draw a mark for each replica that finds no node here: those that run elsewhere, and those that wait."""
    if not cluster.waiting:
        return [Text("  every replica has a node", "dim")]
    served = min(elsewhere, cluster.waiting)
    wait = cluster.waiting - served
    words = f" {cluster.waiting} find no node" + (f", {served} elsewhere" if served else "")
    room = max(0, width - 2 - len(words))
    return [
        Text.assemble(
            "  ",
            ("!" * min(wait, room), "bold red"),
            ("✓" * min(served, room - min(wait, room)), "green"),
            (words, "red" if wait else "dim"),
        )
    ]


def _placement(placement: PlacementScene, now: float, width: int) -> Text:
    """Draw the time that is left of a burst as a bar."""
    name = f"  {placement.name} "
    lasts = placement.ends - placement.begins
    if lasts <= 0:
        return Text(name, "dim")
    left = max(0.0, min(lasts, placement.ends - now))
    words = f" {left:.0f}s left"
    room = max(0, width - len(name) - len(words))
    filled = round(room * left / lasts)
    colour = "green" if left > lasts / 3 else "yellow"
    return Text.assemble((name, "dim"), ("━" * filled, colour), ("─" * (room - filled), "dim"), (words, "dim"))


def _commits(frame: Frame, width: int, room: int) -> list[Text]:
    """Draw the newest commits that fit, the newest last, under the command that shows them."""
    reasons = room >= _TALL
    lines: list[Text] = []
    for commit, landed in reversed(frame.commits):
        block = _commit(commit, width, fresh=frame.lapse - landed < _FRESH, reasons=reasons)
        if len(lines) + len(block) > room - 1:
            break
        lines = [*block, *lines]
    return [Text("git log placements", "dim"), *lines]


def _commit(commit: LandedCommit, width: int, *, fresh: bool, reasons: bool) -> list[Text]:
    """Draw a commit; one that has just landed stands out."""
    indent = " " * (len(commit.id) + 1)
    subject = commit.subject if commit.author == OVERSPILL else f"{commit.author}: {commit.subject}"
    words = _broken(subject, width - len(indent), 2)
    colour = _KINDS.get(commit.subject.replace("(", " ").split(" ", 1)[0], "")
    first = Text.assemble((commit.id, "reverse yellow" if fresh else "yellow"), " ")
    style = f"bold {colour}" if fresh else colour
    lines = [first.append(words[0], style), *(Text.assemble(indent, (word, style)) for word in words[1:])]
    more = _broken(commit.reasons[0], width - len(indent), 2) if reasons and commit.reasons else []
    return [*lines, *(Text.assemble(indent, (line, "dim")) for line in more)]


def _foot(frame: Frame, width: int, most: int) -> list[Text]:
    """Draw the reason, the last words, and the keys."""
    who, words = frame.voice
    voice = Text.assemble((f" {who}: " if who else "", _VOICES.get(who, "")), (words, "dim"))
    voice.truncate(width, overflow="ellipsis")
    rule = Text.assemble((" why ", "bold"), ("─" * max(0, width - 6), "dim"))
    lines = [rule, *_padded(_wrapped(frame.reason, width - 2, most, ""), most), voice]
    return [*lines, _keys(frame, width)] if frame.keys else lines


def _keys(frame: Frame, width: int) -> Text:
    line = Text()
    for char, key in LEGEND:
        line.append(f" {char} ", "black on green" if key is frame.pressed else "reverse")
        line.append(f" {key.value}  ")
    line.truncate(width)
    return line


def _wrapped(text: str, width: int, most: int, style: str) -> list[Text]:
    """Break a text into at most so many lines, each after a blank."""
    return [Text(f" {line}", style) for line in _broken(text, width, most)] if text else []


def _broken(text: str, width: int, most: int) -> list[str]:
    """Break a text into at most so many lines, and at least one; what is cut off shows as an ellipsis."""
    lines = textwrap.wrap(text, max(10, width), break_on_hyphens=False, max_lines=most, placeholder=" …")
    return lines or [""]


def _padded(lines: Iterable[Text], least: int) -> list[Text]:
    filled = list(lines)
    return filled + [Text() for _ in range(least - len(filled))]


def _beside(left: Text, right: Text, width: int) -> Text:
    line = left.copy()
    line.truncate(width)
    line.append(" " * (width - line.cell_len + _GAP))
    return line.append_text(right)
