"""How API servers are logged in to: by a kubeconfig, as the pod that we are, or as Argo CD does."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_incluster_config
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import KubeConfigMerger
from yaml import YAMLError

from reconciler.adapters.kube.login_plugins import credentials, load
from reconciler.core.engines.logins import ClusterLogin, Plugin, Unusable
from reconciler.errors import Transient
from reconciler.model.policy import Connection
from reconciler.text.redaction import redacted

_BEARER = "BearerToken"


class Login(Protocol):
    """A way in."""

    async def stamp(self) -> object:
        """Tell one state of the login from the next: what was opened at another one is to be opened anew."""
        ...

    def trouble(self) -> str:
        """Say why there is no way in, where that is known without trying."""
        ...

    def remedy(self) -> str:
        """Say what a person can try when the server does not take the login."""
        ...

    def configuration(self) -> AbstractAsyncContextManager[Configuration]:
        """Log in, and yield how to connect; files that it names may be gone afterwards. Raises Transient."""
        ...


class LoginStore(Protocol):
    """Where the logins of Argo CD are known."""

    async def read(self) -> None:
        """Wait for a while until they have been read once."""
        ...

    def login(self, cluster: str) -> ClusterLogin | Unusable | None:
        """Return the login for a cluster of this name as it is known now; None before they have been read."""
        ...


class KubeconfigLogin:
    """By the daemon's kubeconfig, or its own service account. A kubeconfig that is missing is like the one before."""

    def __init__(self, connection: Connection, kubeconfig: Path | None) -> None:
        self._connection = connection
        self._kubeconfig = None if connection.in_cluster else kubeconfig
        self._stamp: tuple[int, ...] = ()

    async def stamp(self) -> object:
        """Look at the kubeconfig's time; a service account's token is read anew by itself."""
        if self._kubeconfig is not None:
            try:
                stat = self._kubeconfig.stat()
            except OSError:
                return self._stamp
            self._stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
        return self._stamp

    def trouble(self) -> str:
        """Say nothing: whoever uses it will see."""
        return ""

    def remedy(self) -> str:
        """Name the context whose login is not good, or the service account."""
        if self._connection.in_cluster:
            return "is inCluster right? The service account of this pod is of another cluster, or gone"
        return f"make the login of context {self._connection.context} in the kubeconfig anew; a token ends"

    @asynccontextmanager
    async def configuration(self) -> AsyncIterator[Configuration]:
        """Read how to connect, and run the login plugin where the kubeconfig names one."""
        configuration: Any = Configuration()
        try:
            if self._connection.in_cluster:
                load_incluster_config(client_configuration=configuration)
            else:
                config = KubeConfigMerger(str(self._kubeconfig)).config
                await load(config, self._connection.context, configuration)
        except (ConfigException, YAMLError, OSError, ValueError, KeyError, TypeError) as error:
            raise Transient(f"cannot be connected to: {error_line(error)}") from error
        yield configuration


class ArgoSecretLogin:
    """As Argo CD does, by its Secret for the cluster. What is local to Argo CD's cluster is reached through `local`.

    A Secret may name a program to run: only those in `plugins` are. Nothing that is secret gets into a message.
    """

    def __init__(self, cluster: str, logins: LoginStore, *, local: Login, plugins: frozenset[str]) -> None:
        self._cluster = cluster
        self._logins = logins
        self._local = local
        self._plugins = plugins

    async def stamp(self) -> object:
        """Look at the Secret, and where it is local, at the way there."""
        await self._logins.read()
        login = self._logins.login(self._cluster)
        return login, await self._local.stamp() if isinstance(login, ClusterLogin) and login.local else None

    def trouble(self) -> str:
        """Say why there is no login, or none that may be used; empty while there is one."""
        login = self._logins.login(self._cluster)
        if login is None:
            return ""
        return login.why if isinstance(login, Unusable) else _forbidden(login, self._plugins)

    def remedy(self) -> str:
        """Name the Secret whose login is not good."""
        return f"have Argo CD log in to it anew: argocd cluster add, for the cluster called {self._cluster} there"

    @asynccontextmanager
    async def configuration(self) -> AsyncIterator[Configuration]:
        """Make a configuration of the Secret, and run its program where that is allowed."""
        login = self._logins.login(self._cluster)
        if not isinstance(login, ClusterLogin):
            raise Transient(login.why if login else "the cluster Secrets of Argo CD have not been read yet")
        if why := _forbidden(login, self._plugins):
            raise Transient(why)
        if login.plugin is not None:
            login = await _run_plugin(login, login.plugin)
        if login.local:
            async with self._local.configuration() as configuration:
                yield _local_configuration(configuration, login)
            return
        # OpenSSL takes a client's certificate from files alone.
        with tempfile.TemporaryDirectory(prefix="overspill-") as directory:
            yield _secret_configuration(login, Path(directory))


def _forbidden(login: ClusterLogin, plugins: frozenset[str]) -> str:
    if login.plugin is None or login.plugin.command in plugins:
        return ""
    command = login.plugin.command
    return (
        f"Argo CD's Secret wants to run the program {command!r} here to log in, which is not allowed (list it in"
        " OVERSPILL_LOGIN_PLUGINS and install it, or give the Cluster a connection by context)"
    )


async def _run_plugin(login: ClusterLogin, plugin: Plugin) -> ClusterLogin:
    """Have a program log in, and add what it gives."""
    status = await credentials(plugin)
    return replace(
        login,
        token=str(status.get("token") or ""),
        certificate=str(status.get("clientCertificateData") or "").encode() or login.certificate,
        key=str(status.get("clientKeyData") or "").encode() or login.key,
    )


def _local_configuration(configuration: Any, login: ClusterLogin) -> Any:
    """Keep the address of Argo CD's own cluster, with the Secret's account where it has one."""
    if authorization := _authorization(login):
        configuration.cert_file = configuration.key_file = None
        configuration.refresh_api_key_hook = None
        configuration.api_key = {_BEARER: authorization}
    return configuration


def _secret_configuration(login: ClusterLogin, directory: Path) -> Any:
    configuration: Any = Configuration(host=login.server)
    configuration.verify_ssl = not login.insecure
    configuration.ca_cert_data = login.authority.decode("ascii", "replace") or None
    configuration.tls_server_name = login.server_name or None
    configuration.proxy = login.proxy or None
    if authorization := _authorization(login):
        configuration.api_key = {_BEARER: authorization}
    if login.certificate:
        configuration.cert_file, configuration.key_file = str(directory / "certificate"), str(directory / "key")
        Path(configuration.cert_file).write_bytes(login.certificate)
        Path(configuration.key_file).write_bytes(login.key)
    return configuration


def _authorization(login: ClusterLogin) -> str:
    if login.token:
        return f"Bearer {login.token}"
    if login.username:
        pair = f"{login.username}:{login.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return ""


def error_line(error: BaseException) -> str:
    """Put an error on one short line, without the login of a proxy or server that it may quote."""
    # The words of a proxy's refusal hold its whole URL.
    text = f"{error.status} {error.message}" if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return " ".join(redacted(text).split())[:300] or type(error).__name__
