"""A live workload and the objects beside it, read once from the API server of its cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reconciler.adapters.kube.answers import Forbidden, NotServed
from reconciler.adapters.kube.bounded_session import PATIENCE, ask, list_objects, run
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.onboarding.lend import COPIED, LiveWorkload, needed_objects
from reconciler.core.workloads.builtin_kinds import Kinds
from reconciler.errors import InvalidInput, Transient
from reconciler.model.ids import ClusterName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.policy import Connection
from reconciler.model.workload import Json
from reconciler.text.spelling import nearest

_DEEPEST = 200
"""Levels of an object: kinds of Kubernetes have a dozen, and files of a fleet at most 64."""


def read_live_workload(
    kubeconfig: Path,
    cluster: ClusterName,
    connection: Connection,
    wanted: tuple[WorkloadKind, str, str],
    kinds: Kinds,
    *,
    patience: float = PATIENCE,
) -> LiveWorkload:
    """Read a workload of a cluster, with the objects that it needs and the Services of its namespace.

    `wanted` is its kind, namespace and name; `patience` is the limit in seconds of all answers together. Raises
    InvalidInput where there is none, and Transient where the cluster does not answer.
    """

    async def read(server: ApiServer) -> LiveWorkload:
        return await _ObjectReader(server=server, cluster=cluster, patience=patience).read(wanted, kinds)

    try:
        return run(ask(kubeconfig, connection, read, patience))
    except Transient as error:
        raise Transient(f"cluster {cluster} {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObjectReader:
    """Reads objects of one API server."""

    server: ApiServer
    cluster: ClusterName
    patience: float

    async def read(self, wanted: tuple[WorkloadKind, str, str], kinds: Kinds) -> LiveWorkload:
        """Read a workload and its companions. Raises errors of any answer that is none of an API server."""
        kind, namespace, name = wanted
        base = await self._base(kind)
        if base is None:
            raise InvalidInput(
                f"{self.cluster} serves no kind {kind.kind} of {kind.group or 'v1'} (is it installed there?)"
            )
        api_version, plural = base
        path = f"{_root(api_version)}/namespaces/{namespace}/{plural}"
        try:
            answer = await self.server.get(f"{path}/{name}", {}, within=self.patience)
        except NotServed:
            names: list[str] = []
            with suppress(NotServed, Forbidden):
                names = [str(item["metadata"]["name"]) for item in await self._items(path)]
            hint = nearest(name, names) or f"there is none in {namespace}: try another --namespace"
            raise InvalidInput(f"{self.cluster} has no {kind.kind} {namespace}/{name} ({hint})") from None
        manifest = _manifest(answer, api_version, kind.kind)
        if (manifest["metadata"]["namespace"], manifest["metadata"]["name"]) != (namespace, name):
            raise ValueError(f"not the object of {path}/{name}")
        live = LiveWorkload(primary=self.cluster, manifest=manifest)
        companions = await self._companions(live, kinds)
        try:
            return replace(live, companions=(*companions, *await self._services(namespace)))
        except Forbidden as error:
            return replace(live, companions=tuple(companions), services_unread=str(error))

    async def _base(self, kind: WorkloadKind) -> tuple[str, str] | None:
        """Return the apiVersion in which a kind is served, and the plural of its path; None where it is not.

        Raises Forbidden where the server does not say.
        """
        api_versions = ["v1"]
        if kind.group:
            group = await self._served(f"/apis/{kind.group}")
            versions = [] if group is None else [str(version["version"]) for version in group["versions"]]
            versions.sort(key=lambda version: version not in kind.versions)
            api_versions = [f"{kind.group}/{version}" for version in versions]
        for api_version in api_versions:
            resources = await self._served(_root(api_version))
            for resource in () if resources is None else resources["resources"]:
                if resource["kind"] == kind.kind and "/" not in resource["name"]:
                    return api_version, str(resource["name"])
        return None

    async def _companions(self, live: LiveWorkload, kinds: Kinds) -> list[Mapping[str, Json]]:
        """Read the objects that a workload cannot start without, as far as they are there and may be read."""
        companions: list[Mapping[str, Json]] = []
        for needed in needed_objects(live, kinds):
            if needed.category not in COPIED:
                continue
            api_version, kind = COPIED[needed.category]
            namespace, _, name = needed.name.rpartition("/")
            answer = await self._get(f"{_root(api_version)}/namespaces/{namespace}/{kind.lower()}s/{name}")
            if answer is not None:
                companions.append(_manifest(answer, api_version, kind))
        return companions

    async def _services(self, namespace: str) -> list[Mapping[str, Json]]:
        items = await self._items(f"/api/v1/namespaces/{namespace}/services")
        return [_manifest(item, "v1", "Service") for item in items]

    async def _items(self, path: str) -> list[Json]:
        """Read all pages of a list."""
        return [item async for item in list_objects(self.server, path, {}, self.patience)]

    async def _served(self, path: str) -> Json:
        """Get a document of what is served, which every login may read as a rule; None where it is not there."""
        try:
            return await self.server.get(path, {}, within=self.patience)
        except NotServed:
            return None
        except Forbidden as error:
            raise Forbidden(f"{error} (bind the ClusterRole system:discovery to this login)") from error

    async def _get(self, path: str) -> Json:
        """Get a document; None where it is not there or may not be read."""
        try:
            return await self.server.get(path, {}, within=self.patience)
        except (NotServed, Forbidden):
            return None


def _root(api_version: str) -> str:
    """Return the path of an API version."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _manifest(answer: Json, api_version: str, kind: str) -> dict[str, Json]:
    """Return an object with the version and kind that it was asked for by, which items of a list leave out.

    Raises TypeError, KeyError or ValueError for an answer that is no object.
    """
    asked = {"apiVersion": api_version, "kind": kind}
    manifest = {**asked, **answer, **asked}
    if not isinstance(manifest["metadata"]["name"], str):
        raise TypeError("an object without a name")
    level: list[Json] = [manifest]
    for _ in range(_DEEPEST):
        level = [child for value in level for child in _children(value)]
    if level:
        raise ValueError(f"an object of over {_DEEPEST} levels")
    return manifest


def _children(value: Json) -> Iterable[Json]:
    """Return the values in an object or a list; other values have none."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
