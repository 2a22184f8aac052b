"""Logins to clusters that an engine keeps as objects of its control plane.

No message quotes a value of such an object: it may hold the names of objects, of fields, and of a program to run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from reconciler.core.engines.reports import EngineResource
from reconciler.core.workloads.watch import ResourcePart

EXEC_VERSION = "client.authentication.k8s.io/v1beta1"
"""The version of the protocol between a client and a login plugin, where nothing names another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A program that prints a token (client.authentication.k8s.io), and how it is called."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    version: str = EXEC_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    """A login to one API server; its secret values are not in its repr."""

    server: str
    local: bool = False
    """Whether the server is the one of the control plane's own cluster, reached by the way to the control plane."""
    token: str = field(default="", repr=False)
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    authority: bytes = field(default=b"", repr=False)  # PEM, as the next two
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    server_name: str = ""
    insecure: bool = False
    proxy: str = field(default="", repr=False)
    plugin: Plugin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Why there is no login."""

    why: str


class ClusterLogins(ResourcePart, Protocol):
    """The logins of one control plane, kept as its objects are listed and change."""

    def login(self, cluster: str) -> ClusterLogin | Unusable:
        """Return the login to a cluster of this name, or why there is none."""
        ...


class LoginSource(Protocol):
    """Which objects hold the logins; equal sources are the same objects."""

    @property
    def namespace(self) -> str:
        """The namespace of the objects."""
        ...

    @property
    def selector(self) -> str:
        """The label selector of the objects."""
        ...

    @property
    def resource(self) -> EngineResource:
        """The resource of the objects."""
        ...

    def logins(self) -> ClusterLogins:
        """Return logins without any objects yet."""
        ...
