"""Logging in to the page with an OpenID Connect issuer: the code flow with PKCE, state and nonce."""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import jwt
import pytest

from reconciler.access.oidc import Issuer
from reconciler.adapters.access.oidc import OpenIdProvider
from reconciler.adapters.access.oidc_client import OidcClient, OidcPages
from reconciler.api.security.callers import IssuerLogin
from reconciler.web.door import CALLBACK
from tests.builders.browser import Answer, Browser
from tests.builders.daemon import Daemon, daemon
from tests.builders.remote import Remote
from tests.fakes.loopback import LoopbackHandler, LoopbackServer
from tests.fakes.oidc_issuer import published, rsa_key

CLIENT = "overspill-page"


@dataclass
class CodeIssuer:
    """An issuer with a login page: it gives codes, and takes each once with the verifier of its challenge."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    asked: list[Mapping[str, str]] = field(default_factory=list)
    away: bool = False

    def log_in(self, address: str) -> str:
        """Do as a person does on the page at an address, and return where the browser is sent."""
        query = dict(parse_qsl(urlsplit(address).query))
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert "openid" in query["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = query
        return f"{query['redirect_uri']}?code={code}&state={query['state']}"

    def token(self, form: Mapping[str, str]) -> tuple[int, Any]:
        self.asked.append(form)
        query = self.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        if query is None or challenge != query["code_challenge"] or query["code_challenge_method"] != "S256":
            return 400, {"error": "invalid_grant"}
        if form["redirect_uri"] != query["redirect_uri"] or form["client_secret"] != "a secret":
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        known = {"iss": self.url, "aud": CLIENT, "sub": "u-1", "exp": now + 60, "iat": now, "nonce": query["nonce"]}
        claims = {**known, "email": "ann@example.com", "email_verified": True, "groups": ["platform"], **self.claims}
        return 200, {"id_token": jwt.encode(claims, rsa_key("one"), algorithm="RS256", headers={"kid": "one"})}


@contextmanager
def issuing() -> Iterator[CodeIssuer]:
    issuer = CodeIssuer()

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:
            about = {"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}
            pages = {"authorization_endpoint": f"{issuer.url}/login", "token_endpoint": f"{issuer.url}/token"}
            keys = {"keys": [published("one", rsa_key("one"), alg="RS256")]}
            self.reply_json(500 if issuer.away else 200, keys if self.path.endswith("/keys") else {**about, **pages})

        def do_POST(self) -> None:
            self.reply_json(*issuer.token(dict(parse_qsl(self.body().decode()))))

    with LoopbackServer(Handler) as server:
        issuer.url = f"{server.url}/realm"
        yield issuer


@pytest.fixture
def issuer() -> Iterator[CodeIssuer]:
    with issuing() as one:
        yield one


@pytest.fixture
def running(issuer: CodeIssuer, tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon that is a client of the issuer."""
    login = IssuerLogin(
        issuer=Issuer(url=issuer.url, audience="overspill-api"), claims=OpenIdProvider(issuer.url).claims
    )
    pages = OidcPages(issuer.url, OidcClient(id=CLIENT, secret="a secret"))
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache", login=login, issuer=pages) as one:
        yield one


@pytest.fixture
def stranger(running: Daemon) -> Browser:
    return Browser(f"http://127.0.0.1:{running.port}")


def onward(answer: Answer) -> str:
    """Return where a page goes on to by itself."""
    assert answer.status == 200, answer.text
    refresh = next(values for tag, values in answer.page.elements if tag == "meta" and "http-equiv" in values)
    return refresh["content"].partition("url=")[2]


def begin(browser: Browser, target: str = "/clusters") -> str:
    """Press the button of the login, and return the address of the issuer's page."""
    page = browser.get(f"/login?next={target}").page
    return onward(browser.submit(page.form("/login/issuer")))


def test_person_logs_in_with_the_issuer_and_goes_on_where_they_were(issuer: CodeIssuer, stranger: Browser) -> None:
    back = issuer.log_in(begin(stranger))
    answer = stranger.get(back)
    assert onward(answer) == "/clusters"
    assert stranger.attributes["overspill-session"]["samesite"] == "strict"
    assert stranger.attributes["overspill-login"]["samesite"] == "lax"
    assert "ann@example.com" in stranger.get("/").text
    assert "overspill-login" not in stranger.cookies


def test_roles_of_a_session_are_those_of_the_access_file_now(issuer: CodeIssuer, stranger: Browser) -> None:
    stranger.get(issuer.log_in(begin(stranger)))
    page = stranger.get("/").page
    assert "No workload" in page.text, "nobody has given the group a role"


def test_code_is_taken_once_and_with_its_own_verifier_alone(issuer: CodeIssuer, stranger: Browser) -> None:
    back = issuer.log_in(begin(stranger))
    thief = Browser(stranger.origin)
    begin(thief)
    assert thief.get(back).status == 401
    assert stranger.get(back).status == 200
    assert stranger.get(back).status == 401
    assert thief.get("/").status == 303


def test_answer_to_another_login_is_refused(issuer: CodeIssuer, stranger: Browser) -> None:
    back = issuer.log_in(begin(stranger))
    query = {name: values[0] for name, values in parse_qs(urlsplit(back).query).items()}
    assert stranger.get(f"{CALLBACK}?code={query['code']}&state=guessed").status == 401
    assert stranger.get(f"{CALLBACK}?code={query['code']}").status == 401
    assert Browser(stranger.origin).get(back).status == 401
    assert issuer.asked == []
    issuer.claims["nonce"] = "another"
    assert "another login" in stranger.get(back).text
    assert stranger.get("/").status == 303


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": "another"},
        {"aud": "overspill-api"},
        {"iss": "https://elsewhere.example"},
        {"exp": 1},
        {"email": None, "sub": None},
    ],
)
def test_token_for_somebody_else_signs_nobody_in(
    issuer: CodeIssuer, stranger: Browser, claims: Mapping[str, Any]
) -> None:
    issuer.claims.update(claims)
    assert stranger.get(issuer.log_in(begin(stranger))).status == 401
    assert stranger.get("/").status == 303


def test_issuer_that_says_no_is_told_so(stranger: Browser) -> None:
    begin(stranger)
    answer = stranger.get(f"{CALLBACK}?error=access_denied")
    assert answer.status == 401
    assert "did not let you in" in answer.text


def test_issuer_that_is_away_is_told_so(issuer: CodeIssuer, stranger: Browser) -> None:
    issuer.away = True
    page = stranger.get("/login").page
    answer = stranger.submit(page.form("/login/issuer"))
    assert answer.status == 503
    assert "does not answer" in answer.text


def test_groups_beyond_a_cookie_are_told_so(issuer: CodeIssuer, stranger: Browser) -> None:
    issuer.claims["groups"] = [f"group-of-people-number-{number}" for number in range(300)]
    answer = stranger.get(issuer.log_in(begin(stranger)))
    assert answer.status == 403
    assert "too many groups" in answer.text
