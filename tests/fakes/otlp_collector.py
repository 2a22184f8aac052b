"""A collector that takes OTLP over HTTP, and keeps the spans."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fakes.loopback import LoopbackHandler, LoopbackServer


class Collector:
    """What has arrived."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Span] = []
        self.services: set[str] = set()

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def take(self, data: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
            self.services |= {
                each.value.string_value for each in resource.resource.attributes if each.key == "service.name"
            }
            self.spans += [span for scope in resource.scope_spans for span in scope.spans]


def attributes(span: Span) -> dict[str, object]:
    """Return the attributes of a span that are texts or numbers."""
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@contextmanager
def collecting() -> Iterator[Collector]:
    """Serve a collector."""
    collector = Collector()

    class Handler(LoopbackHandler):
        def do_POST(self) -> None:
            data, known = self.body(), self.path == "/v1/traces"
            if known:
                collector.take(data)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.reply(200 if known else 404, answer, {"Content-Type": "application/x-protobuf"})

    with LoopbackServer(Handler) as server:
        collector.url = server.url
        yield collector
