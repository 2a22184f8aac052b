"""`--server`: commands that ask a running daemon instead of the repository.

The address is a flag or a variable; the token is neither a flag nor part of the address, so that no list of processes
and no shell history has it.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Concatenate, ParamSpec

import click

from reconciler.environment import PREFIX
from reconciler.errors import InvalidInput

if TYPE_CHECKING:
    from reconciler.client import Client

P = ParamSpec("P")

_REPOSITORY = (
    "repo", "source_branch", "output_branch", "observations", "kubeconfig", "prometheus", "slurm",
)  # fmt: skip # a list of words, filled line by line
"""Flags of a command that reads the repository itself; a daemon has settings of its own."""

_OPTION = click.option(
    "--server",
    metavar="URL",
    help=f"The address of a running daemon to ask: https, or http on this machine.  [env: {PREFIX}SERVER]",
)


def asking(
    answer: Callable[..., None], *, also: Collection[str] = ()
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Give a command ``--server``: where a daemon is named, `answer` is called in its place, with a Client.

    `answer` gets the command's own arguments without the flags of the repository, except for those of `also`. A flag
    that names a repository overrides OVERSPILL_SERVER.
    """
    local = tuple(name for name in _REPOSITORY if name not in also)

    def decorate(command: Callable[P, None]) -> Callable[P, None]:
        @functools.wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            flag = kwargs.pop("server", None)
            local_flags = [name for name in local if kwargs.get(name)]
            if flag and local_flags:
                option = local_flags[0].replace("_", "-")
                raise click.UsageError(f"--server goes without --{option}: the daemon has its own")
            address = flag or ("" if local_flags else os.environ.get(f"{PREFIX}SERVER"))
            if not address:
                command(*args, **kwargs)
                return
            if kwargs.get("at"):
                raise click.UsageError("--at goes without --server: a daemon answers for now")
            own = {name: value for name, value in kwargs.items() if name not in (*local, "at")}
            with connect(str(address)) as client, _telling_warning(client):
                answer(client, *args, **own)

        return _OPTION(run)

    return decorate


def served(*, otherwise: str) -> Callable[[Callable[Concatenate[Client, P], None]], Callable[..., None]]:
    """Give a command ``--server``, which it needs, and a Client; `otherwise` is a hint for users without a daemon."""

    def decorate(command: Callable[Concatenate[Client, P], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            address = kwargs.pop("server", None) or os.environ.get(f"{PREFIX}SERVER")
            if not address:
                raise click.UsageError(f"name the daemon: pass --server URL or set {PREFIX}SERVER. {otherwise}")
            with connect(str(address)) as client, _telling_warning(client):
                command(client, *args, **kwargs)

        return _OPTION(run)

    return decorate


@contextmanager
def _telling_warning(client: Client) -> Iterator[None]:
    """Print what the daemon warns of, as a command without it prints what it finds, also where the command fails."""
    from reconciler.cli import printing

    try:
        yield
    finally:
        if client.warning:
            printing.complain(client.warning)


def connect(address: str) -> Client:
    """Build a client of a daemon, with the token and the authorities that the environment names."""
    from reconciler.client import Client
    from reconciler.variables import Reader

    reader = Reader({name: value for name, value in os.environ.items() if value})
    token, authorities = reader.secret("TOKEN"), reader.path("SERVER_CA_FILE")
    if reader.problems:
        raise InvalidInput(problems=tuple(reader.problems))
    return Client(address, token=token, ca_file=authorities)
