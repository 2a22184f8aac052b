"""The traffic of a pass with git and Helm: the inputs of its commits, earlier receipts, and the push.

Called by `reconcile` only. A rejected push is not handled here: the whole pass has to run again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.commits import write
from reconciler.core.commits.branch_loss import refusal
from reconciler.core.commits.cluster_branches import BranchState, keeps_cluster_branches, project
from reconciler.core.commits.templates import RenderedTemplates
from reconciler.core.commits.trailers import Trailer, action, is_own
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.engines import engine, placement_files
from reconciler.core.engines.deployment import chart_steps, stated_manifests
from reconciler.core.engines.made_objects import file_suffixes
from reconciler.errors import Bug, InvalidInput, Pending, Transient
from reconciler.model.action import Action
from reconciler.model.branch_loss import BranchLoss
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.plan import CHARTS_PENDING, Plan
from reconciler.model.policy import Desired
from reconciler.model.request import Answer
from reconciler.model.tree import ROOT, Advance, Commit, Identity, LoggedCommit, Tips
from reconciler.model.workload import Json
from reconciler.ports import Charts, Repository

_MOST_READ_BACK = 1000
"""Commits: a call is made again at once, or hardly ever."""


def gather(
    repository: Repository,
    charts: Charts,
    plan: Plan,
    templates: RenderedTemplates,
    tips: Tips,
    *,
    author: Identity,
    unanchored: Iterable[ClusterName] = (),
    open_clusters: Collection[ClusterName] = (),
) -> write.CommitInputs:
    """Fetch the inputs of the plan's commits: rendered charts, files to restore, commits that are undone.

    `unanchored` are clusters whose engine's directory is about to begin, `open_clusters` those with placements whose
    objects only rendering tells.
    """
    rendered, failed, bugs = _charts(charts, templates)
    directories = {directory for change in plan.changes for directory in write.directories_of(change)}
    directories |= {directory for cluster in unanchored for directory in write.directories_of_cluster(cluster)}
    restored = [drifted for change in plan.changes if (drifted := change.drifted) is not None]
    to_restore = [blob for drifted in restored for blob in drifted.files.values()]
    extended = [change.placement.path for change in plan.changes if change.action is Action.EXTEND]
    records = {}
    if extended and tips.output is not None:
        blobs = {
            path: entry.blob
            for path in extended
            for entry in repository.entries(tips.output, under=(f"{path}/placement.yaml",))
        }
        for drifted in restored:
            path = drifted.placement.path
            if path in blobs:
                blobs[path] = drifted.files[f"{path}/placement.yaml"]
        contents = repository.read(blobs.values())
        records = {path: contents[blob] for path, blob in blobs.items()}
    return write.CommitInputs(
        standing=_standing(repository, plan, templates, tips),
        beside=_beside(repository, templates, rendered, open_clusters, tips),
        charts=rendered,
        failed=failed,
        bugs=bugs,
        blobs=repository.read(to_restore) if to_restore else {},
        records=records,
        history=_history(repository, plan, tips, author),
        obstacles=repository.obstacles(tips.output, directories) if tips.output and directories else {},
    )


def _standing(
    repository: Repository, plan: Plan, templates: RenderedTemplates, tips: Tips
) -> dict[str, dict[str, bytes]]:
    """Read the files of the placements that the plan writes again, by directory and path, as it has restored them."""
    again = {
        template.placement.path: placement_files(template.placement)
        for position, template in templates.items()
        if template.spec is not None and plan.changes[position].action is not Action.PLACE
    }
    if not again or tips.output is None:
        return {}
    restored = {
        change.drifted.placement.path: change.drifted.files for change in plan.changes if change.drifted is not None
    }
    blobs: dict[str, dict[str, BlobId]] = {}
    for directory, paths in again.items():
        blobs[directory] = {entry.path: entry.blob for entry in repository.entries(tips.output, under=paths)}
        blobs[directory] |= restored.get(directory, {})
    contents = repository.read({blob for files in blobs.values() for blob in files.values()})
    return {directory: {path: contents[blob] for path, blob in files.items()} for directory, files in blobs.items()}


def _beside(
    repository: Repository,
    templates: RenderedTemplates,
    rendered: Mapping[int, Mapping[str, tuple[Json, ...]]],
    open_clusters: Collection[ClusterName],
    tips: Tips,
) -> dict[ClusterName, dict[str, bytes]]:
    """Read the files of other placements that may make objects of the plan's, by cluster and path.

    They are read where only rendering tells what either of them makes.
    """
    suffixes: dict[ClusterName, frozenset[str]] = {}
    for position, template in templates.items():
        cluster, charts = template.placement.cluster, rendered.get(position, {})
        if template.spec is None or not (charts or cluster in open_clusters):
            continue
        names = file_suffixes((*itertools.chain(*charts.values()), *stated_manifests(template.spec)))
        names |= {write.RECORD_ENDING} if chart_steps(template.spec) else set()
        suffixes[cluster] = suffixes.get(cluster, frozenset()) | names
    if tips.output is None or not any(suffixes.values()):
        return {}
    blobs = {
        cluster: {
            entry.path: entry.blob
            for entry in repository.entries(tips.output, under=(f"{ROOT}/{cluster}",))
            if entry.path.endswith(tuple(names))
        }
        for cluster, names in suffixes.items()
        if names
    }
    contents = repository.read({blob for files in blobs.values() for blob in files.values()})
    return {cluster: {path: contents[blob] for path, blob in files.items()} for cluster, files in blobs.items()}


def _charts(
    charts: Charts, templates: RenderedTemplates
) -> tuple[dict[int, dict[str, tuple[Json, ...]]], dict[int, str], tuple[Bug, ...]]:
    """Render the charts that engines leave to us, by position of the change, and say why some could not be.

    Charts that are still being rendered keep their change waiting for another pass.
    """
    rendered: dict[int, dict[str, tuple[Json, ...]]] = {}
    failed: dict[int, str] = {}
    bugs: list[Bug] = []
    for position, template in templates.items():
        if template.spec is None:
            continue
        chosen = engine(template.placement.engine)
        objects: dict[str, tuple[Json, ...]] = {}
        for chart in chosen.to_render(template.spec):
            workload = template.placement.workload
            task = partial(charts.template, chart, hooks=chosen.hooks, workspace=workload.workspace)
            try:
                chart_objects = attempt(Seam.CHART, workload, task)
            except Pending:
                failed.setdefault(position, CHARTS_PENDING)  # the others are asked for all the same
            except (InvalidInput, Transient) as error:
                failed[position] = str(error)
                break
            else:
                if isinstance(chart_objects, Bug):
                    bugs.append(chart_objects)
                    failed[position] = chart_objects.summary
                    break
                objects[chart.name] = tuple(chart_objects)
        if position not in failed:
            rendered[position] = objects
    return rendered, failed, tuple(bugs)


def _history(repository: Repository, plan: Plan, tips: Tips, author: Identity) -> dict[str, tuple[LoggedCommit, ...]]:
    """Find the commits of every placement that ends, in one walk back to the beginning of the oldest of them."""
    ending = [ended for change in plan.changes if (ended := change.ended) is not None]
    if not ending or tips.output is None:
        return {}
    wanted = {placement.id for placement in ending}
    history: dict[str, list[LoggedCommit]] = {}
    for commit in repository.log(tips.output, since=min(placement.created_at for placement in ending)):
        placement = Trailer.PLACEMENT.read(commit)
        if placement in wanted and is_own(commit, author):
            history.setdefault(placement, []).append(commit)
    return {placement: tuple(commits) for placement, commits in history.items()}


def earlier_receipts(
    repository: Repository, tips: Tips, answers: Mapping[int, Answer], author: Identity
) -> dict[int, CommitId]:
    """Find the commit that received each request that had been received before, by the number of the order.

    A caller who asks a second time is answered like the first time. The branch is read no further back than to the
    first of those times or `_MOST_READ_BACK` commits, and not at all without a repeated call.
    """
    again = {number: answer for number, answer in answers.items() if answer.since is not None}
    if not again or tips.output is None:
        return {}
    first = min(answer.since for answer in again.values() if answer.since is not None)
    newest: dict[str, CommitId] = {}
    for commit in repository.log(tips.output, since=first, limit=_MOST_READ_BACK):
        if action(commit) is Action.RECEIVE and is_own(commit, author):
            newest.setdefault(Trailer.REQUEST.read(commit), commit.id)
    return {number: newest[str(answer.workload)] for number, answer in again.items() if str(answer.workload) in newest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The outcome of one push, which is under way until `end` has returned."""

    commits: tuple[CommitId, ...] = ()
    """Commits on the output branch, in order."""
    branches: tuple[Advance, ...] = ()
    """Branches of clusters that move with it."""
    end: Callable[[], Sequence[Advance]] = tuple
    """Waits for the push, and returns the branches of clusters that have moved: the remote may refuse others. Raises
    Conflict when a branch has another tip."""


