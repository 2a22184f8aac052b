"""A Prometheus server, or anything that speaks its query interface: Thanos, Mimir, VictoriaMetrics."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Literal

from reconciler.adapters.signals.connection import KeptConnection, trouble
from reconciler.core.signals.prometheus import answer_error, answer_value
from reconciler.errors import InvalidInput, Transient
from reconciler.model.outward_call import OutwardCall, Peer
from reconciler.model.workload import Json
from reconciler.ports import MeasureCall, unmeasured_call
from reconciler.text.findings import shortened

_MOST = 1 << 20
"""Most bytes of an answer; an answer of one value has a few hundred."""
_MOST_OF_SERIES = 16 << 20
"""Most bytes of an answer of many series: about ten thousand GPUs."""
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
        self._url = url.rstrip("/") + "/api/v1/query"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = KeptConnection(_QUERY, patience=patience, measure=measure)

    def ask(self, question: str) -> float:
        """Return the one value of a query now.

        Raises InvalidInput when the query or its answer is wrong, and Transient when the server does not answer or
        denies access.
        """
        return answer_value(self._document("GET", question, _MOST))

    def ask_series(self, query: str) -> Json:
        """Return the document of all series of a query now; raises as `ask` does."""
        return self._document("POST", query, _MOST_OF_SERIES)

    def _document(self, method: Literal["GET", "POST"], query: str, most: int) -> Json:
        """Return the document of a successful answer; a POST takes longer queries than servers take in a URL."""
        answer = self._connection.send(method, self._url, {"query": query}, headers=self._headers, limit=most)
        document = answer.json
        if answer.status == HTTPStatus.OK and document is not None:
            return document
        if answer.status == HTTPStatus.OK and not answer.complete and most == _MOST_OF_SERIES:
            raise Transient(f"its answer has more than {most >> 20} MiB")
        reason = answer_error(document)
        if reason and (answer.status in _QUERY_ERRORS or "timeout" in reason):
            raise InvalidInput(shortened(reason, 300))
        raise Transient(trouble(answer, service="Prometheus", access="OVERSPILL_PROMETHEUS_TOKEN"))

    def close(self) -> None:
        """Close the connection, for good."""
        self._connection.close()
