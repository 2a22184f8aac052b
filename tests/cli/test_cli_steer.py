"""What a person, or a CI job, can ask for directly."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.core.ledger.restraints import ledger_path, write_restraints
from reconciler.model.ids import PlacementName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.placement import Restraint, RestraintKind
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal, push_first, shown_then_done
from tests.fakes.loopback import LoopbackHandler, LoopbackServer


def working_plan(remote: Remote) -> list[str]:
    return sorted(
        path.split("/")[2] for path in remote.files("placements", "clusters") if path.endswith("placement.yaml")
    )


def commit_of(remote: Remote, what: str) -> str:
    return remote.git("log", "-1", f"--format={what}", "placements")


def test_reverted_placement_is_gone_and_its_directory_with_it(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "needed for the audit")
    assert working_plan(fleet) == [placed[1]]
    assert not fleet.files("placements", f"clusters/worker-2/{placed[0]}")


def test_revert_is_committed_in_the_name_of_who_asked_and_says_why(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "needed for the audit")
    assert commit_of(fleet, "%an <%ae>, %cn") == f"{ANN}, Overspill"
    assert commit_of(fleet, "%(trailers:key=Overspill-Why,valueonly)").strip() == "requested"
    assert "needed for the audit" in commit_of(fleet, "%b")


def test_reverted_placement_is_not_placed_there_again(overspill: Terminal, placed: list[str], see: See) -> None:
    overspill.done("revert", placed[0], "--author", ANN)
    see()
    changes = [one["change"] for one in overspill.answer("plan")["commits"]]
    assert [(one["action"], one["after"]["cluster"]) for one in changes] == [("Resize", "worker-3")]


def test_reverted_everywhere_it_is_placed_nowhere_again(overspill: Terminal, placed: list[str], see: See) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--everywhere")
    see()
    assert overspill.answer("plan")["commits"] == []


def test_several_placements_end_in_one_push(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    shown = overspill.done("revert", f"llm/{placed[0]}", f"clusters/worker-3/{placed[1]}/", "--author", ANN)
    assert "Pushed 2 commits to placements" in shown
    assert working_plan(fleet) == []


def test_placement_named_twice_is_reverted_once(overspill: Terminal, placed: list[str]) -> None:
    assert "Pushed 1 commit" in overspill.done("revert", placed[0], f"llm/{placed[0]}", "--author", ANN)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("llm/vllm", "is a workload; name its placements"),
        ("worker-2", "no placement 'worker-2' (there are: llm/vllm-"),
    ],
)
def test_what_is_no_placement_is_refused_with_what_there_is(
    overspill: Terminal, fleet: Remote, placed: list[str], named: str, told: str
) -> None:
    result = overspill("revert", named, "--author", ANN)
    assert (result.exit_code, len(working_plan(fleet))) == (1, len(placed))
    assert told in result.stderr


def test_mistyped_placement_gets_a_guess(overspill: Terminal, placed: list[str]) -> None:
    assert f"did you mean {placed[0]}?" in overspill("revert", placed[0][:-1], "--author", ANN).stderr


def test_placement_that_has_ended_is_told_with_its_end(overspill: Terminal, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "needed for the audit")
    for command in (("revert", placed[0]), ("extend", f"llm/{placed[0]}", "--by", "1h")):
        result = overspill(*command, "--author", ANN)
        assert result.exit_code == 1
        assert re.fullmatch(
            rf"error: placement llm/{placed[0]} ended at \S+Z: Requested: needed for the audit\n", result.stderr
        )


def test_nothing_can_be_reverted_while_nothing_bursts(overspill: Terminal) -> None:
    result = overspill("revert", "vllm-00000000", "--author", ANN)
    assert (result.exit_code, result.stderr) == (1, "error: no placement 'vllm-00000000': nothing is bursting\n")


def test_who_git_does_not_know_has_to_say_their_name(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    result = overspill("revert", placed[0])
    assert (result.exit_code, len(working_plan(fleet))) == (1, 2)
    assert "try --author" in result.stderr


def test_author_is_whom_git_knows(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    overspill.env |= {"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.com"}
    overspill.done("revert", placed[0])
    assert commit_of(fleet, "%an <%ae>") == "Bob <bob@example.com>"


def test_author_without_an_address_is_a_usage_error(overspill: Terminal) -> None:
    assert overspill("revert", "vllm-00000000", "--author", "Ann").exit_code == 2


def test_revert_keeps_what_a_person_deleted_by_hand_in_mind(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    fleet.commit("placements", {f"clusters/worker-2/{placed[0]}": None}, at=now_of(fleet))
    overspill.done("revert", placed[1], "--author", ANN)
    assert [subject.split("(")[0] for subject in fleet.subjects("placements")[:2]] == ['Revert "burst', "hold"]
    assert fleet.git("log", "-1", "--skip=1", "--format=%an", "placements") == "Overspill"


def test_a_released_hold_lets_the_next_pass_place_there_again(
    overspill: Terminal, fleet: Remote, placed: list[str], see: See
) -> None:
    overspill.done("revert", *placed, "--author", ANN)
    shown_then_done(overspill, fleet, "release", "llm/vllm", "--author", ANN, "--reason", "the audit is over")
    assert commit_of(fleet, "%s|%an <%ae>") == f"release(llm/vllm): worker-2 and worker-3|{ANN}"
    assert "Released by Ann: the audit is over." in commit_of(fleet, "%b").replace("\n", " ")
    assert fleet.files("placements", "ledger") == {}
    see()
    changes = [one["change"] for one in overspill.answer("plan")["commits"]]
    assert [(one["action"], one["placement"]["cluster"]) for one in changes] == [
        ("Place", "worker-2"),
        ("Place", "worker-3"),
    ]


def test_a_release_can_name_one_cluster_of_several(overspill: Terminal, placed: list[str], see: See) -> None:
    overspill.done("revert", *placed, "--author", ANN)
    overspill.done("release", "vllm", "--cluster", "worker-3", "--author", ANN)
    see()
    changes = [one["change"] for one in overspill.answer("plan")["commits"]]
    assert {one["placement"]["cluster"] for one in changes} == {"worker-3"}
    again = overspill("release", "vllm", "--cluster", "worker-3", "--author", ANN)
    assert (again.exit_code, again.stderr) == (
        1, "error: releasing llm/vllm: nothing holds it back on worker-3; it is held back on worker-2\n"
    )  # fmt: skip # an exit code and its message


def test_a_release_on_a_cluster_that_is_not_there_names_those_that_are(overspill: Terminal, placed: list[str]) -> None:
    for _ in ("while nothing is held back", "while worker-2 and worker-3 are"):
        result = overspill("release", "vllm", "--cluster", "worker-33", "--author", ANN)
        assert (result.exit_code, result.stderr) == (
            1, "error: releasing llm/vllm: there is no cluster worker-33 (try 'worker-3')\n"
        )  # fmt: skip # an exit code and its message
        overspill("revert", *placed, "--author", ANN)


def test_a_hold_on_every_cluster_ends_as_a_whole(overspill: Terminal, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--everywhere", "--author", ANN)
    one = overspill("release", "vllm", "--cluster", "worker-3", "--author", ANN)
    assert "it is held back on every cluster, and not on worker-3 alone (try it without --cluster)" in one.stderr
    overspill.done("release", "vllm", "--author", ANN)
    assert "nothing holds it back (nor any other workload)" in overspill("release", "vllm", "--author", ANN).stderr


def test_a_cool_down_is_released_like_a_hold(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    workload = WorkloadId(WorkspaceName("llm"), TemplateName("vllm"))
    cooling = Restraint(
        kind=RestraintKind.COOL_DOWN,
        cluster=None,
        since=now,
        until=now + timedelta(hours=1),
        reason="its GPUs were idle",
        placement=PlacementName(placed[0]),
    )
    text = write_restraints(workload, [cooling]).decode()
    fleet.commit("placements", {ledger_path(workload): text}, message="Rest")
    overspill.done("release", "llm/vllm", "--author", ANN)
    assert commit_of(fleet, "%s") == "release(llm/vllm): any cluster"
    assert fleet.files("placements", "ledger") == {}


def test_a_hold_of_every_cluster_is_the_reason_and_says_the_way_out(
    overspill: Terminal, placed: list[str], see: See
) -> None:
    overspill.done("revert", *placed, "--author", ANN)
    see()
    status = overspill.answer("status")["workloads"][0]["suppressed"]
    assert [one["reason"] for one in status] == ["Held"]
    assert "`overspill release llm/vllm --cluster worker-2`" in status[0]["message"]
    told = overspill.done("explain", "llm/vllm")
    assert "Held back, Held: worker-2 is held back: " in told.replace("\n", " ")


def test_revert_of_nothing_names_what_there_is(overspill: Terminal, placed: list[str]) -> None:
    told = overspill("revert", "", "--author", ANN).stderr
    assert told.startswith("error: no placement is named (there are: llm/vllm-")


def test_revert_is_tried_again_when_the_branch_moves_under_it(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    push_first(fleet, "First")
    assert "Pushed 1 commit" in overspill.done("revert", placed[0], "--author", ANN)
    assert [subject.partition("(")[0] for subject in fleet.subjects("placements")[:2]] == ['Revert "burst', "First"]


def now_of(remote: Remote) -> datetime:
    return datetime.fromisoformat(commit_of(remote, "%cI"))


def expiry(overspill: Terminal, name: str) -> datetime:
    found = {one["placement"]["name"]: one["placement"] for one in overspill.answer("status")["placements"]}
    return datetime.fromisoformat(found[name]["expiresAt"])


def test_extended_placement_ends_later(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    before = expiry(overspill, placed[0])
    overspill.done("extend", placed[0], "--by", "30m", "--author", ANN)
    assert expiry(overspill, placed[0]) == before + timedelta(minutes=30)
    assert commit_of(fleet, "%an <%ae>") == ANN


def test_extension_can_name_the_very_moment(overspill: Terminal, placed: list[str]) -> None:
    end = (expiry(overspill, placed[0]) + timedelta(hours=1)).isoformat()
    overspill.done("extend", placed[0], "--until", end, "--author", ANN)
    assert expiry(overspill, placed[0]).isoformat() == end


def test_extension_into_the_past_is_refused(overspill: Terminal, placed: list[str]) -> None:
    result = overspill("extend", placed[0], "--until", "2026-01-01T00:00:00Z", "--author", ANN)
    assert (result.exit_code, "has passed (try `overspill revert" in result.stderr) == (1, True)


def test_extension_beyond_the_policys_maximum_is_refused(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    policy = SOURCE_FILES["policies.yaml"] + "  duration: {default: 10m, max: 20m}\n"
    fleet.commit("main", {"policies.yaml": policy})
    result = overspill("extend", placed[0], "--by", "11m", "--author", ANN)
    assert (result.exit_code, "policy gpu allows 20m" in result.stderr) == (1, True)
    overspill.done("extend", placed[0], "--by", "10m", "--author", ANN)


def test_extension_is_refused_while_the_policy_cannot_be_read(
    overspill: Terminal, fleet: Remote, placed: list[str], tmp_path: Path
) -> None:
    fresh = Remote(tmp_path / "fresh.git")
    fresh.git("fetch", "-q", fleet.url, "placements:placements")
    fresh.commit("main", {"policies.yaml": "apiVersion: overspill.dev/v1alpha1\nkind: BurstPolicy\nspec: ["})
    overspill.env["OVERSPILL_REPO"] = fresh.url
    result = overspill("extend", placed[0], "--by", "1m", "--author", ANN)
    assert (result.exit_code, "its policy cannot be read" in result.stderr) == (1, True)


@pytest.mark.parametrize("options", [(), ("--by", "1m", "--until", "+1h")])
def test_extension_takes_one_of_by_and_until(overspill: Terminal, options: tuple[str, ...]) -> None:
    assert overspill("extend", "vllm-00000000", *options, "--author", ANN).exit_code == 2


OURS = "Overspill <overspill@overspill.dev>"
LONG_AGO = {"created-at": "09:00:00", "changed-at": "09:00:00", "expires-at": "10:00:00"}


@pytest.fixture
def lapsed(fleet: Remote, placed: list[str]) -> list[str]:
    """Turn the records of both placements back in time, so that their hour is long over."""
    for path, data in fleet.files("placements", "clusters").items():
        if path.endswith("/placement.yaml"):
            text = data.decode()
            for key, time in LONG_AGO.items():
                text = re.sub(rf"(overspill.dev/{key}: ).*", rf'\1"2026-01-01T{time}Z"', text)
            message = "Turn back\n\nOverspill-Action: Restore\n"
            fleet.commit("placements", {path: text}, message=message, author=OURS, at=now_of(fleet))
    return placed


def test_sweep_reverts_what_has_lapsed_without_any_observation(
    overspill: Terminal, fleet: Remote, lapsed: list[str]
) -> None:
    overspill.env["OVERSPILL_OBSERVATIONS"] = "/nowhere"
    assert "Pushed 2 commits" in overspill.done("sweep")
    assert (len(lapsed), working_plan(fleet)) == (2, [])
    assert commit_of(fleet, "%(trailers:key=Overspill-Why,valueonly)").strip() == "expired"


def test_sweep_works_while_every_file_of_the_source_branch_is_broken(
    overspill: Terminal, fleet: Remote, lapsed: list[str]
) -> None:
    fleet.commit(
        "main", {path: f"kind: Cluster\napiVersion: overspill.dev/v1alpha1\n{path}: [" for path in SOURCE_FILES}
    )
    overspill.done("sweep")
    assert working_plan(fleet) == []


def test_sweep_works_without_a_source_branch(overspill: Terminal, fleet: Remote, lapsed: list[str]) -> None:
    fleet.move("main", None)
    overspill.done("sweep")
    assert working_plan(fleet) == []


def test_sweep_leaves_alone_what_has_not_lapsed(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    before = fleet.tip("placements")
    assert overspill.done("sweep") == "Nothing has lapsed.\n"
    assert fleet.tip("placements") == before


def test_sweep_of_a_fleet_that_never_burst_begins_no_branch(overspill: Terminal, fleet: Remote) -> None:
    assert overspill.done("sweep") == "Nothing has lapsed.\n"
    assert fleet.tip("placements") is None


def test_repository_may_be_a_path_as_a_terminal_outside_of_a_checkout_says(
    overspill: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del overspill.env["OVERSPILL_REPO"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    said = " ".join(overspill("status").stderr.split())
    assert "no repository: pass --repo with a URL or a path, set OVERSPILL_REPO, or stand in a git checkout" in said


def test_checkout_without_a_remote_is_a_repository_by_its_path(
    overspill: Terminal, fleet: Remote, placed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del overspill.env["OVERSPILL_REPO"]
    monkeypatch.chdir(fleet.path)
    assert len(overspill.answer("status", "--repo", ".")["placements"]) == len(placed)


def test_origin_of_the_checkout_is_the_repository(
    overspill: Terminal, fleet: Remote, placed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del overspill.env["OVERSPILL_REPO"]
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")
    checkout = Remote(tmp_path / "checkout" / ".git")
    checkout.git("config", "core.bare", "false")
    for command in ("status", "plan", "doctor"):
        refused = " ".join(overspill(command).stderr.split())
        assert "no repository: this checkout has no remote 'origin' (pass `--repo .` for the checkout itself" in refused
    checkout.git("config", "remote.origin.url", "../remote.git")
    assert len(overspill.answer("status")["placements"]) == len(placed)
    note = f"note: reading main and placements of {fleet.path}, the 'origin' of this checkout"
    noted = ("plan",), ("once",), ("status", "-o", "wide")
    assert [overspill(*words).stderr.count(note) for words in noted] == [1, 1, 1]
    silent = ("plan", "-o", "json"), ("once", "-o", "name"), ("status", "--repo", str(fleet.path))
    assert not [words for words in silent if note in overspill(*words).stderr]


def test_origin_of_a_checkout_gets_no_login_of_the_environment(
    overspill: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins: list[str] = []

    class Host(LoopbackHandler):
        def do_GET(self) -> None:
            logins.append(self.headers.get("Authorization", ""))
            self.reply(401, headers={"WWW-Authenticate": 'Basic realm="x"'})

    del overspill.env["OVERSPILL_REPO"]
    (tmp_path / "checkout").mkdir()
    monkeypatch.chdir(tmp_path / "checkout")
    checkout = Remote(tmp_path / "checkout" / ".git")
    checkout.git("config", "core.bare", "false")
    with LoopbackServer(Host) as host:
        checkout.git("config", "remote.origin.url", f"{host.url}/fleet.git")
        overspill.env["OVERSPILL_GIT_PASSWORD"] = "swordfish-42"
        for command in ("status", "plan", "once", "doctor"):
            said = " ".join((overspill(command).stderr + overspill(command).stdout).split())
            assert "name the repository with --repo or OVERSPILL_REPO" in said, command
        assert set(logins) == {""}
        assert "the token may be wrong, or expired" in overspill("status", "--repo", f"{host.url}/fleet.git").stderr
        assert set(logins) > {""}


def test_steering_as_json_tells_commits_and_where_they_went(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    answer = overspill.answer("revert", placed[0], "--author", ANN)
    assert answer["pushed"] == [fleet.tip("placements")]
    assert answer["commits"][0]["change"]["why"] == "requested"
    assert overspill.answer("sweep")["pushed"] == []


def test_a_dry_run_shows_the_reverts_that_would_be_and_makes_none(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    subjects = shown_then_done(overspill, fleet, "revert", *placed, "--author", ANN)
    assert subjects == [
        f'Revert "burst(llm/vllm): {what} for 10m"' for what in ("2 replicas on worker-2", "1 replica on worker-3")
    ]
    assert working_plan(fleet) == []


def test_a_dry_run_tells_where_nothing_new_may_go_and_until_when(overspill: Terminal, placed: list[str]) -> None:
    there, everywhere = (
        overspill.done("revert", placed[0], "--author", ANN, "--dry-run", *more) for more in ((), ("--everywhere",))
    )
    until = r"until \S+Z, or until the demand has gone once"
    assert re.search(rf"requested: by Ann; nothing new on worker-2 {until}\n", there)
    assert re.search(rf"requested: by Ann; nothing new on any cluster {until}\n", everywhere)


def test_a_dry_run_shows_the_end_that_would_be(overspill: Terminal, fleet: Remote, placed: list[str]) -> None:
    (subject,) = shown_then_done(overspill, fleet, "extend", placed[0], "--by", "1m", "--author", ANN)
    assert subject.startswith("extend(llm/vllm): 2 replicas on worker-2 until ")


def test_a_dry_run_shows_what_has_lapsed(overspill: Terminal, fleet: Remote, lapsed: list[str]) -> None:
    assert len(shown_then_done(overspill, fleet, "sweep")) == len(lapsed)


def test_a_dry_run_without_anything_to_do_says_so_as_the_command_does(overspill: Terminal, placed: list[str]) -> None:
    assert overspill.done("sweep", "--dry-run").startswith("Nothing has lapsed.\n"), placed


def test_a_dry_run_refuses_what_the_command_does(overspill: Terminal, placed: list[str]) -> None:
    result = overspill("extend", placed[0], "--until", "2026-01-01T00:00:00Z", "--author", ANN, "--dry-run")
    assert (result.exit_code, "has passed" in result.stderr) == (1, True)
