"""A small slurmrestd over real HTTP, by its documentation: https://slurm.schedmd.com/rest_api.html.

It answers ``/slurm/<version>/jobs/`` in the versions that it serves, asks for the two headers of JSON Web Tokens
(https://slurm.schedmd.com/jwt.html), and names errors in the list that every answer has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.fakes.loopback import LoopbackHandler, LoopbackServer


def number(value: int | None) -> dict[str, Any]:
    """Write a number as Slurm does since v0.0.40; None for one that is not set."""
    return {"set": value is not None, "infinite": False, "number": value or 0}


def job(identity: int, gpus: int = 8, /, **fields: Any) -> dict[str, Any]:
    """Write a job that waits for room, with some of the fields that Slurm writes."""
    return {
        "account": "research",
        "array_job_id": number(0),
        "array_max_tasks": number(0),
        "array_task_id": number(None),
        "array_task_string": "",
        "eligible_time": number(1_700_000_000),
        "gres_detail": [],
        "het_job_id": number(0),
        "het_job_offset": number(0),
        "hold": False,
        "job_id": identity,
        "job_state": ["PENDING"],
        "name": "train",
        "node_count": number(1),
        "nodes": "",
        "partition": "gpu-h100",
        "sockets_per_node": number(None),
        "state_description": "",
        "state_reason": "Resources",
        "submit_time": number(1_700_000_000),
        "tasks": number(1),
        "tres_alloc_str": "",
        "tres_per_job": "",
        "tres_per_node": f"gres/gpu:{gpus}",
        "tres_per_socket": "",
        "tres_per_task": "",
        "tres_req_str": f"cpu=16,mem=128G,node=1,billing=16,gres/gpu={gpus}",
        **fields,
    }


class Controller:
    """The jobs that Slurm has. `says` takes the place of every answer: a status, and a body."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.versions: tuple[str, ...] = ("v0.0.43", "v0.0.42", "v0.0.41")
        self.token = ""
        self.says: tuple[int, bytes] | None = None
        self.asked: list[str] = []
        self.users: list[str | None] = []
        self.url = ""

    def answer(self, path: str, token: str | None) -> tuple[int, bytes]:
        if self.says is not None:
            return self.says
        if path not in {f"/slurm/{version}/jobs/" for version in self.versions}:
            return 404, b""
        if self.token and token != self.token:
            return 401, b"Authentication failure"
        return 200, self.body(jobs=self.jobs)

    @staticmethod
    def body(*, jobs: list[Any] | None = None, errors: list[dict[str, Any]] | None = None) -> bytes:
        meta = {"slurm": {"version": {"major": "25", "micro": "0", "minor": "05"}, "cluster": "hpc"}}
        answer = {"jobs": jobs or [], "last_update": number(1_700_000_100), "meta": meta}
        return json.dumps({**answer, "errors": errors or [], "warnings": []}).encode()


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    controller: Controller

    def do_GET(self) -> None:
        self.controller.asked.append(self.path)
        self.controller.users.append(self.headers.get("X-SLURM-USER-NAME"))
        self.reply(*self.controller.answer(self.path, self.headers.get("X-SLURM-USER-TOKEN")))


@contextmanager
def serving() -> Iterator[Controller]:
    """Serve the jobs on this machine."""
    controller = Controller()
    handler = type("Handler", (_Handler,), {"controller": controller})
    with LoopbackServer(handler) as server:
        controller.url = server.url
        yield controller
