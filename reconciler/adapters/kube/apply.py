"""Objects that an admin has applied by `overspill bootstrap --apply`: the one place that writes to a cluster.

Never called by the daemon. The login is that of the context which the admin names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from reconciler.adapters.kube.answers import NotServed
from reconciler.adapters.kube.login import KubeconfigLogin
from reconciler.adapters.kube.server import ApiServer
from reconciler.adapters.kube.timing import WatchTiming
from reconciler.core.engines.object_changes import ApplyAction, ObjectChange, object_change, refused_change
from reconciler.core.readiness.question import object_question
from reconciler.errors import Transient
from reconciler.model.policy import Connection
from reconciler.model.workload import Json

_WITHIN = 10.0
"""Seconds of one answer."""
_LAST = 0.01
"""Seconds for sockets to close, which takes a few iterations of the event loop."""


def apply_objects(
    kubeconfig: Path, context: str, objects: Sequence[Json], *, dry_run: bool
) -> tuple[ObjectChange, ...]:
    """Apply objects in order by server-side apply, and return what has changed; a dry run changes nothing.

    An object that the server does not take is reported, and the others go on. Raises Transient where the server cannot
    be reached.
    """
    return asyncio.run(_apply_all(kubeconfig, context, objects, dry_run=dry_run))


async def _apply_all(
    kubeconfig: Path, context: str, objects: Sequence[Json], *, dry_run: bool
) -> tuple[ObjectChange, ...]:
    server = ApiServer(KubeconfigLogin(Connection(context=context), kubeconfig), WatchTiming(), lambda: None)
    new_namespaces: set[str] = set()
    changes: list[ObjectChange] = []
    try:
        await server.get("/version", {}, within=_WITHIN)
        for wanted in objects:
            # In a namespace that is not there yet a dry run would find none.
            unborn = dry_run and wanted["metadata"].get("namespace") in new_namespaces
            change = object_change(wanted, None, None) if unborn else await _apply(server, wanted, dry_run=dry_run)
            changes.append(change)
            if wanted["kind"] == "Namespace" and change.action is ApplyAction.CREATE:
                new_namespaces.add(str(wanted["metadata"]["name"]))
    except Transient as error:
        raise Transient(f"context {context} {error}") from error
    finally:
        await server.close()
        await asyncio.sleep(_LAST)
    return tuple(changes)


async def _apply(server: ApiServer, wanted: Json, *, dry_run: bool) -> ObjectChange:
    metadata = wanted["metadata"]
    path = object_question(wanted["apiVersion"], wanted["kind"], metadata["name"], metadata.get("namespace", "")).path
    try:
        try:
            before = await server.get(path, {}, within=_WITHIN)
        except NotServed:
            before = None
        after = await server.apply(path, wanted, dry_run=dry_run, within=_WITHIN)
    except Transient as error:
        return refused_change(wanted, str(error))
    return object_change(wanted, before, after)
