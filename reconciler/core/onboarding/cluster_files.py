"""The file of a Cluster, made from what its API server says."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.core.onboarding.annotated_yaml import AnnotatedLine, annotated_text, yaml_scalar
from reconciler.core.onboarding.discovered_cluster import DiscoveredCluster, NodeLabel
from reconciler.core.onboarding.engine_choice import ClusterEngine
from reconciler.text.wording import count, join_names


def cluster_file(cluster: DiscoveredCluster, engine: ClusterEngine | None, *, primary: bool) -> str:
    """Write the file of a Cluster; `engine` is None where the Cluster names none."""
    return annotated_text(_lines(cluster, engine, primary=primary))


def cluster_summary(cluster: DiscoveredCluster) -> str:
    """Say in a sentence what a cluster is."""
    if cluster.trouble:
        return f"It did not answer: {cluster.trouble}."
    version = f"Kubernetes {cluster.version}" if cluster.version else "Kubernetes"
    if cluster.unlisted:
        return f"{version}; its nodes are not known: {cluster.unlisted}."
    nodes = f"{version}; {count(cluster.nodes, 'node')}"
    if not cluster.gpus:
        return f"{nodes}, none with GPUs."
    return f"{nodes}, {cluster.gpu_nodes} with GPUs: {cluster.gpu_summary}."


def _lines(cluster: DiscoveredCluster, engine: ClusterEngine | None, *, primary: bool) -> Iterator[AnnotatedLine]:
    yield AnnotatedLine("# yaml-language-server: $schema=../schemas/Cluster.json")
    yield AnnotatedLine("", cluster_summary(cluster))
    yield AnnotatedLine("apiVersion: overspill.dev/v1alpha1")
    yield AnnotatedLine("kind: Cluster")
    yield AnnotatedLine("metadata:")
    yield AnnotatedLine(f"  name: {cluster.name}", _about_name(cluster))
    if cluster.labels:
        yield AnnotatedLine("  labels:", "what policies select clusters by")
        for label in cluster.labels:
            yield _label(label)
    yield AnnotatedLine("spec:")
    yield AnnotatedLine("  connection:", "how the daemon reaches its API server")
    yield AnnotatedLine(f"    context: {yaml_scalar(cluster.context)}", _about_context(cluster))
    if engine is not None:
        yield AnnotatedLine(f"  engine: {engine.name}", engine.because)
    elif primary and not cluster.trouble:
        yield AnnotatedLine("  ", "engine: none was seen here, and none is needed: bursts never go to the primary.")
    if cluster.trouble:
        yield AnnotatedLine(
            "  availability: Cordoned", "takes no bursts, for it did not answer; Active once `overspill status` sees it"
        )
    else:
        yield AnnotatedLine("  availability: Active", "takes bursts; Cordoned takes no new ones, Draining gives back")
    yield AnnotatedLine(
        "  ", "pricePerGPUHour: 2.50, in dollars, is for policies that go by price; no API server tells it."
    )


def _about_name(cluster: DiscoveredCluster) -> str:
    source = "as its context is called" if cluster.name == cluster.context else "made of the name of its context"
    return f"{source}; its placements are in clusters/{cluster.name} of the output branch"


def _about_context(cluster: DiscoveredCluster) -> str:
    login = "its login did not work when this was written" if cluster.trouble else "its login worked"
    same = f"; {join_names(cluster.others)} lead to the same API server" if cluster.others else ""
    if len(cluster.others) == 1:
        same = f"; {cluster.others[0]} leads to the same API server"
    return f"in the daemon's kubeconfig; {login}{same}"


def _label(label: NodeLabel) -> AnnotatedLine:
    """Write a label; one whose nodes differ is left to a person, with its values in a comment."""
    if len(label.values) == 1:
        value, nodes = label.values[0]
        return AnnotatedLine(f"    {label.name}: {yaml_scalar(value)}", f"{label.source} of {count(nodes, 'node')}")
    values = join_names(f"{value} ({nodes})" for value, nodes in label.values)
    return AnnotatedLine("    ", f"{label.name}: not one but {values}, by {label.source}.")
