"""What the contexts of a kubeconfig lead to: each API server is asked once, by the login that the daemon would use.

All are asked at the same time, and each within the same limit, so that one that does not answer costs no other. Nothing
is watched, and nothing is written.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from reconciler.adapters.kube.answers import Forbidden, NotServed
from reconciler.adapters.kube.bounded_session import PATIENCE, ask, list_objects, run
from reconciler.adapters.kube.kubeconfig import BrokenKubeconfig, read_kubeconfig
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kubeconfig_files import existing_kubeconfig
from reconciler.core.engines import ENGINES
from reconciler.core.engines.reports import EngineResource
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.onboarding.context_reading import ContextReading, EngineSighting, KubeContext
from reconciler.core.onboarding.gpu_namespaces import asks_for_gpus
from reconciler.errors import InvalidInput, Transient
from reconciler.model.policy import Connection, EngineName

_PORTS = {"https": 443, "http": 80}


def kubeconfig_contexts(kubeconfig: Path) -> tuple[KubeContext, ...]:
    """List the contexts of a kubeconfig, or of several with a colon between them, as KUBECONFIG has it.

    Raises InvalidInput for one that is not there, is none, or has no contexts.
    """
    existing_kubeconfig(kubeconfig)
    try:
        config = read_kubeconfig(kubeconfig)
    except (OSError, BrokenKubeconfig) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidInput(f"reading the kubeconfig: {kubeconfig}: {cause} (try another --kubeconfig)") from error
    if not config.contexts:
        raise InvalidInput(f"reading the kubeconfig: {kubeconfig} has no contexts (try another --kubeconfig)")
    hidden = {each.context: f"{each.path}: {each.message} ({each.hint})" for each in config.hidden}
    return tuple(
        KubeContext(
            name=name,
            server=_identity(entry := config.clusters.get(str(context.get("cluster"))) or {}),
            current=name == config.current,
            host=_host(entry),
            hidden=hidden.get(name, ""),
        )
        for name, context in config.contexts.items()
    )


def read_contexts(
    kubeconfig: Path, contexts: Sequence[KubeContext], *, patience: float = PATIENCE
) -> tuple[ContextReading, ...]:
    """Ask the API server of each context for its nodes and engines. A context that does not answer says why."""

    async def read() -> tuple[ContextReading, ...]:
        return tuple(await asyncio.gather(*(_read_context(kubeconfig, context, patience) for context in contexts)))

    return run(read())


def read_gpu_namespaces(kubeconfig: Path, context: str, *, patience: float = PATIENCE) -> Mapping[str, int]:
    """Count the pods of a cluster that ask for GPUs, by namespace. Raises Transient where they cannot be listed."""

    async def read(server: ApiServer) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        async for pod in list_objects(server, Resource.PODS.paths()[0], {}, patience):
            if asks_for_gpus(pod):
                counts[str(pod["metadata"]["namespace"])] += 1
        return counts

    return run(ask(kubeconfig, Connection(context=context), read, patience))


def _host(cluster: Mapping[str, Any]) -> str:
    """Return the host of an API server; empty for an address that is none."""
    try:
        return urlsplit(str(cluster.get("server") or "")).hostname or ""
    except ValueError:
        return ""


def _identity(cluster: Mapping[str, Any]) -> str:
    """Return what is equal for all entries of one API server: its address, and the name of its certificate."""
    address = str(cluster.get("server") or "")
    try:
        parts = urlsplit(address)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return address
    if not parts.hostname:
        return address
    return f"{parts.scheme}://{parts.hostname}:{port}{parts.path.rstrip('/')} {cluster.get('tls-server-name') or ''}"


async def _read_context(kubeconfig: Path, context: KubeContext, patience: float) -> ContextReading:
    async def read(server: ApiServer) -> ContextReading:
        version = await server.get("/version", {}, within=patience)
        nodes, unlisted = [], ""
        try:
            nodes = [node async for node in list_objects(server, Resource.NODES.paths()[0], {}, patience)]
        except Forbidden as error:
            unlisted = str(error)
        return ContextReading(
            context=context,
            uid=await _uid(server, patience),
            version=str(version["gitVersion"]),
            nodes=tuple(nodes),
            unlisted=unlisted,
            engines=await _engines(server, patience),
        )

    try:
        return await ask(kubeconfig, Connection(context=context.name), read, patience)
    except Transient as error:
        return ContextReading(context=context, trouble=str(error))


async def _uid(server: ApiServer, patience: float) -> str:
    """Return the UID of kube-system, by which others know a cluster as well; empty where it may not be read."""
    try:
        namespace = await server.get("/api/v1/namespaces/kube-system", {}, within=patience)
    except (Forbidden, NotServed):
        return ""
    return str(namespace["metadata"]["uid"])


async def _engines(server: ApiServer, patience: float) -> dict[EngineName, EngineSighting]:
    """Look for each engine."""
    seen = {}
    for name, engine in ENGINES.items():
        if engine.installation is not None and await _serves(server, engine.installation.resource, patience):
            namespaces = await _namespaces(server, engine.installation.selector, patience)
            seen[name] = EngineSighting(namespaces=namespaces)
    return seen


async def _serves(server: ApiServer, resource: EngineResource, patience: float) -> bool:
    """Return whether an API server has a resource. Every login may ask (Kubernetes' role system:discovery)."""
    for version in resource.versions:
        with suppress(NotServed, Forbidden):
            served = await server.get(f"/apis/{resource.group}/{version}", {}, within=patience)
            if any(entry["name"] == resource.plural for entry in served["resources"]):
                return True
    return False


async def _namespaces(server: ApiServer, selector: str, patience: float) -> tuple[str, ...]:
    """Return the namespaces with Deployments of this label; none where they may not be listed."""
    query = {"labelSelector": selector}
    with suppress(Forbidden):
        found = list_objects(server, Resource.DEPLOYMENTS.paths()[0], query, patience)
        return tuple(sorted({str(item["metadata"]["namespace"]) async for item in found}))
    return ()
