"""Slurm's REST daemon, slurmrestd (https://slurm.schedmd.com/rest.html)."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from pathlib import Path

from reconciler.adapters.signals.connection import KeptConnection, trouble
from reconciler.core.signals.slurm import Jobs, answer_error, pending_jobs
from reconciler.errors import Transient
from reconciler.http_client import HttpAnswer
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.ports import MeasureCall, unmeasured_call
from reconciler.text.findings import shortened

_MOST = 32 << 20
"""Most bytes of an answer, which has 3 to 5 KiB for each job that Slurm knows."""
_MOST_TOKEN = 64 << 10
_VERSIONS = ("v0.0.45", "v0.0.44", "v0.0.43", "v0.0.42", "v0.0.41", "v0.0.40")
"""Versions of the interface, newest first. A release of Slurm serves the newest three of its time."""
_TOKEN = "OVERSPILL_SLURM_TOKEN_FILE"  # noqa: S105 - the name of a setting
_CALL = OutwardCall(peer=Peer.SLURM, verb="jobs")


class SlurmServer:
    """Asks for the jobs over a connection that is kept. Not safe to use from several threads."""

    def __init__(
        self,
        url: str,
        *,
        user: str = "",
        token_file: Path | None = None,
        patience: timedelta = timedelta(seconds=10),
        measure: MeasureCall = unmeasured_call,
    ) -> None:
        """Take the server's address, with its path if it has one. Raises InvalidInput for a proxy that is none.

        The token is read anew for each question, since ``scontrol token`` makes tokens for half an hour. `measure`
        measures each request.
        """
        self._url = url.rstrip("/")
        self._user = user
        self._token_file = token_file
        self._versions: tuple[str, ...] = _VERSIONS
        self._connection = KeptConnection(_CALL, patience=patience, measure=measure)

    def ask(self, question: str) -> Jobs:
        """Return the jobs that wait for room.

        Raises InvalidInput when the answer is not in Slurm's format, and Transient when the server does not answer or
        denies access.
        """
        answer = self._get(question, self._headers())
        if not answer.complete:
            raise Transient(f"its answer is larger than {_MOST >> 20} MiB (try a shorter MinJobAge in slurm.conf)")
        document = answer.json
        if reason := answer_error(document):
            raise Transient(f"it answers {answer.status}: {shortened(reason, 200)} (is {_TOKEN} right?)")
        if answer.status != HTTPStatus.OK or document is None:
            raise Transient(trouble(answer, service="slurmrestd", access=_TOKEN))
        return pending_jobs(document)

    def close(self) -> None:
        """Close the connection, for good."""
        self._connection.close()

    def _get(self, question: str, headers: dict[str, str]) -> HttpAnswer:
        """Ask in the newest version that is served; it is remembered until it is no more."""
        for index, version in enumerate(self._versions):
            answer = self._connection.send(
                "GET", f"{self._url}/slurm/{version}/{question}/", headers=headers, limit=_MOST
            )
            if answer.status != HTTPStatus.NOT_FOUND:
                self._versions = (version, *self._versions[:index], *self._versions[index + 1 :])
                return answer
        return answer

    def _headers(self) -> dict[str, str]:
        """Return the headers that say who asks. Raises Transient for a file that holds no token."""
        user = {"X-SLURM-USER-NAME": self._user} if self._user else {}
        if self._token_file is None:
            return user
        try:
            with self._token_file.open("rb") as stream:
                token = stream.read(_MOST_TOKEN).decode("ascii").strip().removeprefix("SLURM_JWT=")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not plain text"
            raise Transient(f"{_TOKEN}: {self._token_file} cannot be read: {reason}") from error
        if not token or not token.isprintable() or " " in token:
            raise Transient(f"{_TOKEN}: {self._token_file} does not hold a token and nothing else")
        return {**user, "X-SLURM-USER-TOKEN": token}
