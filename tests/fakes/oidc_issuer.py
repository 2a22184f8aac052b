"""An OpenID Connect issuer on a loopback port: real keys, real signatures, and every way to go wrong."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.builders.api_server import NOON
from tests.fakes.loopback import LoopbackHandler, LoopbackServer

AUDIENCE = "overspill"


@cache
def rsa_key(name: str) -> rsa.RSAPrivateKey:
    """Make a key, once for each name."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def ec_key(name: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def published(name: str, key: Any, **more: str) -> dict[str, Any]:
    """Write the public part of a key as issuers list it."""
    writer = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**writer.to_jwk(key.public_key(), as_dict=True), "kid": name, "use": "sig", **more}


class Issuer:
    """What is answered, and what was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: list[Any] = [published("one", rsa_key("one"), alg="RS256")]
        self.about: dict[str, Any] = {}
        self.status = 200
        self.body: bytes | None = None
        self.asked: list[str] = []

    def answer(self, path: str) -> Any:
        if path.endswith("/.well-known/openid-configuration"):
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.about}
        return {"keys": self.keys}

    def claims(self, **more: Any) -> dict[str, Any]:
        now = int(NOON.timestamp())
        known = {"iss": self.url, "aud": AUDIENCE, "sub": "u-1", "exp": now + 300, "nbf": now, "iat": now}
        return {name: value for name, value in (known | more).items() if value is not None}

    def token(self, *, key: Any = None, alg: str = "RS256", kid: str | None = "one", **claims: Any) -> str:
        """Sign claims; None leaves one out."""
        headers = {"kid": kid} if kid else {}
        return jwt.encode(self.claims(**claims), key or rsa_key("one"), algorithm=alg, headers=headers)


class _Handler(LoopbackHandler):
    issuer: Issuer

    def do_GET(self) -> None:
        issuer = self.issuer
        issuer.asked.append(self.path)
        body = json.dumps(issuer.answer(self.path)).encode() if issuer.body is None else issuer.body
        self.reply(issuer.status, body, {"Location": "/elsewhere"})


@contextmanager
def issuing(tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    """Serve an issuer, with TLS if a certificate is given."""
    issuer = Issuer()
    with LoopbackServer(type("Handler", (_Handler,), {"issuer": issuer}), tls=tls) as server:
        issuer.url = f"{server.url}/realm"
        yield issuer
