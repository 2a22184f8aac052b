"""Logins of the daemon in a kubeconfig: those that `overspill grant` makes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reconciler.errors import InvalidInput

_OWNER = "overspill-"
"""The prefix of the clusters and users of logins that are ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogin:
    """A login by a token, as a context of a kubeconfig."""

    context: str
    server: Mapping[str, Any] = field(repr=False)
    """The fields of its cluster."""
    token: str = field(repr=False)

    @property
    def entries(self) -> Mapping[str, Mapping[str, Any]]:
        """Its entry in each list of a kubeconfig."""
        own = f"{_OWNER}{self.context}"
        return {
            "clusters": {"name": own, "cluster": dict(self.server)},
            "contexts": {"name": self.context, "context": {"cluster": own, "user": own}},
            "users": {"name": own, "user": {"token": self.token}},
        }


def foreign_contexts(path: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some contexts that a file has with another login than `add_logins` writes.

    Raises InvalidInput for a file that is no kubeconfig.
    """
    contexts = {str(entry.get("name")): entry.get("context") for entry in _document(path)["contexts"]}
    users = {name: context.get("user") if isinstance(context, dict) else None for name, context in contexts.items()}
    return tuple(name for name in names if name in users and users[name] != f"{_OWNER}{name}")


def add_logins(path: Path, logins: Iterable[TokenLogin]) -> None:
    """Add logins to a kubeconfig, or put them in place of those of the same names; all else in it stays.

    The file is replaced as a whole, and is for its owner alone. Raises InvalidInput where it cannot be written.
    """
    document = _document(path)
    for login in logins:
        for part, entry in login.entries.items():
            others = [other for other in document[part] if other.get("name") != entry["name"]]
            document[part] = [*others, entry]
    text = yaml.safe_dump(document, sort_keys=False)
    target = path.resolve()  # a link stays one
    partial = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
        with os.fdopen(handle, "w") as stream:
            stream.write(text)
        Path(partial).replace(target)
    except OSError as error:
        if partial:
            with suppress(OSError):
                Path(partial).unlink(missing_ok=True)
        raise InvalidInput(f"writing {path}: {error.strerror or error} (try another --kubeconfig-out)") from error


def _document(path: Path) -> dict[str, Any]:
    """Read a kubeconfig, or begin one. Raises InvalidInput for a file that is none."""
    broken = f"reading {path}: is not a kubeconfig (try another --kubeconfig-out)"
    try:
        document = yaml.safe_load(path.read_bytes()) if path.exists() else None
    except OSError as error:
        raise InvalidInput(f"reading {path}: {error.strerror or error} (try another --kubeconfig-out)") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidInput(broken) from error
    document = {"apiVersion": "v1", "kind": "Config"} if document is None else document
    if not isinstance(document, dict):
        raise InvalidInput(broken)
    for part in ("clusters", "contexts", "users"):
        document[part] = document.get(part) or []
        if not (isinstance(document[part], list) and all(isinstance(entry, dict) for entry in document[part])):
            raise InvalidInput(broken)
    return document
