"""A name server that does not answer keeps nothing up but the clusters whose names it has."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from datetime import timedelta
from threading import Event
from typing import Any

import pytest

from tests.builders.inputs import cluster
from tests.builders.watched_clusters import ONE_NAME, QUICK, Fleet, fleet, until
from tests.fakes.kube_api_server import kubeconfig

OUR_THREADS = min(32, (os.cpu_count() or 1) + 4)
"""What asyncio has for all look-ups."""
WAITS = """
import asyncio, socket, time
from reconciler.adapters.kube.view import NamingLoop

async def give_up():
    try:
        await asyncio.wait_for(asyncio.get_running_loop().getaddrinfo("api.example", 443), 0.1)
    except TimeoutError:
        print("gave up")

socket.getaddrinfo = lambda *_, **__: time.sleep(300)
asyncio.Runner(loop_factory=NamingLoop).run(give_up())
"""


def test_names_that_are_not_found_yet_hold_up_no_other_cluster(
    clusters: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, answered, asked = socket.getaddrinfo, Event(), []

    def look_up(host: Any, *args: Any, **kind: Any) -> Any:
        if str(host).endswith(".dead.example"):
            asked.append(host)
            answered.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return real(host, *args, **kind)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    clusters.stack.callback(answered.set)
    dead = [(f"dead-{index}", f"http://api-{index}.dead.example:6443") for index in range(OUR_THREADS + 2)]
    kubeconfig(clusters.path, *dead)
    view = clusters.view(QUICK, timedelta())
    ones = [cluster(name) for name, _ in dead]
    view.follow(fleet(*ones))
    until(lambda: len(set(asked)) >= OUR_THREADS, seconds=20)
    kubeconfig(clusters.path, ("worker-1", clusters.one.url.replace("127.0.0.1", "localhost")), *dead)
    view.follow(fleet(cluster("worker-1"), *ones))
    until(lambda: ONE_NAME in view.observe().clusters, seconds=20)


def test_end_of_the_process_waits_for_no_name() -> None:
    done = subprocess.run([sys.executable, "-c", WAITS], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "gave up\n", "")
