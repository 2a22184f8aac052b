"""The browser's way in by an OpenID Connect issuer: its pages, and the exchange of a code for a token.

The flow is OpenID Connect Core 1.0, section 3.1 (authorization code), with PKCE (RFC 7636). Signatures of what comes
back are checked by `oidc`, claims by `access.oidc`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlencode

from reconciler.access.oidc import is_safe_address
from reconciler.access.rights import NotAdmitted
from reconciler.errors import Transient
from reconciler.http_client import HttpClient
from reconciler.model.workload import Json
from reconciler.text.findings import shortened

_MOST = 1 << 20
_KEPT = 3600.0
"""Seconds for which the issuer's addresses are taken without asking again."""
_SCOPES = "openid email profile"


@dataclass(frozen=True, slots=True, kw_only=True)
class OidcClient:
    """Our name at the issuer."""

    id: str
    secret: str = ""
    """Empty for a public client, which PKCE alone protects."""
    scopes: str = _SCOPES


class OidcPages:
    """The addresses of one issuer, and its answers to codes. Safe to use from several threads."""

    def __init__(
        self,
        issuer: str,
        client: OidcClient,
        *,
        authorities: Path | None = None,
        ticks: Callable[[], float] = time.monotonic,
        patience: timedelta = timedelta(seconds=5),
    ) -> None:
        """Take an issuer's address, and the PEM file of its authorities where they are not the system's."""
        self._issuer = issuer
        self.client = client
        self._ticks = ticks
        self._http = HttpClient(
            timeout=patience.total_seconds(), authorities=authorities, authorities_from="OVERSPILL_OIDC_CA_FILE"
        )
        self._known: tuple[float, str, str] | None = None

    def login_address(self, *, redirect: str, state: str, nonce: str, challenge: str) -> str:
        """Return the page of the issuer on which somebody logs in. Raises Transient."""
        authorization, _ = self._addresses()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.client.id,
                "redirect_uri": redirect,
                "scope": self.client.scopes,
                "state": state,
                "nonce": nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
        )
        return f"{authorization}{'&' if '?' in authorization else '?'}{query}"

    def token(self, code: str, *, redirect: str, verifier: str) -> str:
        """Exchange a code for an ID token. Raises NotAdmitted for a code that is refused, and Transient."""
        _, address = self._addresses()
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "client_id": self.client.id,
            "code_verifier": verifier,
        }
        if self.client.secret:
            form["client_secret"] = self.client.secret
        answer = self._http.send(
            "POST",
            address,
            headers={"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"},
            body=urlencode(form).encode(),
            limit=_MOST,
        )
        if answer.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise NotAdmitted("the issuer does not take the code", hint="log in again")
        if answer.status != HTTPStatus.OK:
            raise Transient(f"{address} answers {answer.status}")
        token = answer.json.get("id_token") if isinstance(answer.json, dict) else None
        if not isinstance(token, str):
            raise NotAdmitted("the issuer gave no ID token", hint="has our client the scope openid?")
        return token

    def _addresses(self) -> tuple[str, str]:
        """Return the issuer's pages for logins and for codes. Raises Transient."""
        now = self._ticks()
        if self._known is None or now - self._known[0] > _KEPT:
            about = self._about()
            self._known = now, _address(about, "authorization_endpoint"), _address(about, "token_endpoint")
        return self._known[1], self._known[2]

    def _about(self) -> Mapping[str, Json]:
        answer = self._http.send("GET", self._issuer.rstrip("/") + "/.well-known/openid-configuration", limit=_MOST)
        if answer.status != HTTPStatus.OK or not isinstance(answer.json, dict):
            raise Transient(f"{self._issuer} does not describe itself: it answers {answer.status}")
        if answer.json.get("issuer") != self._issuer:
            name = shortened(str(answer.json.get("issuer")), 200)
            raise Transient(f"{self._issuer} calls itself {name} (try that as the issuer)")
        return answer.json


def _address(about: Mapping[str, Json], field: str) -> str:
    address = about.get(field)
    if not isinstance(address, str) or not is_safe_address(address):
        raise Transient(f"the issuer names no https address as {field}")
    return address
