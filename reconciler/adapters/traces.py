"""Spans of passes, their phases, calls to systems outside and calls of the API, for an OpenTelemetry collector.

Without a collector there are only the ids of passes, for the log. OpenTelemetry is an extra (``overspill[otel]``), and
is imported where a collector is named alone. Names and attributes follow its conventions where it has any:
https://opentelemetry.io/docs/specs/semconv/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from secrets import token_hex
from typing import TYPE_CHECKING, Protocol

from structlog.contextvars import bound_contextvars

from reconciler import __version__
from reconciler.errors import InvalidInput
from reconciler.model.outward_call import NO_ANSWER, OutwardCall, Peer
from reconciler.ports import unmeasured_call

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

NoteAnswer = Callable[[str, int], None]
"""Takes the route and the status of an answer."""

_FLUSH = 2000
"""Milliseconds for the last spans once the daemon stops."""
_SERVER_ERROR = 500


class Traces(Protocol):
    """Spans of what a daemon does. Safe to use from several threads."""

    def whole_pass(self) -> AbstractContextManager[None]:
        """Trace the pass that the block is; lines of the log carry its id meanwhile, which is that of its trace."""
        ...

    def phase(self, phase: str) -> AbstractContextManager[None]:
        """Trace a phase of a pass."""
        ...

    def call(self, call: OutwardCall) -> AbstractContextManager[Callable[[str], None]]:
        """Trace a call to a system outside."""
        ...

    def answer(self, method: str, headers: Mapping[str, str], request_id: str) -> AbstractContextManager[NoteAnswer]:
        """Trace a call of the API, as a part of the trace that its headers name."""
        ...

    def close(self) -> None:
        """Send the last spans."""
        ...


class NoTraces:
    """Makes ids for the log, and no spans."""

    def whole_pass(self) -> AbstractContextManager[None]:
        """Give a pass an id in the log."""
        return bound_contextvars(**{"pass": token_hex(16)})

    def phase(self, _phase: str) -> AbstractContextManager[None]:
        """Trace nothing."""
        return nullcontext()

    def call(self, call: OutwardCall) -> AbstractContextManager[Callable[[str], None]]:
        """Trace nothing."""
        return unmeasured_call(call)

    def answer(self, _method: str, _headers: Mapping[str, str], _request_id: str) -> AbstractContextManager[NoteAnswer]:
        """Trace nothing."""
        return nullcontext(lambda _route, _code: None)

    def close(self) -> None:
        """Do nothing."""


class OpenTelemetryTraces:
    """Sends spans by an exporter, in a thread of its own; one that fails costs spans and nothing else."""

    def __init__(self, exporter: SpanExporter) -> None:
        """Begin with an exporter."""
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415 - an extra
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - an extra
            TraceContextTextMapPropagator,
        )

        resource = Resource.create({"service.name": "overspill", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("overspill", __version__)
        self._kinds, self._propagator = SpanKind, TraceContextTextMapPropagator()
        self._failed = Status(StatusCode.ERROR)

    @contextmanager
    def whole_pass(self) -> Iterator[None]:
        """Trace the pass that the block is, and give its id to the log."""
        with self._tracer.start_as_current_span("pass") as span:
            trace = f"{span.get_span_context().trace_id:032x}"
            with bound_contextvars(**{"pass": trace}):
                yield

    @contextmanager
    def phase(self, phase: str) -> Iterator[None]:
        """Trace a phase of a pass."""
        with self._tracer.start_as_current_span(f"pass {phase}"):
            yield

    @contextmanager
    def call(self, call: OutwardCall) -> Iterator[Callable[[str], None]]:
        """Trace a call to a system outside; the calls of several coroutines may overlap."""
        attributes = {"peer.service": call.peer.value, "rpc.method": call.verb}
        if call.target:
            attributes["k8s.cluster.name"] = call.target
        name = f"{call.peer} {call.verb}"
        span = self._tracer.start_span(name, kind=self._kinds.CLIENT, attributes=attributes)
        codes = [NO_ANSWER]
        try:
            yield codes.append
        finally:
            code = codes[-1]
            span.set_attribute("overspill.git.result" if call.peer is Peer.GIT else "http.response.status_code", code)
            if code != "ok" and not code.startswith("2"):
                span.set_status(self._failed)
            span.end()

    @contextmanager
    def answer(self, method: str, headers: Mapping[str, str], request_id: str) -> Iterator[NoteAnswer]:
        """Trace a call of the API."""
        parent = self._propagator.extract(headers)
        attributes = {"http.request.method": method, "overspill.request_id": request_id}
        span = self._tracer.start_span(method, context=parent, kind=self._kinds.SERVER, attributes=attributes)

        def note(route: str, code: int) -> None:
            span.update_name(f"{method} {route}")
            span.set_attributes({"http.route": route, "http.response.status_code": code})
            if code >= _SERVER_ERROR:
                span.set_status(self._failed)

        try:
            yield note
        finally:
            span.end()

    def close(self) -> None:
        """Send the last spans, within limits."""
        self._provider.force_flush(_FLUSH)
        self._provider.shutdown()


def open_traces(collector: str) -> Traces:
    """Return the traces for a collector that takes OTLP over HTTP; without one there are none.

    Raises InvalidInput where OpenTelemetry is not installed.
    """
    if not collector:
        return NoTraces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InvalidInput(
            "OVERSPILL_TRACES: OpenTelemetry is not installed here (try pip install 'overspill[otel]')"
        ) from error
    return OpenTelemetryTraces(OTLPSpanExporter(endpoint=f"{collector.rstrip('/')}/v1/traces"))
