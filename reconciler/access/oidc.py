"""The claims of an OpenID Connect token whose signature is right, and the caller that they name.

The rules are OpenID Connect Core 1.0, section 3.1.3.7, and RFC 7519, section 4.1: issuer and audience are compared
exactly, ``exp`` is required, ``nbf`` and ``iat`` count where a token has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from urllib.parse import urlsplit

from reconciler.access.rights import Caller, IssuerRule, NotAdmitted, is_valid_email, is_valid_name, merge_roles
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

LEEWAY = 60
"""Seconds by which the issuer's clock and ours may differ."""
_OURSELVES = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """An issuer whose tokens are taken, and how they are read."""

    url: str
    audience: str  # tokens have to be made for it
    name_claim: str = ""  # the claim that names a caller; empty for the mail address or else the subject
    groups_claim: str = "groups"


def is_safe_address(url: str) -> bool:
    """Return whether keys may come from an address: over https, or over http from this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not host or not url.isascii() or not url.isprintable() or " " in url or "@" in parts.netloc or "#" in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and host in _OURSELVES)


def caller_of_claims(
    claims: Mapping[str, Json], issuer: Issuer, rules: tuple[IssuerRule, ...], now: datetime
) -> Caller:
    """Return the caller that signed claims name. Raises NotAdmitted for those of another issuer, audience or time."""
    _check(claims, issuer, now)
    email = _email(claims)
    name = _name(claims, issuer.name_claim, email)
    values = {"group": _texts(claims.get(issuer.groups_claim)), "subject": _texts(claims.get("sub")), "email": {email}}
    roles = merge_roles(rule.roles for rule in rules if rule.value in values[rule.claim])
    return Caller(name=name, email=email, roles=roles, kind="oidc")


def _check(claims: Mapping[str, Json], issuer: Issuer, now: datetime) -> None:
    """Refuse claims of another issuer, for another audience, or of another time."""
    if claims.get("iss") != issuer.url:
        raise NotAdmitted("the token is another issuer's", hint=f"log in at {issuer.url}")
    audience = claims.get("aud")
    if issuer.audience not in (audience if isinstance(audience, list) else [audience]):
        raise NotAdmitted("the token is made for another service", hint=f"ask for the audience {issuer.audience}")
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
    """Read a claim in seconds since 1970; None where it is absent. Raises NotAdmitted for a value that is no number."""
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not isfinite(value):
        raise NotAdmitted(f"the token's claim {claim} is not a number")
    return value


def _email(claims: Mapping[str, Json]) -> str:
    """Return the mail address, empty unless the issuer says that it has been checked.

    An issuer that does not say so may let people choose their addresses, as Entra ID does in a tenant.
    """
    email, checked = claims.get("email"), claims.get("email_verified")
    return email if isinstance(email, str) and is_valid_email(email) and checked is True else ""


def _name(claims: Mapping[str, Json], claim: str, email: str) -> str:
    """Return the name of a caller. An unchecked mail address could be anybody's, and is no name."""
    name = email if claim == "email" else claims.get(claim) if claim else email or claims.get("sub")
    if not isinstance(name, str) or not is_valid_name(name):
        lack = f"no claim {shortened(claim, 40)}" if claim else "neither an email nor a sub"
        raise NotAdmitted(f"the token has {lack} that somebody can be called by", hint="ask whoever runs Overspill")
    return name


def _texts(value: Json) -> set[str]:
    """Return the texts of a claim that is one, or a list of them."""
    return {text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)}
