"""`init --from-kubeconfig`: a fleet repository made of the contexts of a kubeconfig."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from reconciler.adapters.git import checkout
from reconciler.adapters.kube.bounded_session import PATIENCE
from reconciler.adapters.kube.discovery import kubeconfig_contexts, read_contexts, read_gpu_namespaces
from reconciler.cli import printing
from reconciler.cli.actions.setup.init import (
    WORKFLOWS,
    layout_files,
    ready_made_policy,
    refuse_commits,
    refuse_other_files,
    workflow_files,
    write_files,
)
from reconciler.cli.kubeconfig import usual_kubeconfig
from reconciler.core.engines import ENGINES
from reconciler.core.fleet.read_file import assemble, is_read, parse_file
from reconciler.core.onboarding.context_reading import KubeContext
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster, discovered_clusters
from reconciler.core.onboarding.engine_choice import (
    CHOICES,
    ControlCluster,
    EngineChoice,
    choose_engines,
    control_clusters,
)
from reconciler.core.onboarding.gpu_namespaces import tenant_namespaces
from reconciler.core.onboarding.repository_files import NewFleet, cluster_notes, fleet_notes, repository_files
from reconciler.core.schema.urls import GitAddress
from reconciler.errors import Bug, InvalidInput, Problem, Severity, Transient
from reconciler.model.ids import ClusterName, CommitId, WorkspaceName, is_name
from reconciler.model.policy import EngineName
from reconciler.text.spelling import nearest
from reconciler.text.wording import count, join_names

_FOLDERS = ("clusters", "workspaces", "policies")
"""Folders whose files depend on the clusters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The answers that flags have given to the questions of a new fleet; None where nothing is said."""

    kubeconfig: Path | None
    contexts: tuple[str, ...]
    """All contexts where none is named."""
    renames: tuple[str, ...]
    """The names of clusters, each as CONTEXT=NAME."""
    primary: str | None
    workspace: str
    namespaces: tuple[str, ...]
    engine: EngineName | None
    argocd: str | None
    """The context of the Argo CD that deploys to all clusters."""
    repo_url: str | None
    policy: str | None
    host: str | None = None
    """The git host whose pipeline is written; None for none."""


def init_from_kubeconfig(directory: Path, answers: Answers, *, with_git: bool) -> None:
    """Write a fleet repository for the clusters of a kubeconfig, as its API servers describe them.

    What they do not tell is asked on a terminal. Without one, a question without an answer is a usage error.
    """
    layout = layout_files()
    policy = None if answers.policy is None else (answers.policy, ready_made_policy(answers.policy))
    _refuse_names("--workspace", [answers.workspace])
    _refuse_names("--namespace", answers.namespaces)
    repo_url, repo_url_from = _repository(directory, answers.repo_url)
    refuse_other_files(directory, (*layout, *WORKFLOWS.values()), _FOLDERS)
    if with_git:
        refuse_commits(directory)
    kubeconfig = answers.kubeconfig or usual_kubeconfig()
    contexts = _chosen(kubeconfig_contexts(kubeconfig), answers.contexts)
    names = _names(answers.renames, contexts)
    if sys.stderr.isatty():
        printing.note(f"Asking the API servers of {count(len(contexts), 'context')}; each has {PATIENCE:g} s.")
    bugs: list[Bug] = []
    clusters = discovered_clusters(read_contexts(kubeconfig, contexts), bugs.append, names)
    _show(clusters)
    primary = _primary(clusters, answers.primary)
    engines = _engines(clusters, primary, answers)
    fleet = NewFleet(
        clusters=clusters,
        primary=primary.name,
        engines=engines,
        workspace=WorkspaceName(answers.workspace),
        namespaces=_namespaces(kubeconfig, primary, answers.namespaces),
        repo_url=repo_url,
        repo_url_from=repo_url_from,
    )
    files = repository_files(fleet, layout, policy) | workflow_files(answers.host)
    warnings = _checked(files, directory)
    write_files(directory, files, with_git=with_git)
    for text in fleet_notes(fleet):
        printing.warn(text)
    printing.problems([*warnings, *(bug.problem(bug.item) for bug in bugs)])
    printing.say(f"Next: `overspill check {directory}`.")


def _chosen(contexts: Sequence[KubeContext], names: Iterable[str]) -> tuple[KubeContext, ...]:
    """Return the contexts that are named, in their order; all where none is."""
    by_name = {context.name: context for context in contexts}
    wanted = dict.fromkeys(names)
    for name in wanted:
        if name not in by_name:
            raise InvalidInput(f"--context: the kubeconfig has no context {name!r} ({nearest(name, by_name)})")
    return tuple(by_name[name] for name in wanted) or tuple(contexts)


def _names(renames: Iterable[str], contexts: Iterable[KubeContext]) -> dict[str, ClusterName]:
    """Return the names that a person gives to clusters, by context. Raises a usage error for what is no such name."""
    known = [context.name for context in contexts]
    names: dict[str, ClusterName] = {}
    for rename in renames:
        context, sign, name = rename.rpartition("=")  # contexts may hold the sign
        if not sign:
            raise click.UsageError(f"--rename: {rename!r} is not CONTEXT=NAME")
        if context not in known:
            raise InvalidInput(f"--rename: there is no context {context!r} ({nearest(context, known)})")
        _refuse_names("--rename", [name])
        if name in names.values():
            raise click.UsageError(f"--rename: {name} is the name of two clusters")
        names[context] = ClusterName(name)
    return names


def _checked(files: Mapping[str, bytes], directory: Path) -> tuple[Problem, ...]:
    """Return the warnings that `check` would have of new files. Raises InvalidInput with its errors."""
    desired = assemble(CommitId(""), {path: parse_file(data) for path, data in files.items() if is_read(path)})
    problems = tuple(replace(problem, path=os.path.normpath(directory / problem.path)) for problem in desired.problems)
    if errors := tuple(problem for problem in problems if problem.severity is Severity.ERROR):
        raise InvalidInput(problems=errors)
    return problems


def _show(clusters: Sequence[DiscoveredCluster]) -> None:
    """Print what is known of each cluster, and why of others nothing is."""
    rows = [
        (
            cluster.name,
            cluster.context,
            cluster.version,
            cluster.nodes if not (cluster.trouble or cluster.unlisted) else None,
            cluster.gpu_summary,
            cluster.label("region"),
            join_names(ENGINES[name].title for name in cluster.engines),
        )
        for cluster in clusters
    ]
    printing.table(("CLUSTER", "CONTEXT", "KUBERNETES", "NODES", "GPUS", "REGION", "GITOPS"), rows)
    for note in cluster_notes(clusters):
        printing.warn(note)
    printing.write()


def _primary(clusters: Sequence[DiscoveredCluster], named: str | None) -> DiscoveredCluster:
    """Return the primary cluster: the only one, or that which a person names."""
    if named is None and len(clusters) == 1:
        return clusters[0]
    if named is None:
        current = next((cluster.name for cluster in clusters if cluster.current), None)
        named = _ask(
            "Primary cluster, where the workloads live",
            [cluster.name for cluster in clusters],
            "--primary",
            "which cluster is the primary, where the workloads live",
            default=current,
        )
    return _cluster("--primary", clusters, named)


def _cluster(flag: str, clusters: Sequence[DiscoveredCluster], named: str) -> DiscoveredCluster:
    """Return the cluster of this name, or with this context."""
    for cluster in clusters:
        if named in {cluster.name, cluster.context, *cluster.others}:
            return cluster
    raise InvalidInput(f"{flag}: there is no cluster {named!r} ({nearest(named, (c.name for c in clusters))})")


def _engines(clusters: Sequence[DiscoveredCluster], primary: DiscoveredCluster, answers: Answers) -> EngineChoice:
    """Return the engine of each cluster, and ask for what was not seen."""
    control = _control(control_clusters(clusters), answers.argocd, clusters)
    engines = choose_engines(clusters, primary.name, control, answers.engine)
    if not engines.undecided:
        return engines
    which = join_names(engines.undecided)
    preferred = _ask(
        f"Engine that applies placements in {which}",
        CHOICES,
        "--engine",
        f"which engine applies placements in {which}, where none or several were seen",
    )
    return choose_engines(clusters, primary.name, control, EngineName(preferred))


def _control(
    places: Sequence[ControlCluster], named: str | None, clusters: Sequence[DiscoveredCluster]
) -> ControlCluster | None:
    """Return the cluster whose Argo CD deploys to all."""
    if named is not None:
        cluster = _cluster("--argocd", clusters, named)
        for place in places:
            if place.cluster == cluster:
                return place
        names = [place.cluster.name for place in places]
        raise InvalidInput(f"--argocd: no Argo CD was seen in {cluster.name} ({nearest(cluster.name, names)})")
    if len(places) < 2:  # noqa: PLR2004 - there is nothing to choose
        return places[0] if places else None
    chosen = _ask(
        "Cluster whose Argo CD deploys to all",
        [place.cluster.name for place in places],
        "--argocd",
        "Argo CD runs in several clusters: from which it deploys to all",
    )
    return next(place for place in places if place.cluster.name == chosen)


def _ask(question: str, choices: Sequence[str], flag: str, unknown: str, *, default: str | None = None) -> str:
    """Ask a question on a terminal; without one it is a usage error that names the flag and the choices."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"say {unknown}, by {flag}: {', '.join(choices)}")
    return str(click.prompt(question, type=click.Choice([str(choice) for choice in choices]), default=default))


