"""A person answers what is proposed from the command line, and sees what waits for an answer."""

from __future__ import annotations

import pytest

from tests.builders.daemon import EDITOR, OWNER, Daemon
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal, shown_then_done

ASKING = {"policies.yaml": SOURCE_FILES["policies.yaml"] + "  approval: PullRequest\n"}


@pytest.fixture
def proposed(overspill: Terminal, fleet: Remote, see: See) -> Terminal:
    """Have a burst proposed."""
    fleet.commit("main", ASKING)
    see()
    overspill.done("once")
    return overspill


def test_once_proposes_and_says_what_answers_it(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", ASKING)
    see()
    shown = overspill.done("plan")
    done = overspill.done("once")
    for text in (shown, done):
        assert "2 replicas on worker-2 and 1 replica on worker-3 await approval" in " ".join(text.split())
        assert "`overspill approve llm/vllm`" in text
    assert fleet.subjects("placements")[0].startswith("propose(llm/vllm)")
    assert not any(path.endswith("placement.yaml") for path in fleet.files("placements", "clusters"))


@pytest.mark.parametrize("command", [("status",), ("explain", "llm/vllm"), ("plan",)])
def test_what_waits_is_shown_with_its_end_and_its_answer(proposed: Terminal, command: tuple[str, ...]) -> None:
    shown = " ".join(proposed.done(*command).split())
    assert "await approval" in shown
    assert "until 20" in shown
    assert "`overspill approve llm/vllm`" in shown


def test_approved_burst_is_placed_by_the_next_pass(proposed: Terminal, fleet: Remote, see: See) -> None:
    (subject,) = shown_then_done(proposed, fleet, "approve", "llm/vllm", "--author", ANN, "--reason", "the launch")
    assert subject.startswith("approve(llm/vllm): ")
    assert fleet.git("log", "-1", "--format=%an <%ae>", "placements") == ANN
    see()
    done = proposed.done("once")
    assert "proposal(llm/vllm): approved, and placed" in done
    assert "burst(llm/vllm): 2 replicas on worker-2" in done
    assert "burst(llm/vllm): 1 replica on worker-3" in done
    assert not [path for path in fleet.files("placements", "ledger") if "/approvals/" in path or "/proposals/" in path]


def test_approved_burst_is_awaited_until_the_next_pass(proposed: Terminal, see: See) -> None:
    assert "The next pass places it: a daemon's, or `overspill once`." in proposed.done(
        "approve", "llm/vllm", "--author", ANN
    )
    see()
    assert "approved, not yet placed" in proposed.done("status")
    proposed.done("once")
    see()
    assert "approved, not yet placed" not in proposed.done("status")


def test_rejected_burst_is_held_until_it_is_released(proposed: Terminal, fleet: Remote, see: See) -> None:
    (subject,) = shown_then_done(proposed, fleet, "reject", "vllm", "--author", ANN, "--reason", "too dear")
    assert subject == "proposal(llm/vllm): refused"
    see()
    assert "refused by Ann: too dear" in proposed.done("status")
    assert proposed.answer("plan")["commits"] == []
    proposed.done("release", "llm/vllm", "--author", ANN)
    see()
    assert proposed.answer("plan")["commits"][0]["subject"].startswith("propose(llm/vllm)")


def test_what_is_not_proposed_is_named_with_what_is(proposed: Terminal) -> None:
    for command in ("approve", "reject"):
        result = proposed(command, "llm/vlm", "--author", ANN)
        assert (result.exit_code, "did you mean llm/vllm?" in result.stderr) == (1, True)
    proposed.done("approve", "llm/vllm", "--author", ANN)
    again = proposed("approve", "llm/vllm", "--author", ANN)
    assert (again.exit_code, "approved already" in again.stderr) == (1, True)


def test_nothing_proposed_is_said(overspill: Terminal) -> None:
    result = overspill("approve", "llm/vllm", "--author", ANN)
    assert (result.exit_code, "nothing is proposed" in result.stderr) == (1, True)


def test_daemon_approves_for_owners_alone(running: Daemon, laptop: Terminal) -> None:
    running.edit(ASKING)
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: running.latest.read().decision.inputs.ledger.proposals or running.wake("observation"))
    refused = laptop("approve", "llm/vllm")
    assert (laptop.env["OVERSPILL_TOKEN"], refused.exit_code) == (EDITOR, 1)
    laptop.env["OVERSPILL_TOKEN"] = OWNER
    shown = laptop.done("approve", "llm/vllm", "--dry-run")
    assert "Approve" in shown
    done = laptop.done("approve", "llm/vllm", "--reason", "the launch")
    assert "approve(llm/vllm)" in done
    assert "The daemon's next pass places it." in done
    running.until(lambda: running.latest.read().decision.inputs.ledger.placements or running.wake("observation"))
    assert "Ada" in running.remote.git("log", "--format=%an", "placements")


def test_daemon_refuses_for_owners(running: Daemon, laptop: Terminal) -> None:
    running.edit(ASKING)
    running.sight.missing = 3
    running.wake("observation")
    running.until(lambda: running.latest.read().decision.inputs.ledger.proposals or running.wake("observation"))
    laptop.env["OVERSPILL_TOKEN"] = OWNER
    assert "refused" in laptop.done("reject", "llm/vllm", "--reason", "too dear")
    running.until(lambda: not running.latest.read().decision.inputs.ledger.proposals or running.wake("observation"))
    again = laptop("reject", "llm/vllm")
    assert (again.exit_code, "nothing is proposed" in again.stderr) == (1, True)
