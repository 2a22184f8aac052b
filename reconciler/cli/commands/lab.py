"""`lab`: try a policy in a simulated world before it is merged."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from reconciler.cli import options

if TYPE_CHECKING:
    from reconciler.settings import Settings

LabForm = Literal["table", "json", "markdown"]
CompareForm = Literal["markdown", "json"]


@options.examples(
    "overspill lab run",
    "overspill lab run plateau flap --policy fleet/policies/serving.yaml",
    "overspill lab run azure-conv --traces ~/AzurePublicDataset/data",
    "overspill lab run my-world.yaml -o markdown",
    "overspill lab sweep plateau flap --vary scaleDown.window=5m,15m --vary headroom=0,1",
    "overspill lab replay passes/ --repo https://git.example.com/ml/fleet.git",
    "overspill lab compare main my-branch --recording passes/",
)
@click.group()
def lab() -> None:
    """Try a policy in a simulated world before it is merged.

    The pass that decides is the daemon's own; clusters, demand and time are simulated, or those of a recording
    (`overspill run --record`). The optimum needs the packages of the extra `lab`: `pip install 'overspill[lab]'`.
    """


@lab.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...")
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="FILE|NAME",
    help="A file with a BurstPolicy, or the name of a ready-made one; may be given several times. Without it that of"
    " `init`.",
)
@click.option(
    "--traces",
    type=options.ExistingPath(file_okay=False),
    metavar="DIR",
    help="The directory of the public request logs, for the scenarios azure-conv and azure-code.",
)
@click.option("--peers/--no-peers", default=True, show_default=True, help="Run simpler rules beside it.")
@click.option("--optimum/--no-optimum", "best", default=True, show_default=True, help="Work out the offline optimum.")
@click.option("--list", "listing", is_flag=True, help="List the scenarios of the standard set, and run none.")
@options.forms("markdown")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    metavar="FILE",
    help="Write figures and pictures as one HTML page as well.",
)
@click.option(
    "--pictures",
    type=click.Path(path_type=Path, file_okay=False, writable=True),
    metavar="DIR",
    help="Write the picture of each run as an SVG file as well.",
)
def run(
    scenarios: tuple[str, ...],
    policies: tuple[str, ...],
    traces: Path | None,
    *,
    peers: bool,
    best: bool,
    listing: bool,
    form: LabForm,
    html: Path | None,
    pictures: Path | None,
) -> None:
    """Run policies in scenarios: of the standard set by name, or files of kind LabScenario; all of the set by default.

    UNMET is the part of the missing replica-seconds that nobody served, and LOST TO says why, in the reasons of `plan`
    and what comes after a commit: EngineDelay, StartUp and NoNode. Hours and dollars are told beside the optimum's: the
    best that could have been done with all of the demand known beforehand. P50 and P99 are the times to serve.
    """
    from reconciler.cli.actions.lab import runs as action

    if listing:
        action.list_scenarios()
        return
    action.run(scenarios, policies, traces, peers=peers, best=best, form=form, html=html, pictures=pictures)


@lab.command()
@click.argument("scenarios", nargs=-1, metavar="[SCENARIO]...")
@click.option(
    "--vary",
    multiple=True,
    required=True,
    metavar="FIELD=VALUES",
    help="A field of the policy's spec and its values, as scaleDown.window=5m,15m; of several fields all combinations.",
)
@click.option("--policy", default="init", show_default=True, metavar="FILE|NAME", help="The policy to vary.")
@click.option(
    "--traces",
    type=options.ExistingPath(file_okay=False),
    metavar="DIR",
    help="The directory of the public request logs, for the scenarios azure-conv and azure-code.",
)
@click.option(
    "--workers", type=click.IntRange(min=1), metavar="N", help="Processes of this machine; one a core by default."
)
@click.option(
    "--ray", "address", metavar="ADDRESS", help="A Ray cluster to run on (pip install 'overspill[ray]'), or `auto`."
)
@options.output
def sweep(
    scenarios: tuple[str, ...],
    vary: tuple[str, ...],
    policy: str,
    traces: Path | None,
    *,
    workers: int | None,
    address: str | None,
    form: options.Output,
) -> None:
    """Run a policy with its fields varied, and put the figures of all combinations into one table, the best first.

    UNMET is the mean of the scenarios, JAIN the lowest, and WORST the scenario that is served least; the others are
    sums. The table is the same wherever the runs took place.
    """
    from reconciler.cli.actions.lab import runs as action

    action.sweep(scenarios, vary, policy, traces, workers=workers, address=address, form=form)


@options.examples(
    "overspill lab replay passes/",
    "overspill lab replay passes/ --at 2026-11-17T14:05:00Z",
    "overspill lab replay passes/ --repo https://git.example.com/ml/fleet.git -o json",
)
@lab.command()
@click.argument("recording", type=options.ExistingPath())
@options.connected()
@click.option(
    "--at",
    type=options.PAST,
    help="Show the plan of the last recorded pass at or before this moment, as `plan` does: 2026-11-17T14:05:00Z, or"
    " 3d for three days ago.",
)
@options.output
def replay(settings: Settings, recording: Path, at: datetime | None, form: options.Output) -> None:
    """Decide recorded passes again, and say where a plan parts from the recorded one.

    RECORDING is the directory of `overspill run --record`, or one file of it. The files of both branches come from the
    repository, by the commits that each pass has seen, and everything else from the recording. With --at the command
    answers why a pass decided as it did.

    Exits with 1 when a plan parts, or when a part of the recording is damaged; the rest is decided all the same.
    """
    from reconciler.cli.actions.lab import replay as action

    action.replay(settings, recording, at, form)


@options.examples(
    "overspill lab compare main my-branch --recording passes/",
    "overspill lab compare main my-branch --recording passes/ --repo https://git.example.com/ml/fleet.git -o json",
)
@lab.command()
@click.argument("base")
@click.argument("head")
@click.option(
    "--recording",
    type=options.ExistingPath(),
    required=True,
    metavar="DIR",
    help="The directory of `overspill run --record`, or one file of it.",
)
@options.connected()
@options.forms(default="markdown")
def compare(settings: Settings, base: str, head: str, recording: Path, form: CompareForm) -> None:
    """Say what the files of branch HEAD would have changed on recorded days, beside those of branch BASE.

    Both branches are played from the beginning of the recording, each with its own decisions: the demand, the nodes and
    the outages are as recorded, the pods of its own placements take the place of the recorded ones, and become ready
    as fast as placements did in the recording. The answer is Markdown for a pull request.
    """
    from reconciler.cli.actions.lab import compare as action

    action.compare(settings, base, head, recording, form)
