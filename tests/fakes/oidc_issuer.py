"""An OpenID Connect issuer on a loopback port: real keys, real signatures, and every way to go wrong."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from tests.builders.api_server import NOON

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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    issuer: Issuer

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients of these tests leave early."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        issuer = self.server.issuer
        issuer.asked.append(self.path)
        body = json.dumps(issuer.answer(self.path)).encode() if issuer.body is None else issuer.body
        self.send_response(issuer.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def issuing(tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    """Serve an issuer, with TLS if a certificate is given."""
    issuer = Issuer()
    server = _Server(("127.0.0.1", 0), _Handler)
    server.issuer = issuer
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    issuer.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_port}/realm"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
