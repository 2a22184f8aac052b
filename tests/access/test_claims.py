"""Whom the claims of a signed token make its bearer, and which claims are not for us or not for now."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.access.oidc import Issuer, caller_of_claims, is_safe_address
from reconciler.access.rights import AccessRole, IssuerRule, NotAdmitted
from tests.builders.api_server import LLM, NOON, VISION

ISSUER = Issuer(url="https://login.example.com/realm", audience="overspill")
AT = int(NOON.timestamp())
CLAIMS = {"iss": ISSUER.url, "aud": "overspill", "sub": "u-1", "exp": AT + 300}
RULES = (
    IssuerRule(claim="group", value="ml-team", roles={LLM: AccessRole.EDITOR}),
    IssuerRule(claim="group", value="everybody", roles={LLM: AccessRole.VIEWER, VISION: AccessRole.VIEWER}),
    IssuerRule(claim="subject", value="u-1", roles={VISION: AccessRole.EDITOR}),
    IssuerRule(claim="email", value="ada@example.com", roles={"*": AccessRole.OWNER}),
)


def caller(issuer: Issuer = ISSUER, **claims: Any):
    return caller_of_claims(CLAIMS | claims, issuer, RULES, NOON)


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"iss": ISSUER.url + "/"}, "the token is another issuer's"),
        ({"iss": [ISSUER.url]}, "the token is another issuer's"),
        ({"aud": "others"}, "the token is made for another service"),
        ({"aud": ["others"]}, "the token is made for another service"),
        ({"aud": None}, "the token is made for another service"),
        ({"aud": {"overspill": 1}}, "the token is made for another service"),
        ({"exp": None}, "the token has no expiry"),
        ({"exp": str(AT + 300)}, "the token's claim exp is not a number"),
        ({"exp": True}, "the token's claim exp is not a number"),
        ({"exp": float("inf")}, "the token's claim exp is not a number"),
        ({"exp": AT - 60}, "the token has expired"),
        ({"nbf": AT + 61}, "the token does not hold yet"),
        ({"iat": AT + 61}, "the token does not hold yet"),
        ({"nbf": "soon"}, "the token's claim nbf is not a number"),
        ({"sub": None}, "the token has neither an email nor a sub that somebody can be called by"),
        ({"sub": "a\nb"}, "the token has neither an email nor a sub that somebody can be called by"),
        ({"sub": ["u-1"]}, "the token has neither an email nor a sub that somebody can be called by"),
    ],
)
def test_claims_that_are_not_for_us_or_not_for_now(claims: dict[str, Any], why: str) -> None:
    with pytest.raises(NotAdmitted, match=f"^{why}$"):
        caller(**claims)


@pytest.mark.parametrize(
    "claims", [{"exp": AT - 59}, {"nbf": AT + 60}, {"iat": AT + 60.0}, {"aud": ["a", "overspill"]}]
)
def test_clocks_may_differ_by_a_minute_and_a_token_be_for_several(claims: dict[str, Any]) -> None:
    assert caller(**claims).name == "u-1"


def test_people_are_called_by_their_mail_address_or_else_by_their_subject() -> None:
    assert caller(email="ada@example.com", email_verified=True).name == "ada@example.com"
    assert caller().name == "u-1"


def test_another_claim_can_be_the_name_and_has_to_be_there_then() -> None:
    named = Issuer(url=ISSUER.url, audience="overspill", name_claim="preferred_username")
    assert caller(named, preferred_username="ada").name == "ada"
    with pytest.raises(NotAdmitted, match="no claim preferred_username that somebody can be called by"):
        caller(named)


@pytest.mark.parametrize(
    "checked", [{"email_verified": value} for value in (False, "false", "true", None, 0, 1)] + [{}]
)
def test_address_that_nobody_has_checked_is_nobodys(checked: dict[str, Any]) -> None:
    bearer = caller(email="ada@example.com", **checked)
    assert (bearer.name, bearer.email) == ("u-1", "")
    assert "*" not in bearer.roles
    with pytest.raises(NotAdmitted):
        caller(
            Issuer(url=ISSUER.url, audience="overspill", name_claim="email"),
            email="ada@example.com",
            **checked,
        )


def test_address_that_was_checked_has_its_roles() -> None:
    assert caller(email="ada@example.com", email_verified=True).roles["*"] is AccessRole.OWNER


@pytest.mark.parametrize(
    ("groups", "roles"),
    [
        (["ml-team"], {LLM: AccessRole.EDITOR, VISION: AccessRole.EDITOR}),
        ("ml-team", {LLM: AccessRole.EDITOR, VISION: AccessRole.EDITOR}),
        (["everybody", "ml-team"], {LLM: AccessRole.EDITOR, VISION: AccessRole.EDITOR}),
        (["everybody", 7, None, {}], {LLM: AccessRole.VIEWER, VISION: AccessRole.EDITOR}),
        (["ml"], {VISION: AccessRole.EDITOR}),
        ({"ml-team": True}, {VISION: AccessRole.EDITOR}),
    ],
)
def test_the_highest_of_all_roles_stands_in_each_workspace(groups: object, roles: dict[str, AccessRole]) -> None:
    assert caller(groups=groups).roles == roles


def test_groups_can_be_another_claim() -> None:
    other = Issuer(url=ISSUER.url, audience="overspill", groups_claim="https://example.com/teams")
    assert caller(other, **{"https://example.com/teams": ["ml-team"]}).roles[LLM] is AccessRole.EDITOR


def test_whoever_no_rule_knows_has_no_role() -> None:
    assert caller(sub="u-2").roles == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner, max_size=1),
    max_leaves=3,
)


@given(st.dictionaries(st.sampled_from(["sub", "exp", "nbf", "iat", "aud", "email", "email_verified", "groups"]), JSON))
def test_whatever_an_issuer_signs_is_taken_or_refused(claims: dict[str, Any]) -> None:
    try:
        bearer = caller_of_claims(CLAIMS | claims, ISSUER, RULES, NOON)
    except NotAdmitted:
        return
    assert bearer.name.isprintable()
    assert {*bearer.roles} <= {LLM, VISION, "*"}


@pytest.mark.parametrize(
    "url", ["https://login.example.com", "http://localhost:8080/a", "http://127.0.0.1", "http://[::1]:1/"]
)
def test_keys_come_over_https_or_from_this_machine(url: str) -> None:
    assert is_safe_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.com",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com/",
        "ftp://a",
        "file:///a",
        "https://",
        "https://ada:x@a",
        "https://a b",
        "https://a#b",
        "https://a:port",
        "https://[::1",
    ],
)
def test_no_keys_come_from_anywhere_else(url: str) -> None:
    assert not is_safe_address(url)
