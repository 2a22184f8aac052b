"""Constraints on the pods of a request beyond their resources: claims of devices, and topology.

Claims are counted by the ResourceClaimTemplates and ComputeDomains that are deployed with the pods. A constraint that
only a scheduler can evaluate, as Volcano's network domains or a fraction of a GPU, is an obstacle; gprDetails overrides
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from reconciler.core.capacity.shared_topology import (
    COMPUTE_DOMAIN,
    NVLINK_DOMAIN,
    UNCOUNTABLE,
    ShapedPods,
    SharedDomain,
    shared_domains,
)
from reconciler.core.pods.resource_claims import TemplateRecord, pod_claims, read_template, with_claims
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN
from reconciler.core.workloads.kueue_pod_sets import object_annotations, template_annotations
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import TemplatePods
from reconciler.model.capacity import DeviceOption, DeviceRequest, ReplicaShape
from reconciler.model.kubernetes.workload_kind import path
from reconciler.model.workload import Json

_FRACTIONS = ("gpu-fraction", "gpu-memory")
"""Annotations by which KAI shares a GPU between pods, without a resource request."""

_TEMPLATE = "resource.k8s.io/ResourceClaimTemplate"
_CHANNEL = path("spec.channel.resourceClaimTemplate.name")
_ONE_CHANNEL = TemplateRecord(
    requests=(DeviceRequest(options=(DeviceOption(device_class="compute-domain-default-channel.nvidia.com"),)),)
)
"""The template that the driver makes of a ComputeDomain: each pod claims the channel of its node.

https://github.com/NVIDIA/k8s-dra-driver-gpu, templates/compute-domain-workload-claim-template.tmpl.yaml.
"""


def with_manifest_claims(
    shape: ReplicaShape, pods: TemplatePods, manifest: Mapping[str, Json], beside: Iterable[Mapping[str, Json]]
) -> ReplicaShape:
    """Add to the shape of pods their claims by templates of `beside`, or the obstacle to counting them.

    Raises one of AttributeError, LookupError, TypeError and ValueError where a template cannot be read.
    """
    claims = pod_claims(pods.spec)
    manifests = tuple(beside) if claims.templates else ()
    obstacle = next(_obstacles(pods, manifest), "")
    if obstacle:
        return replace(shape, obstacle=obstacle)
    return with_claims(shape, claims, "", dict(_templates(manifests)))


def _templates(manifests: Iterable[Mapping[str, Json]]) -> Iterator[tuple[str, TemplateRecord]]:
    """Read the ResourceClaimTemplates of other manifests; they go to the cluster of the pods."""
    for manifest in manifests:
        if group_kind(manifest) == _TEMPLATE:
            yield f"/{manifest['metadata']['name']}", read_template(manifest)
        elif group_kind(manifest) == COMPUTE_DOMAIN and (name := at(manifest, _CHANNEL)):
            yield f"/{name}", _ONE_CHANNEL


def compute_domains(pods: Sequence[ShapedPods], beside: Iterable[Mapping[str, Json]]) -> Iterator[SharedDomain]:
    """Yield the NVLink domain of each ComputeDomain of `beside` that any of these pods claim a channel of."""
    for manifest in beside:
        channel = at(manifest, _CHANNEL) if group_kind(manifest) == COMPUTE_DOMAIN else None
        members = [(shape, made.replicas or 0) for made, shape in pods if channel in pod_claims(made.spec).templates]
        yield from shared_domains(NVLINK_DOMAIN, members, 1)


def _obstacles(pods: TemplatePods, manifest: Mapping[str, Json]) -> Iterator[str]:
    annotations = {**object_annotations(manifest), **template_annotations(pods.place, manifest)}
    kind = BUILT_IN.get(group_kind(manifest))
    several = pods.replicas != 1 and not (kind is not None and kind.one_by_one)
    for key in _FRACTIONS:
        if key in annotations:
            yield f"asks for a part of a GPU ({key}), {UNCOUNTABLE}"
    if several and at(manifest, path("spec.networkTopology.mode")) == "hard":
        yield f"wants its pods in one network domain (networkTopology), {UNCOUNTABLE}"
