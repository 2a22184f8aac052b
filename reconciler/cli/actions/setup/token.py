"""`token`: a secret for a caller of the API, and its entry in the access file."""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from pathlib import Path

import click

from reconciler.access.rights import (
    EVERYWHERE,
    PREFIX,
    AccessRole,
    RoleScope,
    Token,
    digest,
    is_valid_email,
    is_valid_name,
)
from reconciler.adapters.clock import SystemClock
from reconciler.cli import printing
from reconciler.core.schema.access import token_entry
from reconciler.errors import InvalidInput
from reconciler.model.ids import WorkspaceName, is_name
from reconciler.text.timestamps import format_time

_BYTES = 32
_ROLES = {str(role): role for role in AccessRole}


def token(
    *, name: str, email: str, workspaces: tuple[str, ...], role: str, expires: timedelta | None, out: Path | None
) -> None:
    """Make a token, print its entry, and show or write the token itself."""
    if not is_valid_name(name):
        raise click.UsageError(f"--name: {name[:40]!r} is not a name of printable characters (try ci)")
    if email and not is_valid_email(email):
        raise click.UsageError(f"--email: {email[:40]!r} is not a mail address (try ada@example.com)")
    secret = PREFIX + secrets.token_urlsafe(_BYTES)
    until = SystemClock().now() + expires if expires else None
    roles = {_scope(workspace): _ROLES[role] for workspace in workspaces}
    if out is not None:
        _write(out, secret)
    printing.document(token_entry(Token(name=name, email=email, digest=digest(secret), expires=until, roles=roles)))
    lifetime = f"It expires at {format_time(until)}." if until else "It does not expire."
    if out is None:
        printing.note(f"The token, which is shown this once:\n\n  {secret}\n\n{lifetime}")
    else:
        printing.note(f"The token is in {out}. {lifetime}")


def _scope(workspace: str) -> RoleScope:
    if workspace == EVERYWHERE:
        return EVERYWHERE
    if not is_name(workspace):
        raise click.UsageError(f"--workspace: {workspace[:40]!r} is not the name of a workspace (try llm, or '*')")
    return WorkspaceName(workspace)


def _write(path: Path, secret: str) -> None:
    """Write the token to a new file that only its owner may read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(secret + "\n")
    except OSError as error:
        raise InvalidInput(f"writing {path}: {error.strerror} (try another --out)") from error
