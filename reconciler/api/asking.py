"""Errors of questions that the daemon answers from git, as errors of the API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

import structlog

from reconciler.access.rights import Caller
from reconciler.api.redact import redact
from reconciler.api.refusal import HttpError
from reconciler.daemon.snapshot import Snapshot
from reconciler.errors import Conflict, InvalidInput, Transient

_RETRY_AFTER = 2

log = structlog.get_logger()


@contextmanager
def asked(snapshot: Snapshot, caller: Caller) -> Iterator[None]:
    """Raise HttpError 422 for a question about what is not there, and 503 where the answer cannot be had now."""
    try:
        yield
    except InvalidInput as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(redact(str(error), snapshot, caller))) from error
    except (Transient, Conflict) as error:
        log.warning("question not answered", why=str(error))
        raise HttpError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "this cannot be answered now",
            hint="try again",
            headers={"Retry-After": str(_RETRY_AFTER)},
        ) from error
