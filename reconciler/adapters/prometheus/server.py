"""A Prometheus server, or anything that speaks its query interface: Thanos, Mimir, VictoriaMetrics."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from reconciler.core.signals.prometheus import answer_error, answer_value
from reconciler.errors import InvalidInput, Transient
from reconciler.http_client import ConnectionLost, HttpAnswer, HttpClient
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.ports import MeasureCall, unmeasured_call
from reconciler.text.findings import shortened

_MOST = 1 << 20
"""Most bytes of an answer; an answer of one value has a few hundred."""
_QUERY_ERRORS = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)
"""Statuses of a query that cannot be right (Prometheus, web/api/v1: bad_data and execution)."""


_QUERY = OutwardCall(peer=Peer.PROMETHEUS, verb="query")


class PrometheusServer:
    """Sends instant queries over a connection that is kept. Not safe to use from several threads."""

    def __init__(
        self,
        url: str,
        *,
        token: str = "",
        patience: timedelta = timedelta(seconds=10),
        measure: MeasureCall = unmeasured_call,
    ) -> None:
        """Take the server's address, with its path if it has one. Raises InvalidInput for a proxy that is none.

        `measure` measures each query.
        """
        self._measure = measure
        self._url = url.rstrip("/") + "/api/v1/query"
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = HttpClient(
            timeout=patience.total_seconds(), headers={"Accept": "application/json", **authorization}
        )
        self._kept = False  # an earlier query has left a connection

    def ask(self, query: str) -> float:
        """Return the one value of a query now.

        Raises InvalidInput when the query or its answer is wrong, and Transient when the server does not answer or
        denies access.
        """
        answer = self._get(query)
        document = answer.json
        if answer.status == HTTPStatus.OK and document is not None:
            return answer_value(document)
        reason = answer_error(document)
        if reason and (answer.status in _QUERY_ERRORS or "timeout" in reason):
            raise InvalidInput(shortened(reason, 300))
        raise Transient(_trouble(answer.status, answer.reason))

    def close(self) -> None:
        """Close the connection, for good."""
        self._http.close()

    def _get(self, query: str) -> HttpAnswer:
        """Send a query, and once more where a kept connection turns out to be closed."""
        try:
            answer = self._try(query)
        except ConnectionLost:
            if not self._kept:
                raise
            answer = self._try(query)
        self._kept = True
        return answer

    def _try(self, query: str) -> HttpAnswer:
        with self._measure(_QUERY) as note:
            answer = self._http.send("GET", self._url, params={"query": query}, limit=_MOST)
            note(str(answer.status))
        return answer


def _trouble(status: int, reason: str) -> str:
    """Say what an answer without a value is most likely due to."""
    answered = f"it answers {status} {shortened(reason, 60)}".rstrip()
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"{answered} (is OVERSPILL_PROMETHEUS_TOKEN right?)"
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return f"{answered}, which is not followed (try the address that it leads to)"
    if status in (HTTPStatus.NOT_FOUND, HTTPStatus.OK):
        return f"{answered}, not as Prometheus does (is the address right?)"
    return answered
