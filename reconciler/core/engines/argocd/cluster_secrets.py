"""Argo CD's cluster Secrets: its login to each cluster by name.

Each has the label ``argocd.argoproj.io/secret-type: cluster`` and the data ``name``, ``server`` and ``config``, the
last one JSON (docs/background/upstream/argocd.md, "Cluster Secrets"; client-go refuses contradictions in it, and so
does this module). A message here never quotes a value: it holds names of Secrets and of fields, and of a program to
run.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from urllib.parse import urlsplit

from reconciler.core.engines.logins import EXEC_VERSION, ClusterLogin, Plugin, Unusable
from reconciler.core.engines.reports import EngineResource
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.workload import Json

SECRETS = EngineResource(
    group="", versions=("v1",), plural="secrets", kind="Secret", rights="bootstrap/rbac-argocd-logins.yaml"
)

_INTERNAL = "https://kubernetes.default.svc"
"""Argo CD's name of the cluster that it runs in."""
_LOCAL = "in-cluster"
"""The name under which it knows that cluster without any Secret."""
_HELPER = "argocd-k8s-auth"
"""The program that Argo CD runs for what a Secret calls awsAuthConfig."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSecretSource:
    """The cluster Secrets in Argo CD's namespace (a `LoginSource`)."""

    namespace: str
    selector: str = "argocd.argoproj.io/secret-type=cluster"
    resource: EngineResource = SECRETS

    def logins(self) -> ClusterSecrets:
        """Return logins without any Secret yet."""
        return ClusterSecrets()


class _Flaw(Exception):  # noqa: N818 - it never leaves this module
    """A fault of a Secret, in a message that holds no value of it."""


class ClusterSecrets:
    """The logins of one Argo CD; of each Secret only the login is kept (a `ClusterLogins`)."""

    def __init__(self) -> None:
        self._by_key: dict[str, tuple[str, ClusterLogin | Unusable]] = {}

    def apply(self, raw: Json) -> ChangeEffect:
        """Add or replace a Secret."""
        key = key_of(raw)
        data = raw.get("data") or {}
        try:
            name = _decode(data, "name").decode()
        except (_Flaw, UnicodeDecodeError):
            name = ""
        entry = (name, _login(key.rpartition("/")[2], data))
        if self._by_key.get(key) == entry:
            return ChangeEffect.NOTHING
        self._by_key[key] = entry
        return ChangeEffect.CAPACITY

    def remove(self, key: str) -> ChangeEffect:
        """Remove a Secret."""
        return ChangeEffect.NOTHING if self._by_key.pop(key, None) is None else ChangeEffect.CAPACITY

    def keys(self) -> AbstractSet[str]:
        """Return the keys of all Secrets."""
        return self._by_key.keys()

    def login(self, cluster: str) -> ClusterLogin | Unusable:
        """Return the login to a cluster of this name, or why there is none."""
        logins = {key: login for key, (name, login) in self._by_key.items() if name == cluster}
        if len(logins) > 1:
            names = ", ".join(sorted(key.rpartition("/")[2] for key in logins))
            return Unusable(why=f"Argo CD has several cluster Secrets for {cluster!r}: {names}")
        if not logins and cluster == _LOCAL:
            return ClusterLogin(server=_INTERNAL, local=True)
        if not logins:
            return Unusable(why=f"Argo CD has no cluster Secret whose name is {cluster!r}")
        return next(iter(logins.values()))


def _login(secret: str, data: Mapping[str, str]) -> ClusterLogin | Unusable:
    """Read a login; Unusable with the fault of the Secret where it holds none."""
    try:
        login = _read(_decode(data, "server").decode().strip().rstrip("/"), _config(data))
        _consistent(login)
    except UnicodeDecodeError:
        return Unusable(why=f"Argo CD's Secret {secret} cannot be used: server is not text")
    except _Flaw as flaw:
        return Unusable(why=f"Argo CD's Secret {secret} cannot be used: {flaw}")
    return login


def _config(data: Mapping[str, str]) -> Mapping[str, Json]:
    try:
        config = json.loads(_decode(data, "config") or b"{}")
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
        authority=_decode(tls, "caData", "config.tlsClientConfig."),
        certificate=_decode(tls, "certData", "config.tlsClientConfig."),
        key=_decode(tls, "keyData", "config.tlsClientConfig."),
        server_name=_text(tls, "serverName"),
        insecure=tls.get("insecure") is True,
        proxy=_text(config, "proxyUrl"),
        plugin=_plugin(config),
    )


def _consistent(login: ClusterLogin) -> None:
    """Refuse contradictory login data."""
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
    aws, generic = _part(config, "awsAuthConfig"), _part(config, "execProviderConfig")
    if aws is not None:
        options = (("--cluster-name", "clusterName"), ("--role-arn", "roleARN"), ("--profile", "profile"))
        pairs = [(flag, _text(aws, name)) for flag, name in options]
        args = ("aws", *(word for pair in pairs if pair[1] for word in pair))
        return Plugin(command=_HELPER, args=args)
    if generic is None:
        return None
    words, env = generic.get("args") or [], _part(generic, "env") or {}
    if not isinstance(words, list) or not all(isinstance(word, str) for word in [*words, *env.values()]):
        raise _Flaw("config.execProviderConfig has args or env that are no text")
    if not (command := _text(generic, "command")):
        raise _Flaw("config.execProviderConfig has no command")
    version = _text(generic, "apiVersion") or EXEC_VERSION
    return Plugin(command=command, args=tuple(words), env=tuple(sorted(env.items())), version=version)


def _part(parent: Mapping[str, Json], name: str) -> Mapping[str, Json] | None:
    value = parent.get(name)
    if value is not None and not isinstance(value, dict):
        raise _Flaw(f"{f'config.{name}' if name else 'config'} is not an object")
    return value


def _text(parent: Mapping[str, Json], name: str) -> str:
    value = parent.get(name)
    if value is not None and not isinstance(value, str):
        raise _Flaw(f"config has a {name} that is no text")
    return value or ""


def _decode(parent: Mapping[str, Json], name: str, where: str = "") -> bytes:
    """Decode base64, which Go writes over several lines or one; an absent value is empty."""
    value = parent.get(name) or ""
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, AttributeError, ValueError):
        raise _Flaw(f"{where}{name} is not base64") from None
