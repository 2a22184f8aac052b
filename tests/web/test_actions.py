"""Orders from the page: each ends in a commit by the person, after one page that shows it, and by nobody else."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from reconciler.model.placement import Placement
from tests.builders.browser import Answer, Browser
from tests.builders.daemon import ABC_OWNER, EDITOR, FILES, LLM_OWNER, OWNER, STRANGER, VIEWER, Daemon, daemon
from tests.builders.remote import Remote
from tests.web.conftest import signed_in


def placed(running: Daemon) -> Placement:
    """Have three replicas placed elsewhere."""
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: len(running.latest.read().decision.inputs.ledger.placements))
    return next(iter(running.latest.read().decision.inputs.ledger.placements.values()))


def commit_of(running: Daemon, answer: Answer) -> tuple[str, str]:
    """Return the author and the message of the commit that an order has led to."""
    assert answer.status == 303, answer.text
    commit = parse_qs(urlsplit(answer.headers["location"]).query)["commit"][0]
    git = ["git", "-C", running.remote.url, "log", "-1", "--format=%an <%ae>%n%B", commit]
    author, _, message = subprocess.run(git, check=True, capture_output=True, text=True).stdout.partition("\n")
    return author, message


def test_revert_is_shown_then_committed_under_the_name_of_who_confirms(running: Daemon, browser: Browser) -> None:
    placement = placed(running)
    link = next(link for link in browser.get("/").page.links() if link.startswith("/do/revert"))
    page = browser.get(link).page
    assert 'Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m"' in page.text
    assert placement.name in page.text
    author, message = commit_of(running, browser.submit(page.form("/do/revert"), reason="too dear"))
    assert author == "Ada <ada@example.com>"
    assert message.startswith('Revert "burst(llm/vllm): 3 replicas on worker-2 for 10m"')
    assert "too dear" in message
    assert placement.path not in running.latest.read().decision.inputs.ledger.placements


def test_page_that_is_only_looked_at_commits_nothing(running: Daemon, browser: Browser) -> None:
    placement = placed(running)
    pushed = running.pushed()
    for verb in ("revert", "extend"):
        assert browser.get(f"/do/{verb}?placement={placement.name}&reason=x").status == 200
    assert running.pushed() == pushed


def test_extension_is_carried_out_once_although_its_form_is_sent_twice(running: Daemon, browser: Browser) -> None:
    placement = placed(running)
    form = browser.get(f"/do/extend?placement={placement.name}").page.form("/do/extend")
    author, message = commit_of(running, browser.submit(form, by="20m", reason="the demo goes on"))
    assert author == "Ada <ada@example.com>"
    assert "It ends 20m later" in message
    again = browser.submit(form, by="20m")
    assert again.status == 422
    assert "it ends at" in again.text
    extended = running.latest.read().decision.inputs.ledger.placements[placement.path]
    assert (extended.expires_at - placement.expires_at).total_seconds() == 20 * 60


def test_hold_after_a_revert_is_released_from_the_page(running: Daemon, browser: Browser) -> None:
    placement = placed(running)
    browser.submit(browser.get(f"/do/revert?placement={placement.name}&everywhere=yes").page.form("/do/revert"))
    running.until(lambda: "Held back" in browser.get("/").text)
    link = next(link for link in browser.get("/").page.links() if link.startswith("/do/release"))
    author, message = commit_of(running, browser.submit(browser.get(link).page.form("/do/release")))
    assert author == "Ada <ada@example.com>"
    assert message.startswith("release(llm/vllm)")
    running.wake("observation")
    running.until(lambda: len(running.latest.read().decision.inputs.ledger.placements))


def test_request_is_checked_then_received_under_the_name_of_who_asks(running: Daemon, browser: Browser) -> None:
    page = browser.get("/do/request").page
    assert all(not button.get("name") for button in page.form("/do/request").buttons)
    filled = browser.get("/do/request?template=llm/vllm&name=trial&cluster=worker-3&lasting=1h").page
    assert "llm/vllm is placed on worker-3 for 1h" in filled.text
    author, message = commit_of(running, browser.submit(filled.form("/do/request")))
    assert author == "Ada <ada@example.com>"
    assert message.startswith("request(llm/trial): received")
    running.until(lambda: "llm/trial" in browser.get("/").text)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ("template=llm/vllm&name=Trial&lasting=1h", "is not a name"),
        ("template=llm/vllm&name=trial&lasting=soon", "not a duration"),
        ("template=llm/nothing&name=trial&lasting=1h", "nothing"),
    ],
)
def test_request_that_cannot_be_is_told_why(running: Daemon, browser: Browser, fields: str, told: str) -> None:
    page = browser.get(f"/do/request?{fields}").page
    assert told in page.text
    assert all(not button.get("name") for button in page.form("/do/request").buttons)


def test_order_without_the_token_of_the_session_is_refused(running: Daemon, browser: Browser) -> None:
    placement = placed(running)
    pushed = running.pushed()
    form = browser.get(f"/do/revert?placement={placement.name}").page.form("/do/revert")
    for csrf in ("", "guessed"):
        assert browser.post("/do/revert", {**form.fields, "csrf": csrf}).status == 403
    good = {**form.fields, "csrf": form.buttons[-1]["value"]}
    assert browser.post("/do/revert", good, Origin="https://evil.example").status == 403
    assert browser.post("/do/revert", good, Sec_Fetch_Site="same-site").status == 403
    other = signed_in(running, EDITOR)
    assert other.post("/do/revert", good).status == 403
    assert running.pushed() == pushed


@pytest.mark.parametrize(("token", "status"), [(EDITOR, 403), (VIEWER, 404)])
def test_who_may_not_change_a_workspace_is_offered_no_action_and_can_force_none(
    running: Daemon, token: str, status: int
) -> None:
    placement = placed(running)
    pushed = running.pushed()
    other = signed_in(running, token)
    page = other.get("/").page
    assert not [link for link in page.links() if link.startswith(("/do/revert", "/do/extend"))]
    csrf = page.form("/logout").buttons[-1]["value"]
    for verb in ("revert", "extend"):
        assert other.get(f"/do/{verb}?placement={placement.name}").status == status
        answer = other.post(f"/do/{verb}", {"placement": placement.name, "by": "5m", "csrf": csrf})
        assert answer.status == status
    assert other.post("/do/release", {"workload": "llm/vllm", "csrf": csrf}).status == status
    assert running.pushed() == pushed


def test_editor_of_a_workspace_may_change_it(running: Daemon) -> None:
    placement = placed(running)
    other = signed_in(running, STRANGER)
    author, _ = commit_of(
        running, other.submit(other.get(f"/do/revert?placement={placement.name}").page.form("/do/revert"))
    )
    assert author == "Sam <sam@example.com>"


def test_placement_that_is_gone_is_told_so(running: Daemon, browser: Browser) -> None:
    answer = browser.get("/do/revert?placement=vllm-00000000")
    assert answer.status == 404
    assert "No placement" in answer.text
    assert browser.get("/do/nothing").status == 404


def test_workload_that_nothing_holds_back_is_not_released(running: Daemon, browser: Browser) -> None:
    page = browser.get("/do/release?workload=llm/vllm").page
    assert "nothing holds it back" in page.text
    assert all(not button.get("name") for button in page.form("/do/release").buttons)


@pytest.fixture
def asking(remote: Remote, tmp_path: Path) -> Iterator[Daemon]:
    """Run a daemon whose policy has every burst approved, with a proposal that waits."""
    policy = FILES["policies.yaml"] + "  approval: PullRequest\n"
    with daemon(remote, tmp_path / "cache", files={**FILES, "policies.yaml": policy}) as one:
        one.sight.missing = 3
        one.wake("observation")
        one.until(lambda: len(one.latest.read().decision.inputs.ledger.proposals))
        yield one


def test_proposed_burst_is_approved_from_the_page_and_placed_as_it_was_shown(asking: Daemon) -> None:
    browser = signed_in(asking, OWNER)
    assert "Awaits approval" in browser.get("/").text
    link = next(link for link in browser.get("/").page.links() if link.startswith("/do/approve"))
    page = browser.get(link).page
    assert "3 replicas on worker-2" in page.text
    author, message = commit_of(asking, browser.submit(page.form("/do/approve"), reason="month's end"))
    assert author == "Ada <ada@example.com>"
    assert message.startswith("approve(llm/vllm)")
    asking.wake("observation")
    asking.until(lambda: len(asking.latest.read().decision.inputs.ledger.placements))
    (placement,) = asking.latest.read().decision.inputs.ledger.placements.values()
    assert (placement.cluster, placement.replicas) == ("worker-2", 3)


def test_proposed_burst_is_refused_from_the_page_and_its_workload_held(asking: Daemon) -> None:
    browser = signed_in(asking, OWNER)
    form = browser.get("/do/reject?workload=llm/vllm").page.form("/do/reject")
    assert commit_of(asking, browser.submit(form, reason="too dear"))[0] == "Ada <ada@example.com>"
    asking.until(lambda: "Held back" in browser.get("/").text)
    assert browser.get("/do/approve?workload=llm/vllm").status == 404


def test_owner_of_one_workspace_opens_the_commit_of_their_approval_and_no_owner_of_another_does(
    asking: Daemon,
) -> None:
    owner = signed_in(asking, LLM_OWNER)
    done = owner.submit(owner.get("/do/approve?workload=llm/vllm").page.form("/do/approve"))
    commit = parse_qs(urlsplit(done.headers["location"]).query)["commit"][0]
    opened = owner.follow(done)
    assert opened.status == 200
    assert "approve(llm/vllm): 3 replicas on worker-2" in opened.text
    assert "Proposal llm/vllm-" in opened.text
    assert f"/why?commit={commit}" in owner.get("/why").page.links()
    for token in (ABC_OWNER, VIEWER):
        other = signed_in(asking, token)
        assert other.get(f"/why?commit={commit}").status == 404
        assert b"vllm" not in other.get("/why").body


def test_editor_sees_what_awaits_approval_and_may_not_answer_it(asking: Daemon) -> None:
    browser = signed_in(asking, EDITOR)
    assert "Awaits approval" in browser.get("/").text
    assert not [link for link in browser.get("/").page.links() if link.startswith("/do/approve")]
    assert browser.get("/do/approve?workload=llm/vllm").status == 403


def test_answer_to_a_proposal_that_another_one_has_replaced_is_refused(asking: Daemon) -> None:
    browser = signed_in(asking, OWNER)
    page = browser.get("/do/approve?workload=llm/vllm&proposal=another").page
    assert "has just ended" in page.text
