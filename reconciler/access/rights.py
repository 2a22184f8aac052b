"""Who may do what in which workspace, and which token is whose.

The roles are EGS's: a Viewer sees a workspace, an Editor changes what runs in it as well, and an Owner has all of it. A
role that is given for `EVERYWHERE` holds in every workspace, those that are still to come included; EGS's Owner of a
project is an Owner everywhere.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from hashlib import sha256
from typing import Final, Literal, TypeAlias

from reconciler.errors import OverspillError
from reconciler.model.ids import WorkspaceName
from reconciler.text.timestamps import format_time

EVERYWHERE: Final = "*"
Scope: TypeAlias = WorkspaceName | Literal["*"]

PREFIX = "ovs_"
"""What each token of ours begins with: people and scanners recognise a leaked one by it."""
TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
"""43 characters of base64 are 256 random bits."""

_MOST_NAME = 100
_MOST_EMAIL = 254
_EMAIL = re.compile(r"[^\s<>]+@[^\s<>]+")


class AccessRole(IntEnum):
    """What somebody may do; each may do what those before it may."""

    VIEWER = 1
    EDITOR = 2
    OWNER = 3

    def __str__(self) -> str:
        """Write the role as EGS does."""
        return self.name.capitalize()


Roles: TypeAlias = Mapping[Scope, AccessRole]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody whom we know. `email` may be empty; the `name` fits in a log line and in a commit's author."""

    name: str
    email: str = ""
    roles: Roles = field(default_factory=dict)
    kind: Literal["token", "oidc"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token that somebody was given, by its SHA-256 in hexadecimal.

    A slow hash would gain nothing: it makes guesses dear where people choose what is guessed, and nobody guesses 256
    random bits.
    """

    name: str
    email: str = ""
    digest: str = field(repr=False)
    expires: datetime | None = None
    roles: Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerRule:
    """What an issuer's word is worth: whoever has `value` in that claim has these roles."""

    claim: Literal["group", "subject", "email"]
    value: str
    roles: Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Everything that one file says about who may what."""

    tokens: tuple[Token, ...] = ()
    rules: tuple[IssuerRule, ...] = ()


class NotAdmitted(OverspillError):  # noqa: N818 - it is an answer
    """A token that nobody is let in with. `hint` says the way out, `name` whose it is where that is known."""

    def __init__(self, message: str, *, hint: str = "", name: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.name = name


def may(caller: Caller, role: AccessRole, workspace: WorkspaceName) -> bool:
    """Tell whether a caller has a role, or more, in a workspace."""
    return any(caller.roles.get(scope, 0) >= role for scope in (workspace, EVERYWHERE))


def visible(caller: Caller, workspaces: Iterable[WorkspaceName]) -> tuple[WorkspaceName, ...]:
    """Pick the workspaces that a caller may know of, in their order."""
    return tuple(workspace for workspace in workspaces if may(caller, AccessRole.VIEWER, workspace))


def joined(given: Iterable[Roles]) -> dict[Scope, AccessRole]:
    """Put roles from several sources together: in each workspace the highest stands."""
    roles: dict[Scope, AccessRole] = {}
    for one in given:
        for scope, role in one.items():
            roles[scope] = max(role, roles.get(scope, role))
    return roles


def digest(token: str) -> str:
    """Return what is kept of a token instead of it."""
    return sha256(token.encode()).hexdigest()


def bearer(access: Access, token: str, now: datetime) -> Caller:
    """Find out whose token this is. Raises NotAdmitted for a token that is nobody's, or was.

    Each known one is compared in constant time and none is left out, so that how long it takes tells nothing.
    """
    given = digest(token)
    found = [known for known in access.tokens if hmac.compare_digest(known.digest, given)]
    if TOKEN.fullmatch(token) is None or not found:
        raise NotAdmitted("the token is not known here", hint="is it the whole token, of this installation?")
    (known,) = found  # one file names no token twice
    if known.expires is not None and known.expires <= now:
        raise NotAdmitted(
            f"the token expired at {format_time(known.expires)}",
            hint="ask for a new one; `overspill token` makes them",
            name=known.name,
        )
    return Caller(name=known.name, email=known.email, roles=known.roles, kind="token")


def is_called(name: str) -> bool:
    """Tell whether somebody can go by this name, in a log line and as the author of a commit."""
    return 0 < len(name) <= _MOST_NAME and name.isprintable() and name == name.strip() and not {*name} & {*"<>"}


def is_email(text: str) -> bool:
    """Tell whether a text can stand between the angle brackets of a commit's author."""
    return len(text) <= _MOST_EMAIL and text.isprintable() and _EMAIL.fullmatch(text) is not None
