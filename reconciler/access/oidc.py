"""What an OpenID Connect token says, once its signature has been found right, and whom that makes its bearer.

The rules are OpenID Connect Core 1.0, section 3.1.3.7, and RFC 7519, section 4.1: issuer and audience are compared
exactly, ``exp`` is required, ``nbf`` and ``iat`` hold where they are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from urllib.parse import urlsplit

from reconciler.access.rights import Caller, IssuerRule, NotAdmitted, is_called, is_email, joined
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

LEEWAY = 60
"""Seconds by which the issuer's clock and ours may differ."""
_OURSELVES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """Whose tokens are taken, and how they are read.

    `audience` is what they have to be made for. `name_claim` is the claim that somebody is called by, empty for the
    mail address or else the subject.
    """

    url: str
    audience: str
    name_claim: str = ""
    groups_claim: str = "groups"


def is_safe(url: str) -> bool:
    """Tell whether an address can be asked for keys: by https, or by http on this very machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or not url.isascii() or not url.isprintable() or " " in url or "@" in parts.netloc or "#" in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _OURSELVES)


def admitted(claims: Mapping[str, Json], issuer: Issuer, rules: tuple[IssuerRule, ...], now: datetime) -> Caller:
    """Make a caller of claims that the issuer has signed. Raises NotAdmitted when they are not for us, or not now."""
    _check(claims, issuer, now)
    email = _email(claims)
    name = _name(claims, issuer.name_claim, email)
    held = {"group": _texts(claims.get(issuer.groups_claim)), "subject": _texts(claims.get("sub")), "email": {email}}
    roles = joined(rule.roles for rule in rules if rule.value in held[rule.claim])
    return Caller(name=name, email=email, roles=roles, kind="oidc")


def _check(claims: Mapping[str, Json], issuer: Issuer, now: datetime) -> None:
    """Refuse claims of another issuer, for another audience, or of another time."""
    if claims.get("iss") != issuer.url:
        raise NotAdmitted("the token is another issuer's", hint=f"log in at {issuer.url}")
    audience = claims.get("aud")
    if issuer.audience not in (audience if isinstance(audience, list) else [audience]):
        raise NotAdmitted("the token is made for somebody else", hint=f"ask for the audience {issuer.audience}")
    at = now.timestamp()
    if (expiry := _moment(claims, "exp")) is None:
        raise NotAdmitted("the token has no expiry")
    if at >= expiry + LEEWAY:
        raise NotAdmitted("the token has expired", hint="log in again")
    for claim in ("nbf", "iat"):
        begin = _moment(claims, claim)
        if begin is not None and at < begin - LEEWAY:
            raise NotAdmitted("the token does not hold yet", hint="are the clocks right?")


def _moment(claims: Mapping[str, Json], claim: str) -> float | None:
    """Read a claim in seconds since 1970; None where there is none. Raises NotAdmitted for what is no number."""
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise NotAdmitted(f"the token's claim {claim} is not a number")
    return value


def _email(claims: Mapping[str, Json]) -> str:
    """Return the mail address, empty unless the issuer says that it has been checked.

    Who says nothing may let people choose their addresses themselves, as Entra ID does in a tenant.
    """
    email, checked = claims.get("email"), claims.get("email_verified")
    return email if isinstance(email, str) and is_email(email) and (checked is True or checked == "true") else ""


def _name(claims: Mapping[str, Json], claim: str, email: str) -> str:
    """Return what somebody is called. An address that nobody has checked could be anybody's, and names nobody."""
    name = email if claim == "email" else claims.get(claim) if claim else email or claims.get("sub")
    if not isinstance(name, str) or not is_called(name):
        where = f"no claim {shortened(claim, 40)}" if claim else "neither an email nor a sub"
        raise NotAdmitted(f"the token has {where} that somebody can be called by", hint="ask whoever runs Overspill")
    return name


def _texts(value: Json) -> set[str]:
    """Return the texts of a claim that is one, or a list of them."""
    return {one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)}
