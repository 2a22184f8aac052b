"""Reads environment variables, a method for each kind of value, and collects their problems."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from reconciler.access.oidc import Issuer, is_safe_address
from reconciler.access.rate_limit import Rate, parse_rate
from reconciler.core.engines import WEBHOOKS
from reconciler.core.engines.webhook import read_endpoint
from reconciler.environment import PREFIX
from reconciler.errors import Problem
from reconciler.model.events.event import Endpoint
from reconciler.model.units import ONE, parse_duration, parse_quantity, quantity_hint

_BRANCH = re.compile(r"(?!.*(\.\.|@\{|//|\.lock(/|$)|/\.))[A-Za-z0-9_][\w./@+-]*(?<![/.])", re.ASCII)
_LISTEN = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\s:/\[\]]*)):([0-9]{1,5})")
_TRAILER = re.compile(r"[A-Za-z][A-Za-z0-9-]*: \S.*")
_MOST_TRAILERS, _LONGEST_TRAILER = 10, 200
_MAX_SECRET = 64 << 10
_SHORT = 16
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_MADE = "the output of `openssl rand -hex 32`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """An address to listen at."""

    host: str
    port: int


class Reader:
    """Reads variables one by one and collects their problems; an invalid one reads as its default."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self.env = env
        self.problems: list[Problem] = []

    def refuse(self, name: str, message: str, example: str) -> None:
        """Add the problem of a variable."""
        self.problems.append(Problem(path=PREFIX + name, message=message, hint=f"try {example}"))

    def text(self, name: str, default: str) -> str:
        """Read one line."""
        value = self.env.get(PREFIX + name, default)
        if not value.isprintable():
            self.refuse(name, "holds control characters", default or "one line of plain text")
            return default
        return value

    def label(self, name: str, default: str) -> str:
        """Read the name of a label of Prometheus."""
        value = self.text(name, default)
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,99}", value) is None or value.startswith("__"):
            self.refuse(name, f"{value!r} is not the name of a label", default)
            return default
        return value

    def branch(self, name: str, default: str) -> str:
        """Read the name of a branch, at least as strictly as git."""
        value = self.text(name, default)
        if _BRANCH.fullmatch(value) is None or len(value) > 200:  # noqa: PLR2004 - a file name of 255 has to hold it
            self.refuse(name, f"{value!r} is not the name of a branch", default)
            return default
        return value

    def path(self, name: str) -> Path | None:
        """Read a path, which may not exist."""
        value = self.text(name, "")
        return Path(value).expanduser() if value else None

    def programs(self, name: str) -> frozenset[str]:
        """Read names of programs, separated by commas."""
        names = [program.strip() for program in self.text(name, "").split(",")]
        wrong = [program for program in names if not program or " " in program]
        if wrong and names != [""]:
            self.refuse(name, f"{wrong[0]!r} is not the name of a program", "aws,gke-gcloud-auth-plugin")
            return frozenset()
        return frozenset(names) - {""}

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

    def size(self, name: str, default: int) -> int:
        """Read a number of bytes as Kubernetes writes it, of at least a mebibyte."""
        value = self.env.get(PREFIX + name)
        if value is None:
            return default
        try:
            size = parse_quantity(value) // ONE
        except ValueError as error:
            self.problems.append(Problem(path=PREFIX + name, message=str(error), hint=quantity_hint(value)))
            return default
        if size < 1 << 20:
            self.refuse(name, f"{value!r} is less than 1Mi", "1Gi")
            return default
        return size

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

    def pair(self, name: str, other: str) -> tuple[Path, Path] | None:
        """Read two paths that need each other."""
        first, second = self.path(name), self.path(other)
        if first is not None and second is not None:
            return first, second
        if first is not None or second is not None:
            missing, given = (other, name) if second is None else (name, other)
            self.refuse(missing, f"is not set, and {PREFIX}{given} is", "setting both")
        return None

    def rate(self, name: str) -> Rate | None:
        """Read a rate, such as ``50/s``."""
        value = self.env.get(PREFIX + name)
        if value is None:
            return None
        try:
            return parse_rate(value)
        except ValueError as error:
            self.refuse(name, str(error), "50/s or 600/m")
            return None

    def issuer(self, name: str) -> Issuer | None:
        """Read an OpenID Connect issuer: address, audience and claims."""
        url, audience = self.text(f"{name}_ISSUER", ""), self.text(f"{name}_AUDIENCE", "")
        name_claim, groups_claim = self.text(f"{name}_NAME_CLAIM", ""), self.text(f"{name}_GROUPS_CLAIM", "groups")
        if not url and not audience:
            return None
        if not url:
            self.refuse(f"{name}_ISSUER", f"is not set, and {PREFIX}{name}_AUDIENCE is", "setting both")
        elif not is_safe_address(url):
            self.refuse(f"{name}_ISSUER", "is not an https address without a login", "https://login.example.com/realm")
        if not audience:
            self.refuse(f"{name}_AUDIENCE", f"is not set, and {PREFIX}{name}_ISSUER is", "our client id there")
        return Issuer(url=url, audience=audience, name_claim=name_claim, groups_claim=groups_claim)

    def endpoints(self, name: str) -> tuple[Endpoint, ...]:
        """Read ``ENGINE=URL`` words, each once, with the secret of its engine, or else the one for all of them."""
        problems_before = len(self.problems)
        shared = self.strong_secret(f"{name}_SECRET")
        secrets = {engine: self.strong_secret(f"{name}_SECRET_{engine.upper()}") or shared for engine in WEBHOOKS}
        unread = len(self.problems) > problems_before
        endpoints = []
        for word in dict.fromkeys(self.env.get(PREFIX + name, "").split()):
            try:
                engine, url = read_endpoint(word, WEBHOOKS)
            except ValueError as error:
                self.problems.append(Problem(path=PREFIX + name, message=str(error)))
                continue
            secret_path = WEBHOOKS[engine].secret_path
            endpoints.append(Endpoint(engine=engine, url=url, secret=secrets[engine], secret_path=secret_path))
        if not unread and any(not endpoint.secret for endpoint in endpoints):
            self.refuse(f"{name}_SECRET", "is not set, and engines are told of pushes with a signature only", _MADE)
        return tuple(endpoints)

    def address(self, name: str, *, token: bool = True) -> str:
        """Read the address of an HTTP server, without credentials; `token` says whether a setting has those."""
        value = self.text(name, "")
        try:
            parts = urlsplit(value)
            whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # an invalid port or IPv6 address
            parts, whole = urlsplit(""), False
        if not value:
            return ""
        if "@" in value:
            self.refuse(
                name, "holds a user or a password", f"the address without{token * f', and {PREFIX}{name}_TOKEN'}"
            )
        elif not whole or parts.query or parts.fragment or re.search(r"[^!-~]", value):
            self.refuse(name, f"{value!r} is not the address of a server", "http://prometheus.monitoring:9090")
        else:
            return value
        return ""

    def trailers(self, name: str) -> tuple[str, ...]:
        """Read lines for the end of commit messages, none with a key of ours, which programs read back."""
        lines = tuple(line.strip() for line in self.env.get(PREFIX + name, "").splitlines() if line.strip())
        for line in lines:
            wrong = _TRAILER.fullmatch(line) is None or not line.isprintable() or line.lower().startswith("overspill-")
            if wrong or len(line) > _LONGEST_TRAILER:
                self.refuse(name, f"{line[:80]!r} is no trailer of yours", "Signed-off-by: Bot <bot@example.com>")
                return ()
        if len(lines) > _MOST_TRAILERS:
            self.refuse(name, f"has {len(lines)} lines", f"at most {_MOST_TRAILERS}")
            return ()
        return lines

    def email(self, name: str, default: str) -> str:
        """Read a mail address that is valid in a commit."""
        value = self.text(name, default)
        return value if self._is_email(name, value, default) else default

    def emails(self, name: str) -> tuple[str, ...]:
        """Read mail addresses with blanks between."""
        values = self.text(name, "").split()
        return tuple(value for value in values if self._is_email(name, value, "overspill@example.com"))

    def _is_email(self, name: str, value: str, example: str) -> bool:
        """Refuse what is not a mail address that is valid in a commit."""
        if re.fullmatch(r"[^\s<>]+@[^\s<>]+", value) is None:
            self.refuse(name, f"{value!r} is not a mail address", example)
            return False
        return True

    def flag(self, name: str) -> bool:
        """Read a boolean, false if unset."""
        value = self.env.get(PREFIX + name, "false").lower()
        if value not in _WORDS:
            self.refuse(name, f"{value!r} is neither true nor false", "true, or leaving it out")
        return _WORDS.get(value, False)

    def log_format(self, name: str) -> Literal["text", "json"]:
        """Read the format of the log, text if unset."""
        value = self.env.get(PREFIX + name, "text")
        if value == "json":
            return "json"
        if value != "text":
            self.refuse(name, f"{value!r} is no log format", "text or json")
        return "text"

    def strong_secret(self, name: str) -> str:
        """Read a secret of sufficient length; it may be unset."""
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
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            self.refuse(
                f"{name}_FILE", f"{file} cannot be read: {reason}", "the path of a file that holds nothing else"
            )
            return ""
        if not text.strip():
            self.refuse(f"{name}_FILE", f"{file} is empty", "the path of a file that holds the secret")
        return text
