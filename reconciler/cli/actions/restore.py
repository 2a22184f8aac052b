"""`restore`: settles the loss of branches by a person's word."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import click

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.restore import UNHELD_REMEDY, Restoration, RestoreWay
from reconciler.app.commands import notifying
from reconciler.cli import options, printing
from reconciler.cli.actions.steer import named_person
from reconciler.core.commits.branch_loss import NOTHING_WRITTEN, describe_loss
from reconciler.core.commits.cluster_branches import keeps_cluster_branches
from reconciler.daemon.reconcile import Memory
from reconciler.daemon.steer import retry_conflicts
from reconciler.errors import InvalidInput, OverspillError
from reconciler.model.branch_loss import BranchLoss
from reconciler.model.ids import CommitId
from reconciler.model.ledger import Ledger
from reconciler.model.tree import Tips
from reconciler.settings import Settings
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count, join_names

_ELSEWHERE = (
    "run this where the daemon runs, with its OVERSPILL_CACHE_DIR, or name the last commit with --commit, as the engine"
    " of a cluster shows it"
)
_WORDS: Mapping[RestoreWay, str] = {
    RestoreWay.PUSH: "pushes {new} back",
    RestoreWay.MERGE: "joins {known} and {tip} by {new}, with the known files below clusters/ and ledger/",
    RestoreWay.REWRITE: "writes the commits up to {known} again as {new}, since the remote lacks those before them",
    RestoreWay.ACCEPT: "gives {known} up by {new}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What a restore has done, or would do first."""

    drafted: tuple[Restoration, ...] = ()
    """In the order in which they are pushed."""
    given_up: tuple[str, ...] = ()
    """What of the ledger goes with them, in words."""
    brought_back: tuple[str, ...] = ()
    """What of the ledger holds again by them, in words."""
    left: tuple[BranchLoss, ...] = ()
    """Losses that stay, since nobody holds the known commit."""
    waiting: tuple[CommitId, ...] = ()
    """Named commits that are compared with the branches once these are settled."""


def restore(
    settings: Settings, *, accept: bool, commit: str | None, author: str | None, dry_run: bool, form: options.Output
) -> None:
    """Push back what branches have lost, or give it up; with `dry_run` only say how.

    What is known here is settled first, and then whatever else engines or the person name, until nothing is left. Exits
    with 1 where a branch is left as it is, since nobody holds its known commit.
    """
    if commit is not None and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", commit) is None:
        raise click.UsageError(f"--commit: {commit!r} is not the full id of a commit")
    person = None if dry_run and author is None else named_person(author)
    outcome = _Outcome()
    with notifying(settings) as (world, memory, repository):
        writer = person or world.author

        def attempt() -> _Outcome:
            _judge(repository, memory)
            drafted = repository.draft_restoration(accept=accept, now=world.clock.now(), person=writer)
            given_up, back = _describe_lost(memory, drafted), _describe_back(memory, drafted)
            settled = {each.loss.branch for each in drafted}
            left = [loss for loss in repository.tips().losses if loss.branch not in settled]
            waiting = repository.named_commits() - {loss.known for loss in repository.tips().losses}
            if not dry_run and drafted:
                repository.carry_out_restoration(drafted)
            return _Outcome(
                drafted=tuple(drafted),
                given_up=tuple(given_up),
                brought_back=tuple(back),
                left=tuple(left),
                waiting=tuple(sorted(waiting)),
            )

        if commit is not None:
            _expect(repository, CommitId(commit))
        try:
            while True:
                done = retry_conflicts(attempt, random=random.random)
                outcome = replace(
                    done,
                    drafted=(*outcome.drafted, *done.drafted),
                    given_up=(*outcome.given_up, *done.given_up),
                    brought_back=(*outcome.brought_back, *done.brought_back),
                )
                if dry_run or not done.drafted or not done.waiting:
                    break
        except OverspillError:
            if outcome.drafted:
                _report(repository.tips(), outcome, dry_run=dry_run, form=form, is_whole=False)
            raise
        tips = repository.tips()
    if not outcome.drafted and tips.output is None:
        raise InvalidInput(
            f"restoring branch {settings.output_branch}: the remote has no such branch, and no earlier commit of it is"
            f" known here ({_ELSEWHERE})"
        )
    _report(tips, outcome, dry_run=dry_run, form=form)
    if outcome.left:
        raise click.exceptions.Exit(1)


