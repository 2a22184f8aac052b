"""Whether a template may be made from its source: decided before anything of the source is read.

The one place that forbids a source by whose it is; what the text of a source may be is in `core.schema`. `check` and
the daemon both ask here, so that neither takes what the other refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.core.fleet.objects import first_names
from reconciler.core.fleet.sources.expansion import FROM
from reconciler.model.manifest_source import ArgoCDSource, ManifestSource, RepositorySource, WorkloadSource
from reconciler.model.policy import Fleet, Workspace
from reconciler.model.workload import WorkloadRef
from reconciler.text.findings import Finding, Loc, shortened


def forbidden(
    source: ManifestSource,
    ref: WorkloadRef | None,
    workspace: Workspace,
    workspaces: Iterable[Workspace],
    fleet: Fleet,
) -> Finding | None:
    """Say why the templates of a workspace may not be made from a source; None where they may.

    `ref` is the object that counts. A template reaches no object in a namespace of another workspace, to read it or to
    count it, and no repository that the Fleet does not list, whether the template names it or its Application.
    """
    # 1. An object of another workspace.
    others = [other for other in workspaces if other.name != workspace.name]
    for loc, namespace in _namespaces(source, ref):
        owner = next((other.name for other in others if namespace in other.namespaces), None)
        own = namespace in workspace.namespaces
        if own or (owner is None and (not workspace.namespaces or not isinstance(source, WorkloadSource))):
            continue
        whose = f"is of workspace {owner}" if owner is not None else f"is no namespace of workspace {workspace.name}"
        hint = f"it has {first_names(workspace.namespaces)}" if workspace.namespaces else "name an object of your own"
        return Finding(loc=loc, message=f"{shortened(namespace)!r} {whose}", hint=hint)
    # 2. A repository that nobody has allowed.
    if isinstance(source, RepositorySource) and source.url not in fleet.source_repositories:
        message = f"the Fleet names no repository {shortened(source.url)}"
        return Finding(loc=(*FROM, "repository", "url"), message=message, hint="add it to its spec.sourceRepositories")
    return None


def _namespaces(source: ManifestSource, ref: WorkloadRef | None) -> Iterator[tuple[Loc, str]]:
    """List the namespaces that a source reaches, each with the field that names it."""
    if isinstance(source, WorkloadSource):
        yield (*FROM, "workload", "namespace"), source.namespace
    elif isinstance(source, RepositorySource) and source.namespace:
        yield (*FROM, "repository"), source.namespace
    if ref is not None:
        part = {WorkloadSource: "workload", RepositorySource: "repository", ArgoCDSource: "application"}
        yield (*FROM, part.get(type(source), "path")), ref.namespace
