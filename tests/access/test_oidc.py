"""Tokens of an OpenID Connect issuer: real signatures, over real HTTP, to the API."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.warnings import InsecureKeyLengthWarning
from structlog.testing import capture_logs

from reconciler.access.oidc import Issuer as Expected
from reconciler.access.rights import Access, AccessRole, IssuerRule
from reconciler.adapters.access.oidc import OpenIdProvider
from reconciler.api.security.callers import IssuerLogin
from reconciler.errors import InvalidInput, Transient
from tests.builders.api_server import ACCESS, CI, LLM, Clock, SecuredApi, open_api
from tests.builders.certificates import write_pair
from tests.fakes.oidc_issuer import AUDIENCE, Issuer, ec_key, issuing, published, rsa_key

RULES = (IssuerRule(claim="group", value="ml-team", roles={LLM: AccessRole.EDITOR}),)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with issuing() as serving:
        yield serving


def opened(issuer: Issuer) -> AbstractContextManager[SecuredApi]:
    clock = Clock()
    provider = OpenIdProvider(issuer.url, ticks=clock.ticks)
    login = IssuerLogin(issuer=Expected(url=issuer.url, audience=AUDIENCE), claims=provider.claims)
    return open_api(clock, access=lambda: Access(tokens=ACCESS.tokens, rules=RULES), login=login)


@pytest.fixture
def secured(issuer: Issuer) -> Iterator[SecuredApi]:
    with opened(issuer) as made:
        yield made


def encoded(part: object) -> str:
    data = part if isinstance(part, bytes) else json.dumps(part).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def test_bearer_of_a_signed_token_has_the_roles_of_their_groups(issuer: Issuer, secured: SecuredApi) -> None:
    answer = secured.call(token=issuer.token(groups=["ml-team"], email="ada@example.com", email_verified=True))
    assert answer.body["data"] == {
        "name": "ada@example.com",
        "email": "ada@example.com",
        "roles": {"llm": "Editor"},
    }


def test_tokens_of_ours_go_on_beside_the_issuers(issuer: Issuer, secured: SecuredApi) -> None:
    assert secured.call(token=CI).status == 200
    assert issuer.asked == []


@pytest.mark.parametrize("alg", ["RS256", "RS512", "PS256"])
def test_key_that_names_no_algorithm_may_sign_with_those_of_its_kind(
    issuer: Issuer, secured: SecuredApi, alg: str
) -> None:
    issuer.keys = [published("one", rsa_key("one"))]
    assert secured.call(token=issuer.token(alg=alg)).status == 200


def test_elliptic_curves_are_keys_as_well(issuer: Issuer, secured: SecuredApi) -> None:
    issuer.keys.append(published("curve", ec_key("curve"), alg="ES256"))
    assert secured.call(token=issuer.token(key=ec_key("curve"), alg="ES256", kid="curve")).status == 200


def test_token_that_names_no_key_is_tried_with_all_of_them(issuer: Issuer, secured: SecuredApi) -> None:
    issuer.keys.insert(0, published("curve", ec_key("curve")))
    issuer.keys.insert(0, published("two", rsa_key("two")))
    assert secured.call(token=issuer.token(kid=None)).status == 200


def test_key_that_is_for_one_algorithm_signs_with_no_other(issuer: Issuer, secured: SecuredApi) -> None:
    assert secured.call(token=issuer.token(alg="PS256")).status == 401


def test_token_signed_with_somebody_elses_key_is_refused(issuer: Issuer, secured: SecuredApi) -> None:
    answer = secured.call(token=issuer.token(key=rsa_key("two")))
    assert (answer.status, answer.body["message"]) == (401, "the token's signature is not right")


def test_token_without_a_signature_is_refused(issuer: Issuer, secured: SecuredApi) -> None:
    for alg in ("none", "None", "NONE", ""):
        token = f"{encoded({'alg': alg, 'kid': 'one'})}.{encoded(issuer.claims())}."
        assert secured.call(token=token).status == 401


def test_public_key_is_no_shared_secret(issuer: Issuer, secured: SecuredApi) -> None:
    issuer.keys = [published("one", rsa_key("one"))]
    modulus = base64.urlsafe_b64decode(issuer.keys[0]["n"] + "==")
    for secret in (modulus, json.dumps(issuer.keys[0]).encode()):
        text = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(issuer.claims())}"
        signed = hmac.digest(secret, text.encode(), hashlib.sha256)
        assert secured.call(token=f"{text}.{encoded(signed)}").status == 401


def test_shared_secrets_in_the_list_of_keys_are_passed_over(issuer: Issuer, secured: SecuredApi) -> None:
    issuer.keys = [{"kty": "oct", "kid": "one", "k": encoded(b"s" * 32), "alg": "HS256"}]
    text = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{encoded(issuer.claims())}"
    signed = hmac.digest(b"s" * 32, text.encode(), hashlib.sha256)
    assert secured.call(token=f"{text}.{encoded(signed)}").status == 401


@pytest.mark.parametrize(
    "key",
    [
        {**published("one", rsa_key("one")), "use": "enc"},
        published("one", rsa_key("one"), alg="RSA-OAEP"),
        {**published("one", rsa_key("one")), "n": "!"},
        "one",
    ],
)
def test_keys_that_do_not_sign_or_are_broken_are_passed_over(issuer: Issuer, secured: SecuredApi, key: object) -> None:
    issuer.keys = [key, published("two", rsa_key("two"))]
    assert secured.call(token=issuer.token()).status == 401
    assert secured.call(token=issuer.token(key=rsa_key("two"), kid="two")).status == 200


def test_key_that_can_be_broken_is_none(issuer: Issuer, secured: SecuredApi) -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    issuer.keys = [published("one", short)]
    with pytest.warns(InsecureKeyLengthWarning):
        token = issuer.token(key=short)
    assert secured.call(token=token).status == 401


@pytest.mark.parametrize(
    "token", ["a.b.c", "a", "..", "x" * 20_000, "eyJhbGciOiJSUzI1NiJ9.e30", f"{encoded([])}.e30.e30"]
)
def test_what_is_no_token_is_refused_without_asking_anybody(issuer: Issuer, secured: SecuredApi, token: str) -> None:
    assert secured.call(token=token).status == 401
    assert issuer.asked == []


def test_expired_token_is_refused_by_the_clock_of_the_day(issuer: Issuer, secured: SecuredApi) -> None:
    token = issuer.token()
    secured.clock.move(359)
    assert secured.call(token=token).status == 200
    secured.clock.move(1)
    assert secured.call(token=token).body["message"] == "the token has expired"


def test_token_for_somebody_else_is_refused_and_kept_out_of_the_log(issuer: Issuer, secured: SecuredApi) -> None:
    token = issuer.token(aud="others")
    with capture_logs() as logs:
        assert secured.call(token=token).body["message"] == "the token is made for another service"
    assert token not in str(logs)


def test_keys_are_asked_for_once(issuer: Issuer, secured: SecuredApi) -> None:
    for _ in range(3):
        assert secured.call(token=issuer.token()).status == 200
    assert issuer.asked == ["/realm/.well-known/openid-configuration", "/realm/keys"]


def test_new_key_is_found_and_unknown_ones_are_asked_for_once_a_minute(issuer: Issuer, secured: SecuredApi) -> None:
    assert secured.call(token=issuer.token()).status == 200
    issuer.keys.append(published("two", rsa_key("two"), alg="RS256"))
    token = issuer.token(key=rsa_key("two"), kid="two")
    answer = secured.call(token=token)
    assert (answer.status, answer.body["message"]) == (
        401,
        "the token is signed with a key that the issuer does not have",
    )
    assert len(issuer.asked) == 2, "the minute is not over"
    secured.clock.move(60)
    assert secured.call(token=token).status == 200
    for _ in range(3):
        assert secured.call(token=issuer.token(kid="three")).status == 401
    assert len(issuer.asked) == 4


def test_key_that_the_issuer_took_back_is_forgotten_within_the_hour(issuer: Issuer, secured: SecuredApi) -> None:
    assert secured.call(token=issuer.token()).status == 200
    issuer.keys = [published("two", rsa_key("two"), alg="RS256")]
    secured.clock.move(3601)
    assert secured.call(token=issuer.token(exp=None) + "x").status == 401
    later = int(secured.clock.at.timestamp()) + 300
    assert secured.call(token=issuer.token(exp=later)).status == 401
    assert secured.call(token=issuer.token(exp=later, key=rsa_key("two"), kid="two")).status == 200


def test_issuer_that_is_away_keeps_nobody_out_whose_key_is_known(issuer: Issuer, secured: SecuredApi) -> None:
    assert secured.call(token=issuer.token()).status == 200
    issuer.status = 500
    secured.clock.move(3601)
    later = int(secured.clock.at.timestamp()) + 300
    with capture_logs() as logs:
        assert secured.call(token=issuer.token(exp=later)).status == 200
        assert secured.call(token=issuer.token(exp=later)).status == 200
    assert [entry["event"] for entry in logs] == ["no keys"]
    assert "answers 500" in logs[0]["line"]


def test_issuer_that_never_answered_is_no_fault_of_the_caller(issuer: Issuer, secured: SecuredApi) -> None:
    issuer.status = 302
    with capture_logs() as logs:
        answer = secured.call(token=issuer.token())
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert answer.body["message"] == "the keys of the issuer cannot be had"
    assert "answers 302" in logs[0]["line"]
    assert issuer.asked == ["/realm/.well-known/openid-configuration"], "no redirect is followed"
    issuer.status = 200
    assert secured.call(token=issuer.token()).status == 503, "it was asked just now"
    secured.clock.move(5)
    assert secured.call(token=issuer.token()).status == 200


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ({"issuer": "https://other.example.com"}, "it calls itself https://other.example.com"),
        ({"jwks_uri": "http://keys.example.com/"}, "it names no https address for its keys"),
        ({"jwks_uri": "file:///etc/passwd"}, "it names no https address for its keys"),
        ({"jwks_uri": 7}, "it names no https address for its keys"),
    ],
)
def test_issuer_that_describes_itself_wrongly_is_not_believed(
    issuer: Issuer, about: dict[str, object], told: str
) -> None:
    issuer.about = about
    with pytest.raises(Transient, match=told):
        OpenIdProvider(issuer.url).claims(issuer.token())


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"<html>", "does not answer with a JSON object"),
        (b"[]", "does not answer with a JSON object"),
        (b"[" * 100_000, "does not answer with a JSON object"),
        (b"{" + b" " * (2 << 20) + b"}", "does not answer with a JSON object"),  # it is cut off
    ],
)
def test_answer_that_is_none_is_told(issuer: Issuer, body: bytes, told: str) -> None:
    issuer.body = body
    with pytest.raises(Transient, match=told):
        OpenIdProvider(issuer.url).claims(issuer.token())


def test_issuer_that_nobody_runs_is_told(issuer: Issuer) -> None:
    with pytest.raises(Transient, match="connection refused"):
        OpenIdProvider("http://127.0.0.1:1/realm", patience=timedelta(seconds=1)).claims(issuer.token())


def test_issuer_needs_a_certificate_that_somebody_vouches_for(tmp_path: Path) -> None:
    certificate, key = write_pair(tmp_path, "issuer")
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    with issuing(tls) as issuer:
        with pytest.raises(Transient, match=r"is not trusted: .* \(OVERSPILL_OIDC_CA_FILE may name its authority\)"):
            OpenIdProvider(issuer.url).claims(issuer.token())
        assert OpenIdProvider(issuer.url, authorities=certificate).claims(issuer.token())["sub"] == "u-1"
        with pytest.raises(
            InvalidInput, match=r"reading .*key.*: it holds no certificate \(try OVERSPILL_OIDC_CA_FILE"
        ):
            OpenIdProvider(issuer.url, authorities=key)


def test_login_at_an_issuer_needs_no_file_of_tokens(issuer: Issuer) -> None:
    login = IssuerLogin(issuer=Expected(url=issuer.url, audience=AUDIENCE), claims=OpenIdProvider(issuer.url).claims)
    with open_api(login=login) as secured:
        assert secured.call(token=issuer.token()).body["data"]["roles"] == {}
        assert secured.call(token=CI).status == 401
