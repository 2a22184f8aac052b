"""Logins to API servers: by a kubeconfig, by our pod's service account, or by Argo CD's cluster Secret."""

from __future__ import annotations

import base64
import os
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.config import load_incluster_config
from kubernetes.aio.config.config_exception import ConfigException

from reconciler.adapters.kube.kubeconfig import BrokenKubeconfig, kubeconfig_stamp, read_kubeconfig
from reconciler.adapters.kube.login_plugins import credentials, load
from reconciler.core.engines.logins import ClusterLogin, Plugin, Unusable
from reconciler.errors import Transient
from reconciler.model.policy import Connection
from reconciler.text.redaction import redacted

_BEARER = "BearerToken"


class Login(Protocol):
    """A login to one API server."""

    async def stamp(self) -> object:
        """Return the version of the login; a session of another version is to be opened anew."""
        ...

    def trouble(self) -> str:
        """Say why the login cannot work, where that is known without trying."""
        ...

    def remedy(self) -> str:
        """Say how to mend a login that the server refuses."""
        ...

    def configuration(self) -> AbstractAsyncContextManager[Configuration]:
        """Log in, and yield the configuration; its files may be gone afterwards. Raises Transient."""
        ...


class LoginStore(Protocol):
    """The logins of Argo CD."""

    async def read(self) -> None:
        """Wait, within limits, until they have been read once."""
        ...

    def login(self, cluster: str) -> ClusterLogin | Unusable | None:
        """Return the newest login to the cluster of this name; None before they have been read."""
        ...


class KubeconfigLogin:
    """Logs in by the daemon's kubeconfig, or by its service account. A missing kubeconfig counts as unchanged."""

    def __init__(self, connection: Connection, kubeconfig: Path | None) -> None:
        self._connection = connection
        self._kubeconfig = None if connection.in_cluster else kubeconfig
        self._stamp: object = ()

    async def stamp(self) -> object:
        """Return the version of the kubeconfig's files; the client renews a service account's token itself."""
        if self._kubeconfig is not None:
            with suppress(OSError):
                self._stamp = kubeconfig_stamp(self._kubeconfig)
        return self._stamp

    def trouble(self) -> str:
        """Return nothing: only a try shows whether it works."""
        return ""

    def remedy(self) -> str:
        """Name the context, or the service account."""
        if self._connection.in_cluster:
            return "is inCluster right? The service account of this pod is of another cluster, or gone"
        return f"make a new login for context {self._connection.context} in the kubeconfig; a token ends"

    @asynccontextmanager
    async def configuration(self) -> AsyncIterator[Configuration]:
        """Read the configuration, and run the login plugin where the kubeconfig names one."""
        configuration: Any = Configuration()
        try:
            if self._connection.in_cluster:
                load_incluster_config(client_configuration=configuration)
            elif self._kubeconfig is not None:
                login = read_kubeconfig(self._kubeconfig).login(self._connection.context)
                await load(login, self._connection.context, configuration)
        except (BrokenKubeconfig, ConfigException, OSError, ValueError, KeyError, TypeError) as error:
            raise Transient(f"cannot be connected to: {error_line(error)}") from error
        yield configuration


class ArgoSecretLogin:
    """Logs in by Argo CD's Secret for the cluster; Argo CD's own cluster is reached through `local`.

    A Secret may name a login plugin: only those in `plugins` are run. Messages hold nothing secret.
    """

    def __init__(self, cluster: str, logins: LoginStore, *, local: Login, plugins: frozenset[str]) -> None:
        self._cluster = cluster
        self._logins = logins
        self._local = local
        self._plugins = plugins

    async def stamp(self) -> object:
        """Return the Secret's login, and for Argo CD's own cluster the version of `local`."""
        await self._logins.read()
        login = self._logins.login(self._cluster)
        return login, await self._local.stamp() if isinstance(login, ClusterLogin) and login.local else None

    def trouble(self) -> str:
        """Say why the Secret is missing, unusable or names a forbidden plugin; empty for a good one."""
        login = self._logins.login(self._cluster)
        if login is None:
            return ""
        return login.why if isinstance(login, Unusable) else _describe_forbidden_plugin(login, self._plugins)

    def remedy(self) -> str:
        """Name the cluster whose Secret is to be renewed."""
        return f"have Argo CD log in to it again: argocd cluster add, for the cluster called {self._cluster} there"

    @asynccontextmanager
    async def configuration(self) -> AsyncIterator[Configuration]:
        """Make a configuration of the Secret, and run its plugin if it is allowed."""
        login = self._logins.login(self._cluster)
        if not isinstance(login, ClusterLogin):
            raise Transient(login.why if login else "the cluster Secrets of Argo CD have not been read yet")
        if why := _describe_forbidden_plugin(login, self._plugins):
            raise Transient(why)
        if login.plugin is not None:
            login = await _run_plugin(login, login.plugin)
        if login.local:
            async with self._local.configuration() as configuration:
                yield _local_configuration(configuration, login)
            return
        # OpenSSL reads client certificates from files alone.
        with tempfile.TemporaryDirectory(prefix="overspill-") as directory:
            yield _secret_configuration(login, Path(directory))


def _describe_forbidden_plugin(login: ClusterLogin, plugins: frozenset[str]) -> str:
    if login.plugin is None or login.plugin.command in plugins:
        return ""
    command = login.plugin.command
    return (
        f"Argo CD's Secret wants to run the program {command!r} here to log in, which is not allowed (list it in"
        " OVERSPILL_LOGIN_PLUGINS and install it, or give the Cluster a connection by context)"
    )


async def _run_plugin(login: ClusterLogin, plugin: Plugin) -> ClusterLogin:
    """Run the login plugin, and add its credentials."""
    status = await credentials(plugin)
    return replace(
        login,
        token=str(status.get("token") or ""),
        certificate=str(status.get("clientCertificateData") or "").encode() or login.certificate,
        key=str(status.get("clientKeyData") or "").encode() or login.key,
    )


def _local_configuration(configuration: Any, login: ClusterLogin) -> Any:
    """Return the configuration of `local`, with the Secret's account where it has one."""
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
    """Return an error on one short line, without credentials of a proxy or server that it may quote."""
    text = _cause(error)
    return " ".join(redacted(text).split())[:300] or type(error).__name__


def _cause(error: BaseException) -> str:
    match error:
        case aiohttp.ClientResponseError():  # a proxy's refusal, whose text holds its whole URL
            return f"{error.status} {error.message}"
        case aiohttp.ClientConnectorCertificateError():
            why = getattr(error.certificate_error, "verify_message", "") or "of another host"
            return f"the certificate of {error.host}:{error.port} is not trusted: {why}"
        case aiohttp.ClientConnectorDNSError():
            return f"no address is known for {error.host}"
        case aiohttp.ClientConnectorError() if error.os_error.strerror and not isinstance(error.os_error, ssl.SSLError):
            return f"{error.host}:{error.port}: {os.strerror(error.os_error.errno or 0)}"
        case ssl.SSLError():
            return "a certificate or a key of the login is none"
    return str(error)
