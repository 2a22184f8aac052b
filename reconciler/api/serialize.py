"""Requests and bursts as JSON; an item is serialized again only when it or its status changes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial
from threading import Lock

from reconciler.access.rights import Caller
from reconciler.api.redact import redact_status
from reconciler.bulkhead import Seam, attempt
from reconciler.core.explain.catalogue import CatalogueItem, Key
from reconciler.core.ledger.placement_record import read_spec
from reconciler.core.schema.egs.resource import rest_document
from reconciler.daemon.bug_log import BUGS
from reconciler.daemon.item_status import ItemStatus, unknown_status
from reconciler.daemon.snapshot import Snapshot
from reconciler.errors import Bug, InvalidInput
from reconciler.model.ids import BlobId, TemplateName
from reconciler.model.placement import Placement
from reconciler.model.request import Request, RequestRecord
from reconciler.model.workload import DeploySpec, Json
from reconciler.ports import OutputFiles
from reconciler.text.timestamps import format_time

_MOST_BYTES = 64 << 20
"""Bytes of JSON in the cache: ten thousand items of a few kilobytes."""


class ItemSerializer:
    """Serializes items and caches their JSON. Safe to use from several threads."""

    def __init__(self, shelf: OutputFiles, *, limit: int = _MOST_BYTES) -> None:
        """Read the specs of bursts from `shelf`, and cache up to `limit` bytes."""
        self._shelf = shelf
        self._limit = limit
        self._lock = Lock()
        self._entries: OrderedDict[Key, tuple[RequestRecord | Placement, ItemStatus, bytes]] = OrderedDict()
        self._size = 0

    def serialize(
        self, snapshot: Snapshot, items: Sequence[CatalogueItem], caller: Caller | None = None
    ) -> list[bytes]:
        """Serialize items in their order, redacted for the caller; None stands for a reader of git, who sees all."""
        states = [(item, self._status(snapshot, item, caller)) for item in items]
        texts = [self._from_cache(item, status) for item, status in states]
        specs = self._specs(snapshot, [item for item, text in zip(items, texts, strict=True) if text is None])
        return [
            self._serialize(item, status, specs.get(item.key)) if text is None else text
            for (item, status), text in zip(states, texts, strict=True)
        ]

    @staticmethod
    def _status(snapshot: Snapshot, item: CatalogueItem, caller: Caller | None) -> ItemStatus:
        status = snapshot.status(item)
        if caller is None:
            return status
        redacted = attempt(
            Seam.STATUS, "/".join(filter(None, item.key)), partial(redact_status, status, snapshot, caller)
        )
        if isinstance(redacted, Bug):
            BUGS.note(redacted)
            return unknown_status(item.subject, redacted)
        return redacted

    def _serialize(self, item: CatalogueItem, status: ItemStatus, spec: DeploySpec | None) -> bytes:
        """Serialize an item.

        A burst whose spec cannot be read has an empty one, and so has an item that meets an unforeseen exception, with
        the bug as its message. Neither is cached.
        """
        text = attempt(Seam.STATUS, "/".join(filter(None, item.key)), partial(_item_text, item, status, spec))
        if isinstance(text, Bug):
            BUGS.note(text)
            return _encode({**rest_document(_bare_request(item)), **_state(item, unknown_status(item.subject, text))})
        return text if spec is None and isinstance(item.subject, Placement) else self._cache(item, status, text)

    def _from_cache(self, item: CatalogueItem, status: ItemStatus) -> bytes | None:
        with self._lock:
            entry = self._entries.get(item.key)
            if entry is None or entry[0] is not item.subject or entry[1] != status:
                return None
            self._entries.move_to_end(item.key)
            return entry[2]

    def _cache(self, item: CatalogueItem, status: ItemStatus, text: bytes) -> bytes:
        with self._lock:
            before = self._entries.pop(item.key, None)
            self._size += len(text) - (len(before[2]) if before else 0)
            self._entries[item.key] = (item.subject, status, text)
            while self._size > self._limit:
                _, (_, _, oldest) = self._entries.popitem(last=False)
                self._size -= len(oldest)
        return text

    def _specs(self, snapshot: Snapshot, items: Iterable[CatalogueItem]) -> dict[Key, DeploySpec]:
        """Read the specs of bursts, which snapshots leave in git."""
        blobs: dict[Key, tuple[BlobId, str]] = {}
        for item in items:
            if isinstance(item.subject, Placement):
                path = f"{item.subject.path}/placement.yaml"
                if path in snapshot.blobs:
                    blobs[item.key] = (snapshot.blobs[path], path)
        contents = self._shelf.read(blob for blob, _ in blobs.values())
        specs: dict[Key, DeploySpec] = {}
        for key, (blob, path) in blobs.items():
            try:
                spec = attempt(Seam.STATUS, path, partial(read_spec, contents[blob], path))
            except (KeyError, InvalidInput):
                continue  # the mirror was fetched anew, or a manual change has yet to be reverted
            if isinstance(spec, Bug):
                BUGS.note(spec)
            else:
                specs[key] = spec
        return specs


def _item_text(item: CatalogueItem, status: ItemStatus, spec: DeploySpec | None) -> bytes:
    """Write an item as JSON; `spec` is that of a burst."""
    if isinstance(item.subject, RequestRecord):
        return _encode({**rest_document(item.subject.request), **_state(item, status)})
    empty = DeploySpec(deletion_policy=item.subject.deletion_policy)
    return _encode({**rest_document(_as_request(item.subject, spec or empty)), **_state(item, status)})


def _bare_request(item: CatalogueItem) -> Request:
    """Return the request of an item without what it deploys."""
    if isinstance(item.subject, Placement):
        return _as_request(item.subject, DeploySpec(deletion_policy=item.subject.deletion_policy))
    workload = item.subject.workload
    request = item.subject.request
    return Request(name=workload.name, workspace=workload.workspace, namespace=request.namespace, spec=DeploySpec())


def _as_request(burst: Placement, spec: DeploySpec) -> Request:
    """Convert a burst to the request that would have placed it."""
    return Request(
        name=TemplateName(burst.name),
        workspace=burst.workload.workspace,
        namespace=burst.namespace,
        spec=spec,
        clusters=(burst.cluster,),
        template=burst.workload.name,
    )


def _state(item: CatalogueItem, status: ItemStatus) -> dict[str, Json]:
    """Convert the origin, status and times of an item."""
    subject = item.subject
    created = subject.created_at if isinstance(subject, Placement) else subject.received_at
    return {
        "origin": item.origin.value,
        "status": {
            "provisioningStatus": status.provisioning.value,
            "phase": status.phase.value,
            "message": status.message,
            "conditions": [
                {
                    "type": condition.type,
                    "status": condition.status,
                    "lastTransitionTime": format_time(condition.since),
                    "reason": condition.reason,
                    "message": condition.message,
                }
                for condition in status.conditions
            ],
            "lastUpdated": format_time(status.updated_at),
        },
        "createdAt": format_time(created),
        "updatedAt": format_time(subject.changed_at),
    }


def _encode(document: Json) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
