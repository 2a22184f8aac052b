"""`bootstrap`: the objects that an admin applies once, so that an engine follows the output branch."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import click

from reconciler.adapters.git.signing import SignatureFormat
from reconciler.app.commands import connected
from reconciler.app.world import signing_key
from reconciler.cli import printing
from reconciler.cli.actions.setup.object_table import confirm, managers, refuse_conflicts, refuse_refused, show_changes
from reconciler.cli.kubeconfig import usual_kubeconfig
from reconciler.core.engines import ENGINES
from reconciler.core.engines.grants import grants, widening
from reconciler.core.engines.object_changes import ApplyAction
from reconciler.core.schema import yaml
from reconciler.daemon.source import SourceReader, missing_branch
from reconciler.daemon.steer import survey
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.policy import Desired, EngineName
from reconciler.ports import Repository
from reconciler.settings import Settings
from reconciler.text.wording import count, join_names

_MANAGER = "overspill-bootstrap"
"""The field manager of what is applied."""
_COMMIT = re.compile(r"[0-9a-f]{4,64}")
_SHORT = 12
"""Characters of a commit that are printed."""
_HISTORY = 10_000
"""Commits of the source branch that are looked through for a name."""


def bootstrap(settings: Settings, engine: str, cluster: str | None, since: str | None) -> None:
    """Print the objects of an engine for the fleet as it stands, with what they grant beyond earlier ones."""
    text, desired, earlier = _texts(settings, engine, cluster, since)
    printed = text(desired)
    if earlier is not None:
        printing.write(f"# From commit {desired.commit[:_SHORT]} of {settings.source_branch}.")
        before = earlier if isinstance(earlier, str) else _text_or_nothing(text, earlier)
        what = f"commit {earlier.commit[:_SHORT]}" if isinstance(earlier, Desired) else _file_name(since)
        printing.write(widening(_grants(before, what), _grants(printed, "bootstrap"), what) + "#")
    printing.document(printed)


def apply(
    settings: Settings,
    engine: str,
    cluster: str | None,
    kubeconfig: Path | None,
    context: str,
    *,
    yes: bool,
    force_conflicts: bool,
) -> None:
    """Show what the objects of an engine would change in a cluster, and apply them once that is confirmed."""
    from reconciler.adapters.kube.apply import apply_objects  # noqa: PLC0415 - slow to import, and printing needs none

    text, desired, _ = _texts(settings, engine, cluster, None)
    objects = tuple(document.value for document in yaml.parse(text(desired).encode(), "bootstrap"))
    login = kubeconfig or usual_kubeconfig()
    changes = apply_objects(login, context, objects, manager=_MANAGER, dry_run=True)
    show_changes(changes)
    refuse_refused(changes)
    work = [wanted for wanted, change in zip(objects, changes, strict=True) if change.action is not ApplyAction.KEEP]
    if not work:
        printing.sentence(f"Nothing to apply: context {context} has all {count(len(objects), 'object')} as they are.")
        return
    if yes and not force_conflicts:
        refuse_conflicts(changes)
    if not yes:
        taken = managers(changes)
        over = f", and take what was set by {join_names(taken)}" if taken else ""
        confirm(f"Apply {count(len(work), 'object')} in context {context}{over}?")
    done = apply_objects(login, context, work, manager=_MANAGER, dry_run=False, force=bool(managers(changes)))
    taken_objects = [change for change in done if change.action is not ApplyAction.REFUSED]
    printing.sentence(f"Applied {count(len(taken_objects), 'object')} in context {context}.")
    refuse_refused(done)


def _signs_with_openpgp(settings: Settings) -> bool:
    """Return whether commits get signatures of the one format that engines check."""
    signing = signing_key(settings)
    return signing is not None and signing.format() is SignatureFormat.OPENPGP


def _texts(
    settings: Settings, engine: str, cluster: str | None, since: str | None
) -> tuple[Callable[[Desired], str], Desired, str | Desired | None]:
    """Return what writes the objects of a fleet, the fleet as it stands, and what was applied before."""
    chosen = ENGINES[EngineName(engine)].bootstrap
    if chosen is None:
        raise click.UsageError(f"the engine {engine} needs no objects of an admin.")
    if chosen.per_cluster != (cluster is not None):
        hint = "it is written for one cluster" if chosen.per_cluster else "one text is for all clusters"
        raise click.UsageError(f"bootstrap {engine} {'needs' if chosen.per_cluster else 'takes no'} --cluster: {hint}.")
    with connected(settings) as (world, memory):
        decision = survey(world, memory)
        if decision.tips.source is None:
            raise missing_branch(world.repository, settings.source_branch)
        earlier = None if since is None else _earlier(since, world.repository, decision.tips.source)
    desired = decision.inputs.desired
    errors = tuple(problem for problem in desired.problems if problem.severity is Severity.ERROR)
    if errors:
        raise InvalidInput(problems=errors)
    name = ClusterName(cluster) if cluster is not None else None

    advice = chosen.verification if _signs_with_openpgp(settings) else ""

    def text(fleet: Desired) -> str:
        return advice + chosen.text(fleet, name, output_branch=settings.output_branch)

    return text, desired, earlier


def _earlier(since: str, repository: Repository, tip: CommitId) -> str | Desired:
    """Read what was applied before: a file, standard input, or the fleet at an earlier commit of the source branch."""
    path = Path(since)
    if since == "-" or path.is_file():
        try:
            return sys.stdin.read() if since == "-" else path.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise InvalidInput(f"reading {since}: {error}") from error
    ids = [commit.id for commit in repository.log(tip, limit=_HISTORY)] if _COMMIT.fullmatch(since) else []
    named = [commit for commit in ids if commit.startswith(since)]
    if len(named) != 1:
        hint = "try the file that was applied, - for what kubectl prints, or a commit of the source branch"
        raise InvalidInput(f"--since {since}: no file and no commit of the source branch has this name ({hint})")
    return SourceReader(repository).desired(named[0])


def _text_or_nothing(text: Callable[[Desired], str], desired: Desired) -> str:
    """Write the objects of an earlier fleet; none where it had nothing for the engine yet."""
    try:
        return text(desired)
    except InvalidInput:
        return ""


def _grants(text: str, path: str) -> frozenset[str]:
    return grants(document.value for document in yaml.parse(text.encode(), path))


def _file_name(since: str | None) -> str:
    return "what was read" if since == "-" else f"{since}"
