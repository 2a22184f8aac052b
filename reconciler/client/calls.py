"""The calls of a daemon's API, a method each."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from reconciler.client.refusals import Refused
from reconciler.client.results import (
    BEARER,
    GPR,
    INVENTORY,
    PLACEMENT,
    RECEIPT,
    WAITS,
    Bearer,
    Gpr,
    Inventory,
    Page,
    PastPlacements,
    PlacementItem,
    Receipt,
    WaitTime,
    read,
    rows,
)
from reconciler.client.transport import Pace, Transport
from reconciler.model.units import format_duration

_PLACEMENTS = "/api/v1/workload-placement"
_PAGE = 100
_MOST = 500
"""Entries of a page, and the most that a daemon gives."""


class Client:
    """Calls one daemon. A context manager; not safe to use from several threads.

    `server` is the daemon's address, https except on this machine. `token` is a bearer token. `ca_file` holds the
    authorities that its certificate is checked against, those of the system if None. A call waits up to `timeout` for
    an answer; a write is answered when its commit is pushed.

    Every call raises Refused when the daemon refuses it, with its words and the fields that are wrong, Transient when
    it cannot be reached or is busy, and InvalidInput when the address is not that of a daemon. Retries never
    repeat a change: each creation has an Idempotency-Key, a new one or the given `key`.
    """

    def __init__(
        self,
        server: str,
        *,
        token: str = "",
        ca_file: Path | None = None,
        timeout: timedelta = timedelta(minutes=1),
        pace: Pace | None = None,
    ) -> None:
        self._transport = Transport(server, token=token, ca_file=ca_file, timeout=timeout, pace=pace or Pace())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def warning(self) -> str:
        """What the daemon's last answer warns of, as that branches are lost; empty for nothing."""
        return self._transport.warning

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def create(self, body: Mapping[str, Any], *, key: str = "") -> Receipt:
        """Ask for a placement. `body` is spelled as EGS's REST interface or as its files have it."""
        return self._write("POST", _PLACEMENTS, body, key=key or uuid.uuid4().hex)

    def update(self, name: str, changes: Mapping[str, Any], *, workspace: str = "") -> Receipt:
        """Change some fields of a placement; which ones may be changed follows from its state."""
        return self._write("PUT", _path(name), changes, workspace=workspace)

    def delete(self, name: str, *, workspace: str = "") -> Receipt:
        """End a placement, which reverts its files in git."""
        try:
            return self._write("DELETE", _path(name), None, workspace=workspace)
        except Refused as error:
            if error.status == HTTPStatus.NOT_FOUND and error.unheard:
                return Receipt(name=name, workspace_name=workspace, message="it is gone; an earlier try got no answer")
            raise

    def placement(self, name: str, *, workspace: str = "") -> PlacementItem:
        """Get one placement. `workspace` is required if several have one of that name."""
        answer = self._transport.ask("GET", _path(name), params=_nonempty({"workspaceName": workspace}))
        return _item(answer.get("data"))

    def page(
        self,
        *,
        workspace: str = "",
        cluster: str = "",
        status: str = "",
        phase: str = "",
        origin: str = "",
        limit: int = _PAGE,
        after: str = "",
    ) -> Page:
        """Get the first page of the list, or the page after the one whose `following` is `after`.

        `status` is a provisioningStatus, `origin` is request or burst; an empty filter matches all.
        """
        filters = _filters(workspace, cluster, status, phase, origin)
        params = _nonempty({**filters, "limit": str(limit), "continue": after})
        answer = self._transport.ask("GET", _PLACEMENTS, params=params)
        items = tuple(_item(row) for row in rows(answer))
        more = answer.get("metadata")
        metadata = more if isinstance(more, Mapping) else {}
        return Page(items=items, total=metadata.get("total", len(items)), following=metadata.get("continue") or "")

    def placements(
        self, *, workspace: str = "", cluster: str = "", status: str = "", phase: str = "", origin: str = ""
    ) -> Iterator[PlacementItem]:
        """Yield all placements that match the filters."""
        filters = _filters(workspace, cluster, status, phase, origin)
        return (_item(document) for document in self._all(_PLACEMENTS, filters))

    def gprs(self, *, workspace: str = "", cluster: str = "", status: str = "") -> Iterator[Gpr]:
        """Yield the GPRs that match the filters, the most urgent first."""
        filters = {"workspaceName": workspace, "cluster": cluster, "provisioningStatus": status}
        for document in self._all("/api/v1/gpr", filters):
            yield replace(read(GPR, document, where="/api/v1/gpr"), document=document)

    def release(self, gpr_id: str) -> Receipt:
        """Release the GPUs of a placement, which ends it."""
        return self._write("PUT", "/api/v1/gpr", {"gprId": gpr_id, "earlyRelease": True})

    def wait_time(self, asked: Mapping[str, Any]) -> tuple[WaitTime, ...]:
        """Estimate the wait for GPUs on each cluster, the shortest first.

        `asked` has EGS's fields: workspaceName, numberOfGPUs, numberOfGPUNodes, gpuShape, priority and so on.
        """
        path = "/api/v1/gpr/waittime"
        return read(WAITS, self._transport.ask("POST", path, body=asked, safe=True).get("data"), where=path)

    def inventory(self) -> Inventory:
        """List the GPU nodes of the clusters that the workspaces of this token have."""
        document = self._got("/api/v1/inventory/list")
        return replace(read(INVENTORY, document, where="/api/v1/inventory/list"), document=document)

    def explain(self, workload: str) -> Mapping[str, Any]:
        """Explain a workload, named ``workspace/name``, as ``overspill explain -o json`` does."""
        return self._got("/api/v1/explain", {"workload": workload})

    def status(self) -> Mapping[str, Any]:
        """Return the state of the fleet, as ``overspill status -o json`` prints it."""
        return self._got("/api/v1/status")

    def history(self, *, workload: str = "", since: datetime | None = None, limit: int = _PAGE) -> PastPlacements:
        """Return past and present placements, the newest first, of one workload or placement where it is named."""
        filters = {"workload": workload, "since": "" if since is None else _moment(since)}
        placements: list[Mapping[str, Any]] = []
        after = ""
        while True:
            size = min(limit - len(placements), _MOST)
            params = _nonempty({**filters, "limit": str(size), "continue": after})
            answer = self._transport.ask("GET", "/api/v1/history", params=params)
            page = [row for row in rows(answer) if isinstance(row, Mapping)]
            placements += page
            after = _following(answer) if page else ""
            if not after or len(placements) >= limit:
                return PastPlacements(placements=tuple(placements), more=bool(after))

    def plan(self, *, what_if: Sequence[str] = (), source_branch: str = "", diff: bool = False) -> Mapping[str, Any]:
        """Return what a pass would commit now, as ``overspill plan -o json`` prints it.

        `what_if` are suppositions, `source_branch` is a branch whose files are decided on, and with `diff` the answer
        has the commits as a `patch` as well.
        """
        params = {"whatIf": what_if, "sourceBranch": source_branch, "diff": "true" if diff else ""}
        return self._got("/api/v1/plan", {name: value for name, value in params.items() if value})

    def revert(
        self, placements: Sequence[str], *, reason: str = "", everywhere: bool = False, dry_run: bool = False
    ) -> Mapping[str, Any]:
        """End placements, and hold their workloads back; returns what ``overspill revert -o json`` prints.

        With `dry_run` nothing is committed. The call is made once: whether one without an answer was carried out is
        what `history` tells.
        """
        body = {"placements": [*placements], "reason": reason, "everywhere": everywhere, "dryRun": dry_run}
        return self._steered("/api/v1/revert", body, safe=dry_run)

    def extend(
        self,
        placement: str,
        *,
        by: timedelta | None = None,
        until: datetime | None = None,
        reason: str = "",
        dry_run: bool = False,
    ) -> Mapping[str, Any]:
        """Move the end of a placement `by` a duration, or to `until`; returns and is tried as `revert` is."""
        end = {
            **({} if by is None else {"by": format_duration(by)}),
            **({} if until is None else {"until": _moment(until)}),
        }
        body = {"placement": placement, **end, "reason": reason, "dryRun": dry_run}
        return self._steered("/api/v1/extend", body, safe=dry_run)

    def approve(self, workload: str, *, reason: str = "", dry_run: bool = False) -> Mapping[str, Any]:
        """Approve the burst that is proposed of a workload; returns and is tried as `revert` is."""
        body = {"workload": workload, "reason": reason, "dryRun": dry_run}
        return self._steered("/api/v1/approve", body, safe=dry_run)

    def reject(self, workload: str, *, reason: str = "", dry_run: bool = False) -> Mapping[str, Any]:
        """Refuse the burst that is proposed of a workload; returns and is tried as `revert` is."""
        body = {"workload": workload, "reason": reason, "dryRun": dry_run}
        return self._steered("/api/v1/reject", body, safe=dry_run)

    def templates(self, *, workspace: str = "") -> list[Mapping[str, Any]]:
        """List the workload templates, as EGS's REST interface has them."""
        answer = self._transport.ask("GET", "/api/v1/workload-template", params=_nonempty({"workspaceName": workspace}))
        return [row for row in rows(answer) if isinstance(row, Mapping)]

    def workspaces(self) -> list[Mapping[str, Any]]:
        """List the workspaces that this token may read, as EGS's REST interface has them."""
        several = self._got("/api/v1/slice-workspace/list").get("workspaces")
        return [entry for entry in several if isinstance(entry, Mapping)] if isinstance(several, list) else []

    def log(self) -> tuple[str, ...]:
        """Return the last lines of the daemon's log, each a JSON object as text."""
        lines = self._got("/api/v1/log").get("lines")
        return tuple(map(str, lines)) if isinstance(lines, list) else ()

    def metrics(self) -> str:
        """Return what Prometheus scrapes, as text."""
        return self._transport.text("/metrics")

    def whoami(self) -> Bearer:
        """Return the name and roles of this token."""
        return read(BEARER, self._got("/api/v1/whoami"), where="/api/v1/whoami")

    def _got(self, path: str, params: Mapping[str, str | Sequence[str]] | None = None) -> Mapping[str, Any]:
        data = self._transport.ask("GET", path, params=params).get("data")
        return data if isinstance(data, Mapping) else {}

    def _steered(self, path: str, body: Mapping[str, Any], *, safe: bool) -> Mapping[str, Any]:
        data = self._transport.ask("POST", path, body=body, safe=safe).get("data")
        return data if isinstance(data, Mapping) else {}

    def _all(self, path: str, filters: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of all pages of a list, each fetched when it is needed."""
        after = ""
        while True:
            params = _nonempty({**filters, "limit": str(_PAGE), "continue": after})
            answer = self._transport.ask("GET", path, params=params)
            page = [row for row in rows(answer) if isinstance(row, Mapping)]
            yield from page
            after = _following(answer) if page else ""  # an empty page leads nowhere, whatever it says
            if not after:
                return

    def _write(
        self, method: str, path: str, body: Mapping[str, Any] | None, *, workspace: str = "", key: str = ""
    ) -> Receipt:
        params = _nonempty({"workspaceName": workspace})
        answer = self._transport.ask(method, path, params=params, body=body, key=key, safe=not key)
        receipt = read(RECEIPT, answer.get("data"), where=f"{method} {path}")
        return replace(receipt, message=str(answer.get("message", "")))


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def _following(answer: Mapping[str, Any]) -> str:
    """Return the token of the page after an answer, empty for the last one."""
    more = answer.get("metadata")
    return str(more.get("continue") or "") if isinstance(more, Mapping) else ""


def _path(name: str) -> str:
    return f"{_PLACEMENTS}/{quote(name, safe='')}"


def _filters(workspace: str, cluster: str, status: str, phase: str, origin: str) -> dict[str, str]:
    return {
        "workspaceName": workspace,
        "cluster": cluster,
        "provisioningStatus": status,
        "phase": phase,
        "origin": origin,
    }


def _nonempty(params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}


def _item(document: object) -> PlacementItem:
    item = read(PLACEMENT, document, where=_PLACEMENTS)
    return replace(item, document=document if isinstance(document, Mapping) else {})
