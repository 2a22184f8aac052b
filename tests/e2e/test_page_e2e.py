"""The page in a real browser: each view as a person, a screen reader and a phone have it, with scripts and without."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.builders.chromium import ENTER, LEFT, PHONE, TAB, WIDE, Chromium, axe_script, chromium, missing
from tests.builders.daemon import EDITOR, OWNER, Daemon, daemon
from tests.builders.remote import Remote
from tests.pictures.page_fleet import picture_fleet

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "all is there")

VIEWS = ("/", "/clusters", "/time", "/why", "/why?workload=llm/reranker", "/money", "/lab", "/do/request")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Run a daemon over a fleet with a past."""
    with picture_fleet(tmp_path_factory.mktemp("fleet")) as running:
        yield running


@pytest.fixture(scope="module")
def opened() -> Iterator[Chromium]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(fleet: Daemon, opened: Chromium) -> Chromium:
    """Open a wide window in light colours, signed in as the owner of everything."""
    opened.allow_scripts(allowed=True)
    opened.prefer("light")
    opened.resize(WIDE)
    sign_in(opened, fleet, OWNER)
    opened.complaints()
    return opened


def origin(running: Daemon) -> str:
    return f"http://127.0.0.1:{running.port}"


def sign_in(browser: Chromium, running: Daemon, token: str) -> None:
    browser.driver.delete_all_cookies()
    browser.open(f"{origin(running)}/login")
    browser.find("#token").send_keys(token)
    browser.find("#by-token button").click()
    until(lambda: browser.driver.current_url == f"{origin(running)}/")


def until(condition: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.1)


def paths(running: Daemon) -> list[str]:
    """List every view, with a commit and the actions on a placement."""
    ledger = running.latest.read().decision.inputs.ledger
    name = next(iter(ledger.placements.values())).name
    actions = (f"/do/revert?placement={name}", f"/do/extend?placement={name}")
    return [*VIEWS, f"/why?commit={ledger.commit}", f"/time?at={ledger.commit}", *actions]


@pytest.mark.parametrize(("scheme", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE)])
def test_axe_finds_nothing_wrong(fleet: Daemon, visitor: Chromium, scheme: str, size: tuple[int, int]) -> None:
    script = axe_script()
    if script is None:
        pytest.skip("npm cannot have axe-core")
    visitor.prefer(scheme)
    visitor.resize(size)
    visitor.driver.execute_script("document.querySelector('h1').insertAdjacentHTML('afterend', '<img src=x>')")
    assert visitor.axe(script), "what is wrong on purpose is found"
    visitor.complaints()
    for path in paths(fleet):
        visitor.open(origin(fleet) + path)
        assert visitor.axe(script) == [], path
        assert visitor.complaints() == [], path
    visitor.driver.delete_all_cookies()
    visitor.open(f"{origin(fleet)}/login")
    assert visitor.axe(script) == []


def test_phone_shows_each_view_without_scrolling_sideways(fleet: Daemon, visitor: Chromium) -> None:
    visitor.resize(PHONE)
    for path in paths(fleet):
        visitor.open(origin(fleet) + path)
        assert visitor.driver.execute_script("return document.documentElement.scrollWidth") <= PHONE[0], path


def test_screen_reader_is_told_landmarks_headings_and_tables(fleet: Daemon, visitor: Chromium) -> None:
    visitor.open(f"{origin(fleet)}/")
    tree = visitor.accessibility_tree()
    assert {"banner", "navigation", "main", "contentinfo", "search", "status", "table"} <= {role for role, _ in tree}
    assert ("heading", "Now") in tree
    assert ("heading", "Workloads") in tree
    assert any(role == "table" and name.startswith("Workloads, the most urgent first") for role, name in tree)
    assert any(role == "rowheader" and "llm/reranker" in name for role, name in tree)
    assert any(role == "link" and name.startswith("Revert vllm-") for role, name in tree)
    visitor.open(f"{origin(fleet)}/clusters")
    assert any(role == "image" and "GPUs:" in name for role, name in visitor.accessibility_tree())


def test_keyboard_reaches_the_content_first_and_sees_where_it_is(fleet: Daemon, visitor: Chromium) -> None:
    visitor.open(f"{origin(fleet)}/")
    visitor.find("body").send_keys(TAB)
    focused = visitor.driver.switch_to.active_element
    assert focused.text == "Skip to the content"
    assert focused.value_of_css_property("outline-style") == "solid"
    focused.send_keys(ENTER)
    assert visitor.driver.switch_to.active_element.get_attribute("id") == "main"


def test_page_follows_the_fleet_without_being_loaded_anew(tmp_path: Path, opened: Chromium) -> None:
    opened.allow_scripts(allowed=True)
    opened.resize(WIDE)
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as running:
        sign_in(opened, running, OWNER)
        until(lambda: opened.find("#pulse").text == "Live")
        opened.driver.execute_script("window.mine = 'still the same page'")
        assert "Everything runs at home" in opened.text
        running.sight.missing = 3
        running.wake("observation")
        until(lambda: "3 elsewhere" in opened.find("#headline").text)
        assert opened.driver.execute_script("return window.mine") == "still the same page"
        # What somebody is writing stays, and the page catches up once they are done.
        opened.find("#find").send_keys("vll")
        running.sight.missing = 0
        running.wake("observation")
        time.sleep(2)
        assert opened.find("#find").get_attribute("value") == "vll"


