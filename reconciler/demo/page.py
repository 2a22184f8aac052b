"""The page of the demo's daemon: where it is, who may sign in there, and a link that signs in."""

from __future__ import annotations

import json
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.access.rights import EVERYWHERE, PREFIX, AccessRole, digest
from reconciler.environment import PREFIX as VARIABLE

_HOST = "127.0.0.1"
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of those who have a screen, or say which browser they want."""


def _free_port() -> int:
    """Return a port that nobody listens at; one is kept through the death of the daemon."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoPage:
    """The page, and the token of its only visitor."""

    port: int = field(default_factory=_free_port)
    token: str = field(default_factory=lambda: PREFIX + secrets.token_urlsafe(32), repr=False)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """What sessions are sealed with, so that they outlive the daemon."""

    @property
    def listen(self) -> str:
        """Where the daemon listens."""
        return f"{_HOST}:{self.port}"

    @property
    def address(self) -> str:
        """The link that signs Ann in; what follows its # stays in the browser."""
        return f"http://{self.listen}/login#token={self.token}"

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings of the daemon: Ann may see and do everything."""
        roles = {EVERYWHERE: str(AccessRole.OWNER)}
        ann = {"name": "Ann", "email": "ann@example.com", "sha256": digest(self.token), "roles": roles}
        return {
            f"{VARIABLE}API_TOKENS": json.dumps({"tokens": [ann]}),
            f"{VARIABLE}PAGE_SECRET": self.secret,
        }

    def open(self) -> None:
        """Open it in a browser, where this machine has a screen: a browser of text would take the terminal."""
        if sys.platform == "darwin" or any(map(os.environ.get, _SCREENS)):
            webbrowser.open(self.address)
