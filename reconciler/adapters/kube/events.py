"""Writes Kubernetes Events: the one thing that a daemon writes to a cluster, where an admin has given it the right.

An Event is a remark on an object, and changes neither the object nor anything that runs. The right is to create
`events` and nothing else (`overspill grant --events`). This module knows no other verb and no other kind.
"""

from __future__ import annotations

from pathlib import Path

from reconciler.adapters.kube.answers import Forbidden, NotServed
from reconciler.adapters.kube.bounded_session import ask, run
from reconciler.adapters.kube.server import ApiServer
from reconciler.core.notification.kubernetes_event import EventTarget, write_event
from reconciler.core.readiness.question import object_question
from reconciler.errors import Transient
from reconciler.model.events.event import Notice
from reconciler.model.policy import Connection

_THERE = "answers 409:"
"""An Event of this name is there already."""


def create_event(kubeconfig: Path | None, notice: Notice, target: EventTarget, *, patience: float) -> str:
    """Write an Event on an object; returns why it was not and will not be written, empty if it is there.

    `patience` is in seconds, for all answers. Raises Transient where the cluster does not answer.
    """

    async def create(server: ApiServer) -> str:
        try:
            document = write_event(notice, target, await _uid(server, target, patience))
            await server.post(f"/api/v1/namespaces/{target.namespace}/events", document, within=patience)
        except Forbidden as error:
            return f"{error} (try: overspill grant --events)"
        except NotServed as error:  # the namespace has gone
            return str(error)
        except Transient as error:
            if str(error).startswith(_THERE):
                return ""
            raise
        return ""

    if kubeconfig is None and not target.connection.in_cluster:
        return "there is no kubeconfig that leads to it"
    try:
        return run(ask(kubeconfig or Path(), _login(target), create, patience))
    except Transient as error:
        raise Transient(f"cluster {target.cluster} {error}") from error


def _login(target: EventTarget) -> Connection:
    """Return the login of the daemon itself: those of Argo CD are for reading alone."""
    return Connection(context=target.cluster) if target.connection.argocd else target.connection


async def _uid(server: ApiServer, target: EventTarget, patience: float) -> str:
    """Return the uid of an object, as far as the daemon may list its kind."""
    question = object_question(target.api_version, target.kind, target.name, target.namespace)
    path = question.path.rpartition("/")[0]
    try:
        answer = await server.get(path, {"fieldSelector": f"metadata.name={target.name}"}, within=patience)
    except (Forbidden, NotServed):
        return ""
    items = answer.get("items") or ()
    return str(items[0]["metadata"]["uid"]) if items else ""
