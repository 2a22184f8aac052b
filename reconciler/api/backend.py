"""What the routes for people and their programs work with."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from reconciler.api.refusal import HttpError
from reconciler.daemon.order_queue import OrderQueue
from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.errors import Transient
from reconciler.ports import OutputFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """What is read, where files are read from, and where orders go.

    `strict` refuses what EGS refuses though it is of use: to delete what runs or has ended (docs/egs.md, R19).
    `source_branch` is where people change what is not changed here.
    """

    latest: LatestSnapshot
    shelf: OutputFiles
    queue: OrderQueue
    strict: bool = False
    source_branch: str = "main"

    def snapshot(self) -> Snapshot:
        """Return what the newest pass has seen; raises Refusal while there has been none."""
        try:
            return self.latest.read()
        except Transient as error:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE, str(error), hint="try again", headers={"Retry-After": "1"}
            ) from error
