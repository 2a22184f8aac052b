"""Signatures of commits: those that we make, and those that the source branch has to have.

Keys are files, read again for each batch of commits, so that a rotated key counts at once. ssh-keygen and gpg get a
copy in a directory of our own, since mounted files are often readable by a group, which ssh-keygen refuses, and since
gpg wants a home to write to. No key or passphrase is in an argument list.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from reconciler.adapters import operating_system
from reconciler.errors import InvalidInput, Transient, one_line
from reconciler.model.ids import CommitId
from reconciler.text.redaction import redacted

_SECONDS = 30
"""Time-out of one signature."""
_MOST_KEY = 256 << 10
"""Bytes of a key file, or of a file of allowed signers."""
_NAMELESS_KEY = re.compile(rb"\s*(?:sk-)?(?:ssh|ecdsa)-\S+\s+AAAA")
"""A line of a public key as `ssh-keygen` writes it."""
_WHOLE = (
    "see that the key is whole and private, and that OVERSPILL_SIGNING_PASSPHRASE_FILE holds its passphrase, if it has"
    " one"
)
_PKCS8 = (
    "see that OVERSPILL_SIGNING_PASSPHRASE_FILE holds its passphrase, if it has one; an ed25519 key in PKCS#8 form,"
    " which OpenSSH reads from 9.6 on alone, gets OpenSSH's own form by `ssh-keygen -p -f KEY` of such a version, or"
    " make a new key by `ssh-keygen -t ed25519 -f signing-key`"
)


class SignatureFormat(StrEnum):
    """The format of a signing key."""

    SSH = "ssh"
    OPENPGP = "openpgp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKey:
    """A private key that our commits are signed with."""

    key: Path
    """In OpenSSH's or PEM form, with line ends of any system, or an OpenPGP secret key, armoured or not."""
    passphrase: Path | None = None
    """A file that holds its passphrase."""

    def format(self) -> SignatureFormat:
        """Tell the format of the key. Raises InvalidInput for a file that holds none."""
        try:
            return key_format(_read(self.key))
        except OSError as error:
            raise _unreadable(self, error) from error
        except InvalidInput as error:
            raise InvalidInput(f"signing with {self.key}: {error}") from error

    def content(self) -> tuple[bytes, bytes]:
        """Read the key and its passphrase, empty for none. Raises InvalidInput."""
        try:
            phrase = _read(self.passphrase).rstrip(b"\r\n") if self.passphrase else b""
            return _read(self.key), phrase
        except OSError as error:
            raise _unreadable(self, error) from error

    def digest(self) -> str:
        """Identify the content of both files. Raises InvalidInput for one that cannot be read."""
        return hashlib.sha256(b"\0".join(self.content())).hexdigest()


def key_format(key: bytes) -> SignatureFormat:
    """Tell the format of a private key by its content. Raises InvalidInput for a public one."""
    if b"PGP PUBLIC KEY" in key or key.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        raise InvalidInput("it is a public key (try the private one beside it)")
    if b"BEGIN PGP" in key or (key[:1] >= b"\x80" and b"-----BEGIN" not in key):
        return SignatureFormat.OPENPGP
    if b"PRIVATE KEY-----" in key:
        return SignatureFormat.SSH
    raise InvalidInput("it is no private key (try `ssh-keygen -t ed25519 -f signing-key`)")


def _unreadable(signing: SigningKey, error: OSError) -> InvalidInput:
    return InvalidInput(
        f"signing with {signing.key}: {error.filename}: {error.strerror} (try a path in OVERSPILL_SIGNING_KEY_FILE that"
        " this user can read)"
    )


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a directory for the files of a moment. Raises Transient where its disk takes nothing, as a full one."""
    try:
        with tempfile.TemporaryDirectory(prefix="ovs-", ignore_cleanup_errors=True) as made:
            yield Path(made)
    except OSError as error:
        raise Transient(f"writing {error.filename or 'a temporary file'}: {error.strerror or error}") from error


@contextlib.contextmanager
def open_signer(signing: SigningKey) -> Iterator[Signer]:
    """Read the key, and yield what signs with it. Raises InvalidInput where it cannot."""
    doing = f"signing with {signing.key}"
    key, phrase = signing.content()
    with scratch_directory() as home:
        try:
            if key_format(key) is SignatureFormat.SSH:
                yield _ssh_signer(home, key, phrase)
            else:
                yield _openpgp_signer(home, key, phrase)
        except InvalidInput as error:
            raise InvalidInput(f"{doing}: {error}") from error
        finally:
            if (home / "gnupg").is_dir():
                _end_agent(home / "gnupg")


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs the bytes of commits by one command."""

    command: tuple[str, ...]
    environment: Mapping[str, str]

    def sign(self, payload: bytes) -> str:
        """Return the armoured signature. Raises InvalidInput."""
        return _run(self.command, payload, self.environment).decode(errors="replace").rstrip("\n")


