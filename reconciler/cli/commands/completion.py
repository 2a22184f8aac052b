"""`completion`: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from reconciler.cli import options

PROGRAM = "overspill"
_VARIABLE = "_OVERSPILL_COMPLETE"
"""The variable by which the script asks the program; click reads it under this name."""


@options.examples(
    "source <(overspill completion bash)",
    "source <(overspill completion zsh)",
    "overspill completion fish | source",
)
@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    Commands, options, workloads, placements, clusters and workspaces are completed. The names are those of the last
    state of the fleet repository that is on this machine: completion asks no server and waits for no network.

    To install it, bash: add `source <(overspill completion bash)` to ~/.bashrc. zsh: add
    `source <(overspill completion zsh)` to ~/.zshrc, below compinit. fish: write the script to
    ~/.config/fish/completions/overspill.fish.
    """
    script = get_completion_class(shell)
    if script is None:  # click has all three
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(script(ctx.find_root().command, {}, PROGRAM, _VARIABLE).source())
