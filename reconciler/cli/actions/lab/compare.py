"""`lab compare`: two source branches on recorded passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.adapters.recording_files import read_recording
from reconciler.app.commands import connected
from reconciler.cli import printing
from reconciler.cli.actions.lab.replay import fetch_history
from reconciler.core.fleet.read_file import is_read
from reconciler.core.recording.pass_record import PassRecord
from reconciler.daemon.reconcile import World
from reconciler.daemon.source import missing_branch
from reconciler.errors import InvalidInput, Problem
from reconciler.lab.branch_comparison import BranchFiles, compare_branches
from reconciler.settings import Settings

if TYPE_CHECKING:
    from reconciler.cli.commands.lab import CompareForm


def compare(settings: Settings, base: str, head: str, recording: Path, form: CompareForm) -> None:
    """Print what the files of `head` would have changed on recorded passes, beside those of `base`."""
    with connected(replace(settings, source_branch=head)) as (world, _):
        files = _files(world)
    with connected(replace(settings, source_branch=base)) as (world, memory):
        before = _files(world)
        fetch_history(world)
        problems: list[Problem] = []
        records: list[PassRecord] = []
        for entry in read_recording(recording):
            if isinstance(entry, Problem):
                problems.append(entry)
            else:
                records.append(entry)
        if not records:
            raise InvalidInput(f"reading the recording: {recording} holds no pass that can be read")
        comparison = compare_branches(
            BranchFiles(name=base, files=before),
            BranchFiles(name=head, files=files),
            records,
            repository=world.repository,
            output=memory.branch,
            charts=world.charts,
        )
    if form == "json":
        printing.json_out(comparison.to_json())
    else:
        printing.document(comparison.markdown())
    if printing.problems(problems):
        raise click.exceptions.Exit(1)


def _files(world: World) -> Mapping[str, bytes]:
    """Read the files of the source branch."""
    tip = world.repository.fetch().source
    if tip is None:
        raise missing_branch(world.repository, world.source_branch)
    blobs = {entry.path: entry.blob for entry in world.repository.entries(tip) if is_read(entry.path)}
    contents = world.repository.read(blobs.values())
    return {path: contents[blob] for path, blob in blobs.items()}
