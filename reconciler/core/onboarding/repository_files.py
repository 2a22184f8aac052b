"""All files of a fleet repository that is made from the contexts of a kubeconfig.

What a cluster tells is written with where it comes from; the rest is the recommended layout, without its examples.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from reconciler.core.engines import ENGINES
from reconciler.core.onboarding.annotated_yaml import AnnotatedLine, annotated_text, yaml_scalar
from reconciler.core.onboarding.cluster_files import cluster_file, cluster_summary
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster
from reconciler.core.onboarding.engine_choice import EngineChoice
from reconciler.model.ids import ClusterName, WorkspaceName

_EXAMPLES = (
    "fleet.yaml", "clusters/*", "workspaces/*", "policies/*", "templates/*", "observations/*", "bootstrap/argocd.yaml",
    "bootstrap/flux.yaml",
)  # fmt: skip # a list of patterns, filled line by line
"""Files of the layout that are about its own clusters and workloads."""
_EXAMPLE_FIELDS = ("  templates:", "  clusters:", "  tolerations:")
"""Fields of the layout's policy that are about its own templates and clusters."""
_DEFAULT = "default"
"""The context, cluster and user in ``/etc/rancher/k3s/k3s.yaml`` (https://docs.k3s.io/cluster-access)."""
_RANCHER = ("+k3s", "+rke2")
"""Parts of the versions that k3s and RKE2 report."""
_THIS_MACHINE = frozenset({"127.0.0.1", "::1", "localhost", "0.0.0.0"})  # noqa: S104 - what k3d writes
_ADDRESS = "https://git.example.com/acme/fleet.git"
"""The repository of the layout's examples."""
_ROW = re.compile(r"^\| `(?P<pattern>[^`\n]+)` \|.*\n", re.MULTILINE)
"""A row of the table of files in the layout's README."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFleet:
    """What a person and clusters have said of a new fleet."""

    clusters: Sequence[DiscoveredCluster]
    primary: ClusterName
    engines: EngineChoice
    workspace: WorkspaceName
    namespaces: Mapping[str, str]
    """The namespaces of the workspace, and where each comes from."""
    repo_url: str
    repo_url_from: str
    """Where the address comes from."""


def repository_files(
    fleet: NewFleet, layout: Mapping[str, bytes], policy: tuple[str, bytes] | None
) -> dict[str, bytes]:
    """Return the content of each file by path.

    `layout` are the files of the recommended layout. `policy` is a ready-made policy, its name and its text; None takes
    that of the layout, for all templates and clusters.
    """
    files = {
        path: data for path, data in layout.items() if not any(fnmatchcase(path, pattern) for pattern in _EXAMPLES)
    }
    if fleet.repo_url:
        files = {path: data.replace(_ADDRESS.encode(), fleet.repo_url.encode()) for path, data in files.items()}
    files["fleet.yaml"] = annotated_text(_fleet_lines(fleet)).encode()
    for cluster in fleet.clusters:
        text = cluster_file(cluster, fleet.engines.clusters.get(cluster.name), primary=cluster.name == fleet.primary)
        files[f"clusters/{cluster.name}.yaml"] = text.encode()
    files[f"workspaces/{fleet.workspace}.yaml"] = annotated_text(_workspace_lines(fleet)).encode()
    if policy is None:
        path = next(path for path in layout if path.startswith("policies/"))
        files[path] = _for_all_templates(layout[path].decode()).encode()
    else:
        name, data = policy
        files[f"policies/{name}.yaml"] = _for_region(data.decode(), fleet).encode()
    files["README.md"] = _without_rows(layout["README.md"].decode(), files).encode()
    return files


def _fleet_lines(fleet: NewFleet) -> Iterator[AnnotatedLine]:
    yield AnnotatedLine("# yaml-language-server: $schema=schemas/Fleet.json")
    yield AnnotatedLine("", "Settings for all clusters. Every field has a default.")
    yield AnnotatedLine("apiVersion: overspill.dev/v1alpha1")
    yield AnnotatedLine("kind: Fleet")
    yield AnnotatedLine("metadata:")
    yield AnnotatedLine("  name: fleet", "any name will do")
    yield AnnotatedLine("spec:")
    if fleet.repo_url:
        about = f"where engines clone the output branch from: {fleet.repo_url_from}"
        yield AnnotatedLine(f"  repoURL: {yaml_scalar(fleet.repo_url)}", about)
    else:
        about = f"repoURL: {_ADDRESS} or the like, where engines clone the output branch from."
        yield AnnotatedLine("  ", about)
    if (default := fleet.engines.default) is not None:
        yield AnnotatedLine(f"  engine: {default.name}", f"of clusters that name none: {default.because}")
    if (control := fleet.engines.control) is not None:
        title = ENGINES[control.engine].title
        yield AnnotatedLine(f"  {control.engine}:", f"how the daemon reads what {title} reports of placements")
        if control.namespace:
            about = f"where its Deployments are in {control.cluster.name}"
            yield AnnotatedLine(f"    namespace: {yaml_scalar(control.namespace)}", about)
        yield AnnotatedLine("    connection:")
        about = f"in the daemon's kubeconfig: the cluster {control.cluster.name}, where {title} runs"
        yield AnnotatedLine(f"      context: {yaml_scalar(control.cluster.context)}", about)


def _workspace_lines(fleet: NewFleet) -> Iterator[AnnotatedLine]:
    primary = next(cluster for cluster in fleet.clusters if cluster.name == fleet.primary)
    yield AnnotatedLine("# yaml-language-server: $schema=../schemas/Workspace.json")
    yield AnnotatedLine(
        "", "A tenant: where its workloads live, where they may burst to, and what they may touch there."
    )
    yield AnnotatedLine("apiVersion: overspill.dev/v1alpha1")
    yield AnnotatedLine("kind: Workspace")
    yield AnnotatedLine("metadata:")
    yield AnnotatedLine(f"  name: {fleet.workspace}", f"its workloads are called {fleet.workspace}/NAME")
    yield AnnotatedLine("spec:")
    yield AnnotatedLine(f"  primaryCluster: {fleet.primary}", "where its workloads live; they burst when it is full")
    yield AnnotatedLine("  clusters:", "all that it may use, the primary among them")
    for cluster in fleet.clusters:
        about = "it did not answer" if cluster.trouble else cluster_summary(cluster).rstrip(".")
        yield AnnotatedLine(f"  - {cluster.name}", about)
    if fleet.namespaces:
        yield AnnotatedLine("  namespaces:", "all that it may use; engines get rights in these alone")
        for namespace, source in fleet.namespaces.items():
            yield AnnotatedLine(f"  - {yaml_scalar(namespace)}", source)
    else:
        about = f"namespaces: none is listed, so it may use any; no pod in {fleet.primary} was seen to ask for GPUs."
        yield AnnotatedLine("  ", about)
    if not primary.engines:
        about = "no engine was seen in the primary, so what is requested by name may not be placed there"
        yield AnnotatedLine("  requestsOnPrimary: false", about)


def _for_all_templates(policy: str) -> str:
    """Take out of the layout's policy which of its templates it governs, and what is about its clusters."""
    head, _, body = policy.partition("apiVersion:")
    schema = head.splitlines()[0]
    about = "# Governs all templates: they may burst to all clusters of their workspace but the primary."
    lines = f"apiVersion:{body}".splitlines()
    kept, left_out = [], False
    for line in lines:
        if re.match(r"  \S", line) and not line.startswith("  - "):
            left_out = line.startswith(_EXAMPLE_FIELDS)
        if not left_out:
            kept.append(line)
    return "\n".join((schema, about, *kept, ""))


