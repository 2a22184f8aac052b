"""How far the placements of a fleet may reach: what an engine has to be allowed, and nothing beyond."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reconciler.core.engines.deployment import chart_steps, command_namespace, target_namespace
from reconciler.core.safety import commands
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.model.ids import WorkspaceName, is_name
from reconciler.model.policy import Desired, EngineName
from reconciler.model.workload import DeploySpec, Json

_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)


def reach(desired: Desired, engine: EngineName) -> list[tuple[str, str]]:
    """List the pairs of cluster and namespace that placements of an engine may go to.

    Bursts never go to their workspace's primary; requests may, unless the workspace says otherwise. The namespace is
    ``*`` where nothing bounds a workspace.
    """
    found: set[tuple[str, str]] = set()
    for workspace in desired.workspaces.values():
        namespaces = set(workspace.namespaces) or _used(desired, workspace.name)
        if workspace.command_jobs is not None:
            namespaces.add(commands.JOB_NAMESPACE)
        for name in workspace.destinations:
            cluster = desired.clusters.get(name)
            if cluster is not None and cluster.engine is engine:
                found.update((str(name), namespace) for namespace in namespaces)
    return sorted(found)


def deployed(desired: Desired, workspace: WorkspaceName | None = None) -> Iterator[DeploySpec]:
    """Yield what templates and requests in files have a workspace deploy, or all of them."""
    yield from (one.spec for one in desired.templates.values() if workspace in (None, one.workspace))
    yield from (one.spec for one in desired.requests.values() if workspace in (None, one.workspace))


def _used(desired: Desired, workspace: WorkspaceName) -> set[str]:
    """Return the namespaces that files of a workspace name, or ``*`` where one of them cannot be told yet."""
    found: set[str] = set()
    for spec in deployed(desired, workspace):
        named = {target_namespace(spec, desired.workspaces[workspace])}
        named.update(chart.release_namespace for chart in chart_steps(spec))
        named.update(_manifest_namespaces(resource.manifest for resource in spec.manifests))
        named.update(_command_namespaces(spec))
        found.update(name if is_name(name) else "*" for name in named)
    return {"*"} if "*" in found else found


def _manifest_namespaces(manifests: Iterable[Json]) -> set[str]:
    found: set[str] = set()
    for manifest in manifests:
        metadata = manifest.get("metadata")
        name = "name" if group_kind(manifest) == "/Namespace" else "namespace"
        if isinstance(metadata, dict) and metadata.get(name):
            found.add(str(metadata[name]))
    return found


def _command_namespaces(spec: DeploySpec) -> set[str]:
    """Return the namespaces that commands make or work in; an expression is taken for a word that is no name."""
    lines = [_EXPRESSION.sub("{{}}", command.cmd) for command in spec.commands]
    return {"*" if "{%" in line else command_namespace(line) for line in lines} - {""}
