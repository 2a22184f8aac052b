"""What the environment says about how to run: the only place that reads it.

`VARIABLES` lists them all, for the reader below and for the table in docs/operations.md.
"""

from __future__ import annotations

import atexit
import difflib
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Literal

from reconciler.core.endpoints import EXAMPLES, read_endpoint
from reconciler.errors import InvalidInput, Problem, Severity
from reconciler.model.push import Endpoint
from reconciler.model.units import parse_duration

PREFIX = "OVERSPILL_"

VARIABLES: Mapping[str, str] = {
    "REPO": "the fleet repository: an https, ssh or file URL, or a path",
    "SOURCE_BRANCH": "the branch that people write",
    "OUTPUT_BRANCH": "the branch that Overspill writes",
    "OBSERVATIONS": "a file or directory of observations",
    "KUBECONFIG": "a kubeconfig whose contexts are clusters to watch",
    "CACHE_DIR": "where the bare mirror of the repository is kept, for its owner alone; safe to delete",
    "POLL_INTERVAL": "how often to ask the remote for changes",
    "LISTEN": "host:port for observations, webhooks and health; nothing listens without it",
    "PUSH_TOKEN": "the bearer token for pushing observations",
    "PUSH_TOKEN_FILE": "a file that holds it",
    "WEBHOOK_SECRET": "the secret that webhooks are signed with",
    "WEBHOOK_SECRET_FILE": "a file that holds it",
    "NOTIFY": "the engines to tell of each push, as argocd=URL or flux=URL; several with blanks between",
    "NOTIFY_SECRET": "the secret that this is signed with",
    "NOTIFY_SECRET_FILE": "a file that holds it",
    "NOTIFY_SECRET_ARGOCD": "that for Argo CD, where it is another",
    "NOTIFY_SECRET_ARGOCD_FILE": "a file that holds it",
    "NOTIFY_SECRET_FLUX": "that for Flux, where it is another",
    "NOTIFY_SECRET_FLUX_FILE": "a file that holds it",
    "GIT_USERNAME": "the user name for an https remote",
    "GIT_PASSWORD": "the password or access token for an https remote",
    "GIT_PASSWORD_FILE": "a file that holds it",
    "SSH_KEY": "a private key file for an ssh remote",
    "KNOWN_HOSTS": "a known_hosts file for an ssh remote",
    "COMMITTER_NAME": "the name that commits are made under",
    "COMMITTER_EMAIL": "the address that tells our commits from people's; keep it",
    "LOG_FORMAT": "text or json",
}
"""Every variable without its prefix, and what it is for."""

