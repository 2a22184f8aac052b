"""Clusters and namespaces that placements of a fleet may reach: the rights that an engine needs, and no others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from reconciler.core.engines.deployment import chart_steps, command_namespace, target_namespace
from reconciler.core.safety import commands
from reconciler.core.safety.allowed_kinds import allowed
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.model.ids import WorkspaceName, is_name
from reconciler.model.policy import Desired, EngineName, PodSecurity, Workspace
from reconciler.model.workload import DeploySpec, Json

ENFORCED = "pod-security.kubernetes.io/enforce"
"""The label by which Kubernetes' own admission holds the pods of a namespace to a level."""

_NAMESPACE = "/Namespace"
_EXPRESSION = re.compile(r"\{\{(?:[^{}]|\{(?!\{)|\}(?!\}))*+\}\}")


def target_namespaces(desired: Desired, engine: EngineName) -> list[tuple[str, str]]:
    """List the pairs of cluster and namespace that placements of an engine may go to.

    Bursts never go to their workspace's primary; requests may, unless the workspace says otherwise. The namespace is
    ``*`` where no namespaces bound a workspace.
    """
    pairs: set[tuple[str, str]] = set()
    for workspace in desired.workspaces.values():
        namespaces = set(workspace.namespaces) or _used_namespaces(desired, workspace.name)
        if workspace.command_jobs is not None:
            namespaces.add(commands.JOB_NAMESPACE)
        for name in workspace.destinations:
            cluster = desired.clusters.get(name)
            if cluster is not None and cluster.engine is engine:
                pairs.update((str(name), namespace) for namespace in namespaces)
    return sorted(pairs)


def deployable(desired: Desired) -> frozenset[str]:
    """Return the kinds that placements may hold, as ``group/Kind``."""
    return allowed(desired.kinds, desired.workspaces.values())


def pod_security(desired: Desired, namespace: str) -> PodSecurity:
    """Return the level that holds in a namespace: of several workspaces that may use it, the least strict."""
    levels = {
        workspace.pod_security
        for workspace in desired.workspaces.values()
        if not workspace.namespaces or namespace in workspace.namespaces
    }
    return next((level for level in PodSecurity if level in levels), PodSecurity.BASELINE)


def deployed(desired: Desired, workspace: WorkspaceName | None = None) -> Iterator[DeploySpec]:
    """Yield the specs of templates and of requests in files: those of one workspace, or all."""
    yield from (template.spec for template in desired.templates.values() if workspace in (None, template.workspace))
    yield from (request.spec for request in desired.requests.values() if workspace in (None, request.workspace))


def _used_namespaces(desired: Desired, workspace: WorkspaceName) -> set[str]:
    """Return the namespaces that files of a workspace name, or ``*`` where an expression leaves one open."""
    used: set[str] = set()
    for spec in deployed(desired, workspace):
        used |= spec_namespaces(spec, desired.workspaces[workspace])
    return {"*"} if "*" in used else used


def spec_namespaces(spec: DeploySpec, workspace: Workspace) -> set[str]:
    """Return the namespaces that objects of a spec are in or make, with ``*`` for one that an expression names."""
    named = {target_namespace(spec, workspace)}
    named.update(chart.release_namespace for chart in chart_steps(spec))
    named.update(_manifest_namespaces(resource.manifest for resource in spec.manifests))
    named.update(_command_namespaces(spec))
    return {name if is_name(name) else "*" for name in named}


def made_namespaces(spec: DeploySpec) -> set[str]:
    """Return the namespaces that a placement of a spec makes where they are missing."""
    made = {chart.release_namespace for chart in chart_steps(spec) if chart.flags.create_namespace}
    for resource in spec.manifests:
        if group_kind(resource.manifest) == _NAMESPACE:
            made |= _manifest_namespaces([resource.manifest])
    for command in spec.commands:
        outcome = commands.read_command(command.cmd)
        if not isinstance(outcome, commands.ObjectCommand) or outcome.partial:
            continue
        if group_kind(outcome.manifest) == _NAMESPACE:
            made |= _manifest_namespaces([outcome.manifest])
    return made


def _manifest_namespaces(manifests: Iterable[Json]) -> set[str]:
    namespaces: set[str] = set()
    for manifest in manifests:
        metadata = manifest.get("metadata")
        name = "name" if group_kind(manifest) == _NAMESPACE else "namespace"
        if isinstance(metadata, dict) and metadata.get(name):
            namespaces.add(str(metadata[name]))
    return namespaces


def _command_namespaces(spec: DeploySpec) -> set[str]:
    """Return the namespaces that commands make or work in; an expression stands for a word that is no name."""
    lines = [_EXPRESSION.sub("{{}}", command.cmd) for command in spec.commands]
    return {"*" if "{%" in line else command_namespace(line) for line in lines} - {""}
