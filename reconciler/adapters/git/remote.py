"""The remote of the fleet repository: its address, and the credentials that may be offered to it."""

from __future__ import annotations

import ipaddress
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from reconciler.errors import InvalidInput
from reconciler.text.redaction import REDACTED, redacted, without_query

NAME = "fleet"
"""The remote's name inside the mirror, so that its address is in no argument list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The credentials of a remote.

    For https: a user name and a password or token; GitHub, GitLab and Gitea take any name beside a token. For ssh: a
    key and known hosts; ssh uses its defaults without them. The password reaches git's credential helper by the
    environment, for the exact address of this remote, so that a redirect to another one gets nothing. A netrc file is
    not read.
    """

    address: str | None = field(default=None, repr=False)
    """The repository that they are for; `check_address` withholds them from any other. Empty for none, None for the one
    that they are given with."""
    username: str = "x-access-token"
    password: str = field(default="", repr=False)
    password_file: Path | None = None
    """A file used instead of `password`. It is read anew for each call, so that a short-lived token can be replaced."""
    ssh_key: Path | None = None
    known_hosts: Path | None = None
    """No credential: it counts for every host."""
    logins_file: Path | None = None
    """Logins for https by exact address, as `git credential-store` has them; read anew for each call."""
    of_sources: bool = False
    """Whether they are for the repositories that templates are made from, which settings of their own are for."""
    withheld: bool = False
    """Whether `check_address` has taken a login out, which is for another repository."""

    @property
    def has_password(self) -> bool:
        """Whether there is a password for https."""
        return bool(self.password) or self.password_file is not None

    def current_password(self) -> str:
        """Return the password as it is now; empty where its file cannot be read."""
        if self.password_file is None:
            return self.password
        try:
            return self.password_file.read_text(encoding="utf-8").strip("\r\n")
        except (OSError, UnicodeDecodeError):
            return ""

    @property
    def remedy(self) -> str:
        """The settings that mend a login."""
        if self.withheld:
            return (
                "name the repository with --repo or OVERSPILL_REPO: OVERSPILL_GIT_PASSWORD and OVERSPILL_SSH_KEY are"
                " for that one alone, and are not sent to the origin of a checkout"
            )
        if self.of_sources:
            return (
                "add https://USER:TOKEN@HOST/PATH of this very address to the file of OVERSPILL_SOURCE_LOGINS_FILE, or"
                " set OVERSPILL_SOURCE_SSH_KEY for ssh; the login of the fleet repository is for that one alone"
            )
        return (
            "set OVERSPILL_GIT_PASSWORD_FILE, and OVERSPILL_GIT_USERNAME beside it; the token may be wrong, or expired"
        )

    def offered_to(self, url: str) -> Credentials:
        """Return what may be offered to an address: nothing secret where they are for another repository."""
        if self.address is None or (self.address and _same_repository(self.address, url)):
            return self
        secret = self.has_password or self.ssh_key is not None
        return replace(self, password="", password_file=None, ssh_key=None, withheld=secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A checked address; a password in it is moved from `url` to `credentials`."""

    url: str
    protocols: str
    credentials: Credentials

    def settings(self) -> Mapping[str, str]:
        """Return the git configuration of this remote and, for http, of its credential helper."""
        # A login follows no redirect but that of the first request, for which git asks the helper again by address; nor
        # does it follow alternates of a plain web server, which need more than this.
        settings = {f"remote.{NAME}.url": self.url, "http.followRedirects": "initial"}
        if self.protocols == "http":
            settings["http.proxy"] = ""  # for this machine alone: a proxy would read the login
        if self.url.startswith(("https:", "http:")):
            helper = _HELPER if self.credentials.has_password else _LOGINS if self.credentials.logins_file else ""
            if helper:
                address = urlunsplit(urlsplit(self.url)._replace(query="", fragment=""))
                settings[f"credential.{address}.helper"] = helper
                settings[f"credential.{address}.useHttpPath"] = "true"
        return settings

    @property
    def directory(self) -> Path | None:
        """The path of a repository on this machine, whether or not it is there; None for one elsewhere."""
        return Path(self.url.removeprefix("file://")) if self.protocols == "file" else None

    def is_at(self, url: str) -> bool:
        """Return whether an address that git names, with its path or without, is this remote's."""
        try:
            *server, path = _place(url)
            *own, _ = _place(self.url)
        except ValueError:  # no address at all
            return False
        return _same_repository(url, self.url) if path else server == own

    @property
    def shown(self) -> str:
        """The address in messages."""
        return redacted(without_query(self.url))

    def environment(self) -> Mapping[str, str]:
        """Return the environment of git, its credential helper and ssh."""
        ssh = ["ssh", "-oBatchMode=yes", "-oConnectTimeout=20", "-oControlMaster=no"]
        if self.credentials.ssh_key is not None:
            ssh += ["-oIdentitiesOnly=yes", "-i", str(self.credentials.ssh_key)]
        if self.credentials.known_hosts is not None:
            ssh += ["-oStrictHostKeyChecking=yes", f"-oUserKnownHostsFile={self.credentials.known_hosts}"]
        variables = {"GIT_ALLOW_PROTOCOL": self.protocols, "GIT_SSH_COMMAND": shlex.join(ssh)}
        if self.protocols in ("https", "http"):
            # libcurl looks there for a .netrc, whose logins are for any repository of a host, or for any host.
            variables["HOME"] = os.devnull
        if self.credentials.has_password:
            variables["OVERSPILL_GIT_USERNAME"] = self.credentials.username
        if self.credentials.password_file is not None:
            variables["OVERSPILL_GIT_PASSWORD_FILE"] = str(self.credentials.password_file.absolute())
        elif self.credentials.password:
            variables["OVERSPILL_GIT_PASSWORD"] = self.credentials.password
        elif self.credentials.logins_file is not None:
            variables["OVERSPILL_SOURCE_LOGINS_FILE"] = str(self.credentials.logins_file.absolute())
        return variables

    def redact(self, text: str) -> str:
        """Remove passwords, and the query of this address, from a message or a line of the log."""
        if password := self.credentials.current_password():
            text = text.replace(password, "***")
        _, mark, query = self.url.partition("?")
        if mark and query and "://" in self.url:
            text = text.replace(query, REDACTED)
        return redacted(re.sub(r"(?<=://)[^/@\s]+@", "***@", text))


# A shell function instead of a file, which would need a directory without noexec.
_HELPER = (
    '!f() { test "$1" = get || return 0; '
    'if test -n "$OVERSPILL_GIT_PASSWORD_FILE"; '
    'then password=$(tr -d "\\r\\n" < "$OVERSPILL_GIT_PASSWORD_FILE") || return 1; '
    "else password=$OVERSPILL_GIT_PASSWORD; fi; "
    'printf "username=%s\\npassword=%s\\n" "$OVERSPILL_GIT_USERNAME" "$password"; }; f'
)
# `git credential-store` removes a login that was refused from its file; here it may only read.
_LOGINS = '!f() { test "$1" = get || return 0; git credential-store --file="$OVERSPILL_SOURCE_LOGINS_FILE" get; }; f'
_SCP = re.compile(r"(?:[A-Za-z0-9_.+-]+@)?[A-Za-z0-9][A-Za-z0-9_.-]*:[^:].*")


def check_address(url: str, credentials: Credentials | None) -> Remote:
    """Check an address before git sees it.

    https, ssh (also as ``user@host:path``), file and plain paths are allowed, http only for this machine. Raises
    InvalidInput for anything else: git runs a program for addresses such as ``ext::sh -c ...``, and reads one that
    starts with a dash as an option.
    """
    given = (credentials or Credentials()).offered_to(url)
    shown = redacted(re.sub(r"(?<=://)[^/@\s]+@", "***@", without_query(url)))
    if not url or url.startswith("-") or not url.isprintable() or re.match(r"[A-Za-z0-9_+.-]+::", url):
        raise InvalidInput(
            f"repository URL {shown!r}: not an address that git may be given (try https://host/path.git)"
        )
    if "://" in url:
        return _with_scheme(url, given, shown)
    if _SCP.fullmatch(url) and not Path(url).exists():
        return Remote(url=url, protocols="ssh", credentials=given)
    # git runs in the mirror's directory, so relative paths are made absolute.
    return Remote(url=str(Path(url).resolve()), protocols="file", credentials=given)


def _with_scheme(url: str, given: Credentials, shown: str) -> Remote:
    """Check an address of the form ``scheme://...``, and move its password to the credentials."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        raise InvalidInput(f"repository URL {shown!r}: {error}") from error
    if parts.scheme not in ("https", "ssh", "file") and not (parts.scheme == "http" and _is_loopback(host)):
        raise InvalidInput(f"repository URL {shown!r}: only https, ssh and file are allowed")
    if host.startswith("-") or (parts.username or "").startswith("-"):
        raise InvalidInput(f"repository URL {shown!r}: the host looks like an option")
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    netloc = parts.netloc.rpartition("@")[2]
    if parts.scheme == "ssh":
        netloc = f"{parts.username}@{netloc}" if name else netloc
        return Remote(url=urlunsplit(parts._replace(netloc=netloc)), protocols="ssh", credentials=given)
    if name and not password and not given.has_password:
        # https://token@host/... : a user without a password is a token, which is valid with any name.
        name, password = "", name
    credentials = replace(
        given, username=name or given.username, password=given.password or ("" if given.password_file else password)
    )
    return Remote(url=urlunsplit(parts._replace(netloc=netloc)), protocols=parts.scheme, credentials=credentials)


_PORTS = {"https": 443, "http": 80, "ssh": 22}


def _same_repository(one: str, other: str) -> bool:
    """Return whether two addresses name one repository: by scheme, host, port and path."""
    try:
        return one == other or _place(one) == _place(other)
    except ValueError:  # no address at all, which `check_address` refuses
        return False


def _place(url: str) -> tuple[str, str, int | None, str]:
    """Return what tells a repository from others; raises ValueError for an invalid port or host."""
    if "://" not in url:
        if not _SCP.fullmatch(url) or Path(url).exists():
            return "file", "", None, str(Path(url).resolve())
        host, _, path = url.partition(":")
        url = f"ssh://{host}/{path.removeprefix('/')}"
    parts = urlsplit(url)
    path = parts.path.rstrip("/").removesuffix(".git")
    return parts.scheme, (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme), path


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine, for which plain http is safe."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
