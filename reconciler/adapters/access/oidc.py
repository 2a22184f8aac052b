"""The keys of an OpenID Connect issuer, and the check of a token's signature by one of them.

The issuer is asked at the first login and not before: an issuer that is away keeps no daemon from starting. Its keys
are kept for an hour. For a token with an unknown key it is asked again, but once a minute at most; after a question
without an answer, again after five seconds. docs/decisions/0013-keys-of-an-issuer.md says why PyJWT's own client of
keys is not used.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from threading import Lock

import jwt
import structlog

from reconciler.access.oidc import is_safe_address
from reconciler.access.rights import NotAdmitted
from reconciler.errors import Transient
from reconciler.http_client import HttpClient
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

log = structlog.get_logger()

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures by a key that the issuer alone has. A token that asks for any other, such as none or HS256, is refused."""
_TYPES = frozenset({"RSA", "EC"})

_MOST = 1 << 20
"""Most bytes of an answer."""
_MOST_KEYS = 100
_MOST_TOKEN = 16 << 10
"""Characters of a token; other servers take fewer in a request's header."""
_KEPT = 3600.0
"""Seconds for which keys are taken without asking again."""
_PAUSE = 60.0
"""Seconds between two questions."""
_PAUSE_AWAY = 5.0
"""Seconds from a question without an answer to the next one."""
_WAIT = 1.0
"""Seconds that a login waits while another one asks the issuer: threads are few, and health needs one too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Key:
    """A public key that the issuer publishes."""

    identity: str  # its kid, or empty
    algorithm: str  # its alg, or empty: any of ALGORITHMS that its kind allows
    key: jwt.PyJWK


class OpenIdProvider:
    """Checks signatures by the keys of one issuer. Safe to use from several threads."""

    def __init__(
        self,
        issuer: str,
        *,
        authorities: Path | None = None,
        ticks: Callable[[], float] = time.monotonic,
        patience: timedelta = timedelta(seconds=5),
    ) -> None:
        """Take an issuer's address, and the PEM file of its authorities where they are not the system's.

        `patience` is for each of the two requests. Raises InvalidInput for a file without certificates.
        """
        self._issuer = issuer
        self._ticks = ticks
        self._http = HttpClient(
            timeout=patience.total_seconds(), authorities=authorities, authorities_from="OVERSPILL_OIDC_CA_FILE"
        )
        self._lock = Lock()
        self._keys: tuple[_Key, ...] = ()
        self._asked: float | None = None  # when the issuer was asked last
        self._learned: float | None = None  # when it answered last
        self._trouble = ""  # why it did not answer when it was asked last

    def claims(self, token: str) -> Mapping[str, Json]:
        """Return the claims of a token whose signature is right; `access.oidc.caller_of_claims` judges them.

        Raises NotAdmitted for any other token, and Transient while there are no keys of the issuer.
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
        """Return the keys that may have signed a token, and ask the issuer where need be."""
        keys = self._keys_with_id(identity)
        now = self._ticks()
        stale = self._learned is None or now - self._learned > _KEPT
        if keys and not stale:
            return keys
        # A login whose key is at hand goes on with it while another one asks.
        if self._lock.acquire(timeout=0 if keys else _WAIT):
            try:
                self._ask(now)
            finally:
                self._lock.release()
        keys = self._keys_with_id(identity)
        if not keys and (self._trouble or self._learned is None):
            raise Transient(f"asking {self._issuer} for its keys: {self._trouble or 'it has not answered yet'}")
        if not keys:
            raise NotAdmitted("the token is signed with a key that the issuer does not have", hint="log in again")
        return keys

    def _keys_with_id(self, identity: str | None) -> tuple[_Key, ...]:
        return tuple(key for key in self._keys if identity is None or key.identity == identity)

    def _ask(self, now: float) -> None:
        """Ask for the keys, unless that was done just now. The last ones stay where there is no answer."""
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
        """Discover where the keys are, and read them. Raises Transient."""
        about = self._get(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
        if about.get("issuer") != self._issuer:
            raise Transient(f"it calls itself {shortened(str(about.get('issuer')), 200)} (try that as the issuer)")
        address = about.get("jwks_uri")
        if not isinstance(address, str) or not is_safe_address(address):
            raise Transient("it names no https address for its keys")
        listed = self._get(address).get("keys")
        if not isinstance(listed, list):
            raise Transient("it lists no keys")
        keys = [_key(entry) for entry in listed[:_MOST_KEYS]]
        return tuple(key for key in keys if key is not None)

    def _get(self, url: str) -> dict[str, Json]:
        """Read an object of JSON. Raises Transient."""
        answer = self._http.send("GET", url, limit=_MOST)
        if answer.status != HTTPStatus.OK:
            raise Transient(f"{url} answers {answer.status}")
        if not isinstance(answer.json, dict):
            raise Transient(f"{url} does not answer with a JSON object")
        return answer.json


_SIGNATURE_ONLY: jwt.types.Options = {
    "verify_signature": True,
    "enforce_minimum_key_length": True,
    # access.oidc judges the rest, at a moment that is given.
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


def _identity(token: str) -> str | None:
    """Return the kid of a token, None where it has none. Raises NotAdmitted for a text that is no token."""
    try:
        if len(token) > _MOST_TOKEN:
            raise NotAdmitted("the token is too long")
        identity = jwt.get_unverified_header(token).get("kid")
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise NotAdmitted("the token is neither one of ours nor a JSON Web Token") from error
    return identity if isinstance(identity, str) else None


def _key(listed: Json) -> _Key | None:
    """Read one key of a JWK set; None for one that is broken, or not for signatures."""
    if not isinstance(listed, dict) or listed.get("use", "sig") != "sig":
        return None
    kind, algorithm = listed.get("kty"), listed.get("alg") or ""
    if not isinstance(kind, str) or not isinstance(algorithm, str) or kind not in _TYPES:
        return None
    if algorithm and algorithm not in ALGORITHMS:
        return None
    try:
        key = jwt.PyJWK(listed)
    except (jwt.PyJWTError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None
    return _Key(identity=str(listed.get("kid", "")), algorithm=algorithm, key=key)
