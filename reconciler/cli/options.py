"""The options that several commands share, and the settings that they make.

A flag overrides its environment variable and is read by the same reader, so both are checked alike.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeAlias, TypedDict, TypeVar

import click

from reconciler.adapters.clock import SystemClock
from reconciler.adapters.kubeconfig_files import kubeconfig_files
from reconciler.cli.forms import JSONPATH, NAMES, WIDE, YAML
from reconciler.cli.kubeconfig import usual_kubeconfig
from reconciler.environment import PREFIX, VARIABLES
from reconciler.errors import InvalidInput
from reconciler.model.units import meant_duration, parse_duration
from reconciler.text.digits import is_digits

if TYPE_CHECKING:
    from reconciler.settings import Settings
    from reconciler.text.jsonpath import JsonPath

P = ParamSpec("P")
C = TypeVar("C", bound=click.Command)
Output: TypeAlias = Literal["table", "json"]


class CommitFlags(TypedDict):
    """Flags of all commands that commit what a person orders."""

    author: str | None
    dry_run: bool
    form: Output


CHANGED = "{.commits[*].change['placement.name', 'after.name', 'drifted.placement.name']}"
"""The JSONPath of the placements that the commits of a plan change."""

_FLAGS: dict[str, tuple[str, str]] = {
    "REPO": ("--repo", "URL|PATH"),
    "SOURCE_BRANCH": ("--source-branch", "NAME"),
    "OUTPUT_BRANCH": ("--output-branch", "NAME"),
    "OBSERVATIONS": ("--observations", "PATH"),
    "KUBECONFIG": ("--kubeconfig", "PATH"),
    "PROMETHEUS": ("--prometheus", "URL"),
    "SLURM": ("--slurm", "URL"),
    "POLL_INTERVAL": ("--poll-interval", "DURATION"),
    "LISTEN": ("--listen", "HOST:PORT"),
    "STRICT_EGS_API": ("--strict-egs-api", ""),
    "NOTIFY": ("--notify", "ENGINE=URL"),
    "NOTIFICATION_SECRETS": ("--notification-secrets", "DIR"),
    "RECORD": ("--record", "DIR"),
    "RECORD_MAX_SIZE": ("--record-max-size", "SIZE"),
    "RECORD_MAX_AGE": ("--record-max-age", "DURATION"),
    "LOG_FORMAT": ("--log-format", "FORMAT"),
}
"""By setting: the flag, and the placeholder of its value; empty for a flag without a value."""
_DURATION = re.compile(r"[0-9][^-:T]*")
"""Matches durations and no moment: a moment has a date, and so hyphens."""
_BRANCHES = ("REPO", "SOURCE_BRANCH", "OUTPUT_BRANCH")
_ORIGIN = "reconciler.cli.origin"
"""The key of the context's `meta` that says whether the origin of this checkout has been named."""
_SEVERAL = frozenset({"NOTIFY"})
"""Flags that may be given several times; their variable holds the words with blanks between."""


def examples(*lines: str) -> Callable[[C], C]:
    """Give a command's help a last section of command lines to copy."""

    def decorate(command: C) -> C:
        # click keeps the line breaks of a paragraph that begins with \b.
        command.epilog = "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
        return command

    return decorate


def refuse_windows(command: str) -> None:
    """Raise InvalidInput on Windows for a command with a daemon, which needs the signals of POSIX."""
    if sys.platform == "win32":
        raise InvalidInput(f"{command}: the daemon does not run on Windows (try it in WSL or in a container)")


def connected(*more: str) -> Callable[[Callable[Concatenate[Settings, P], None]], Callable[..., None]]:
    """Give a command the options of its repository, the options of the settings `more`, and the Settings they make."""
    return _with_settings((*_BRANCHES, *more), read=_settings)


def perhaps_connected(*more: str) -> Callable[[Callable[Concatenate[Settings, P], None]], Callable[..., None]]:
    """Give a command the options of `connected`; where no repository is named, the settings have none."""
    return _with_settings((*_BRANCHES, *more), read=_perhaps_settings)


