"""`demo`: a GPU shortage on this machine, from burst to return."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options


@options.examples(
    "overspill demo",
    "overspill demo --out /tmp/overspill-demo",
)
@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="demo-out",
    show_default=True,
    metavar="DIR",
    help="The directory for the repositories. Those of an earlier demo are replaced.",
)
@click.option(
    "--tempo",
    type=click.FloatRange(min=0.4, max=10),
    default=1.0,
    show_default=True,
    help="A factor for the windows of the story: 2 takes about twice as long.",
)
@click.option("--plain", is_flag=True, help="Lines of text on a terminal too, which end with the story.")
def demo(out: Path, tempo: float, *, plain: bool) -> None:
    """Play a GPU shortage on this machine, from burst to return.

    The repositories are left to look at. It takes less than a minute and needs nothing but git. The clusters are
    simulated; Overspill is real: the daemon runs as it would anywhere. A terminal shows a picture with keys to play
    along, and the world goes on after the story until `q`. Exits with 1 when a step does not happen within its time.
    """
    options.refuse_windows("demo")
    from reconciler import demo as stage

    if stage.demo(out, tempo=tempo, plain=plain):
        raise click.exceptions.Exit(1)