def _report(tips: Tips, outcome: _Outcome, *, dry_run: bool, form: options.Output, is_whole: bool = True) -> None:
    """Print what is settled and how, what is given up by it, and what is left; more is lost where it is not whole."""
    if form == "json":
        printing.json_out(
            {
                "dryRun": dry_run,
                "branches": [_row(each) for each in outcome.drafted],
                "givenUp": list(outcome.given_up),
                "broughtBack": list(outcome.brought_back),
                "left": [loss.branch for loss in outcome.left],
            }
        )
        return
    if not outcome.drafted and tips.output is not None and tips.output_at is not None:
        last = f"{tips.output[:12]} of {format_time(tips.output_at)}"
        printing.sentence(f"Nothing to restore: the remote has all that is known here, up to {last}.")
        printing.sentence(f"If it should have more, {_ELSEWHERE}.")
    for each in outcome.drafted:
        _print(each, dry_run=dry_run)
    for line in outcome.given_up:
        printing.sentence(f"Given up: {line}." if not dry_run else f"This gives up {line}.")
    for line in outcome.brought_back:
        printing.sentence(f"Brought back: {line}." if not dry_run else f"This brings back {line}.")
    for loss in outcome.left:
        printing.sentence(
            f"{loss.branch} is left as it is: {describe_loss(loss)}; neither this machine nor the remote holds"
            f" {loss.known[:12]} ({UNHELD_REMEDY})."
        )
    if dry_run and outcome.drafted and outcome.waiting:
        names = join_names([commit[:12] for commit in outcome.waiting])
        printing.sentence(f"Once that is done, a restore goes on with {names}.")
    if outcome.left:
        printing.sentence(f"{NOTHING_WRITTEN[0].upper()}{NOTHING_WRITTEN[1:]}.")
    elif outcome.drafted and not dry_run and is_whole:
        printing.sentence("A running daemon goes on at its next look.")


def _expect(repository: GitRepository, commit: CommitId) -> None:
    """Hear from a person that the output branch has had a commit."""
    if (meant := repository.expect_known(commit)) != commit:
        printing.note(f"{commit[:12]} is of another branch, and stands for {meant[:12]} of the output branch.")


def _judge(repository: GitRepository, memory: Memory) -> None:
    """Compare the branches of the remote with what is known here, and with the commits that somebody has named."""
    tips = repository.fetch()
    if _follows_clusters(memory, tips):
        repository.branches()
    else:
        repository.forget_branches()


def _follows_clusters(memory: Memory, tips: Tips) -> bool:
    """Return whether the fleet has branches of clusters; True where that cannot be read."""
    with suppress(OverspillError):
        return tips.source is None or keeps_cluster_branches(memory.source.desired(tips.source))
    return True


def _describe_lost(memory: Memory, drafted: Sequence[Restoration]) -> list[str]:
    """List what of the ledger a person gives up: what was known, or what the branch has had since."""
    lost: list[str] = []
    for each in drafted:
        if each.way is not RestoreWay.ACCEPT:
            if each.loss.is_output and each.loss.tip is not None:
                with suppress(OverspillError):
                    lost += _differences(memory.branch.ledger(each.loss.tip), memory.branch.ledger(each.loss.known))
            continue
        try:
            known = memory.branch.ledger(each.loss.known)
            there = memory.branch.ledger(each.loss.tip)
        except OverspillError:
            lost.append(f"what {each.loss.branch} held at {each.loss.known[:12]}, which this machine cannot read")
            continue
        lost += _differences(known, there)
        lost.append("what budgets have counted as spent in the lost commits")
    return lost


def _describe_back(memory: Memory, drafted: Sequence[Restoration]) -> list[str]:
    """List what of the ledger holds again: what was known, and the output branch lacks now.

    Where two histories are joined, no approval does.
    """
    back: list[str] = []
    for each in drafted:
        if each.way is RestoreWay.ACCEPT or not each.loss.is_output:
            continue
        with suppress(OverspillError):
            known, there = memory.branch.ledger(each.loss.known), memory.branch.ledger(each.loss.tip)
            back += _differences(known if each.way is RestoreWay.PUSH else replace(known, approvals={}), there)
    return back


def _differences(known: Ledger, there: Ledger) -> list[str]:
    """Name the records of one ledger that another lacks."""
    parts = (
        ("placement", [item.id for path, item in known.placements.items() if path not in there.placements]),
        ("request", [str(name) for name in known.requests if name not in there.requests]),
        ("held-back workload", [str(name) for name in known.restraints if name not in there.restraints]),
        ("proposal", [str(name) for name in known.proposals if name not in there.proposals]),
        (
            "approval",
            [str(yes.proposal.workload) for path, yes in known.approvals.items() if path not in there.approvals],
        ),
    )
    return [f"{count(len(names), noun)} ({join_names(names)})" for noun, names in parts if names]


def _print(each: Restoration, *, dry_run: bool) -> None:
    words = _WORDS[each.way].format(
        new=each.new[:12], known=each.loss.known[:12], tip=(each.loss.tip or CommitId("nothing"))[:12]
    )
    printing.sentence(f"{each.loss.branch}: {describe_loss(each.loss)}.")
    verb = "A restore" if dry_run else "This"
    printing.sentence(f"{verb} {words} ({count(each.commits, 'commit')}).")


def _row(each: Restoration) -> dict[str, Any]:
    loss = each.loss
    return {
        "branch": loss.branch,
        "kind": loss.kind,
        "known": loss.known,
        "tip": loss.tip,
        "unknownCommits": loss.unknown,
        "way": each.way,
        "new": each.new,
        "commits": each.commits,
    }