# Kubernetes sets these in every pod beside a Service named overspill (OVERSPILL_PORT=tcp://...); they are not for us.
_SERVICE_LINK = re.compile(r"OVERSPILL_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)")
_BRANCH = re.compile(r"(?!.*(\.\.|@\{|//|\.lock(/|$)|/\.))[A-Za-z0-9_][\w./@+-]*(?<![/.])", re.ASCII)
_LISTEN = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\]]*)):(\d{1,5})")
_MAX_SECRET = 64 << 10
_SHORT = 16
_MADE = "the output of `openssl rand -hex 32`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen at."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run. A flag of the command line that says otherwise replaces a field.

    None and "" mean that nothing was said. `warnings` are worth showing and no reason to stop.
    """

    repo: str = field(default="", repr=False)  # it may carry a password
    source_branch: str = "main"
    output_branch: str = "placements"
    observations: Path | None = None
    kubeconfig: Path | None = None
    in_cluster: bool = False  # we are a pod of a cluster, and may be asked to watch it
    cache_dir: Path
    poll_interval: timedelta = timedelta(seconds=30)
    listen: Listen | None = None
    push_token: str = field(default="", repr=False)
    webhook_secret: str = field(default="", repr=False)
    notify: tuple[Endpoint, ...] = ()
    git_username: str = "git"  # hosts that take a token take it with any name
    git_password: str = field(default="", repr=False)
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    committer_name: str = "Overspill"
    committer_email: str = "overspill@overspill.dev"
    log_format: Literal["text", "json"] = "text"
    colour: bool = True
    warnings: tuple[Problem, ...] = ()


def from_environment(env: Mapping[str, str]) -> Settings:
    """Read the settings.

    An empty variable counts as unset. Raises InvalidInput with every variable that is wrong, each with a valid example.
    """
    reader = _Reader({name: value for name, value in env.items() if value})
    settings = Settings(
        repo=reader.text("REPO", ""),
        source_branch=reader.branch("SOURCE_BRANCH", "main"),
        output_branch=reader.branch("OUTPUT_BRANCH", "placements"),
        observations=reader.path("OBSERVATIONS"),
        kubeconfig=reader.path("KUBECONFIG"),
        in_cluster=bool(env.get("KUBERNETES_SERVICE_HOST")),
        cache_dir=reader.path("CACHE_DIR") or _default_cache(env),
        poll_interval=reader.duration("POLL_INTERVAL", timedelta(seconds=30)),
        listen=reader.listen("LISTEN"),
        push_token=reader.strong_secret("PUSH_TOKEN"),
        webhook_secret=reader.strong_secret("WEBHOOK_SECRET"),
        notify=reader.endpoints("NOTIFY"),
        git_username=reader.text("GIT_USERNAME", "git"),
        git_password=reader.secret("GIT_PASSWORD"),
        ssh_key=reader.path("SSH_KEY"),
        known_hosts=reader.path("KNOWN_HOSTS"),
        committer_name=reader.text("COMMITTER_NAME", "Overspill"),
        committer_email=reader.email("COMMITTER_EMAIL", "overspill@overspill.dev"),
        log_format=reader.log_format("LOG_FORMAT"),
        colour="NO_COLOR" not in reader.env,
        warnings=_unknown(reader.env),
    )
    if settings.source_branch == settings.output_branch:
        reader.refuse("OUTPUT_BRANCH", "is the source branch as well", "placements")
    if reader.problems:
        raise InvalidInput(problems=tuple(reader.problems))
    return settings


def _default_cache(env: Mapping[str, str]) -> Path:
    """Follow the XDG rules: ``$XDG_CACHE_HOME/overspill``, else ``~/.cache/overspill``.

    Without a home it is a new directory for this process alone: a name that others can guess may be theirs already.
    """
    if env.get("XDG_CACHE_HOME"):
        return Path(env["XDG_CACHE_HOME"]) / "overspill"
    if env.get("HOME"):
        return Path(env["HOME"]) / ".cache" / "overspill"
    made = tempfile.mkdtemp(prefix="overspill-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)


def _unknown(env: Mapping[str, str]) -> tuple[Problem, ...]:
    """Name variables of ours that mean nothing, and what they may have been meant for."""
    problems = []
    for name in sorted(env):
        known = name.removeprefix(PREFIX)
        if not name.startswith(PREFIX) or known in VARIABLES or _SERVICE_LINK.fullmatch(name):
            continue
        near = difflib.get_close_matches(known, VARIABLES, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "`overspill run --help` lists them"
        problems.append(Problem(path=name, message="is no setting of Overspill", hint=hint, severity=Severity.WARNING))
    return tuple(problems)


class _Reader:
    """Reads variables one by one and gathers what is wrong with them; a wrong one reads as its default."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.problems: list[Problem] = []

    def refuse(self, name: str, message: str, example: str) -> None:
        """Note that a variable is wrong."""
        self.problems.append(Problem(path=PREFIX + name, message=message, hint=f"try {example}"))

    def text(self, name: str, default: str) -> str:
        """Read one line."""
        value = self.env.get(PREFIX + name, default)
        if not value.isprintable():
            self.refuse(name, "holds control characters", default or "one line of plain text")
            return default
        return value

    def branch(self, name: str, default: str) -> str:
        """Read the name of a branch, as strictly as git does or more so."""
        value = self.text(name, default)
        if _BRANCH.fullmatch(value) is None or len(value) > 200:  # noqa: PLR2004 - a file name of 255 has to hold it
            self.refuse(name, f"{value!r} is not the name of a branch", default)
            return default
        return value

    def path(self, name: str) -> Path | None:
        """Read a path; whether it exists is for its reader to see."""
        value = self.text(name, "")
        return Path(value).expanduser() if value else None

    def duration(self, name: str, default: timedelta) -> timedelta:
        """Read a duration of at least a second."""
        value = self.env.get(PREFIX + name)
        if value is None:
            return default
        try:
            duration = parse_duration(value)
        except ValueError as error:
            self.problems.append(Problem(path=PREFIX + name, message=str(error)))
            return default
        if duration < timedelta(seconds=1):
            self.refuse(name, f"{value!r} is shorter than a second", "30s")
            return default
        return duration

    def listen(self, name: str) -> Listen | None:
        """Read ``host:port``, ``:port`` (all interfaces) or ``[address]:port``."""
        value = self.env.get(PREFIX + name)
        if value is None:
            return None
        match = _LISTEN.fullmatch(value)
        if match is None or int(match[3]) > 65535:  # noqa: PLR2004 - the largest port there is
            self.refuse(name, f"{value!r} is not host:port", "127.0.0.1:8080, or :8080 for every interface")
            return None
        return Listen(host=match[1] or match[2] or "0.0.0.0", port=int(match[3]))  # noqa: S104 - asked for by ":8080"

    def endpoints(self, name: str) -> tuple[Endpoint, ...]:
        """Read ``ENGINE=URL`` words, each once, with the secret of its engine, or else the one for all of them."""
        known = len(self.problems)
        shared = self.strong_secret(f"{name}_SECRET")
        secrets = {engine: self.strong_secret(f"{name}_SECRET_{engine.upper()}") or shared for engine in EXAMPLES}
        unread = len(self.problems) > known
        found = []
        for word in dict.fromkeys(self.env.get(PREFIX + name, "").split()):
            try:
                engine, url = read_endpoint(word)
            except ValueError as error:
                self.problems.append(Problem(path=PREFIX + name, message=str(error)))
                continue
            found.append(Endpoint(engine=engine, url=url, secret=secrets[engine]))
        if not unread and any(not endpoint.secret for endpoint in found):
            self.refuse(f"{name}_SECRET", "is not set, and engines are told of pushes with a signature only", _MADE)
        return tuple(found)

    def email(self, name: str, default: str) -> str:
        """Read what can stand between the angle brackets of a commit's committer."""
        value = self.text(name, default)
        if re.fullmatch(r"[^\s<>]+@[^\s<>]+", value) is None:
            self.refuse(name, f"{value!r} is not a mail address", default)
            return default
        return value

    def log_format(self, name: str) -> Literal["text", "json"]:
        """Read one of the two formats."""
        value = self.env.get(PREFIX + name, "text")
        if value == "json":
            return "json"
        if value != "text":
            self.refuse(name, f"{value!r} is no log format", "text or json")
        return "text"

    def strong_secret(self, name: str) -> str:
        """Read a secret that must not be guessed; none is fine."""
        value = self.secret(name)
        if 0 < len(value) < _SHORT:
            self.refuse(name, f"is shorter than {_SHORT} characters", _MADE)
        return value

    def secret(self, name: str) -> str:
        """Read a secret from its variable, or from the file that ``<name>_FILE`` names, less its last newline."""
        value, file = self.env.get(PREFIX + name, ""), self.env.get(f"{PREFIX}{name}_FILE")
        if file is None:
            return value
        if value:
            self.refuse(f"{name}_FILE", f"is set, and so is {PREFIX}{name}", "setting only one of them")
            return ""
        try:
            with Path(file).expanduser().open("rb") as stream:
                text = stream.read(_MAX_SECRET).decode().removesuffix("\n").removesuffix("\r")
        except (OSError, UnicodeDecodeError) as error:
            told = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            self.refuse(f"{name}_FILE", f"{file} cannot be read: {told}", "the path of a file that holds nothing else")
            return ""
        if not text.strip():
            self.refuse(f"{name}_FILE", f"{file} is empty", "the path of a file that holds the secret")
        return text
