"""ServiceExports for the Services of a placement, where its workspace asks for a network that clusters share.

Two contracts, each read from its project's own types. The multicluster-services API (sigs.k8s.io/mcs-api, ded161a of
2026-05-07) exports the Service of the same name and namespace and needs no more. KubeSlice (worker-operator, d7e1cd6 of
2025-11-12) goes by labels of pods and by the ports of their containers, and wants the slice's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.core.pods.pod_references import as_mapping, mappings_in
from reconciler.core.workloads import pods as podsof
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.core.workloads.paths import at
from reconciler.model.cluster import NetworkApi, SharedNetworking
from reconciler.model.policy import Workspace
from reconciler.model.workload import Json
from reconciler.text.digits import is_digits, whole_number
from reconciler.text.findings import shortened

_VERSIONS = {
    NetworkApi.MULTICLUSTER: "multicluster.x-k8s.io/v1alpha1",
    NetworkApi.KUBESLICE: "networking.kubeslice.io/v1beta1",
}
_KIND = "ServiceExport"
_SERVICE = "/Service"
_DIGITS = 5
"""Of a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexportable:
    """Why a Service cannot be exported, and the way out."""

    message: str
    hint: str


def export_kind(shared: SharedNetworking) -> str:
    """Return the ``group/Kind`` of the objects that are made."""
    return group_kind({"apiVersion": export_version(shared), "kind": _KIND})


def export_version(shared: SharedNetworking) -> str:
    """Return the ``apiVersion`` of the objects that are made."""
    return _VERSIONS[shared.api]


def service(manifest: Mapping[str, Json]) -> bool:
    """Return whether an object is a Service that can have pods behind it, and is no other name for something else."""
    return group_kind(manifest) == _SERVICE and at(manifest, ("spec", "type")) != "ExternalName"


def exports(
    workspace: Workspace, objects: Sequence[tuple[Mapping[str, Json], str]], kinds: Kinds
) -> Iterator[tuple[int, Json]]:
    """Yield the ServiceExports of objects, each with the position of its Service; none without a shared network.

    Each object comes with its namespace. A Service that has a ServiceExport among them gets no other, and neither does
    one that cannot be exported, which is a warning on the template's file.
    """
    shared = workspace.shared_networking
    if shared is None:
        return
    kind = export_kind(shared)
    own = {(namespace, _name(manifest)) for manifest, namespace in objects if group_kind(manifest) == kind}
    pods = [manifest for manifest, _ in objects]
    for position, (manifest, namespace) in enumerate(objects):
        if service(manifest) and (namespace, _name(manifest)) not in own:
            document = export(manifest, shared, pods, kinds)
            if not isinstance(document, Unexportable):
                yield position, document


def export(
    manifest: Mapping[str, Json], shared: SharedNetworking, objects: Sequence[Mapping[str, Json]], kinds: Kinds
) -> Json | Unexportable:
    """Make the ServiceExport of a Service; `objects` are those whose pods may be behind it."""
    metadata = {name: part for name in ("name", "namespace") if (part := at(manifest, ("metadata", name)))}
    document: dict[str, Json] = {"apiVersion": _VERSIONS[shared.api], "kind": _KIND, "metadata": metadata}
    if shared.api is NetworkApi.MULTICLUSTER:
        return document
    selector = as_mapping(at(manifest, ("spec", "selector")))
    if not selector:
        return Unexportable(message="it has no selector, by which KubeSlice finds its pods", hint="give it one")
    ports: list[Json] = []
    for port in mappings_in(at(manifest, ("spec", "ports"))):
        number = _container_port(port, selector, objects, kinds)
        if number is None:
            message = (
                f"nothing here says which number its port {shortened(str(port.get('targetPort')))} has in its pods"
            )
            return Unexportable(message=message, hint="write targetPort as a number")
        name = {"name": port["name"]} if port.get("name") else {}
        ports.append({**name, "containerPort": number, "protocol": port.get("protocol") or "TCP"})
    if not ports:
        return Unexportable(message="it has no ports, which KubeSlice wants", hint="list its ports")
    document["spec"] = {"slice": shared.slice, "selector": {"matchLabels": dict(selector)}, "ports": ports}
    return document


def _name(manifest: Mapping[str, Json]) -> str:
    return str(at(manifest, ("metadata", "name")))


def _container_port(
    port: Mapping[str, Json], selector: Mapping[str, Json], objects: Sequence[Mapping[str, Json]], kinds: Kinds
) -> Json:
    """Return the container port that a Service port leads to; None for a name that no pod here has."""
    target = port.get("targetPort") or port.get("port")
    if not isinstance(target, str):
        return target
    if is_digits(target):
        return whole_number(target, _DIGITS)
    for manifest in objects:
        for site in podsof.pod_template_sites(manifest, kinds):
            path = podsof.pod_labels_path(manifest, site)
            labels = as_mapping(at(manifest, path)) if path else {}
            pod = as_mapping(at(manifest, tuple(map(str, site.loc)))) if site.loc else {}
            if not selector.items() <= labels.items():
                continue
            for container in mappings_in(pod.get("containers")):
                for entry in mappings_in(container.get("ports")):
                    if entry.get("name") == target:
                        return entry.get("containerPort")
    return None
