"""What the contexts of a kubeconfig lead to: each API server is asked once, by the login that the daemon would use.

All are asked at the same time, and each within the same limit, so that one that does not answer costs no other. Nothing
is watched, and nothing is written.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigMerger
from yaml import YAMLError

from reconciler.adapters.kube.answers import Expired, Forbidden, NotServed
from reconciler.adapters.kube.login import KubeconfigLogin
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.adapters.kube.view import NamingLoop
from reconciler.core.engines import ENGINES
from reconciler.core.engines.reports import EngineResource
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.onboarding.context_reading import ContextReading, EngineSighting, KubeContext
from reconciler.core.onboarding.gpu_namespaces import asks_for_gpus
from reconciler.errors import InvalidInput, Transient
from reconciler.model.policy import Connection, EngineName
from reconciler.model.workload import Json

T = TypeVar("T")

PATIENCE = 20.0
"""Seconds for all answers of an API server, its login plugin included."""
_PAGE = 500
"""Objects of a page, as kubectl has it."""
_PORTS = {"https": 443, "http": 80}


def kubeconfig_contexts(kubeconfig: Path) -> tuple[KubeContext, ...]:
    """List the contexts of a kubeconfig, or of several with a colon between them, as KUBECONFIG has it.

    Raises InvalidInput for one that is not there, is none, or has no contexts.
    """
    if not any(Path(part).expanduser().is_file() for part in str(kubeconfig).split(os.pathsep) if part):
        raise InvalidInput(f"reading the kubeconfig: {kubeconfig} is not a file (try another --kubeconfig)")
    try:
        config = KubeConfigMerger(str(kubeconfig)).config
        clusters = {str(entry["name"]): entry["cluster"].value for entry in config["clusters"].value}
        contexts = {
            str(entry["name"]): str(entry["context"].value.get("cluster")) for entry in config["contexts"].value
        }
        current = config.value.get("current-context")
    except (ConfigException, OSError, YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        cause = (error.strerror if isinstance(error, OSError) else None) or "is not a kubeconfig"
        raise InvalidInput(f"reading the kubeconfig: {kubeconfig}: {cause} (try another --kubeconfig)") from error
    if not contexts:
        raise InvalidInput(f"reading the kubeconfig: {kubeconfig} has no contexts (try another --kubeconfig)")
    return tuple(
        KubeContext(name=name, server=_identity(clusters.get(cluster) or {}), current=name == current)
        for name, cluster in contexts.items()
    )


def read_contexts(
    kubeconfig: Path, contexts: Sequence[KubeContext], *, patience: float = PATIENCE
) -> tuple[ContextReading, ...]:
    """Ask the API server of each context for its nodes and engines. A context that does not answer says why."""

    async def read() -> tuple[ContextReading, ...]:
        return tuple(await asyncio.gather(*(_read_context(kubeconfig, context, patience) for context in contexts)))

    return _run(read())


def read_gpu_namespaces(kubeconfig: Path, context: str, *, patience: float = PATIENCE) -> Mapping[str, int]:
    """Count the pods of a cluster that ask for GPUs, by namespace. Raises Transient where they cannot be listed."""

    async def read(server: ApiServer) -> Mapping[str, int]:
        counts: Counter[str] = Counter()
        async for pod in _listed(server, Resource.PODS.paths()[0], {}, patience):
            if asks_for_gpus(pod):
                counts[str(pod["metadata"]["namespace"])] += 1
        return counts

    return _run(_asked(kubeconfig, context, read, patience))


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


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=NamingLoop) as runner:
        return runner.run(coroutine)


async def _asked(
    kubeconfig: Path, context: str, call: Callable[[ApiServer], Coroutine[Any, Any, T]], patience: float
) -> T:
    """Log in to the API server of a context, and ask it. Raises Transient where no answer comes of it in time."""
    login = KubeconfigLogin(Connection(context=context), kubeconfig)
    server = ApiServer(login, WatchTiming(), moved=lambda: None)
    try:
        async with asyncio.timeout(patience):
            return await call(server)
    except TimeoutError as error:
        raise Transient(f"gave no answer in {patience:g} s") from error
    except Expired as error:
        raise Transient("changed too much while it was read (try again)") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Transient("sent what no API server sends (is it one?)") from error
    finally:
        await server.close()


async def _read_context(kubeconfig: Path, context: KubeContext, patience: float) -> ContextReading:
    async def read(server: ApiServer) -> ContextReading:
        version = await server.get("/version", {}, within=patience)
        nodes, unlisted = [], ""
        try:
            nodes = [node async for node in _listed(server, Resource.NODES.paths()[0], {}, patience)]
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
        return await _asked(kubeconfig, context.name, read, patience)
    except Transient as error:
        return ContextReading(context=context, trouble=str(error))


async def _listed(
    server: ApiServer, path: str, query: Mapping[str, object], patience: float
) -> AsyncGenerator[Json, None]:
    """Yield all objects of a list, page by page."""
    token = ""
    while True:
        page = await server.get(
            path, {**query, "limit": _PAGE, **({"continue": token} if token else {})}, within=patience
        )
        for item in page["items"]:
            yield item
        token = page["metadata"].get("continue") or ""
        if not token:
            return


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
    """Tell whether an API server has a resource. Every login may ask (Kubernetes' role system:discovery)."""
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
        found = _listed(server, Resource.DEPLOYMENTS.paths()[0], query, patience)
        return tuple(sorted({str(item["metadata"]["namespace"]) async for item in found}))
    return ()
