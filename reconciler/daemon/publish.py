"""What a plan needs from outside before it can be written, and the writing: commits, then one push.

Called by `reconcile` only. A rejected push is not handled here: it means that the whole pass has to be run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.core import render
from reconciler.core.engines import engine
from reconciler.errors import InvalidInput
from reconciler.model.ids import CommitId
from reconciler.model.plan import Extend, Move, Plan, Restore, Revert
from reconciler.model.tree import Commit, LoggedCommit, Tips
from reconciler.model.workload import Json
from reconciler.ports import Charts, Repository


def gather(repository: Repository, charts: Charts, plan: Plan, specs: render.Specs, tips: Tips) -> render.Material:
    """Fetch what the plan's commits are written from: rendered charts, files to restore, commits that are undone."""
    rendered: dict[str, dict[str, tuple[Json, ...]]] = {}
    failed: dict[str, str] = {}
    for change in plan.changes:
        placement = render.written(change)
        if placement is None or placement.path not in specs.ready:
            continue
        chosen = engine(placement.engine)
        try:
            rendered[placement.path] = {
                chart.name: tuple(charts.template(chart, hooks=chosen.hooks))
                for chart in chosen.to_render(specs.ready[placement.path])
            }
        except InvalidInput as error:
            failed[placement.path] = str(error)
    restored = [
        blob for change in plan.changes if isinstance(change, Restore) for blob in change.tampered.files.values()
    ]
    extended = [change.before.path for change in plan.changes if isinstance(change, Extend)]
    records = {}
    if extended and tips.output is not None:
        blobs = {
            path: entry.blob
            for path in extended
            for entry in repository.entries(tips.output, under=(f"{path}/placement.yaml",))
        }
        for change in plan.changes:
            if isinstance(change, Restore) and change.tampered.placement.path in blobs:
                path = change.tampered.placement.path
                blobs[path] = change.tampered.files[f"{path}/placement.yaml"]
        contents = repository.read(blobs.values())
        records = {path: contents[blob] for path, blob in blobs.items()}
    return render.Material(
        charts=rendered,
        failed=failed,
        blobs=repository.read(restored) if restored else {},
        records=records,
        history=_history(repository, plan, tips),
    )


def _history(repository: Repository, plan: Plan, tips: Tips) -> dict[str, tuple[LoggedCommit, ...]]:
    """Find the commits of every placement that ends, in one walk back to the beginning of the oldest of them."""
    ending = [change.placement for change in plan.changes if isinstance(change, Revert)]
    ending += [change.before for change in plan.changes if isinstance(change, Move)]
    if not ending or tips.output is None:
        return {}
    wanted = {placement.id for placement in ending}
    found: dict[str, list[LoggedCommit]] = {}
    for commit in repository.log(tips.output, since=min(placement.created_at for placement in ending)):
        placement = commit.trailers.get("Overspill-Placement", "")
        if placement in wanted:
            found.setdefault(placement, []).append(commit)
    return {placement: tuple(commits) for placement, commits in found.items()}


def publish(repository: Repository, tips: Tips, commits: Sequence[Commit]) -> tuple[CommitId, ...]:
    """Write the commits on top of the output tip and push them at once; nothing is visible until all of it is.

    Returns their ids in order, none when there is nothing to write. Raises Conflict when the tip has moved.
    """
    if not commits:
        return ()
    ids = tuple(repository.write(tips.output, commits))
    repository.push(ids[-1], old=tips.output)
    return ids
