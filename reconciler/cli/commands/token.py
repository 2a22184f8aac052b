"""`token`: a secret for a caller of the API, and its entry in the access file."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import click

from reconciler.access.rights import AccessRole
from reconciler.cli import completion, options


@options.examples(
    "(echo tokens:; overspill token --name ada --email ada@example.com --workspace '*' --role Owner) > access.yaml",
    "overspill token --name ci --workspace llm --role Editor --expires 90d --out ci.token >> access.yaml",
)
@click.command()
@click.option("--name", metavar="NAME", required=True, help="The caller's name, for the log and for commits.")
@click.option("--email", metavar="ADDRESS", default="", help="The caller's mail address, for commits.")
@click.option(
    "--workspace",
    "workspaces",
    metavar="NAME",
    required=True,
    multiple=True,
    help="A workspace that the token is for; '*' is all.",
    shell_complete=completion.workspaces,
)
@click.option(
    "--role",
    type=click.Choice([str(role) for role in AccessRole], case_sensitive=False),
    required=True,
    help="The caller's role there.",
)
@click.option(
    "--expires", type=options.DURATION, metavar="DURATION", help="The token's lifetime; for ever if not given."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the token to a new file.")
def token(
    *, name: str, email: str, workspaces: tuple[str, ...], role: str, expires: timedelta | None, out: Path | None
) -> None:
    """Make a token for the API.

    Prints the entry to put below `tokens:` in the file that OVERSPILL_API_TOKENS_FILE names: it holds the token's
    SHA-256 and is no secret. The token itself is shown this once, on the error stream, or written to a new file that
    only its owner may read. Overspill keeps and sends nothing; the entry lets its bearer in.
    """
    from reconciler.cli.actions.setup import token as action

    action.token(name=name, email=email, workspaces=workspaces, role=role, expires=expires, out=out)