def publish(
    repository: Repository, inputs: PassInput, tips: Tips, written: Mapping[CommitId, Commit], author: Identity
) -> Publication:
    """Begin to push the new commits on top of the output tip; all become visible together.

    Branches of clusters, if the fleet has them, go with the same push, which repairs them even without new commits;
    one that the remote has refused a while ago is left out.
    Raises Conflict when the tip, or a branch of a cluster, is known to have moved. Even with nothing to push, raises
    LostBranch while the remote lacks what is known, and InvalidInput where commits could not be signed.
    """
    ids = tuple(written)
    tip = ids[-1] if ids else tips.output
    _refuse_lost(repository, inputs)
    repository.refuse_unsigned()
    if tip is None:
        return Publication()
    advances = tuple(_project(repository, inputs, tips, written, author))
    if not (ids or advances):
        return Publication()
    end = repository.begin_push(tip, old=tips.output, branches=advances)
    return Publication(commits=ids, branches=advances, end=end)


def find_losses(repository: Repository, desired: Desired) -> tuple[BranchLoss, ...]:
    """Return the branches of the last fetch that lack known commits, those of clusters included where there are any."""
    if keeps_cluster_branches(desired):
        repository.branches()  # they are fetched by the first look at them, and then by each fetch
    else:
        repository.forget_branches()
    return repository.tips().losses


def _refuse_lost(repository: Repository, inputs: PassInput) -> None:
    """Raise LostBranch where a branch lacks commits that it is known to have had, even with nothing to push."""
    losses = find_losses(repository, inputs.desired)
    if losses:
        raise refusal(losses)


def _project(
    repository: Repository, inputs: PassInput, tips: Tips, written: Mapping[CommitId, Commit], author: Identity
) -> Sequence[Advance]:
    """Write the missing commits of the clusters' branches for the output branch at the last of `written`."""
    if not keeps_cluster_branches(inputs.desired):
        return ()
    branches = repository.branches()
    ids = [*([tips.output] if tips.output else []), *written]
    trees = repository.directories(ids)
    states = [
        BranchState(commit=commit, directories=directories, written=written.get(commit))
        for commit, directories in zip(ids, trees, strict=True)
    ]
    lacking = project(inputs.desired, branches, states, now=inputs.now, author=author)
    due = repository.due_branches([projection.cluster for projection in lacking])
    projections = [projection for projection in lacking if projection.cluster in due]
    return repository.project(projections) if projections else ()
