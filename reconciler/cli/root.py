"""The group of all commands, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import click
from click.shell_completion import CompletionItem

import reconciler
from reconciler.cli import options
from reconciler.cli.exit_codes import BUG, INTERRUPTED, MET_A_BUG, REFUSED
from reconciler.cli.register import HELP, SECTIONS, Register
from reconciler.errors import Conflict, InvalidInput, Transient


class Commands(click.Group):
    """The group of all commands, and the error boundary around each.

    The overview and the completion of commands come from the register: no command is imported for them.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """List the commands in the order of the overview, not by name."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """Write the overview: the commands of each section with their help."""
        width = max(map(len, HELP))
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command, or an option of the program."""
        names = [CompletionItem(name, help=text) for name, text in HELP.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def main(self, args: Sequence[str] | None = None, *positional: Any, **extra: Any) -> Any:
        """Run a command and exit with its result.

        0 done, 1 refused input or an unreachable service, 2 usage, 3 bug, 130 interrupted.
        """
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                # A terminal that cannot show a character is no reason to fail in the middle of a table.
                stream.reconfigure(errors="backslashreplace")
                if sys.platform == "win32" and not stream.isatty():
                    stream.reconfigure(encoding="utf-8")  # as a file or a pipe has it on other systems
        sys.exit(self._run(args, *positional, **{**extra, "standalone_mode": False}))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; if a bug cost part of its result, it exits with the code of a bug, whatever else happened."""
        try:
            code = super().invoke(ctx)
        except click.exceptions.Exit as error:
            code = error.exit_code
        except InvalidInput as error:
            if any(problem.bug for problem in error.problems):
                _report(error)
                return BUG
            raise
        return BUG if ctx.meta.get(MET_A_BUG) else code

    def _run(self, args: Sequence[str] | None, *positional: Any, **extra: Any) -> int:
        words = [*(sys.argv[1:] if args is None else args)]
        try:
            with _progress(words):
                code = super().main(args, *positional, **extra)
            sys.stdout.flush()
        except click.UsageError as error:
            error.show()
            return error.exit_code  # 2, unless that means something else to the command
        except click.ClickException as error:
            error.show()
            return REFUSED
        except (KeyboardInterrupt, click.Abort):
            return INTERRUPTED
        except BrokenPipeError:
            # `overspill history | head`: the reader has closed the pipe. Buffered output must not fail once more at
            # exit.
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return REFUSED
        except Exception as error:  # noqa: BLE001 - the boundary: an error that nothing expected is reported as a bug
            return _report(error)
        return code if isinstance(code, int) else 0


def _progress(words: Sequence[str]) -> contextlib.AbstractContextManager[None]:
    """Show progress on a terminal while the command of a command line says nothing."""
    if not sys.stderr.isatty() or "--help" in words or "-h" in words:
        return contextlib.nullcontext()
    from reconciler.cli import progress  # noqa: PLC0415 - a pipe and help need none

    daemon = any(word.startswith("--server") for word in words) or bool(os.environ.get("OVERSPILL_SERVER"))
    return progress.shown(next((word for word in words if not word.startswith("-")), ""), daemon=daemon)


def _later(pause: timedelta | None) -> str:
    """Say when to try again; `pause` is the first wait of a rate limit."""
    return f"try again in {int(pause.total_seconds())} s or later" if pause else "try again"


def _report(error: Exception) -> int:
    """Print an error that a command raised, and return the exit code."""
    from reconciler.cli import printing  # noqa: PLC0415 - help and completion print nothing of ours

    match error:
        case InvalidInput():
            if not printing.problems(error.problems):
                printing.complain(str(error))
            return REFUSED
        case Transient():
            printing.complain(f"{error} ({_later(error.pause)})")
            return REFUSED
        case Conflict():
            printing.complain(f"{error} (another push was first; try again)")
            return REFUSED
        case _:
            printing.note("".join(traceback.format_exception(error)).rstrip())
            printing.complain(f"this is a bug in Overspill {reconciler.__version__}: {type(error).__name__}: {error}")
            return BUG


@options.examples(
    "overspill demo --out demo-out",
    "overspill check fleet/",
    "overspill run --repo https://git.example.com/ml/fleet.git --observations observations/",
)
@click.group(
    cls=Commands,
    commands=Register(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)
@click.version_option(reconciler.__version__, prog_name="overspill", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Burst a GPU workload to other clusters when its own is full, through git and nothing else.

    Begin with `overspill init fleet`, look with `overspill plan`, and leave `overspill run` running. Every option that
    names the repository can be set in the environment: OVERSPILL_REPO, OVERSPILL_OUTPUT_BRANCH and so on.
    """
    if os.environ.get("NO_COLOR"):
        ctx.color = False