def observed(command: Callable[Concatenate[Settings, P], None]) -> Callable[..., None]:
    """Give a command the sources of observations, without a repository; kubectl's kubeconfig is the default."""
    return _with_settings(("OBSERVATIONS", "KUBECONFIG"), read=_observing_settings)(command)


def _with_settings(
    names: tuple[str, ...], *, read: Callable[[dict[str, str]], Settings]
) -> Callable[[Callable[Concatenate[Settings, P], None]], Callable[..., None]]:
    """Give a command the options of some settings, and the Settings that they make."""

    def decorate(command: Callable[Concatenate[Settings, P], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> None:
            flags = {name: kwargs.pop(name.lower(), None) for name in names}
            settings = read({name: _words(value) for name, value in flags.items() if value not in (None, (), False)})
            if settings.warnings and "LOG_FORMAT" not in names:  # a command that keeps a log writes them there
                from reconciler.cli import printing

                printing.problems(settings.warnings)
            if "OBSERVATIONS" not in names:
                # A command that needs no observations must not fail for the want of them.
                settings = replace(
                    settings, observations=None, kubeconfig=None, prometheus="", slurm="", in_cluster=False
                )
            command(settings, *args, **kwargs)

        wrapped: Callable[..., None] = run
        for name in reversed(names):
            flag, metavar = _FLAGS[name]
            wrapped = click.option(
                flag,
                name.lower(),
                metavar=metavar or None,
                is_flag=not metavar,
                multiple=name in _SEVERAL,
                help=_sentence(f"{VARIABLES[name]}  [env: {PREFIX}{name}]"),
            )(wrapped)
        return wrapped

    return decorate


def output(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command the usual forms of an answer; it sees ``table`` or ``json``."""
    return forms()(command)


def forms(
    *more: str, about: str = "", names: str = "", default: str = "table"
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Give a command ``-o table|wide|json|yaml|jsonpath=`` and some `more`, with a clause `about` these for its help.

    `names` is the JSONPath of the names that ``-o name`` prints, as other commands take them. A `default` of `more` is
    for a command without tables.
    """
    usual = ["table", "wide", "json", "yaml"] if default == "table" else [default, "json", "yaml"]
    choices = _AnswerForm([*usual, *(["name"] if names else []), _JSONPATH, *more])
    wide = "; wide shows empty columns and absolute times too" if default == "table" else ""
    help_text = f"The form of the answer{wide}{f', and {about}' if about else ''}."

    def note(context: click.Context, _parameter: click.Parameter, value: str) -> str:
        """Take note of a form that `printing` knows by itself, and return the one that the command has to make."""
        match value:
            case "yaml":
                context.meta[YAML] = True
            case "name":
                context.meta[NAMES] = _jsonpath(names)
            case _ if value.startswith(_JSONPATH):
                context.meta[JSONPATH] = _jsonpath(value.removeprefix(_JSONPATH))
            case "wide":
                context.meta[WIDE] = True
                return "table"
            case _:
                return value
        return "json"

    return click.option("-o", "--output", "form", type=choices, default=default, callback=note, help=help_text)


class _AnswerForm(click.Choice[str]):
    """The name of a form, or ``jsonpath=`` with an expression."""

    name = "FORM"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        """List the forms."""
        return (super().get_metavar(param, ctx) or "").replace(_JSONPATH, f"{_JSONPATH}EXPR")

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        """Name the forms."""
        return super().get_invalid_choice_message(value, ctx).replace(_JSONPATH, f"{_JSONPATH}EXPR")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check a form and its expression."""
        if not str(value).startswith(_JSONPATH):
            return super().convert(value, param, ctx)
        try:
            _jsonpath(str(value).removeprefix(_JSONPATH))
        except ValueError as error:
            self.fail(f"{error} (try -o jsonpath='{{.items[0].name}}')", param, ctx)
        return str(value)


_JSONPATH = "jsonpath="


def _jsonpath(template: str) -> JsonPath:
    from reconciler.text.jsonpath import parse_jsonpath

    return parse_jsonpath(template)


author = click.option(
    "--author", metavar="'NAME <ADDRESS>'", help="The commit's author; git's user.name and user.email if not given."
)
reason = click.option("--reason", metavar="TEXT", default="", help="The reason, for the commit message.")


def dry_run(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command ``--dry-run``."""
    option = click.option(
        "--dry-run", is_flag=True, help="Show the commits that would be made, as `plan` does, and commit nothing."
    )
    return option(command)


def at(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command ``--at TIME``: the answer for another moment, if nothing else changed."""
    option = click.option(
        "--at",
        "at",
        type=MOMENT,
        callback=_past_is_noted,
        help="Answer for this moment, as if all stayed as it is seen now: 2026-11-20T10:15:00Z, or +30m from now.",
    )
    return option(command)


def watched(command: Callable[P, None]) -> Callable[P, None]:
    """Give a command ``--watch``. It stands outside of `connection.asking`, so that a daemon is watched as well."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if not kwargs.pop("watch", False):
            command(*args, **kwargs)
            return
        for flag in ("at", "detailed_exitcode"):
            if kwargs.get(flag):
                raise click.UsageError(f"--watch goes without --{flag.replace('_', '-')}")
        from reconciler.cli.actions.follow import follow

        follow(functools.partial(command, *args, **kwargs))

    return click.option(
        "-w", "--watch", is_flag=True, help="Look again every two seconds, and show what has changed, until Ctrl-C."
    )(run)


def _past_is_noted(_ctx: click.Context, _parameter: click.Parameter, value: datetime | None) -> datetime | None:
    """Warn that a moment has passed. A past moment is allowed: it suits observations of that moment."""
    if value is not None and value < SystemClock().now():
        from reconciler.cli import printing

        printing.note("note: --at is in the past")
    return value


class Moment(click.ParamType[datetime]):
    """A moment: RFC 3339 with a zone, or a duration from now (``+30m``) or before now (``-2h``).

    With `past`, a duration without a sign counts back from now: ``7d`` is seven days ago.
    """

    name = "TIME"

    def __init__(self, *, past: bool = False) -> None:
        self._unsigned = "-" if past else ""
        self._example = "-7d" if past else "+30m"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read a moment, or fail as a usage error."""
        if isinstance(value, datetime):
            return value
        text = str(value)
        try:
            if re.match(r"[+-]\s*[0-9]", text):
                return moved(SystemClock().now(), text)
            if self._unsigned and _DURATION.fullmatch(text):
                return moved(SystemClock().now(), self._unsigned + text)
            moment = datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            meant = "" if is_digits(text) else meant_duration(text.lstrip("+-"))  # digits alone may be a year
            sign = text[0] if text[:1] in ("+", "-") else "" if self._unsigned else "+"
            hint = f"try {sign}{meant}" if meant else f"try 2026-11-20T10:15:00Z, or {self._example}"
            self.fail(f"{text!r} is not a time ({hint})", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{text!r} has no time zone (try {text}Z)", param, ctx)
        return moment.replace(microsecond=0)


class ExistingPath(click.Path):
    """A path that is there; the error for any other names the nearest one beside it."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True, allow_dash: bool = False) -> None:
        super().__init__(exists=True, file_okay=file_okay, dir_okay=dir_okay, allow_dash=allow_dash, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """Check a path, or fail as a usage error."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            near = "" if Path(value).exists() else self._nearest(Path(value)) or _beside(Path(value))
            raise click.BadParameter(f"{error.message.rstrip('.')}{near}.", ctx, param) from error

    def _nearest(self, path: Path) -> str:
        from reconciler.text.spelling import closest

        try:
            beside = {each.name: each for each in path.parent.iterdir() if self.file_okay or each.is_dir()}
        except OSError:
            return ""
        near = closest(path.name, beside)
        return f" (try '{beside[near]}')" if near else ""


def _beside(path: Path) -> str:
    """Name the directory that a relative path begins in: it may be another one than was meant."""
    return "" if path.is_absolute() else f" in {Path.cwd()}"


class Duration(click.ParamType[timedelta]):
    """A duration such as ``30m`` or ``1h30m``."""

    name = "DURATION"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        """Read a duration, or fail as a usage error."""
        if isinstance(value, timedelta):
            return value
        try:
            return parse_duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


MOMENT = Moment()
PAST = Moment(past=True)
DURATION = Duration()

fleet_directory = click.option(
    "--fleet",
    type=ExistingPath(file_okay=False),
    default=".",
    help="The directory of the fleet repository. By default this one.",
)


def moved(now: datetime, text: str) -> datetime:
    """Move a moment by ``+30m`` or ``-2h``. Raises ValueError for anything else."""
    by = parse_duration(text[1:].strip())
    return now + by if text.startswith("+") else now - by


def _settings(flags: dict[str, str]) -> Settings:
    """Read the environment with the flags put over it; the repository falls back on the checkout of this directory."""
    from reconciler.adapters.git import checkout

    settings = _environment_settings(flags)
    if settings.repo:
        return settings
    origin = checkout.origin()
    if not origin:
        raise click.UsageError(_describe_missing_repository())
    settings = replace(settings, repo=origin, repo_is_origin=True)
    _note_origin(settings)
    return settings


def _describe_missing_repository() -> str:
    """Say that no repository is named, and how to name one from this directory."""
    from reconciler.adapters.git import checkout

    if checkout.is_work_tree(Path()):
        return (
            "no repository: this checkout has no remote 'origin' (pass `--repo .` for the checkout itself, or --repo"
            " with another path or a URL)"
        )
    return (
        "no repository: pass --repo with a URL or a path, set OVERSPILL_REPO, or stand in a git checkout that has a"
        " remote 'origin'"
    )


def _note_origin(settings: Settings) -> None:
    """Tell a reader of tables, once, that the repository is the one that this checkout comes from."""
    context = click.get_current_context()
    if "log_format" in context.params:  # the log begins with it
        return
    if context.params.get("form", "table") != "table" or context.meta.get(_ORIGIN):
        return
    from reconciler.cli import printing
    from reconciler.text.redaction import redacted, without_query

    context.meta[_ORIGIN] = True
    printing.note(
        f"note: reading {settings.source_branch} and {settings.output_branch} of"
        f" {redacted(without_query(settings.repo))}, the 'origin' of this checkout (name another with --repo)"
    )


def _perhaps_settings(flags: dict[str, str]) -> Settings:
    """Read the environment with the flags put over it; the repository may be missing."""
    from reconciler.adapters.git import checkout

    settings = _environment_settings(flags)
    return settings if settings.repo else replace(settings, repo=checkout.origin(), repo_is_origin=True)


def _observing_settings(flags: dict[str, str]) -> Settings:
    """Read the environment with the flags put over it; the kubeconfig falls back on the one that kubectl uses."""
    settings = _environment_settings(flags)
    if settings.kubeconfig is not None or settings.observations is not None:
        return settings
    usual = usual_kubeconfig()
    return replace(settings, kubeconfig=usual if kubeconfig_files(usual) else None)


def _environment_settings(flags: dict[str, str]) -> Settings:
    """Read the environment with the flags put over it; a wrong flag is a usage error."""
    from reconciler.settings import from_environment

    words = {f"{PREFIX}{name}": value for name, value in flags.items()}
    try:
        return from_environment({**os.environ, **words})
    except InvalidInput as error:
        wrong = [problem for problem in error.problems if problem.path in words]
        if wrong:
            lines = (str(replace(problem, path=_FLAGS[problem.path.removeprefix(PREFIX)][0])) for problem in wrong)
            raise click.UsageError("\n".join(lines)) from error
        raise


def _words(value: Any) -> str:
    """Write the value of a flag as its variable would hold it."""
    return " ".join(value) if isinstance(value, tuple) else str(value)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
