"""A live workload and the objects beside it, read once from the API server of its cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from reconciler.adapters.kube.answers import Expired, Forbidden, NotServed
from reconciler.adapters.kube.login import KubeconfigLogin
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.onboarding.lend import COPIED, LiveWorkload, needed_objects
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Connection
from reconciler.model.workload import Json
from reconciler.text.spelling import nearest

_WITHIN = 10.0
"""Seconds of one answer."""
_MOST_OBJECTS = 500
"""Objects of a list; others are left out."""


def read_live_workload(
    kubeconfig: Path, cluster: ClusterName, connection: Connection, wanted: tuple[WorkloadKind, str, str], kinds: Kinds
) -> LiveWorkload:
    """Read a workload of a cluster, with the objects that it needs and the Services of its namespace.

    `wanted` is its kind, namespace and name. Raises InvalidInput where there is none, and Transient where the cluster
    does not answer.
    """
    return asyncio.run(_read(kubeconfig, cluster, connection, wanted, kinds))


async def _read(
    kubeconfig: Path, cluster: ClusterName, connection: Connection, wanted: tuple[WorkloadKind, str, str], kinds: Kinds
) -> LiveWorkload:
    login = KubeconfigLogin(connection, kubeconfig)
    server = ApiServer(login, WatchTiming(), lambda: None)
    try:
        kind, namespace, name = wanted
        base = await _base(server, kind)
        if base is None:
            raise InvalidInput(f"{cluster} serves no kind {kind.kind} of {kind.group or 'v1'} (is it installed there?)")
        path = _resource(base, namespace, kind)
        try:
            manifest = await server.get(f"{path}/{name}", {}, within=_WITHIN)
        except NotServed:
            there = (
                nearest(name, await _names(server, path)) or f"there is none in {namespace}: try another --namespace"
            )
            raise InvalidInput(f"{cluster} has no {kind.kind} {namespace}/{name} ({there})") from None
        live = LiveWorkload(primary=cluster, manifest={"apiVersion": base[0], "kind": kind.kind, **manifest})
        companions = [*await _companions(server, live, kinds), *await _services(server, namespace)]
        return LiveWorkload(primary=cluster, manifest=live.manifest, companions=tuple(companions))
    except Transient as error:
        raise Transient(f"cluster {cluster} {error}") from error
    finally:
        await server.close()


async def _base(server: ApiServer, kind: WorkloadKind) -> tuple[str, str] | None:
    """Return the apiVersion in which a server serves a kind, and the plural of its path; None where it does not."""
    if kind.group:
        group = await _get(server, f"/apis/{kind.group}")
        versions = [] if group is None else [version["version"] for version in group.get("versions", ())]
        versions.sort(key=lambda version: version not in kind.versions)
        api_versions = [f"{kind.group}/{version}" for version in versions]
    else:
        api_versions = ["v1"]
    for api_version in api_versions:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        resources = await _get(server, root)
        for resource in () if resources is None else resources.get("resources", ()):
            if resource.get("kind") == kind.kind and "/" not in resource.get("name", "/"):
                return api_version, resource["name"]
    return None


def _resource(base: tuple[str, str], namespace: str, kind: WorkloadKind) -> str:
    api_version, plural = base
    return f"/{'apis' if kind.group else 'api'}/{api_version}/namespaces/{namespace}/{plural}"


async def _companions(server: ApiServer, live: LiveWorkload, kinds: Kinds) -> list[Mapping[str, Json]]:
    """Read the objects that a workload cannot start without, as far as they are there and may be read."""
    found: list[Mapping[str, Json]] = []
    for needed in needed_objects(live, kinds):
        if needed.category not in COPIED:
            continue
        api_version, kind = COPIED[needed.category]
        namespace, _, name = needed.name.rpartition("/")
        root = "apis" if "/" in api_version else "api"
        manifest = await _get(server, f"/{root}/{api_version}/namespaces/{namespace}/{kind.lower()}s/{name}")
        if manifest is not None:
            found.append({"apiVersion": api_version, "kind": kind, **manifest})
    return found


async def _services(server: ApiServer, namespace: str) -> list[Mapping[str, Json]]:
    services = await _get(server, f"/api/v1/namespaces/{namespace}/services", {"limit": _MOST_OBJECTS})
    listed = [] if services is None else services.get("items", ())
    return [{"apiVersion": "v1", "kind": "Service", **item} for item in listed]


async def _names(server: ApiServer, path: str) -> list[str]:
    listed = await _get(server, path, {"limit": _MOST_OBJECTS})
    return [] if listed is None else [str(item["metadata"]["name"]) for item in listed.get("items", ())]


async def _get(server: ApiServer, path: str, query: Mapping[str, object] | None = None) -> Json:
    """Get a document; None where it is not there or may not be read."""
    try:
        return await server.get(path, query or {}, within=_WITHIN)
    except (NotServed, Forbidden, Expired):
        return None
