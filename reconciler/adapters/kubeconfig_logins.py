"""Logins of the daemon in a kubeconfig: those that `overspill grant` makes."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from reconciler.adapters import operating_system
from reconciler.errors import InvalidInput

_OWNER = "overspill-"
"""The prefix of the clusters and users of logins that are ours."""
_TRIES = 1000
_PAUSE = 0.01
"""Seconds between two tries to lock a kubeconfig, which another process holds for milliseconds."""


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


def refuse_unwritable(path: Path) -> None:
    """Raise InvalidInput for a kubeconfig that `add_logins` could not write; nothing is left behind."""
    parents = path.resolve().parents
    try:
        with tempfile.TemporaryFile(dir=next(parent for parent in parents if parent.exists())):
            pass
    except OSError as error:
        raise _unwritable(path, error) from error


def add_logins(path: Path, logins: Iterable[TokenLogin]) -> None:
    """Add logins to a kubeconfig, or put them in place of those of the same names; all else in it stays.

    The file is replaced as a whole, and is for its owner alone. Processes that add logins at once wait for each other.
    Raises InvalidInput where it cannot be written.
    """
    target = path.resolve()  # a link stays one
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target):
            document = _document(path)
            for login in logins:
                for part, entry in login.entries.items():
                    others = [other for other in document[part] if other.get("name") != entry["name"]]
                    document[part] = [*others, entry]
            _replace(target, yaml.safe_dump(document, sort_keys=False))
    except OSError as error:
        raise _unwritable(path, error) from error


def _replace(target: Path, text: str) -> None:
    """Write a file as a whole, with mode 0600, or leave it as it is."""
    handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "w") as stream:
            stream.write(text)
        Path(partial).replace(target)
    except OSError:
        with suppress(OSError):
            Path(partial).unlink(missing_ok=True)
        raise


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the lock of a file, which is a file beside it: the file itself is replaced. Raises OSError if it stays held.

    Its name is not `<file>.lock`, whose mere presence stops kubectl.
    """
    place = target.with_name(f".{target.name}.overspill-lock")
    for _ in range(_TRIES):
        handle = os.open(place, os.O_RDWR | os.O_CREAT | operating_system.own_flags(), 0o600)
        try:
            # The process that held it before has removed it, and a lock of a removed file excludes nobody.
            if operating_system.lock(handle) and _is_at(handle, place):
                try:
                    yield
                finally:
                    with suppress(OSError):  # Windows removes no file that is open
                        place.unlink()
                return
        finally:
            os.close(handle)
        time.sleep(_PAUSE)
    raise TimeoutError(f"another `overspill grant` holds {place}")


def _is_at(handle: int, place: Path) -> bool:
    """Return whether an open file is still the one at a path."""
    try:
        return os.path.samestat(place.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _unwritable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"writing {path}: {error.strerror or error} (try another --kubeconfig-out)")


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
