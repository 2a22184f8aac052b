"""The parts of the daemon that the management routes read from and write to."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from reconciler.api.refusal import HttpError
from reconciler.daemon.answers.desk import AnswerDesk
from reconciler.daemon.orders.order_queue import OrderQueue
from reconciler.daemon.snapshot import LatestSnapshot, Snapshot
from reconciler.errors import Transient
from reconciler.ports import OutputFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The newest snapshot, the files of the output branch, and the queue of orders."""

    latest: LatestSnapshot
    shelf: OutputFiles
    queue: OrderQueue
    answers: AnswerDesk
    """Answers that take git."""
    strict: bool = False
    """Whether deletions of running and ended placements are refused, as EGS does (docs/reference/egs.md, R19)."""
    source_branch: str = "main"
    """The branch of pull requests, named to callers who try to change a template by HTTP."""

    output_branch: str = "placements"
    """The branch that orders are pushed to, named in their answers."""

    def snapshot(self) -> Snapshot:
        """Return the snapshot of the newest pass; raises HttpError 503 before the first one."""
        try:
            return self.latest.read()
        except Transient as error:
            raise HttpError(
                HTTPStatus.SERVICE_UNAVAILABLE, str(error), hint="try again", headers={"Retry-After": "1"}
            ) from error
