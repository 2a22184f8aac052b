"""A kubeconfig as kubectl reads it: its files are merged, and paths in them are relative to the file they stand in.

Of two entries of one name that of the earlier file counts, and so does the earliest current context; a file that is not
there or empty is left out (https://kubernetes.io/docs/concepts/configuration/organize-cluster-access-kubeconfig/).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kubernetes.aio.config.kube_config import ConfigNode

from reconciler.adapters.kubeconfig_files import kubeconfig_files
from reconciler.core.fleet.objects import first_names
from reconciler.model.workload import Json

_PARTS = {"clusters": "cluster", "contexts": "context", "users": "user"}
"""The lists of a kubeconfig, and the field of their entries that holds the value."""
_LED_BY = ("clusters", "users")
"""The lists whose entries a context names."""
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
"""Fields that name a file."""
_SERVER = (
    "server", "certificate-authority-data", "insecure-skip-tls-verify", "tls-server-name", "proxy-url",
    "disable-compression",
)  # fmt: skip # a list of words, filled line by line
"""Fields of a cluster that lead to its API server."""
_NOBODY = "nobody"
"""The user of a context that names none: the loader takes none for an error."""
_DATA = ("certificate-authority-data", "client-certificate-data", "client-key-data")
"""Fields that hold the content of a file as base64."""


class BrokenKubeconfig(Exception):  # noqa: N818 - the file is at fault, and no program
    """A file that is no kubeconfig, or a login in one that lacks something; the text is the cause alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenContext:
    """A context that leads elsewhere than its file says, since an earlier file has entries of the same names.

    Files of k3s are like that: each calls its context, its cluster and its user ``default``
    (https://docs.k3s.io/cluster-access).
    """

    path: Path
    context: str
    by: str
    """The list of the entry that is not taken from its file: ``context``, ``cluster`` or ``user``."""
    name: str
    """The name of that entry."""

    @property
    def message(self) -> str:
        """What is taken instead."""
        if self.by == "context":
            return f"context {self.context} counts for nothing: an earlier file has another one of this name"
        return f"context {self.context} takes the {self.by} {self.name} of an earlier file, and not its own"

    @property
    def hint(self) -> str:
        """The way out; `kubectl config rename-context` renames neither cluster nor user."""
        return "rename the context, the cluster and the user in one of the files"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """The entries of a kubeconfig, by name."""

    clusters: Mapping[str, Mapping[str, Any]] = field(repr=False)
    contexts: Mapping[str, Mapping[str, Any]]
    users: Mapping[str, Mapping[str, Any]] = field(repr=False)
    current: str
    """The name of the current context; empty for none."""
    cut_off: tuple[Path, ...]
    """The files that lack a list: kubectl writes them in place, and the users last."""
    hidden: tuple[HiddenContext, ...] = ()

    def login(self, context: str) -> ConfigNode:
        """Return the login of a context alone, complete, for the loader of kubernetes. Raises BrokenKubeconfig."""
        if context not in self.contexts:
            known = f"it has {first_names(sorted(self.contexts))}" if self.contexts else "it has none"
            raise BrokenKubeconfig(f"the kubeconfig has no context {context} ({known})")
        cluster, user = (str(self.contexts[context].get(part) or "") for part in ("cluster", "user"))
        for kind, name, entries in (("cluster", cluster, self.clusters), ("user", user, self.users)):
            if name not in entries and (name or kind == "cluster"):
                raise BrokenKubeconfig(f"context {context} of the kubeconfig names the {kind} {name!r}, which it lacks")
        server = str(self.clusters[cluster].get("server") or "")
        if not _is_address(server):
            raise BrokenKubeconfig(f"cluster {cluster} of the kubeconfig has no server with https:// and a host")
        account = self.users[user] if user else {}
        for title, entry in ((f"cluster {cluster}", self.clusters[cluster]), (f"user {user}", account)):
            if why := _unusable(entry):
                raise BrokenKubeconfig(f"{title} of the kubeconfig: {why}")
        value: Json = {
            "clusters": [{"name": cluster, "cluster": dict(self.clusters[cluster])}],
            "contexts": [{"name": context, "context": {"cluster": cluster, "user": user or _NOBODY}}],
            "users": [{"name": user or _NOBODY, "user": dict(account)}],
        }
        return ConfigNode("kubeconfig", value)

    def server(self, context: str) -> Mapping[str, Any]:
        """Return how the API server of a context is reached, without a login and without files.

        Raises BrokenKubeconfig where the context cannot be used.
        """
        self.login(context)
        entry = dict(self.clusters[str(self.contexts[context]["cluster"])])
        authority = entry.pop("certificate-authority", None)
        if authority and not entry.get("certificate-authority-data"):
            entry["certificate-authority-data"] = base64.b64encode(Path(authority).read_bytes()).decode()
        return {name: entry[name] for name in _SERVER if name in entry}


