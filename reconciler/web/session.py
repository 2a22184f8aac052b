"""Sessions: who is signed in, sealed in a cookie, so that nothing of them is kept here or on a disk.

The cookie is encrypted and signed with a key that is made when the daemon starts, or that a setting holds; with the
first kind a restart signs everybody out. A session holds the token that somebody signed in with, or what the issuer
said of them, and is judged anew with each request: a token that is taken out of the access file ends it at once.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken

from reconciler.model.workload import Json

_RANDOM = 24
"""Bytes of what nobody may guess."""
_MOST_COOKIE = 3800
"""Characters of a cookie; browsers keep 4096 bytes with its name and attributes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Who is signed in."""

    csrf: str
    """What each form of theirs has to send back."""
    token: str = ""
    """The token that they signed in with; empty for those who came by the issuer."""
    claims: Mapping[str, Json] | None = None
    """What the issuer said of them; None for those who came by a token."""
    began_at: datetime
    """When they signed in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginAttempt:
    """A way to the issuer and back that is under way."""

    state: str
    nonce: str
    verifier: str
    """The secret of PKCE, whose hash the issuer has."""
    target: str
    """The page to go on with."""

    @property
    def challenge(self) -> str:
        """The hash of the verifier (RFC 7636, S256)."""
        return base64.urlsafe_b64encode(sha256(self.verifier.encode()).digest()).decode().rstrip("=")


def unguessable() -> str:
    """Return random text."""
    return secrets.token_urlsafe(_RANDOM)


def new_attempt(target: str) -> LoginAttempt:
    """Begin a way to the issuer."""
    return LoginAttempt(state=unguessable(), nonce=unguessable(), verifier=secrets.token_urlsafe(48), target=target)


def is_same(given: str, expected: str) -> bool:
    """Compare two texts in constant time; an empty one is the same as none."""
    return bool(expected) and hmac.compare_digest(given.encode(), expected.encode())


class Seal:
    """Seals and opens cookies. Safe to use from several threads."""

    def __init__(self, secret: str = "", *, lasting: timedelta = timedelta(hours=8)) -> None:
        """Take a secret of at least 16 characters, or none to make a key; sessions last `lasting`."""
        key = sha256(f"overspill session\n{secret}".encode()).digest() if secret else secrets.token_bytes(32)
        self._fernet = Fernet(base64.urlsafe_b64encode(key))
        self.lasting = lasting

    def seal_session(self, session: Session) -> str:
        """Seal a session. Raises ValueError where it is too long for a cookie."""
        text = self._seal(
            {"session": [session.csrf, session.token, session.claims, session.began_at.timestamp()]},
            session.began_at,
        )
        if len(text) > _MOST_COOKIE:
            raise ValueError("the session is too long for a cookie")
        return text

    def open_session(self, text: str, now: datetime) -> Session | None:
        """Open a session; None for one that is over, or that is not ours."""
        content = self._open(text, now, self.lasting, "session")
        if not isinstance(content, list):
            return None
        csrf, token, claims, began = content
        return Session(csrf=csrf, token=token, claims=claims, began_at=datetime.fromtimestamp(began, now.tzinfo))

    def seal_attempt(self, attempt: LoginAttempt, now: datetime) -> str:
        """Seal a way to the issuer."""
        return self._seal({"attempt": [attempt.state, attempt.nonce, attempt.verifier, attempt.target]}, now)

    def open_attempt(self, text: str, now: datetime) -> LoginAttempt | None:
        """Open a way to the issuer; None for one that took too long, or that is not ours."""
        content = self._open(text, now, timedelta(minutes=10), "attempt")
        if not isinstance(content, list):
            return None
        state, nonce, verifier, target = content
        return LoginAttempt(state=state, nonce=nonce, verifier=verifier, target=target)

    def _seal(self, content: Json, now: datetime) -> str:
        data = json.dumps(content, separators=(",", ":")).encode()
        return self._fernet.encrypt_at_time(data, int(now.timestamp())).decode()

    def _open(self, text: str, now: datetime, lasting: timedelta, kind: str) -> Json:
        try:
            data = self._fernet.decrypt_at_time(
                text.encode(), ttl=int(lasting.total_seconds()), current_time=int(now.timestamp())
            )
        except (InvalidToken, UnicodeEncodeError):
            return None
        return json.loads(data).get(kind)
