"""The dashboard of Ray clusters whose heads are pods that nothing runs: it says of each job what a test wants."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.fakes.loopback import LoopbackHandler, LoopbackServer

JOBS = "/api/jobs/"


class Dashboard:
    """The jobs API of all clusters, as Ray serves it. KubeRay comes by it as by an HTTP proxy (``HTTP_PROXY``)."""

    def __init__(self) -> None:
        """Begin with a job that runs."""
        self.status, self.message = "RUNNING", ""
        outer = self

        class Api(LoopbackHandler):
            def do_GET(self) -> None:
                job = urlsplit(self.path).path.removeprefix(JOBS)
                now = int(time.time() * 1000)
                told = {"submission_id": job, "status": outer.status, "message": outer.message, "start_time": now}
                self.reply_json(200, told | ({} if outer.status == "RUNNING" else {"end_time": now}))

            def do_POST(self) -> None:  # a job that is to stop
                outer.status = "STOPPED"
                self.reply_json(200, {"stopped": True})

        self._server = LoopbackServer(Api)

    @property
    def url(self) -> str:
        """Where it is served."""
        return self._server.url

    def say(self, status: str, message: str = "") -> None:
        """Say this of the job from now on."""
        self.status, self.message = status, message

    def start(self) -> None:
        """Answer from now on."""
        self._server.start()

    def stop(self) -> None:
        """Answer no more."""
        self._server.stop()


@contextmanager
def dashboard() -> Iterator[Dashboard]:
    """Serve it for a while."""
    served = Dashboard()
    served.start()
    try:
        yield served
    finally:
        served.stop()
