"""A Prometheus server, or anything that speaks its query interface: Thanos, Mimir, VictoriaMetrics."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from reconciler.adapters.signals.connection import KeptConnection, trouble
from reconciler.core.signals.prometheus import answer_error, answer_value
from reconciler.errors import InvalidInput, Transient
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
        self._url = url.rstrip("/") + "/api/v1/query"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connection = KeptConnection(_QUERY, limit=_MOST, patience=patience, measure=measure)

    def ask(self, question: str) -> float:
        """Return the one value of a query now.

        Raises InvalidInput when the query or its answer is wrong, and Transient when the server does not answer or
        denies access.
        """
        answer = self._connection.get(self._url, params={"query": question}, headers=self._headers)
        document = answer.json
        if answer.status == HTTPStatus.OK and document is not None:
            return answer_value(document)
        reason = answer_error(document)
        if reason and (answer.status in _QUERY_ERRORS or "timeout" in reason):
            raise InvalidInput(shortened(reason, 300))
        raise Transient(trouble(answer, service="Prometheus", access="OVERSPILL_PROMETHEUS_TOKEN"))

    def close(self) -> None:
        """Close the connection, for good."""
        self._connection.close()