def read_kubeconfig(kubeconfig: Path) -> Kubeconfig:
    """Read and merge the files of a kubeconfig. Raises OSError, and BrokenKubeconfig for a file that is none."""
    entries: dict[str, dict[str, Mapping[str, Any]]] = {part: {} for part in _PARTS}
    current = ""
    cut_off: list[Path] = []
    hidden: list[HiddenContext] = []
    for path in kubeconfig_files(kubeconfig) or (kubeconfig,):
        document = _document(path)
        if any(document.get(part) is None for part in ("clusters", "contexts")) or "users" not in document:
            cut_off.append(path)
        own: dict[str, dict[str, Mapping[str, Any]]] = {part: {} for part in _PARTS}
        for part, name, entry in _entries(document, path):
            own[part].setdefault(name, entry)
            entries[part].setdefault(name, entry)
        hidden += _hidden(path, own, entries)
        current = current or str(document.get("current-context") or "")
    return Kubeconfig(**entries, current=current, cut_off=tuple(cut_off), hidden=tuple(hidden))


def _hidden(
    path: Path,
    own: Mapping[str, Mapping[str, Mapping[str, Any]]],
    merged: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> Iterator[HiddenContext]:
    """Yield the contexts of a file that lead elsewhere than by its own entries, each by the first that does."""
    for context, entry in own["contexts"].items():
        taken = merged["contexts"][context]
        names = {part: (str(entry.get(_PARTS[part]) or ""), str(taken.get(_PARTS[part]) or "")) for part in _LED_BY}
        for part, (named, followed) in names.items():
            if named in own[part] and own[part][named] != merged[part].get(followed):
                by = "context" if taken != entry or named != followed else _PARTS[part]
                yield HiddenContext(path=path, context=context, by=by, name=named)
                break


def hidden_contexts(kubeconfig: Path | None) -> tuple[HiddenContext, ...]:
    """Return the contexts that lead elsewhere than their files say; none of files that cannot be read."""
    try:
        return () if kubeconfig is None else read_kubeconfig(kubeconfig).hidden
    except (OSError, BrokenKubeconfig):  # which whoever logs in tells
        return ()


def kubeconfig_stamp(kubeconfig: Path) -> tuple[tuple[int, ...], ...]:
    """Return the times, sizes and inodes of the files of a kubeconfig. Raises OSError where none is there."""
    stats = [path.stat() for path in kubeconfig_files(kubeconfig) or (kubeconfig,)]
    return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)


def _document(path: Path) -> Mapping[str, Any]:
    """Parse a file; an empty one is an empty kubeconfig."""
    try:
        document = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        raise BrokenKubeconfig(f"is not YAML{'' if mark is None else f', from line {mark.line + 1} on'}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BrokenKubeconfig("is not a kubeconfig: it is no mapping")
    return document


def _entries(document: Mapping[str, Any], path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the list, the name and the value of each entry of a file. Raises BrokenKubeconfig for one that is none."""
    for part, inner in _PARTS.items():
        listed = document.get(part) or []
        if not isinstance(listed, list):
            raise BrokenKubeconfig(f"is not a kubeconfig: its {part} are no list")
        for entry in listed:
            value = entry.get(inner) or {} if isinstance(entry, dict) and "name" in entry else None
            if not isinstance(value, dict):
                raise BrokenKubeconfig(f"is not a kubeconfig: one of its {part} has no name, or no {inner}")
            yield part, str(entry["name"]), _with_absolute_paths(value, path.absolute().parent)


def _with_absolute_paths(entry: Mapping[str, Any], directory: Path) -> Mapping[str, Any]:
    return {
        name: str(directory / value) if name in _FILES and isinstance(value, str) and value else value
        for name, value in entry.items()
    }


def _is_address(server: str) -> bool:
    try:
        parts = urlsplit(server)
        return parts.scheme in ("https", "http") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _unusable(entry: Mapping[str, Any]) -> str:
    """Say which file is not there, and what is not base64; empty where all is well. Data go before a file."""
    for name in _FILES:
        path = entry.get(name)
        data = "token" if name == "tokenFile" else f"{name}-data"
        if path and not entry.get(data) and not Path(str(path)).is_file():
            return f"the file of its {name} is not there: {path}"
    for name in _DATA:
        try:
            base64.b64decode("".join(str(entry.get(name) or "").split()), validate=True)
        except (binascii.Error, ValueError):
            return f"its {name} is not base64"
    return ""
