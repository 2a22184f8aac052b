"""`plan`: the commits that a pass would make."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import click

from reconciler.cli import options
from reconciler.cli.connection import asking
from reconciler.cli.exit_codes import REFUSED

if TYPE_CHECKING:
    from reconciler.client import Client
    from reconciler.core.observe.supposition import Supposition
    from reconciler.settings import Settings


PlanForm: TypeAlias = Literal["table", "json", "markdown"]


class _Supposed(click.ParamType["Supposition"]):
    """A supposition about the observation, such as ``llm/vllm+3``."""

    name = "WHAT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Supposition:
        """Read a supposition, or fail as a usage error."""
        from reconciler.core.observe.supposition import parse_supposition

        try:
            return parse_supposition(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _RefusedUsage(click.UsageError):
    """A wrong option where exit code 2 has another meaning."""

    exit_code = REFUSED


class _Plan(click.Command):
    """A command of which a wrong option is an error of exit code 1 where 2 has another meaning."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the options."""
        detailed = "--detailed-exitcode" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if detailed:
                raise _RefusedUsage(error.format_message(), error.ctx) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, which finds out whether a repository is named."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if ctx.params["detailed_exitcode"]:
                raise _RefusedUsage(error.format_message(), error.ctx) from error
            raise


def _plan_remotely(client: Client, *, source_branch: str | None, **flags: Any) -> None:
    from reconciler.cli.actions.plans import plan as action

    action.plan_remotely(client, branch=source_branch or "", **flags)


@options.examples(
    "overspill plan --observations observations/",
    "overspill plan --diff | less",
    "overspill plan --at +30m",
    "overspill plan --what-if llm/vllm+3",
    "overspill plan --what-if cluster/worker-2=down --what-if cluster/worker-3/gpu+4",
    "overspill plan -o json | jq '.commits[].subject'",
    "overspill plan --source-branch my-branch -o markdown",
    "overspill plan --server https://overspill.example.com --source-branch my-branch",
)
@click.command(cls=_Plan)
@options.watched
@asking(_plan_remotely, also=("source_branch",))
@options.connected("OBSERVATIONS", "KUBECONFIG", "PROMETHEUS", "SLURM")
@options.at
@click.option(
    "--what-if",
    "what_if",
    type=_Supposed(),
    multiple=True,
    help="Suppose replicas missing (llm/vllm+3), a cluster out of reach (cluster/worker-2=down) or more nodes "
    "of a pool (cluster/worker-2/gpu+4). May be given several times.",
)
@click.option(
    "--diff", "as_diff", is_flag=True, help="Print the commits as a patch: messages and files, byte for byte."
)
@click.option(
    "--detailed-exitcode",
    is_flag=True,
    help="Exit with 0 if nothing would change, with 2 if something would, and with 1 on any error.",
)
@options.forms("markdown", names=options.CHANGED, about="Markdown is for the comment of a pull request")
def plan(
    settings: Settings,
    at: datetime | None,
    what_if: tuple[Supposition, ...],
    *,
    as_diff: bool,
    detailed_exitcode: bool,
    form: PlanForm,
) -> None:
    """Show what `run` would commit, and commit nothing.

    Each change is shown with its reason; held-back replicas follow. With --at the answer is for another moment, as if
    everything stayed as it is seen now: bursts that will have expired, windows that will be over. With --what-if it is
    for an observation with what you suppose of it; the fleet files stay as they are. With --server a daemon decides on
    what it observes; --source-branch is then a branch of the fleet repository, taken as if it was merged.

    A single pass has not watched the demand fall. A burst that a daemon reverts after the scale-down window is shown
    only where the observations have `deficitSince`.
    """
    from reconciler.cli.actions.plans import plan as action

    action.plan(settings, at, what_if, as_diff=as_diff, detailed_exitcode=detailed_exitcode, form=form)