def _namespaces(kubeconfig: Path, primary: DiscoveredCluster, named: Iterable[str]) -> dict[str, str]:
    """Return the namespaces of the workspace, with why: those named, else those with pods that ask for GPUs."""
    given = dict.fromkeys(named, "named by --namespace")
    if given or primary.trouble:
        return given
    try:
        return tenant_namespaces(read_gpu_namespaces(kubeconfig, primary.context), primary.name)
    except Transient as error:
        printing.warn(f"the pods of {primary.name} cannot be listed, so its namespaces are not known: {error}")
        return {}


def _repository(directory: Path, named: str | None) -> tuple[str, str]:
    """Return where engines clone the repository from, and how that is known; empty where it is not."""
    if named is not None:
        try:
            TypeAdapter(GitAddress).validate_python(named)
        except ValidationError as error:
            raise click.UsageError(f"--repo-url: {error.errors()[0]['msg']}") from error
        return named, "named by --repo-url"
    origin = checkout.origin(directory) if (directory / ".git").exists() else ""
    try:
        TypeAdapter(GitAddress).validate_python(origin)
    except ValidationError:  # a login in it, which is no engine's
        return "", ""
    return (origin, "the remote origin of this repository") if "://" in origin or "@" in origin else ("", "")


def _refuse_names(flag: str, names: Iterable[str]) -> None:
    """Raise a usage error for names that Kubernetes would not take."""
    for name in names:
        if not is_name(name):
            raise click.UsageError(f"{flag}: {name!r} is not a name of lower-case letters, digits and '-' (63 at most)")
