"""`token`: a secret for somebody who is to call the API, and the entry that lets them in."""

from __future__ import annotations

import os
import secrets
from datetime import timedelta
from pathlib import Path

import click

from reconciler.access.rights import EVERYWHERE, PREFIX, AccessRole, Scope, Token, digest, is_called, is_email
from reconciler.adapters.clock import SystemClock
from reconciler.cli import options, printing
from reconciler.core.schema.access import entry
from reconciler.errors import InvalidInput
from reconciler.model.ids import WorkspaceName, is_name
from reconciler.text.timestamps import format_time

_BYTES = 32
_ROLES = {str(role): role for role in AccessRole}


@options.examples(
    "overspill token --name ci --workspace llm --role Editor --expires 90d >> access.yaml",
    "overspill token --name ada --email ada@example.com --workspace '*' --role Owner --out ada.token",
)
@click.command()
@click.option("--name", metavar="NAME", required=True, help="Whose it is, for the log and for commits.")
@click.option("--email", metavar="ADDRESS", default="", help="Their mail address, for commits.")
@click.option("--workspace", "workspaces", metavar="NAME", required=True, multiple=True, help="Where; '*' is all.")
@click.option("--role", type=click.Choice(list(_ROLES), case_sensitive=False), required=True, help="What they may do.")
@click.option("--expires", type=options.DURATION, metavar="DURATION", help="How long it holds; for ever if not given.")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write it to a new file.")
def token(
    *, name: str, email: str, workspaces: tuple[str, ...], role: str, expires: timedelta | None, out: Path | None
) -> None:
    """Make a token for the API.

    Prints the entry to put below `tokens:` in the file that OVERSPILL_API_TOKENS_FILE names: it holds the token's
    SHA-256 and is no secret. The token itself is shown this once, on the error stream, or written to a new file that
    nobody else may read. Nothing is kept and nothing is sent; the entry lets its bearer in.
    """
    if not is_called(name):
        raise click.UsageError(f"--name: {name[:40]!r} is not a name of printable characters (try ci)")
    if email and not is_email(email):
        raise click.UsageError(f"--email: {email[:40]!r} is not a mail address (try ada@example.com)")
    made = PREFIX + secrets.token_urlsafe(_BYTES)
    until = SystemClock().now() + expires if expires else None
    roles = {_scope(workspace): _ROLES[role] for workspace in workspaces}
    if out is not None:
        _write(out, made)
    click.echo(entry(Token(name=name, email=email, digest=digest(made), expires=until, roles=roles)), nl=False)
    lasts = f"It expires at {format_time(until)}." if until else "It does not expire."
    if out is None:
        printing.note(f"The token, which is shown this once:\n\n  {made}\n\n{lasts}")
    else:
        printing.note(f"The token is in {out}. {lasts}")


def _scope(workspace: str) -> Scope:
    if workspace == EVERYWHERE:
        return EVERYWHERE
    if not is_name(workspace):
        raise click.UsageError(f"--workspace: {workspace[:40]!r} is not the name of a workspace (try llm, or '*')")
    return WorkspaceName(workspace)


def _write(path: Path, made: str) -> None:
    """Write the token to a file that is not there yet, for its owner alone."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(made + "\n")
    except OSError as error:
        raise InvalidInput(f"writing {path}: {error.strerror} (try another --out)") from error
