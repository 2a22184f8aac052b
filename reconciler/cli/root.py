"""The group of all commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

import reconciler
from reconciler.cli import options, printing
from reconciler.cli.commands import files, run, status, steer
from reconciler.cli.commands.bootstrap import bootstrap
from reconciler.cli.commands.demo import demo
from reconciler.cli.commands.gprs import gprs, inventory, wait_time
from reconciler.cli.commands.history import history
from reconciler.cli.commands.placements import placements
from reconciler.cli.commands.plan import plan
from reconciler.cli.commands.token import token
from reconciler.errors import Conflict, InvalidInput, Transient

REFUSED, USAGE, BUG, INTERRUPTED = 1, 2, 3, 130


class Commands(click.Group):
    """Commands in the order in which a newcomer meets them, and the error boundary around each."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the commands as they were added, not by name."""
        return list(self.commands)

    def main(self, args: Sequence[str] | None = None, *positional: Any, **extra: Any) -> Any:
        """Run a command and leave the process with what it came to.

        0 done, 1 refused input or a world that is away, 2 usage, 3 bug, 130 interrupted.
        """
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A terminal that cannot show a character is no reason to fail in the middle of a table.
                stream.reconfigure(errors="backslashreplace")
        sys.exit(self._run(args, *positional, **{**extra, "standalone_mode": False}))

    def _run(self, *args: Any, **extra: Any) -> int:
        try:
            code = super().main(*args, **extra)
            sys.stdout.flush()
        except click.UsageError as error:
            error.show()
            return USAGE
        except click.ClickException as error:
            error.show()
            return REFUSED
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except BrokenPipeError:
            # `overspill history | head`: who reads has had enough. What is left must not fail once more at exit.
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return REFUSED
        except InvalidInput as error:
            if not printing.problems(error.problems):
                printing.complain(str(error))
            return REFUSED
        except Transient as error:
            printing.complain(f"{error} (try again)")
            return REFUSED
        except Conflict as error:
            printing.complain(f"{error} (somebody else was first; try again)")
            return REFUSED
        except Exception as error:  # noqa: BLE001 - the boundary: whatever nobody expected is told as the bug it is
            traceback.print_exc()
            printing.complain(f"this is a bug in Overspill {reconciler.__version__}: {type(error).__name__}: {error}")
            return BUG
        return code if isinstance(code, int) else 0


@options.examples(
    "overspill demo --out demo-out",
    "overspill check fleet/",
    "overspill run --repo https://git.example.com/ml/fleet.git --observations observations/",
)
@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(reconciler.__version__, prog_name="overspill", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Lend a GPU workload capacity in other clusters when its own is full, through git and nothing else.

    Begin with `overspill init fleet`, look with `overspill plan`, and leave `overspill run` running. Every option that
    names the repository can be set in the environment: OVERSPILL_REPO, OVERSPILL_OUTPUT_BRANCH and so on.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False


for _command in (
    files.init, files.check, plan, run.once, run.run, status.status, history, status.explain, gprs, wait_time,
    inventory, placements, steer.revert, steer.extend, steer.rebalance, steer.sweep,
    files.schema, bootstrap, token, demo,
):  # fmt: skip # a list of words, filled line by line
    main.add_command(_command)
