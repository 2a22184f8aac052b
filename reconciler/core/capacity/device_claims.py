"""Constraints on the pods of a request beyond their resources: claims of devices, and topology.

Claims are counted by the ResourceClaimTemplates that are deployed with the pods. A constraint that only a scheduler can
evaluate, as a network domain that all pods of a set share or a fraction of a GPU, is an obstacle; gprDetails
overrides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from reconciler.core.pods.pod_references import as_mapping
from reconciler.core.pods.resource_claims import TemplateRecord, pod_claims, read_template, with_claims
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import TemplatePods
from reconciler.model.capacity import ReplicaShape
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.workload import Json

_REQUIRED = (
    "kueue.x-k8s.io/podset-required-topology",
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kai.scheduler/topology-required-placement",
)
"""Annotations that require one topology domain for the pods of a set; preferred topology decides nothing."""

_FRACTIONS = ("gpu-fraction", "gpu-memory")
"""Annotations by which KAI shares a GPU between pods, without a resource request."""

_TEMPLATE = "resource.k8s.io/ResourceClaimTemplate"
_DOMAIN = "resource.nvidia.com/ComputeDomain"
_CHANNEL = path("spec.channel.resourceClaimTemplate.name")
_UNCOUNTABLE = "which cannot be counted here"


def with_manifest_claims(
    shape: ReplicaShape, pods: TemplatePods, manifest: Mapping[str, Json], beside: Iterable[Mapping[str, Json]]
) -> ReplicaShape:
    """Add to the shape of pods their claims by templates of `beside`, or the obstacle to counting them.

    Raises one of AttributeError, LookupError, TypeError and ValueError where a template cannot be read.
    """
    claims = pod_claims(pods.spec)
    manifests = tuple(beside) if claims.templates else ()
    obstacle = next(_obstacles(pods, manifest, claims.templates, manifests), "")
    if obstacle:
        return replace(shape, obstacle=obstacle)
    return with_claims(shape, claims, "", dict(_templates(manifests)))


def _templates(manifests: Iterable[Mapping[str, Json]]) -> Iterator[tuple[str, TemplateRecord]]:
    """Read the ResourceClaimTemplates of other manifests; they go to the cluster of the pods."""
    for manifest in manifests:
        if group_kind(manifest) == _TEMPLATE:
            yield f"/{manifest['metadata']['name']}", read_template(manifest)


def _obstacles(
    pods: TemplatePods, manifest: Mapping[str, Json], claimed: tuple[str, ...], beside: Iterable[Mapping[str, Json]]
) -> Iterator[str]:
    annotations = {**_annotations(manifest), **_annotations(_template(pods, manifest))}
    kind = BUILT_IN.get(group_kind(manifest))
    several = pods.replicas != 1 and not (kind is not None and kind.one_by_one)
    for key in _FRACTIONS:
        if key in annotations:
            yield f"asks for a part of a GPU ({key}), {_UNCOUNTABLE}"
    for key in _REQUIRED if several else ():
        if key in annotations:
            yield f"wants its pods in one topology domain ({key}), {_UNCOUNTABLE}"
    if several and at(manifest, path("spec.networkTopology.mode")) == "hard":
        yield f"wants its pods in one network domain (networkTopology), {_UNCOUNTABLE}"
    for other in beside:
        if group_kind(other) == _DOMAIN and at(other, _CHANNEL) in claimed:
            domain = f"ComputeDomain {at(other, path('metadata.name'))}"
            yield f"wants its pods in one NVLink domain ({domain}), {_UNCOUNTABLE}"


def _template(pods: TemplatePods, manifest: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return a pod template, or its spec where the spec stands without metadata."""
    spec_path = tuple(map(str, pods.place.loc))
    return (
        as_mapping(at(manifest, spec_path[:-1]))
        if spec_path[-1:] in (("spec",), ("podSpec",))
        else as_mapping(at(manifest, spec_path))
    )


def _annotations(value: Mapping[str, Json]) -> Mapping[str, Json]:
    return as_mapping(at(value, ("metadata", "annotations"))) or as_mapping(value.get("annotations"))
