"""Argo CD's cluster Secrets: how it logs in to a cluster of some name.

Each has the label ``argocd.argoproj.io/secret-type: cluster`` and the data ``name``, ``server`` and ``config``, the
last one JSON (docs/reference/argocd.md, "Cluster Secrets"; what is contradictory there client-go refuses, and so do
we). A message here never quotes a value: it holds names of Secrets and of fields, and of a program that is to be run.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from reconciler.core.observe.kubernetes.part import ChangeEffect
from reconciler.core.workloads.object_key import key_of
from reconciler.model.workload import Json

SELECTOR = "argocd.argoproj.io/secret-type=cluster"

_INTERNAL = "https://kubernetes.default.svc"
"""What Argo CD calls the cluster that it runs in, wherever that is looked at from."""
_LOCAL = "in-cluster"
"""The name under which it knows that cluster without any Secret."""
_HELPER = "argocd-k8s-auth"
"""The program that Argo CD runs for what a Secret calls awsAuthConfig."""
_VERSION = "client.authentication.k8s.io/v1beta1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A program that prints a token (client.authentication.k8s.io), and how it is called."""

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    version: str = _VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLogin:
    """How to log in to one API server; what is secret of it is not in its repr.

    `local` says that the server is the one of Argo CD's own cluster, by the way that we reach that. `authority`,
    `certificate` and `key` are PEM.
    """

    server: str
    local: bool = False
    token: str = field(default="", repr=False)
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    authority: bytes = field(default=b"", repr=False)
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


class _Flaw(Exception):  # noqa: N818 - it never leaves this module
    """What is wrong with a Secret, in words that hold nothing of it."""


class ClusterSecrets:
    """The cluster Secrets of one Argo CD (a `parts.Part`); of each only the login is kept."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ClusterLogin | Unusable]] = {}

    def apply(self, raw: Json) -> ChangeEffect:
        """Take note of a Secret as it is now."""
        key = key_of(raw)
        data = raw.get("data") or {}
        try:
            name = _decoded(data, "name").decode()
        except (_Flaw, UnicodeDecodeError):
            name = ""
        read = (name, _login(key.rpartition("/")[2], data))
        if self._known.get(key) == read:
            return ChangeEffect.NOTHING
        self._known[key] = read
        return ChangeEffect.CAPACITY

    def remove(self, key: str) -> ChangeEffect:
        """Take note that a Secret is gone."""
        return ChangeEffect.NOTHING if self._known.pop(key, None) is None else ChangeEffect.CAPACITY

    def keys(self) -> AbstractSet[str]:
        """Name the Secrets that are known."""
        return self._known.keys()

    def login(self, cluster: str) -> ClusterLogin | Unusable:
        """Find the login for a cluster of this name, or say why there is none."""
        found = {key: login for key, (name, login) in self._known.items() if name == cluster}
        if len(found) > 1:
            named = ", ".join(sorted(key.rpartition("/")[2] for key in found))
            return Unusable(why=f"Argo CD has several cluster Secrets for {cluster!r}: {named}")
        if not found and cluster == _LOCAL:
            return ClusterLogin(server=_INTERNAL, local=True)
        if not found:
            return Unusable(why=f"Argo CD has no cluster Secret whose name is {cluster!r}")
        return next(iter(found.values()))


def _login(secret: str, data: Mapping[str, str]) -> ClusterLogin | Unusable:
    """Read a login, or say what is wrong with the Secret of this name."""
    try:
        login = _read(_decoded(data, "server").decode().strip().rstrip("/"), _config(data))
        _consistent(login)
    except UnicodeDecodeError:
        return Unusable(why=f"Argo CD's Secret {secret} cannot be used: server is not text")
    except _Flaw as flaw:
        return Unusable(why=f"Argo CD's Secret {secret} cannot be used: {flaw}")
    return login


def _config(data: Mapping[str, str]) -> Mapping[str, Json]:
    try:
        config = json.loads(_decoded(data, "config") or b"{}")
    except (ValueError, RecursionError):  # what it says holds what it could not read
        raise _Flaw("config is not JSON") from None
    return _part({"": config}, "") or {}


def _read(server: str, config: Mapping[str, Json]) -> ClusterLogin:
    tls = _part(config, "tlsClientConfig") or {}
    return ClusterLogin(
        server=server,
        local=server == _INTERNAL,
        token=_text(config, "bearerToken").strip(),
        username=_text(config, "username"),
        password=_text(config, "password"),
        authority=_decoded(tls, "caData", "config.tlsClientConfig."),
        certificate=_decoded(tls, "certData", "config.tlsClientConfig."),
        key=_decoded(tls, "keyData", "config.tlsClientConfig."),
        server_name=_text(tls, "serverName"),
        insecure=tls.get("insecure") is True,
        proxy=_text(config, "proxyUrl"),
        plugin=_plugin(config),
    )


def _consistent(login: ClusterLogin) -> None:
    """Refuse what no client could follow."""
    if not _http(login.server):
        raise _Flaw("server is no https:// address")
    if login.proxy and not _http(login.proxy):
        raise _Flaw("config.proxyUrl is no http:// address")
    if login.insecure and login.authority:
        raise _Flaw("config.tlsClientConfig has both insecure and caData")
    if bool(login.certificate) != bool(login.key):
        raise _Flaw("config.tlsClientConfig needs both certData and keyData, or neither")
    if login.token and login.username:
        raise _Flaw("config has both bearerToken and username")
    if not login.token.isprintable():
        raise _Flaw("config.bearerToken holds control characters")


def _http(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname) and address.isprintable()


def _plugin(config: Mapping[str, Json]) -> Plugin | None:
    """Read which program gives the token; for AWS, Argo CD has one of its own."""
    aws, given = _part(config, "awsAuthConfig"), _part(config, "execProviderConfig")
    if aws is not None:
        options = (("--cluster-name", "clusterName"), ("--role-arn", "roleARN"), ("--profile", "profile"))
        pairs = [(flag, _text(aws, name)) for flag, name in options]
        args = ("aws", *(word for pair in pairs if pair[1] for word in pair))
        return Plugin(command=_HELPER, args=args)
    if given is None:
        return None
    words, env = given.get("args") or [], _part(given, "env") or {}
    if not isinstance(words, list) or not all(isinstance(one, str) for one in [*words, *env.values()]):
        raise _Flaw("config.execProviderConfig has args or env that are no text")
    if not (command := _text(given, "command")):
        raise _Flaw("config.execProviderConfig has no command")
    version = _text(given, "apiVersion") or _VERSION
    return Plugin(command=command, args=tuple(words), env=tuple(sorted(env.items())), version=version)


def _part(parent: Mapping[str, Json], name: str) -> Mapping[str, Json] | None:
    found = parent.get(name)
    if found is not None and not isinstance(found, dict):
        raise _Flaw(f"{f'config.{name}' if name else 'config'} is not an object")
    return found


def _text(parent: Mapping[str, Json], name: str) -> str:
    found = parent.get(name)
    if found is not None and not isinstance(found, str):
        raise _Flaw(f"config has a {name} that is no text")
    return found or ""


def _decoded(parent: Mapping[str, Json], name: str, where: str = "") -> bytes:
    """Decode base64, which Go writes over several lines or one; nothing where there is nothing."""
    found = parent.get(name) or ""
    try:
        return base64.b64decode("".join(found.split()), validate=True)
    except (binascii.Error, AttributeError, ValueError):
        raise _Flaw(f"{where}{name} is not base64") from None
