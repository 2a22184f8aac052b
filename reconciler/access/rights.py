"""Roles in workspaces, and the callers that tokens name.

The roles are EGS's: a Viewer sees a workspace, an Editor changes its placements as well, and an Owner has all of it. A
role for `EVERYWHERE` holds in every workspace, future ones included; EGS's Owner of a project is an Owner everywhere.
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
RoleScope: TypeAlias = WorkspaceName | Literal["*"]

PREFIX = "ovs_"
"""The beginning of each token of ours, by which people and scanners recognise a leaked one."""
TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
"""43 characters of base64 are 256 random bits."""

_MOST_NAME = 100
_MOST_EMAIL = 254
_EMAIL = re.compile(r"[^\s<>]+@[^\s<>]+")


class AccessRole(IntEnum):
    """A role; each includes those before it."""

    VIEWER = 1
    EDITOR = 2
    OWNER = 3

    def __str__(self) -> str:
        """Write the role as EGS does."""
        return self.name.capitalize()


Roles: TypeAlias = Mapping[RoleScope, AccessRole]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A caller who was let in."""

    name: str  # fits in a log line and in a commit's author
    email: str = ""  # empty where it is not known
    roles: Roles = field(default_factory=dict)
    kind: Literal["token", "oidc"]

    @property
    def key(self) -> tuple[str, str]:
        """What tells a caller from all others, for bounds on each."""
        return self.kind, self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A token of the access file.

    A slow hash would gain nothing: it makes guesses dear where people choose the secret, and 256 random bits cannot be
    guessed.
    """

    name: str
    email: str = ""
    digest: str = field(repr=False)  # SHA-256 in hexadecimal
    expires: datetime | None = None
    roles: Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerRule:
    """The roles of callers with a value in a claim of the issuer's tokens."""

    claim: Literal["group", "subject", "email"]
    value: str
    roles: Roles


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The content of one access file."""

    tokens: tuple[Token, ...] = ()
    rules: tuple[IssuerRule, ...] = ()


class NotAdmitted(OverspillError):  # noqa: N818 - it is an answer
    """A token without access. `hint` says the way out, `name` the token's name where it has one."""

    def __init__(self, message: str, *, hint: str = "", name: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        self.name = name


def has_role(caller: Caller, role: AccessRole, workspace: WorkspaceName) -> bool:
    """Return whether a caller has a role, or more, in a workspace."""
    return any(caller.roles.get(scope, 0) >= role for scope in (workspace, EVERYWHERE))


def visible_workspaces(caller: Caller, workspaces: Iterable[WorkspaceName]) -> tuple[WorkspaceName, ...]:
    """Pick the workspaces in which a caller has any role, in their order."""
    return tuple(workspace for workspace in workspaces if has_role(caller, AccessRole.VIEWER, workspace))


def merge_roles(sources: Iterable[Roles]) -> dict[RoleScope, AccessRole]:
    """Merge roles from several sources: in each workspace the highest stands."""
    roles: dict[RoleScope, AccessRole] = {}
    for source in sources:
        for scope, role in source.items():
            roles[scope] = max(role, roles.get(scope, role))
    return roles


def digest(token: str) -> str:
    """Hash a token; its digest is kept instead of it."""
    return sha256(token.encode()).hexdigest()


def caller_of_token(access: Access, token: str, now: datetime) -> Caller:
    """Return the caller of a token. Raises NotAdmitted for an unknown and for an expired one.

    Every token is compared, in constant time: the duration tells nothing about them.
    """
    hashed = digest(token)
    matches = [entry for entry in access.tokens if hmac.compare_digest(entry.digest, hashed)]
    if TOKEN.fullmatch(token) is None or not matches:
        raise NotAdmitted("the token is not known here", hint="is it the whole token, of this installation?")
    (entry,) = matches  # a file names no token twice
    if entry.expires is not None and entry.expires <= now:
        raise NotAdmitted(
            f"the token expired at {format_time(entry.expires)}",
            hint="ask for a new one; `overspill token` makes them",
            name=entry.name,
        )
    return Caller(name=entry.name, email=entry.email, roles=entry.roles, kind="token")


def is_valid_name(name: str) -> bool:
    """Return whether a text can be a caller's name, in a log line and as the author of a commit."""
    return 0 < len(name) <= _MOST_NAME and name.isprintable() and name == name.strip() and not {*name} & {*"<>"}


def is_valid_email(text: str) -> bool:
    """Return whether a text can stand between the angle brackets of a commit's author."""
    return len(text) <= _MOST_EMAIL and text.isprintable() and _EMAIL.fullmatch(text) is not None