def test_page_looks_again_at_intervals_where_no_stream_opens(tmp_path: Path, opened: Chromium) -> None:
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as running:
        running.live.close()
        sign_in(opened, running, OWNER)
        until(lambda: opened.find("#pulse").text.startswith("Not live"))
        running.sight.missing = 3
        running.wake("observation")
        until(lambda: "3 elsewhere" in opened.find("#headline").text)


def test_answer_that_is_an_error_leaves_what_is_shown_and_a_sign_out_leads_to_the_login(
    tmp_path: Path, opened: Chromium
) -> None:
    opened.allow_scripts(allowed=True)
    look = "htmx.trigger(document.body, 'overspill-look')"
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as running:
        running.live.close()
        sign_in(opened, running, OWNER)
        opened.open(f"{origin(running)}/why?workload=llm/vllm")
        until(lambda: opened.find("#pulse").text.startswith("Not live"))
        running.edit({"template.yaml": None, "policies.yaml": None})
        opened.driver.execute_script(look)
        until(lambda: opened.find("#pulse").text.endswith("answered with 404"))
        assert opened.find("h1").text == "Why: llm/vllm"
        opened.driver.delete_all_cookies()
        opened.driver.execute_script(look)
        login = f"/login?next={quote('/why?workload=llm/vllm')}"
        until(lambda: opened.driver.current_url.endswith(login))


def test_without_scripts_a_person_signs_in_looks_and_reverts_under_their_name(tmp_path: Path, opened: Chromium) -> None:
    with daemon(Remote(tmp_path / "remote.git"), tmp_path / "cache") as running:
        running.sight.missing = 3
        running.wake("observation")
        running.until(lambda: len(running.latest.read().decision.inputs.ledger.placements))
        try:
            opened.allow_scripts(allowed=False)
            sign_in(opened, running, OWNER)
            for path in VIEWS[:7]:
                opened.open(origin(running) + path.replace("reranker", "vllm"))
                assert opened.find("h1").text
            opened.open(f"{origin(running)}/")
            opened.find("a[href^='/do/revert']").click()
            opened.find("#field-reason").send_keys("the demo is over")
            opened.find("button.grave").click()
            until(lambda: "Done: this commit is pushed." in opened.text)
        finally:
            opened.allow_scripts(allowed=True)
        git = ["git", "-C", running.remote.url, "log", "-3", "--format=%an %s%n%b", "placements"]
        message = subprocess.run(git, check=True, capture_output=True, text=True).stdout
        assert 'Ada Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m"' in message
        assert "the demo is over" in message


def test_link_with_a_token_signs_in_and_leaves_no_token_behind(fleet: Daemon, opened: Chromium) -> None:
    opened.allow_scripts(allowed=True)
    opened.driver.delete_all_cookies()
    opened.open(f"{origin(fleet)}/login")
    opened.open(f"{origin(fleet)}/login#token={EDITOR}")
    until(lambda: opened.driver.current_url == f"{origin(fleet)}/")
    assert EDITOR not in opened.driver.page_source
    assert opened.driver.execute_script("return document.cookie") == ""


def test_time_is_scrubbed_from_commit_to_commit_by_keys(fleet: Daemon, visitor: Chromium) -> None:
    visitor.open(f"{origin(fleet)}/time")
    assert visitor.find_all("#curve .uplot"), "the curve is drawn"
    visitor.find("body").send_keys(LEFT)
    until(lambda: "at=" in visitor.driver.current_url)
    assert "As it stood at" in visitor.text


def test_policy_stops_a_script_that_somebody_smuggles_in(fleet: Daemon, visitor: Chromium) -> None:
    visitor.open(f"{origin(fleet)}/?find=%22%3E%3Cscript%3Ewindow.evil%3D1%3C/script%3E")
    assert visitor.driver.execute_script("return window.evil") is None
    smuggled = "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.evil = 1\">')"
    visitor.driver.execute_script(smuggled)
    time.sleep(0.5)
    assert visitor.driver.execute_script("return window.evil") is None
    assert any("Content Security Policy" in complaint for complaint in visitor.complaints())


def test_session_of_eight_hours_is_all_that_a_browser_keeps(fleet: Daemon, visitor: Chromium) -> None:
    cookies = {cookie["name"]: cookie for cookie in visitor.driver.get_cookies()}
    session = cookies["overspill-session"]
    assert session["httpOnly"]
    assert session["sameSite"] == "Strict"
    assert abs(session["expiry"] - time.time() - timedelta(hours=8).total_seconds()) < 600
    assert {*cookies} == {"overspill-session", "overspill-form"}
    assert visitor.driver.execute_script("return localStorage.length + sessionStorage.length") == 0
