"""Objects that an admin has applied by `overspill bootstrap --apply` and `overspill grant`, and tokens of accounts.

The one place that changes objects of a cluster, and never called by the daemon. The login is that of the context which
the admin names.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from reconciler.adapters.kube.answers import Conflicts, NotServed
from reconciler.adapters.kube.bounded_session import PATIENCE, ask, run
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.engines.object_changes import ApplyAction, ObjectChange, object_change, refused_change
from reconciler.core.readiness.question import ServiceAccountName, object_question
from reconciler.errors import Transient
from reconciler.model.policy import Connection
from reconciler.model.workload import Json

T = TypeVar("T")

_WITHIN = 10.0
"""Seconds of one answer."""
_LOOK = 0.1
"""Seconds between two looks at a Secret that Kubernetes has yet to fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountToken:
    """A token of a service account."""

    token: str = field(repr=False)
    expires_at: datetime | None
    """None for a token without an end."""


def apply_objects(
    kubeconfig: Path, context: str, objects: Sequence[Json], *, manager: str, dry_run: bool, force: bool = False
) -> tuple[ObjectChange, ...]:
    """Apply objects in order by server-side apply, and return what has changed; a dry run changes nothing.

    An object that the server does not take is reported, and the others go on. Fields that another manager has set are
    taken over with `force` alone; a dry run tells them in any case. Raises Transient where the server cannot be
    reached.
    """

    async def apply_all(server: ApiServer) -> tuple[ObjectChange, ...]:
        applier = _Applier(server=server, manager=manager, dry_run=dry_run, force=force)
        await server.get("/version", {}, within=_WITHIN)
        return tuple([await applier.apply(wanted) for wanted in objects])

    return _session(kubeconfig, context, apply_all, patience=PATIENCE + _WITHIN * len(objects))


def request_token(kubeconfig: Path, context: str, account: ServiceAccountName, lasts: timedelta) -> AccountToken:
    """Have a token made for a service account; the server may let it end sooner. Raises Transient."""
    path = f"/api/v1/namespaces/{account.namespace}/serviceaccounts/{account.name}/token"
    spec = {"expirationSeconds": int(lasts.total_seconds())}
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}

    async def make(server: ApiServer) -> AccountToken:
        status = (await server.post(path, request, within=_WITHIN))["status"]
        ends = datetime.fromisoformat(status["expirationTimestamp"])
        return AccountToken(token=str(status["token"]), expires_at=ends)

    return _session(kubeconfig, context, make)


def stored_token(kubeconfig: Path, context: str, namespace: str, secret: str) -> AccountToken:
    """Return the token that Kubernetes puts into a Secret of an account, once it is there. Raises Transient."""
    path = object_question("v1", "Secret", secret, namespace).path

    async def read(server: ApiServer) -> AccountToken:
        while True:
            data = (await server.get(path, {}, within=_WITHIN)).get("data") or {}
            if data.get("token"):
                return AccountToken(token=base64.b64decode(data["token"]).decode(), expires_at=None)
            await asyncio.sleep(_LOOK)

    try:
        return _session(kubeconfig, context, read)
    except Transient as error:
        raise Transient(f"{error} (Secret {namespace}/{secret})") from error


def _session(
    kubeconfig: Path, context: str, call: Callable[[ApiServer], Coroutine[Any, Any, T]], *, patience: float = PATIENCE
) -> T:
    try:
        return run(ask(kubeconfig, Connection(context=context), call, patience))
    except Transient as error:
        raise Transient(f"context {context} {error}") from error


@dataclass(slots=True, kw_only=True)
class _Applier:
    """Applies objects one after the other."""

    server: ApiServer
    manager: str
    dry_run: bool
    force: bool
    unborn: set[tuple[str, str, str]] = field(default_factory=set)
    """Kind, namespace and name of what a dry run would have created, and others may refer to."""

    async def apply(self, wanted: Json) -> ObjectChange:
        metadata = wanted["metadata"]
        namespace = metadata.get("namespace", "")
        if ("Namespace", "", namespace) in self.unborn:
            return object_change(wanted, None, None)
        path = object_question(wanted["apiVersion"], wanted["kind"], metadata["name"], namespace).path
        try:
            try:
                before = await self.server.get(path, {}, within=_WITHIN)
            except NotServed:
                before = None
            change = await self._apply(path, wanted, before)
        except NotServed as error:
            # A binding is refused by some API servers while its role is not there.
            role = wanted.get("roleRef") or {}
            if (role.get("kind"), namespace, role.get("name")) not in self.unborn:
                return refused_change(wanted, str(error))
            change = object_change(wanted, None, None)
        except Transient as error:
            return refused_change(wanted, str(error))
        if self.dry_run and change.action is ApplyAction.CREATE:
            self.unborn.add((wanted["kind"], namespace, metadata["name"]))
        return change

    async def _apply(self, path: str, wanted: Json, before: Json) -> ObjectChange:
        try:
            after = await self._send(path, wanted, force=self.force)
            return object_change(wanted, before, after)
        except Conflicts as conflicts:
            if not self.dry_run:
                raise
            after = await self._send(path, wanted, force=True)
            return object_change(wanted, before, after, conflicts.fields)

    async def _send(self, path: str, wanted: Json, *, force: bool) -> Json:
        return await self.server.apply(
            path, wanted, manager=self.manager, force=force, dry_run=self.dry_run, within=_WITHIN
        )
