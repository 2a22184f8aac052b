"""A caller of the API in a process of its own: so many connections at once, each asking as soon as it was answered.

Prints one JSON object: how many calls were answered with 200, how many otherwise, and the seconds that they took.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

WORKSPACE = "team"
CLUSTERS = 100


def body(name: str, cluster: str) -> dict[str, Any]:
    """Ask for a placement of one Deployment, as a user's script would."""
    labels = {"app": name}
    container = {"name": "serve", "image": "registry.example.com/serve:1.0.0"}
    return {
        "workspaceName": WORKSPACE,
        "name": name,
        "clusters": [cluster],
        "burstDuration": "15m",
        "deletionPolicy": "Delete",
        "manifestResources": [
            {
                "name": name,
                "namespace": WORKSPACE,
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                },
            }
        ],
        "steps": [{"name": name, "type": "manifest"}],
    }


def call(server: str, token: str, wanted: Mapping[str, Any]) -> bytes:
    """Write the whole request, as any client would."""
    content = json.dumps(wanted).encode()
    head = (
        f"POST /api/v1/workload-placement HTTP/1.1\r\nHost: {server}\r\nAuthorization: Bearer {token}\r\n"
        f"Accept: */*\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def create(server: str, token: str, prefix: str, connections: int, each: int) -> dict[str, Any]:
    """Create `each` placements on each connection, one after the other.

    The calls are written before the time begins, so that the caller's own work is not measured as the daemon's.
    """
    statuses: Counter[int] = Counter()
    host, _, port = server.partition(":")

    async def caller(calls: Sequence[bytes], reader: StreamReader, writer: StreamWriter) -> None:
        for one in calls:
            writer.write(one)
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            if length is None:
                raise RuntimeError(f"an answer without a length: {head!r}")
            await reader.readexactly(int(length[1]))
            statuses[int(head.split(b" ", 2)[1])] += 1
        writer.close()

    calls = [
        [
            call(server, token, body(f"{prefix}-{number}-{index}", f"worker-{(number * each + index) % CLUSTERS}"))
            for index in range(each)
        ]
        for number in range(connections)
    ]
    streams = [await asyncio.open_connection(host, int(port)) for _ in calls]
    began = perf_counter()
    await asyncio.gather(*(caller(its, *stream) for its, stream in zip(calls, streams, strict=True)))
    seconds = perf_counter() - began
    return {"ok": statuses.pop(200, 0), "other": dict(statuses), "seconds": seconds}


if __name__ == "__main__":
    _, server, token, prefix, connections, each = sys.argv
    print(json.dumps(asyncio.run(create(server, token, prefix, int(connections), int(each)))))
