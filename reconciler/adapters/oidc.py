"""The keys of an OpenID Connect issuer, and whether a token is signed with one of them.

The issuer is asked at the first login and not before, so that one that is away keeps no daemon from starting. Its keys
are kept for an hour; for a token with a key that is not among them it is asked again, but once a minute at most. One
that did not answer is asked again after five seconds.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from threading import Lock

import jwt
import structlog

from reconciler.access.oidc import is_safe
from reconciler.access.rights import NotAdmitted
from reconciler.adapters.web import describe_failure, opener
from reconciler.errors import InvalidInput, Transient
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

log = structlog.get_logger()

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures by a key that the issuer alone has. A token that asks for any other, such as none or HS256, is refused."""
_TYPES = frozenset({"RSA", "EC"})

_MOST = 1 << 20
_MOST_KEYS = 100
_MOST_TOKEN = 16 << 10
"""Characters of a token; more than a header of a request holds elsewhere."""
_KEPT = 3600.0
_PAUSE = 60.0
_PAUSE_AWAY = 5.0
"""Seconds from a question that was not answered to the next one."""
_WAIT = 1.0
"""Seconds that a login waits for another one's question to the issuer; threads are few, and health needs one too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """A key of the issuer; no `identity` and no `algorithm` where it does not say."""

    identity: str
    algorithm: str
    key: jwt.PyJWK


class OpenIdProvider:
    """Knows which tokens an issuer has signed. Safe to use from several threads."""

    def __init__(
        self,
        issuer: str,
        *,
        authorities: Path | None = None,
        ticks: Callable[[], float] = time.monotonic,
        patience: timedelta = timedelta(seconds=5),
    ) -> None:
        """Take an issuer's address, and the file of the authorities that vouch for it where the system's do not.

        Raises InvalidInput when there is no such file. `patience` is for each of the two questions.
        """
        self._issuer = issuer
        self._ticks = ticks
        self._patience = patience.total_seconds()
        try:
            self._opener = opener(authorities)
        except OSError as error:
            raise InvalidInput(
                f"reading OVERSPILL_OIDC_CA_FILE: {authorities}: {error.strerror or error} (try a file of PEM)"
            ) from error
        self._lock = Lock()
        self._keys: tuple[_Key, ...] = ()
        self._asked: float | None = None
        self._learned: float | None = None
        self._trouble = ""

    def claims(self, token: str) -> Mapping[str, Json]:
        """Return what a token says, if its signature is right; what it says is still to be judged.

        Raises NotAdmitted when it is not, and Transient when the issuer's keys cannot be had.
        """
        identity = _identity(token)
        for key in self._candidates(identity):
            allowed = [key.algorithm] if key.algorithm else list(ALGORITHMS)
            try:
                return dict(jwt.decode(token, key.key.key, algorithms=allowed, options=_SIGNATURE_ONLY))
            except (jwt.PyJWTError, TypeError, ValueError):  # another kind of key, or not its signature
                continue
        raise NotAdmitted("the token's signature is not right", hint="log in again")

    def _candidates(self, identity: str | None) -> tuple[_Key, ...]:
        """Return the keys that may have signed a token, asking the issuer where need be."""
        found = self._named(identity)
        now = self._ticks()
        stale = self._learned is None or now - self._learned > _KEPT
        if found and not stale:
            return found
        # Whoever has a key at hand goes on with it while somebody else asks.
        if self._lock.acquire(timeout=0 if found else _WAIT):
            try:
                self._ask(now)
            finally:
                self._lock.release()
        found = self._named(identity)
        if not found and (self._trouble or self._learned is None):
            raise Transient(f"asking {self._issuer} for its keys: {self._trouble or 'it has not answered yet'}")
        if not found:
            raise NotAdmitted("the token is signed with a key that the issuer does not have", hint="log in again")
        return found

    def _named(self, identity: str | None) -> tuple[_Key, ...]:
        return tuple(key for key in self._keys if identity is None or key.identity == identity)

    def _ask(self, now: float) -> None:
        """Ask for the keys unless that was done just now. Those that are known stay where nobody answers."""
        if self._asked is not None and now - self._asked < (_PAUSE_AWAY if self._trouble else _PAUSE):
            return
        self._asked = now
        try:
            self._keys = self._fetch()
        except Transient as error:
            if not self._trouble:
                line = f"logins by {self._issuer} cannot be checked with new keys: {error}"
                log.warning("no keys", line=line)
            self._trouble = str(error)
            return
        self._learned, self._trouble = now, ""

    def _fetch(self) -> tuple[_Key, ...]:
        """Find out where the keys are, and read them. Raises Transient."""
        about = self._get(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
        if about.get("issuer") != self._issuer:
            raise Transient(f"it calls itself {shortened(str(about.get('issuer')), 200)} (try that as the issuer)")
        where = about.get("jwks_uri")
        if not isinstance(where, str) or not is_safe(where):
            raise Transient("it names no https address for its keys")
        listed = self._get(where).get("keys")
        if not isinstance(listed, list):
            raise Transient("it lists no keys")
        keys = [_key(one) for one in listed[:_MOST_KEYS]]
        return tuple(key for key in keys if key is not None)

    def _get(self, url: str) -> dict[str, Json]:
        """Read an object of JSON. Raises Transient."""
        end = time.monotonic() + self._patience
        body = b""
        try:
            with self._opener.open(url, timeout=self._patience) as response:
                status = int(response.status)
                while len(body) <= _MOST and (part := response.read1(_MOST)):
                    body += part
                    if time.monotonic() > end:  # one that drips would keep us for ever
                        raise TimeoutError
        except (OSError, HTTPException, ValueError) as error:
            raise Transient(describe_failure(error, authorities="OVERSPILL_OIDC_CA_FILE")) from error
        if status != HTTPStatus.OK:
            raise Transient(f"{url} answers {status}")
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise Transient(f"{url} does not answer in JSON") from error
        if not isinstance(value, dict):
            raise Transient(f"{url} does not answer with an object")
        return value


_SIGNATURE_ONLY: jwt.types.Options = {
    "verify_signature": True,
    "enforce_minimum_key_length": True,
    # The rest is judged by core.claims, at a moment that is given.
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


def _identity(token: str) -> str | None:
    """Return which key a token says it is signed with, None where it does not say. Raises NotAdmitted for no token."""
    try:
        if len(token) > _MOST_TOKEN:
            raise NotAdmitted("the token is too long")
        identity = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise NotAdmitted("the token is neither one of ours nor a JSON Web Token") from error
    return identity if isinstance(identity, str) else None


def _key(listed: Json) -> _Key | None:
    """Read one key; None for what is no public key that signs, as in a list for several purposes."""
    if not isinstance(listed, dict) or listed.get("kty") not in _TYPES or listed.get("use", "sig") != "sig":
        return None
    algorithm = listed.get("alg") or ""
    if algorithm and algorithm not in ALGORITHMS:
        return None
    try:
        key = jwt.PyJWK(listed)
    except (jwt.PyJWTError, TypeError, ValueError):
        return None
    return _Key(identity=str(listed.get("kid", "")), algorithm=algorithm, key=key)