def signed(raw: bytes, parents: Mapping[str, str], signer: Signer) -> tuple[CommitId, bytes]:
    """Sign a commit object, with parents replaced by their signed versions; return its id and content.

    The signature stands behind the other headers, as git writes it, each further line behind a blank.
    """
    head, separator, message = raw.partition(b"\n\n")
    lines = [_reparented(line, parents) for line in head.split(b"\n")]
    payload = b"\n".join(lines) + separator + message
    signature = signer.sign(payload).replace("\n", "\n ").encode()
    content = b"\n".join(lines) + b"\ngpgsig " + signature + separator + message
    name = hashlib.sha1(b"commit %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()
    return CommitId(name), content


def _reparented(line: bytes, parents: Mapping[str, str]) -> bytes:
    key, _, parent = line.decode(errors="surrogateescape").partition(" ")
    if key == "parent" and parent in parents:
        return f"parent {parents[parent]}".encode()
    return line


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSigners:
    """Whose signatures the source branch has to have."""

    ssh: Path | None = None
    """In the form of ssh-keygen's allowed_signers: ``ann@example.com ssh-ed25519 AAAA...`` on each line."""
    openpgp: Path | None = None
    """OpenPGP public keys, armoured or not, one behind the other."""

    def digest(self) -> str:
        """Identify the content of the files. Raises InvalidInput for one that cannot be read."""
        return hashlib.sha256(b"\0".join(_read_allowed(path) for path in (self.ssh, self.openpgp) if path)).hexdigest()

    @contextlib.contextmanager
    def trusted(self) -> Iterator[tuple[Sequence[tuple[str, str]], Mapping[str, str]]]:
        """Yield the settings and the environment by which `git verify-commit` trusts these signers alone."""
        with scratch_directory() as made:
            home = made / "gnupg"
            home.mkdir(mode=0o700)
            allowed = made / "allowed_signers"
            allowed.write_bytes(_read_signers(self.ssh) if self.ssh else b"")
            settings = [("gpg.ssh.allowedSignersFile", str(allowed)), ("gpg.x509.program", "false")]
            environment = {"GNUPGHOME": str(home)}
            if self.ssh is None:
                settings.append(("gpg.ssh.program", "false"))
            try:
                if self.openpgp is None:
                    settings.append(("gpg.program", "false"))
                else:
                    _run(("gpg", "--batch", "--quiet", "--import"), _read_allowed(self.openpgp), environment)
                yield settings, environment
            finally:
                if self.openpgp is not None:
                    _end_agent(home)


def _read(path: Path) -> bytes:
    with path.expanduser().open("rb") as stream:
        return stream.read(_MOST_KEY)


def _read_signers(path: Path) -> bytes:
    """Read a file of ssh-keygen's allowed_signers. Raises InvalidInput for one of public keys alone.

    Without a name before it, the type of a key is the name of who signs to ssh-keygen, which passes the line over.
    """
    content = _read_allowed(path)
    lines = [line for line in content.splitlines() if line.strip() and not line.startswith(b"#")]
    if lines and all(map(_NAMELESS_KEY.match, lines)):
        raise InvalidInput(
            f"reading the allowed signers: {path} has public keys without the names of who signs by them (begin each"
            " line with an address: ann@example.com ssh-ed25519 ...)"
        )
    return content


def _read_allowed(path: Path) -> bytes:
    try:
        return _read(path)
    except OSError as error:
        raise InvalidInput(
            f"reading the allowed signers: {path}: {error.strerror} (try a path that this user can read)"
        ) from error


def _ssh_signer(home: Path, key: bytes, phrase: bytes) -> Signer:
    copy, secret, ask = home / "key", home / "phrase", home / "ask"
    _write(copy, b"".join(b"%b\n" % line for line in key.splitlines()), 0o600)
    _write(secret, phrase, 0o600)
    _write(ask, f"#!/bin/sh\ncat {shlex.quote(str(secret))}\n".encode(), 0o700)
    environment = {"SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": ":0"}
    if b"OPENSSH PRIVATE KEY" not in key:  # another form does not hold the public key, which ssh-keygen looks for
        remedy = _PKCS8 if b"BEGIN PRIVATE KEY" in key or b"BEGIN ENCRYPTED PRIVATE KEY" in key else _WHOLE
        _write(home / "key.pub", _run(("ssh-keygen", "-y", "-f", str(copy)), b"", environment, remedy), 0o600)
    return Signer(("ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(copy)), environment)


def _openpgp_signer(home: Path, key: bytes, phrase: bytes) -> Signer:
    gnupg, secret = home / "gnupg", home / "phrase"
    gnupg.mkdir(mode=0o700)
    _write(secret, phrase, 0o600)
    environment = {"GNUPGHOME": str(gnupg)}
    quiet = ("gpg", "--batch", "--quiet", "--no-tty", "--pinentry-mode", "loopback", "--passphrase-file", str(secret))
    _run((*quiet, "--import"), key, environment)
    return Signer((*quiet, "--armor", "--detach-sign"), environment)


def _write(path: Path, content: bytes, mode: int) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as stream:
        stream.write(content)


def _run(command: Sequence[str], given: bytes, environment: Mapping[str, str], remedy: str = _WHOLE) -> bytes:
    """Run ssh-keygen or gpg; raises InvalidInput with its own words and a remedy."""
    kept = operating_system.foreign_environment(without=("SSH_", "GPG_"))
    try:
        done = subprocess.run(
            command,
            input=given,
            env={**kept, "LC_ALL": "C", "LANGUAGE": "C", **environment},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise InvalidInput(f"{command[0]} is not on the PATH (try installing OpenSSH, or GnuPG)") from error
    except subprocess.TimeoutExpired as error:
        raise InvalidInput(f"{command[0]}: no answer for {_SECONDS} s, stopped waiting") from error
    if done.returncode:
        lines = redacted(done.stderr.decode(errors="replace")).splitlines()
        said = one_line("; ".join(line.strip() for line in lines if line.strip()))[:500]
        raise InvalidInput(f"{command[0]}: {said or 'it failed'} (try: {remedy})")
    return done.stdout


def _end_agent(home: Path) -> None:
    """End the agent that gpg has left behind for a home."""
    if shutil.which("gpgconf"):
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            subprocess.run(
                ["gpgconf", "--homedir", str(home), "--kill", "all"],
                env=operating_system.foreign_environment(), capture_output=True, timeout=_SECONDS, check=False,
            )  # fmt: skip # a command line
