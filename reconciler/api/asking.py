"""Errors of questions that the daemon answers from git, as errors of the API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from threading import Lock

from reconciler.access.rights import Caller
from reconciler.api.redact import redact
from reconciler.api.refusal import HttpError
from reconciler.daemon.answers.desk import Occupied
from reconciler.daemon.snapshot import Snapshot
from reconciler.errors import Conflict, InvalidInput, Transient

_RETRY_AFTER = 2


class OneAtATime:
    """Lets each caller ask one question at a time: a waiting one takes a thread, which others need."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._callers: set[tuple[str, str]] = set()

    @contextmanager
    def of(self, caller: Caller) -> Iterator[None]:
        """Raise HttpError 429 while another question of a caller is being answered."""
        with self._lock:
            if caller.key in self._callers:
                raise HttpError(
                    HTTPStatus.TOO_MANY_REQUESTS,
                    "another question of yours is being answered",
                    hint=f"try again in {_RETRY_AFTER} s",
                    headers={"Retry-After": str(_RETRY_AFTER)},
                )
            self._callers.add(caller.key)
        try:
            yield
        finally:
            with self._lock:
                self._callers.discard(caller.key)


@contextmanager
def asked(snapshot: Snapshot, caller: Caller) -> Iterator[None]:
    """Raise HttpError 422 for a question about what is not there, and 503 where the answer cannot be had now."""
    try:
        yield
    except InvalidInput as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, str(redact(str(error), snapshot, caller))) from error
    except (Transient, Conflict) as error:
        raise HttpError(  # why the repository cannot be read stands in the log of passes
            HTTPStatus.SERVICE_UNAVAILABLE,
            str(error) if isinstance(error, Occupied) else "the repository cannot be read now",
            hint="try again",
            headers={"Retry-After": str(_RETRY_AFTER)},
        ) from error
