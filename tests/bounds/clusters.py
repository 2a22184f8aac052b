"""Answers of API servers at their bounds."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, cast

import aiohttp

from reconciler.adapters.kube import login_plugins
from reconciler.adapters.kube.answers import EVENT, PAGE, body, event_lines, parsed, reason_text
from reconciler.adapters.kube.input_budget import InputBudget
from reconciler.adapters.kube.kept_objects import KeptObjects
from reconciler.core.engines.logins import Plugin
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.core.workloads.object_identity import why_unidentified
from reconciler.core.workloads.watch import key_of
from reconciler.model.bounds import (
    CLUSTER_BYTES_IN_FLIGHT,
    CLUSTER_DEPTH,
    CLUSTER_EVENT_SIZE,
    CLUSTER_EVENT_VALUES,
    CLUSTER_LABELS,
    CLUSTER_LOGIN_SIZE,
    CLUSTER_MEMORY,
    CLUSTER_NAME,
    CLUSTER_OBJECTS,
    CLUSTER_PAGE_SIZE,
    CLUSTER_PAGE_VALUES,
    CLUSTER_REASON,
    CLUSTER_WORK,
)
from tests.bounds.experiment import Experiment, experiment
from tests.builders.kube_objects import node, pod

CHUNK = b"x" * (1 << 16)
VERSION = "client.authentication.k8s.io/v1"


class _Response:
    """An answer whose content comes in chunks of 64 KiB."""

    def __init__(self, content: bytes) -> None:
        self.content = self
        self._bytes = content

    async def iter_any(self) -> AsyncIterator[bytes]:
        for begin in range(0, len(self._bytes), len(CHUNK)):
            yield self._bytes[begin : begin + len(CHUNK)]


def _page(size: int) -> bytes:
    """Make a page of pods of so many bytes."""
    item = json.dumps(pod("vllm-1", "gpu-1", labels={"note": "x" * 1000})).encode()
    head, tail = b'{"metadata":{"resourceVersion":"1"},"items":[', b"]}"
    number = (size - len(head) - len(tail)) // (len(item) + 1)
    page = head + b",".join([item] * number) + tail
    return page + b" " * (size - len(page))


def _received(content: bytes) -> object:
    response = cast("aiohttp.ClientResponse", _Response(content))
    return parsed(asyncio.run(body(response, InputBudget())), PAGE)


def _event(content: bytes) -> None:
    """Receive an event of a watch, and parse it."""
    budget = InputBudget()
    with budget.answer() as answer:
        for begin in range(0, len(content), len(CHUNK)):
            for line in event_lines(budget, answer, content[begin : begin + len(CHUNK)]):
                parsed(line, EVENT)


def _values(number: int) -> bytes:
    """Make a list of about so many values, as they are counted: by commas and brackets."""
    return b"[" + b"{}," * (number // 2 - 2) + b"{}]"


@experiment(CLUSTER_PAGE_SIZE)
def _(_place: Path) -> Iterator[Experiment]:
    fits, too_long = _page(CLUSTER_PAGE_SIZE.most), _page(4 * CLUSTER_PAGE_SIZE.most)
    yield Experiment(
        at=lambda: _received(fits),
        beyond=lambda: _received(too_long),
        says=f"sent an answer of over {CLUSTER_PAGE_SIZE}",
    )


@experiment(CLUSTER_PAGE_VALUES)
def _(_place: Path) -> Iterator[Experiment]:
    fits, too_many = _values(CLUSTER_PAGE_VALUES.most), _values(5 * CLUSTER_PAGE_VALUES.most)
    yield Experiment(
        at=lambda: _received(fits), beyond=lambda: _received(too_many), says=f"holds over {CLUSTER_PAGE_VALUES}"
    )


@experiment(CLUSTER_EVENT_SIZE)
def _(_place: Path) -> Iterator[Experiment]:
    fits = json.dumps({"type": "MODIFIED", "object": "x" * (CLUSTER_EVENT_SIZE.most - 50)}).encode() + b"\n"
    yield Experiment(
        at=lambda: _event(fits),
        beyond=lambda: _event(b"x" * 4 * CLUSTER_EVENT_SIZE.most),
        says=f"sent an event of over {CLUSTER_EVENT_SIZE}",
    )


@experiment(CLUSTER_EVENT_VALUES)
def _(_place: Path) -> Iterator[Experiment]:
    fits, too_many = (_values(n * CLUSTER_EVENT_VALUES.most) + b"\n" for n in (1, 4))
    yield Experiment(
        at=lambda: _event(fits), beyond=lambda: _event(too_many), says=f"holds over {CLUSTER_EVENT_VALUES}"
    )


@experiment(CLUSTER_DEPTH)
def _(_place: Path) -> Iterator[Experiment]:
    def nested(levels: int) -> object:
        return _received(b"[" * levels + b"]" * levels)

    yield Experiment(
        at=lambda: nested(CLUSTER_DEPTH.most),
        beyond=lambda: nested(CLUSTER_PAGE_VALUES.most // 2),
        says=f"nested over {CLUSTER_DEPTH}",
    )


@experiment(CLUSTER_OBJECTS)
def _(_place: Path) -> Iterator[Experiment]:
    def listed(number: int) -> ClusterState:
        """List so many pods in pages of 500, as they are read."""
        state = ClusterState()
        kept = KeptObjects(lambda: 0, lambda: (state,))
        for begin in range(0, number, 500):
            items = cast(
                "list[Any]", [pod(f"vllm-{begin + n}", f"gpu-{n}", labels={"app": "vllm"}) for n in range(500)]
            )
            kept.admit(Resource.PODS, [key_of(raw) for raw in items], lambda: state.keys(Resource.PODS))
            for raw in items:
                assert not why_unidentified(raw)
                state.apply(Resource.PODS, raw)
        return state

    def beyond() -> None:
        there = {str(number) for number in range(CLUSTER_OBJECTS.most)}
        kept = KeptObjects(lambda: 0, list)
        kept.admit(Resource.PODS, there, lambda: there)
        kept.admit(Resource.PODS, ["one more"], lambda: there)

    yield Experiment(at=lambda: listed(CLUSTER_OBJECTS.most), beyond=beyond, says=f"has over {CLUSTER_OBJECTS}")


@experiment(CLUSTER_MEMORY)
def _(_place: Path) -> Iterator[Experiment]:
    labels = {f"example.com/{number:04}": "x" * 60 for number in range(CLUSTER_LABELS.most // 80)}
    taking = sum(map(sys.getsizeof, (*labels, *labels.values()))) + sys.getsizeof(labels)

    def listed(size: int) -> None:
        """List nodes one by one, whose labels take that number of bytes."""
        state, received = ClusterState(), 0
        kept = KeptObjects(lambda: received, lambda: (state,))
        for number in range(size // taking):
            raw = json.dumps(node(f"gpu-{number}", labels={f"{key}-{number}": text for key, text in labels.items()}))
            received += len(raw)
            kept.admit(Resource.NODES, [f"gpu-{number}"], lambda: state.keys(Resource.NODES))
            state.apply(Resource.NODES, json.loads(raw))

    yield Experiment(
        at=lambda: listed(CLUSTER_MEMORY.most * 3 // 4),
        beyond=lambda: listed(4 * CLUSTER_MEMORY.most),
        says=f"takes over {CLUSTER_MEMORY} here",
    )


@experiment(CLUSTER_BYTES_IN_FLIGHT)
def _(_place: Path) -> Iterator[Experiment]:
    def together(size: int) -> None:
        """Receive two answers at once: the larger is all but a MiB of so many bytes."""
        budget = InputBudget()
        with budget.answer() as large, budget.answer() as small:
            for _ in range((size >> 16) - 16):
                budget.add(large, CHUNK)
            for _ in range(16):
                budget.add(small, CHUNK)
            assert not small.cut
            for _ in event_lines(budget, large, b""):
                pass

    def at() -> None:
        budget = InputBudget()
        with budget.answer() as answer:
            for _ in range(CLUSTER_BYTES_IN_FLIGHT.most >> 16):
                budget.add(answer, CHUNK)
            assert not answer.cut

    yield Experiment(
        at=at,
        beyond=lambda: together(CLUSTER_BYTES_IN_FLIGHT.most + (1 << 16)),
        says=f"others sent over {CLUSTER_BYTES_IN_FLIGHT} at the same time",
    )


@experiment(CLUSTER_WORK)
def _(_place: Path) -> Iterator[Experiment]:
    def pause(spent: float) -> str:
        credit = InputBudget().work_credit()
        credit.spend(spent)
        return f"waits {credit.pause():.1f} s"

    def at() -> None:
        assert pause(CLUSTER_WORK.most - 1) == "waits 0.0 s"

    yield Experiment(
        at=at,
        beyond=lambda: pause(CLUSTER_WORK.most + 1),
        says=r"waits [1-9]\.\d s",
        scaled="not worked",
    )


def _why(metadata: dict[str, object]) -> str:
    """Say why an object is left out, or 'read'."""
    return why_unidentified({"metadata": metadata}) or "read"


@experiment(CLUSTER_NAME)
def _(_place: Path) -> Iterator[Experiment]:
    def at() -> None:
        assert _why({"name": "x" * CLUSTER_NAME.most}) == "read"

    yield Experiment(
        at=at, beyond=lambda: _why({"name": "x" * CLUSTER_PAGE_SIZE.most}), says=f"has a name of over {CLUSTER_NAME}"
    )


@experiment(CLUSTER_LABELS)
def _(_place: Path) -> Iterator[Experiment]:
    def labels(size: int) -> dict[str, object]:
        return {"name": "a", "labels": {f"{number:07}": "x" * 57 for number in range(size // 64)}}

    def at() -> None:
        assert _why(labels(CLUSTER_LABELS.most)) == "read"

    yield Experiment(
        at=at, beyond=lambda: _why(labels(CLUSTER_PAGE_SIZE.most)), says=f"has labels of over {CLUSTER_LABELS}"
    )


@experiment(CLUSTER_REASON)
def _(_place: Path) -> Iterator[Experiment]:
    def length(size: int) -> str:
        return f"{len(reason_text('x' * size))} characters are kept"

    def at() -> None:
        assert length(CLUSTER_REASON.most) == f"{CLUSTER_REASON.most} characters are kept"

    yield Experiment(
        at=at, beyond=lambda: length(CLUSTER_PAGE_SIZE.most), says=f"^{CLUSTER_REASON.most} characters are kept"
    )


@experiment(CLUSTER_LOGIN_SIZE)
def _(place: Path) -> Iterator[Experiment]:
    def plugin(name: str, text: str) -> Plugin:
        program = place / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
        return Plugin(command=str(program), args=(), env=(), version=VERSION)

    credential = {"apiVersion": VERSION, "kind": "ExecCredential", "status": {"token": ""}}
    room = CLUSTER_LOGIN_SIZE.most - len(json.dumps(credential)) - 1
    credential["status"] = {"token": "x" * room}
    (place / "answer").write_text(json.dumps(credential))
    fits, endless = plugin("fits", f"cat {place}/answer"), plugin("endless", "exec cat /dev/zero")
    yield Experiment(
        at=lambda: asyncio.run(login_plugins.credentials(fits)),
        beyond=lambda: asyncio.run(login_plugins.credentials(endless)),
        says="failed",
    )
