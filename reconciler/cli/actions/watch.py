"""`watch`: clusters as cells of GPUs, workloads and the last commits on one screen, drawn anew as they change."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import click
from rich.cells import cell_len

from reconciler.app.commands import connected
from reconciler.cli import printing
from reconciler.cli.actions.follow import follow
from reconciler.cli.columns import NONE, fitted
from reconciler.core.commits.history import own, reasons_in_body
from reconciler.core.explain.gpu_use import gpu_uses
from reconciler.daemon.reconcile import PassDecision, World
from reconciler.daemon.status import FleetStatus, PlacementStatus, WorkloadStatus
from reconciler.daemon.status import status as status_of
from reconciler.model.ids import ClusterName
from reconciler.model.tree import LoggedCommit
from reconciler.preview import decision_at
from reconciler.settings import Settings
from reconciler.text.ages import format_age
from reconciler.text.gpu_cells import GpuUse, Run, draw_gpus, legend
from reconciler.text.redaction import redacted, without_query
from reconciler.text.wording import count, sanitize

_COMMITS = 20
"""Commits that are read; as many are shown as there is room for."""
_LEAST_COMMITS = 3
"""Commits for which room is kept below the workloads."""
_TWO_LINES = 2
_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPicture:
    """What one screen shows."""

    title: str
    status: FleetStatus
    uses: Mapping[ClusterName, Mapping[GpuUse, int]]
    """The GPUs of each cluster by use."""
    commits: Sequence[LoggedCommit]
    """Our commits on the output branch, newest first."""


def watch(settings: Settings) -> None:
    """Draw the fleet until Ctrl-C."""
    if not sys.stdout.isatty():
        raise click.UsageError(
            "this needs a terminal (try `overspill status --watch`, which prints a line for a change)"
        )

    def look() -> None:
        with connected(settings) as (world, memory):
            decision = decision_at(world, memory, None)
            picture = fleet_picture(settings, world, decision)
        size = shutil.get_terminal_size()
        for line in draw(picture, size.columns, size.lines - 1, ascii_only=_ascii_only()):
            printing.write(line)
        printing.problems(decision.problems)

    follow(look)


def fleet_picture(settings: Settings, world: World, decision: PassDecision) -> FleetPicture:
    """Gather what a screen shows of a pass."""
    tip = decision.tips.output
    log = world.repository.log(tip, limit=_COMMITS) if tip is not None else []
    return FleetPicture(
        title=f"{redacted(without_query(settings.repo))}: {settings.source_branch} -> {settings.output_branch}",
        status=status_of(decision),
        uses=gpu_uses(decision.inputs),
        commits=own(log, world.author),
    )


def _ascii_only() -> bool:
    """Return whether the terminal cannot show the characters of cells."""
    try:
        "■▨▣▪□".encode((sys.__stdout__ or sys.stdout).encoding or "ascii")
    except UnicodeEncodeError:
        return True
    return False


def draw(picture: FleetPicture, width: int, height: int, *, ascii_only: bool = False) -> list[str]:
    """Draw a picture in so many lines at most; what finds no room is counted."""
    status = picture.status
    clock = f"{status.now:%H:%M:%S} UTC"
    title = _cut(picture.title, width - len(clock) - 2)
    head = [click.style(title, bold=True) + " " * (width - cell_len(title) - len(clock)) + clock, ""]
    clusters = _clusters(picture, width, lines=_TWO_LINES, ascii_only=ascii_only)
    if len(clusters) > height // 2:
        clusters = _clusters(picture, width, lines=1, ascii_only=ascii_only)
    clusters = _bounded(clusters, max(2, height // 2), "cluster")
    workloads = _workloads(status, width)
    room = height - len(head) - len(clusters) - 2
    workloads = _bounded(workloads, max(2, room - 2 * _LEAST_COMMITS - 1), "workload")
    commits = _commits(picture, width, room - len(workloads) - 1)
    return [*head, *clusters, "", *workloads, "", *commits][:height]


def _clusters(picture: FleetPicture, width: int, *, lines: int, ascii_only: bool) -> list[str]:
    """Draw each cluster: its name, its cells, its counts, and why it is not seen."""
    clusters = picture.status.clusters
    label = max((cell_len(cluster.cluster) for cluster in clusters), default=0)
    cells = [
        draw_gpus([picture.uses.get(cluster.cluster, {})], width=width // 3, lines=lines, ascii_only=ascii_only)
        for cluster in clusters
    ]
    widest = max((_length(line) for drawing in cells for line in drawing.lines), default=0)
    margin = " " * (label + len(_INDENT))
    drawn: list[str] = []
    for cluster, drawing in zip(clusters, cells, strict=True):
        first, *more = drawing.lines or ((),)
        scale = f", a cell is {drawing.gpus_per_cell} GPUs" if drawing.gpus_per_cell > 1 else ""
        room = width - len(margin) - widest - len(_INDENT)
        counts = _cut(_counts(picture.uses.get(cluster.cluster, {})) + scale, room)
        note = _cut(_INDENT + cluster.message, room - cell_len(counts)) if cluster.message else ""
        name = f"{cluster.cluster}{' ' * (len(margin) - cell_len(cluster.cluster))}"
        blanks = " " * (widest - _length(first) + len(_INDENT))
        drawn.append(f"{name}{_coloured(first)}{blanks}{counts}{click.style(note, fg='yellow')}")
        drawn += [margin + _coloured(line) for line in more]
    shown = [use for use in GpuUse if any(uses.get(use) for uses in picture.uses.values())]
    return [*drawn, margin + _coloured(legend(shown, ascii_only=ascii_only))]


def _length(line: Sequence[Run]) -> int:
    return sum(len(text) for text, _ in line)


def _counts(uses: Mapping[GpuUse, int]) -> str:
    """Count the GPUs of a cluster in words."""
    total = sum(uses.values())
    if not total:
        return "no GPUs seen"
    words = {GpuUse.BURST: "ours", GpuUse.STARTING: "starting", GpuUse.HOME: "at home", GpuUse.OTHER: "theirs"}
    parts = [f"{uses[use]} {word}" for use, word in words.items() if uses.get(use)]
    return ", ".join([count(total, "GPU"), *parts, f"{uses.get(GpuUse.FREE, 0)} free"])


def _workloads(status: FleetStatus, width: int) -> list[str]:
    """Draw the workloads, those that miss most first."""
    where: dict[object, list[PlacementStatus]] = {}
    for row in status.placements:
        where.setdefault(row.placement.workload, []).append(row)
    ordered = sorted(status.workloads, key=lambda workload: (-(workload.deficit or 0), -workload.placed))
    headers: tuple[str, ...] = ("WORKLOAD", "WANTED", "RUNNING", "MISSING", "ELSEWHERE", "NOTE")
    rows = [
        [
            printing.cell(text)
            for text in (
                workload.workload, workload.wanted, workload.running, workload.deficit,
                _where(where.get(workload.workload, ()), status.now), _note(workload),
            )
        ]
        for workload in ordered
    ]  # fmt: skip # a row as it is drawn
    if not rows:
        return ["No workloads."]
    if all(row[-1] == NONE for row in rows):
        headers, rows = headers[:-1], [row[:-1] for row in rows]
    head, *lines = fitted(headers, rows, width)
    return [click.style(head, bold=True), *lines]


def _where(placements: Sequence[PlacementStatus], now: datetime) -> str:
    return ", ".join(
        f"{row.placement.where} {'-' if row.bound is None else row.bound}/{row.placement.replicas}"
        f" {format_age(row.placement.expires_at - now) if row.placement.expires_at > now else 'over'}"
        for row in placements
    )


def _note(workload: WorkloadStatus) -> str:
    held = next(iter(workload.suppressed), None)
    return workload.message if held is None else f"{held.reason}: {held.message}"


def _commits(picture: FleetPicture, width: int, room: int) -> list[str]:
    """Draw the last commits, each with the first sentence of its reasons below it."""
    if not picture.commits:
        return ["No commits yet."]
    lines: list[str] = []
    for commit in picture.commits:
        age = f"{format_age(picture.status.now - commit.at):>6}{_INDENT}"
        reason = reasons_in_body(commit.body).partition("\n")[0]
        entry = [age + click.style(_cut(sanitize(commit.subject), width - len(age)), fg=_colour(commit.subject))]
        if reason:
            entry.append(" " * len(age) + click.style(_cut(sanitize(reason), width - len(age)), dim=True))
        if len(lines) + len(entry) > room:
            break
        lines += entry
    return lines


def _colour(subject: str) -> str | None:
    return "yellow" if subject.lower().startswith("revert") else "green" if subject.startswith("burst") else None


def _bounded(lines: list[str], most: int, noun: str) -> list[str]:
    """Cut a list of lines, and count those that are left out."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… {count(len(lines) - most + 1, 'more line')} of {noun}s"]


def _cut(text: str, width: int) -> str:
    """Cut a text to one line of so many columns."""
    text = printing.printable(text).replace("\n", " ")
    if cell_len(text) <= width:
        return text
    while text and cell_len(text) >= max(width, 1):
        text = text[:-1]
    return f"{text}…" if width > 0 else ""


def _coloured(line: Sequence[Run]) -> str:
    return "".join(click.style(text, fg=colour) if colour else text for text, colour in line)