def _for_region(policy: str, fleet: NewFleet) -> str:
    """Put the region of the primary in the place of a ready-made policy's example."""
    region = next(cluster.label("region") for cluster in fleet.clusters if cluster.name == fleet.primary)
    if not region:
        return policy
    about = f"that of {fleet.primary}, by its nodes"
    return re.sub(
        r"(?m)^( +requireLabels:\n +region:) .*$", lambda line: f"{line[1]} {yaml_scalar(region)} # {about}", policy
    )


def _without_rows(readme: str, paths: Iterable[str]) -> str:
    """Take out of the README's table the files that are not there."""
    written = tuple(paths)

    def kept(row: re.Match[str]) -> str:
        return row[0] if any(fnmatchcase(path, row["pattern"]) for path in written) else ""

    return _ROW.sub(kept, readme)


def cluster_notes(clusters: Iterable[DiscoveredCluster]) -> Iterator[str]:
    """Say what a person has to know of clusters: what does not answer, and what is left out."""
    for cluster in clusters:
        if cluster.trouble:
            yield f"{cluster.name} does not answer, and is written as Cordoned: {cluster.trouble}"
        elif cluster.unlisted:
            yield f"the nodes of {cluster.name} are not known: {cluster.unlisted}"
        yield from cluster.hidden
        yield from _default_notes(cluster)
        for other in cluster.others:
            yield f"the contexts {cluster.context} and {other} lead to one API server: {cluster.context} is taken"


def _default_notes(cluster: DiscoveredCluster) -> Iterator[str]:
    """Say what is usual on k3s and RKE2: a name that all their clusters have, and an address of their machine alone."""
    if cluster.name == _DEFAULT:
        yield (
            f"{cluster.name} is what k3s and RKE2 call every cluster, and it will be in each path of the output branch"
            f" (try --rename {cluster.context}=NAME)"
        )
    rancher = cluster.context == _DEFAULT or any(mark in cluster.version for mark in _RANCHER)
    if rancher and cluster.host in _THIS_MACHINE:
        yield (
            f"{cluster.name} is reached at {cluster.host}, which is the machine of the kubeconfig alone: where the"
            " daemon or an engine runs elsewhere, its server has to be an address of the cluster's node"
        )


def fleet_notes(fleet: NewFleet) -> Iterator[str]:
    """Say what a new fleet lacks."""
    if len(fleet.clusters) == 1:
        yield f"{fleet.primary} is the only cluster: its workloads can burst once there is another one"
    if not fleet.repo_url:
        yield "nothing says where engines clone the repository from: set spec.repoURL in fleet.yaml (or try --repo-url)"
