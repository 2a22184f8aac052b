"""Warnings about clusters that cannot be seen, and about branches that are lost or may be misspelt, with a way out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from reconciler.adapters.kubeconfig_files import kubeconfig_files
from reconciler.app.world import NO_OBSERVATIONS, WITHOUT_OBSERVATIONS
from reconciler.cli import printing
from reconciler.cli.kubeconfig import usual_kubeconfig
from reconciler.core.commits.branch_loss import loss_problem
from reconciler.model.branch_loss import BranchLoss
from reconciler.model.ids import CommitId
from reconciler.model.plan import Reason, Suppressed
from reconciler.ports import Repository
from reconciler.settings import Settings
from reconciler.text.spelling import closest

_USUAL_BRANCH = "placements"
"""The output branch where no setting names one."""


def warn_without_observations(settings: Settings) -> None:
    """Warn where the settings name neither observations nor clusters to watch."""
    if not (settings.observations or settings.kubeconfig or settings.in_cluster):
        usual = _usual_flag()
        printing.warn(
            f"{NO_OBSERVATIONS} (pass {usual}, which is not read by default, or --observations PATH)"
            if usual
            else WITHOUT_OBSERVATIONS
        )


def tell_losses(losses: Iterable[BranchLoss]) -> None:
    """Tell which branches lack known commits, for a command that shows none of the other problems of a pass."""
    printing.problems(map(loss_problem, losses))


def note_usual_kubeconfig(settings: Settings) -> None:
    """Tell that kubectl's kubeconfig, where there is one, is not read by default: it may lead to other clusters."""
    if settings.kubeconfig is None and not settings.in_cluster and (usual := _usual_flag()):
        printing.note(f"note: kubectl's kubeconfig is not read by default (to look at its clusters, pass {usual})")


def _usual_flag() -> str:
    """Write the flag that names kubectl's kubeconfig; empty where there is none."""
    usual = usual_kubeconfig()
    return f"--kubeconfig {shlex.quote(str(usual))}" if kubeconfig_files(usual) else ""


def warn_of_old_observations(settings: Settings, suppressed: Iterable[Suppressed]) -> None:
    """Warn where observations come from files alone, and these are too old for a primary or do not mention it."""
    files = settings.observations and not (settings.kubeconfig or settings.in_cluster)
    if files and any(refusal.reason is Reason.PRIMARY_UNSEEN for refusal in suppressed):
        printing.warn(
            f"{settings.observations}: a primary is missing or too old there, and counts as unseen (write newer"
            " observations; the Fleet's observationMaxAge says how old they may be)"
        )


def note_new_branch(settings: Settings, tip: CommitId | None, repository: Repository, *, begun: bool = True) -> None:
    """Tell that an output branch is begun where the repository has another one of nearly its name, or the usual.

    Without `begun` it would, and nothing has been pushed.
    """
    branch = settings.output_branch
    if tip is not None:
        return
    others = [name for name in repository.branch_names() if name not in (branch, settings.source_branch)]
    near = closest(branch, others) or (_USUAL_BRANCH if _USUAL_BRANCH in others else "")
    if near and not begun:
        printing.note(
            f"note: the output branch {branch!r} is not there, so that nothing counts as placed; there is {near!r}"
            f" (if you meant that: --output-branch {near})"
        )
    elif near:
        printing.note(
            f"note: the output branch {branch!r} does not exist yet and is begun; there is {near!r}"
            f" (if you meant that: `git push origin --delete {branch}`, then --output-branch {near})"
        )
