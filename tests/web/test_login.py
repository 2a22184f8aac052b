"""Signing in to the page with a token: who gets in, for how long, and what a cookie tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from reconciler.access.rights import Access
from reconciler.adapters.clock import SystemClock
from reconciler.api.security.callers import Callers
from reconciler.web.door import Door, safe_target
from reconciler.web.session import Seal, Session, new_attempt
from tests.builders.browser import Browser
from tests.builders.daemon import OWNER, VIEWER, Daemon
from tests.web.conftest import signed_in

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


def stranger(running: Daemon) -> Browser:
    return Browser(f"http://127.0.0.1:{running.port}")


@pytest.mark.parametrize(
    "path", ["/", "/clusters", "/time", "/why?workload=llm/vllm", "/money", "/lab", "/do/request", "/lab/x.html"]
)
def test_who_is_not_signed_in_is_led_to_the_login_and_sees_nothing_else(shared: Daemon, path: str) -> None:
    answer = stranger(shared).get(path)
    assert answer.status == 303
    assert answer.headers["location"].startswith("/login")
    assert b"vllm" not in answer.body


def test_events_are_for_who_is_signed_in(shared: Daemon) -> None:
    assert stranger(shared).get("/events").status == 303


def test_login_leads_to_the_page_that_was_asked_for(shared: Daemon) -> None:
    browser = stranger(shared)
    where = browser.get("/why?workload=llm/vllm").headers["location"]
    page = browser.get(where).page
    answer = browser.submit(page.form("/login"), token=OWNER)
    assert answer.headers["location"] == "/why?workload=llm/vllm"
    assert "Candidates" in browser.follow(answer).text


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "", "/login", "/a\nb", "/\\/x"],
)
def test_login_leads_to_no_other_site(target: str) -> None:
    assert safe_target(target) == "/"


def test_unknown_token_is_told_so_and_signs_nobody_in(shared: Daemon) -> None:
    browser = stranger(shared)
    answer = browser.sign_in("ovs_" + "x" * 43)
    assert answer.status == 401
    assert "The token is not known here. Is it the whole token" in answer.text
    assert browser.get("/").status == 303


def test_what_is_no_token_of_ours_is_told_how_one_begins(shared: Daemon) -> None:
    answer = stranger(shared).sign_in("hunter2")
    assert answer.status == 401
    assert "begins with ovs_" in answer.text


def test_session_cookie_is_out_of_reach_of_scripts_and_other_sites_and_holds_no_readable_token(shared: Daemon) -> None:
    browser = signed_in(shared, OWNER)
    attributes = browser.attributes["overspill-session"]
    assert attributes["httponly"]
    assert attributes["samesite"] == "strict"
    assert attributes["path"] == "/"
    assert int(attributes["max-age"]) == 8 * 3600
    assert OWNER not in browser.cookies["overspill-session"]


def test_cookie_that_was_changed_is_no_session(shared: Daemon) -> None:
    browser = signed_in(shared, OWNER)
    sealed = browser.cookies["overspill-session"]
    browser.cookies["overspill-session"] = sealed[:-8] + "AAAAAAA="
    assert browser.get("/").status == 303


def test_signing_out_ends_the_session(shared: Daemon) -> None:
    browser = signed_in(shared, VIEWER)
    answer = browser.submit(browser.get("/").page.form("/logout"))
    assert answer.headers["location"] == "/login"
    assert browser.get("/").status == 303


def test_form_of_another_site_signs_nobody_in_or_out(shared: Daemon) -> None:
    browser = stranger(shared)
    form = browser.get("/login").page.form("/login")
    fields = {**form.fields, "token": OWNER}
    assert browser.post("/login", fields, Origin="https://evil.example").status == 403
    assert browser.post("/login", fields, Sec_Fetch_Site="cross-site").status == 403
    assert browser.post("/login", {**fields, "form": "guessed"}).status == 403
    browser = signed_in(shared, VIEWER)
    assert browser.post("/logout", {"csrf": "guessed"}).status == 403
    assert browser.get("/").status == 200


def test_session_is_over_in_time() -> None:
    seal = Seal(lasting=timedelta(hours=8))
    sealed = seal.seal_session(Session(csrf="c", token=OWNER, began_at=NOON))
    session = seal.open_session(sealed, NOON + timedelta(hours=7, minutes=59))
    assert session is not None
    assert session.token == OWNER
    assert seal.open_session(sealed, NOON + timedelta(hours=8, seconds=2)) is None


def test_key_of_a_setting_opens_sessions_after_a_restart_and_a_made_one_does_not() -> None:
    session = Session(csrf="c", token=OWNER, began_at=NOON)
    assert Seal("a secret of a setting").open_session(Seal("a secret of a setting").seal_session(session), NOON)
    assert Seal().open_session(Seal().seal_session(session), NOON) is None


def test_way_to_the_issuer_is_no_session() -> None:
    seal = Seal()
    assert seal.open_session(seal.seal_attempt(new_attempt("/"), NOON), NOON) is None


def test_daemon_that_knows_nobody_says_how_people_get_in() -> None:
    callers = Callers(SystemClock())
    door = Door(callers, SystemClock(), Seal())
    assert "OVERSPILL_API_TOKENS_FILE" in door.obstacle
    assert Door(Callers(SystemClock(), access=Access), SystemClock(), Seal()).obstacle == ""
