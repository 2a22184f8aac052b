"""The certificate of the HTTP server, read again when its files have changed."""

from __future__ import annotations

import ssl
from pathlib import Path
from threading import Lock

import structlog

from reconciler.errors import InvalidInput

log = structlog.get_logger()

_Stamp = tuple[tuple[int, int, int], ...]


class Certificate:
    """A certificate with its key, in two files of PEM.

    Each new connection checks whether they have changed. A pair that does not fit, as when one file is written before
    the other, is left for the next change, and the last good one is shown meanwhile.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        """Read both. Raises InvalidInput when they are no pair."""
        self._certificate, self._key = certificate, key
        self._lock = Lock()
        self._stamp = self._read_stamp()
        self.context = self._good = self._read()
        """`context` is what a server listens with."""
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _first: ssl.SSLContext) -> None:
        """Have a new connection show the current certificate; called as each handshake begins, with a name or not."""
        with self._lock:
            stamp = self._read_stamp()
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._good = self._read()
                except InvalidInput as error:
                    log.warning("certificate", line=f"{error}; the last good certificate stays in use")
                else:
                    log.info("certificate", line=f"read {self._certificate} again")
            connection.context = self._good

    def _read_stamp(self) -> _Stamp:
        """Return times and numbers that change with each version of the files; nothing while one is missing."""
        try:
            stats = [path.stat() for path in (self._certificate, self._key)]
        except OSError:
            return ()
        return tuple((stat.st_mtime_ns, stat.st_size, stat.st_ino) for stat in stats)

    def _read(self) -> ssl.SSLContext:
        """Make the context that Python recommends for servers, TLS 1.2 at least, with the two files."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        for path in (self._certificate, self._key):
            try:
                path.open("rb").close()
            except OSError as error:
                raise InvalidInput(f"reading {path}: {error.strerror} (try another path)") from error
        try:
            context.load_cert_chain(self._certificate, self._key, password=_refuse_password)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"reading {self._certificate} and {self._key}: {_describe_ssl_error(error)}"
                " (try a certificate with its chain and its unencrypted key, both as PEM)"
            ) from error
        return context


def _refuse_password() -> str:
    """Refuse an encrypted key: OpenSSL would ask a terminal for its password."""
    raise ValueError("the key is encrypted")


def _describe_ssl_error(error: Exception) -> str:
    """Say in words what OpenSSL says in a code."""
    if not isinstance(error, ssl.SSLError):
        return str(error)
    if error.reason == "KEY_VALUES_MISMATCH":
        return "the key is another certificate's"
    return "they are no certificate and key" if error.reason is None else error.reason.lower().replace("_", " ")
