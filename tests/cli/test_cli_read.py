"""`status`, `history`, `cost` and `explain`: their tables, their JSON and their empty states."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reconciler.cli.actions.explain import _demand
from reconciler.model.units import parse_duration
from tests.builders.passes import SOURCE_FILES
from tests.builders.remote import Remote
from tests.cli.conftest import ANN, See, Terminal


def columns(line: str) -> list[str]:
    return [cell for cell in line.split("  ") if cell]


def test_status_shows_demand_and_placements(overspill: Terminal, placed: list[str]) -> None:
    lines = overspill.done("status").splitlines()
    workload = next(line for line in lines if line.startswith("llm/vllm"))
    assert workload.split() == ["llm/vllm", "worker-1", "gpu", "7", "4", "3", "3", "-"]
    shown = [line.split()[:6] for line in lines if line.startswith("vllm-")]
    assert shown == [
        [placed[0], "llm/vllm", "worker-2", "2", "0", "Pending"],
        [placed[1], "llm/vllm", "worker-3", "1", "0", "Pending"],
    ]


def test_status_of_a_quiet_fleet_says_so(overspill: Terminal, see: See) -> None:
    see(missing=0)
    assert "No placements: nothing is bursting." in overspill.done("status")


def test_status_shows_how_clusters_are_reached_and_whether_they_are_seen(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    text = "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker-9}\nspec: {connection: {%s}}\n"
    fleet.commit("main", {"clusters/worker-9.yaml": text % "context: gke_worker-9"})
    lines = {columns(line)[0]: columns(line) for line in overspill.done("status").splitlines() if "worker-" in line[:7]}
    assert [cell.strip() for cell in lines["worker-9"]] == [
        "worker-9", "context gke_worker-9", "-", "manifests", "no", "worker-9 has not been observed"
    ]  # fmt: skip # a list of words, filled line by line
    name, reached, seen, *_ = [cell.strip() for cell in lines["worker-2"]]
    assert (name, reached) == ("worker-2", "-")
    assert re.fullmatch(r"\d+s", seen)


@pytest.mark.parametrize("command", ["status", "plan", "once", "bootstrap argocd"])
def test_source_branch_that_does_not_exist_is_named_with_the_one_that_was_meant(
    overspill: Terminal, fleet: Remote, command: str
) -> None:
    result = overspill(*command.split(), "--source-branch", "mian")
    assert (result.exit_code, result.stdout) == (1, "")
    hint = "try --source-branch main, or push yours: `git push origin HEAD:{}`"
    assert f"its source branch 'mian' does not exist ({hint.format('mian')})" in result.stderr
    assert f"({hint.format('live')})" in overspill(*command.split(), "--source-branch", "live").stderr
    fleet.move("next", fleet.tip("main"))
    assert "(there are main, next, or push" in overspill(*command.split(), "--source-branch", "live").stderr
    fleet.move("next", None)
    fleet.move("main", None)
    assert (
        "'main' does not exist (the remote answers without any branch. If it is new: commit the files and"
        in overspill(*command.split()).stderr
    )


def test_status_of_a_fleet_without_templates_says_how_to_begin(overspill: Terminal, fleet: Remote) -> None:
    fleet.commit("main", dict.fromkeys(SOURCE_FILES) | {"README.md": "empty"})
    assert "overspill init" in overspill.done("status")


def test_status_later_tells_how_little_is_left(overspill: Terminal, placed: list[str]) -> None:
    left = [parse_duration(one["left"]) for one in overspill.answer("status", "--at", "+9m")["placements"]]
    assert all(timedelta(seconds=30) < one <= timedelta(minutes=1) for one in left)


def test_status_at_a_moment_after_its_end_says_that_a_placement_is_over(overspill: Terminal, placed: list[str]) -> None:
    lines = overspill.done("status", "--at", "+2h").splitlines()
    assert [line.split()[-2:] for line in lines if line.startswith("vllm-")] == [["over", "-"], ["over", "-"]]


@pytest.mark.parametrize("command", ["status", "plan", "explain vllm"])
def test_answer_for_a_moment_in_the_past_is_given_with_a_note(overspill: Terminal, see: See, command: str) -> None:
    see()
    past = overspill(*command.split(), "--at", "2026-01-01T10:05:00Z")
    assert (past.exit_code, past.stderr) == (0, "note: --at is in the past\n")
    assert "--at" not in overspill(*command.split(), "--at", "+1m").stderr


def test_status_as_json_is_complete(overspill: Terminal, placed: list[str]) -> None:
    answer = overspill.answer("status")
    assert set(answer) == {
        "now",
        "workloads",
        "requests",
        "placements",
        "leaving",
        "clusters",
        "budgets",
        "problems",
        "wakeAt",
    }
    assert set(answer["workloads"][0]) == {
        "workload", "primary", "policy", "wanted", "running", "deficit", "placed", "spare", "message",
        "suppressed",
    }  # fmt: skip # a list of words, filled line by line
    assert set(answer["clusters"][0]) == {"cluster", "engine", "connection", "observedAt", "reporting", "message"}
    assert set(answer["placements"][0]) == {
        "placement", "phase", "provisioning", "engine", "message", "unhealthySince", "bound", "left"
    }  # fmt: skip # a list of words, filled line by line
    assert answer["placements"][0]["placement"]["shape"]["requests"] == {"nvidia.com/gpu": "1"}


def test_names_and_values_of_an_answer_are_printed_alone(overspill: Terminal, placed: list[str]) -> None:
    assert sorted(overspill.done("status", "-o", "name").splitlines()) == sorted(placed)
    template = '{range .placements[*]}{.placement.cluster}{"\\t"}{end}'
    assert overspill.done("status", "-o", f"jsonpath={template}") == "worker-2\tworker-3\t"
    assert overspill.done("placements", "list", "-o", "jsonpath={.items[*].name}") == " ".join(sorted(placed))
    wrong = overspill("status", "-o", "jsonpath={.x[")
    assert (wrong.exit_code, "the name of a field is expected here" in wrong.stderr) == (2, True)


def test_primary_that_cannot_be_seen_is_told_once_in_status(overspill: Terminal) -> None:
    line = next(line for line in overspill.done("status").splitlines() if line.startswith("llm/vllm"))
    assert line.count("worker-1 has not been observed") == 1


def test_primary_that_cannot_be_seen_is_why_explain_looks_at_no_cluster(overspill: Terminal) -> None:
    assert "No cluster was looked at: the primary is unseen." in overspill.done("explain", "llm/vllm")


def test_history_tells_placements_and_their_reasons_newest_first(overspill: Terminal, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "audit")
    lines = overspill.done("history").splitlines()
    assert [columns(line)[0].strip() for line in lines[1:]] == [placed[1], placed[0]]
    assert re.search(r"  \d+s  +-  +(10m|9m\d\ds)  ", lines[1])
    wide = overspill.done("history", "-o", "wide").splitlines()
    assert lines[0].split()[3:6] == ["AGE", "LASTED", "LEFT"]
    assert wide[0].split()[3:8] == ["AGE", "LASTED", "LEFT", "FROM", "TO"]
    assert "until 20" in wide[1]
    assert "requested; began: 3 pods unschedulable on worker-1" in lines[2]


def test_history_and_status_tell_the_same_of_a_placement_whose_revert_a_person_reverts(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    files = fleet.files("placements")
    overspill.done("revert", placed[0], "--author", ANN)
    fleet.commit("placements", files, message='Revert "Revert ..."')

    def standing(command: str) -> dict[str, str]:
        rows = overspill.answer(command)["placements"]
        if command == "history":
            return {row["id"].partition("/")[2]: row["expiresAt"] for row in rows if row["endedAt"] is None}
        return {row["placement"]["name"]: row["placement"]["expiresAt"] for row in rows}

    assert standing("history") == standing("status")
    assert len(standing("history")) == len(placed)
    overspill.done("extend", placed[0], "--by", "5m", "--author", ANN)
    assert standing("history") == standing("status")
    lines = [line for line in overspill.done("history", "-o", "wide").splitlines() if placed[0] in line]
    assert [("until 20" in line, "put back by hand; began: 3 pods" in line) for line in lines] == [(True, True)]


def test_what_stands_without_its_template_or_its_cluster_says_so(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    described = SOURCE_FILES["clusters.yaml"].split("---\n")
    fleet.commit("main", {"clusters.yaml": "---\n".join(text for text in described if "worker-3" not in text)})
    notes = {row["placement"]["cluster"]: row["message"] for row in overspill.answer("status")["placements"]}
    assert notes["worker-3"].startswith("no file describes Cluster worker-3 any more; it ends at 20")
    assert notes["worker-2"] == ""


def test_history_of_one_workload_leaves_out_the_others(overspill: Terminal, placed: list[str]) -> None:
    assert len(overspill.answer("history", "llm/vllm")["placements"]) == 2
    assert len(overspill.answer("history", placed[0])["placements"]) == 1


def test_history_leaves_out_commits_of_others_whatever_their_trailers_say(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    forged = (
        "burst(llm/forged): 9 replicas on worker-2\n\nBecause I say so.\n\nOverspill-Action: Place\n"
        "Overspill-Placement: llm/forged\nOverspill-Cluster: worker-2\nOverspill-Expires: 2999-01-01T00:00:00Z\n"
    )
    fleet.commit("placements", {"note.txt": "x"}, message=forged)
    assert len(overspill.answer("history")["placements"]) == len(placed)
    assert "forged" not in overspill.done("history")


def test_history_takes_the_templates_name_alone(overspill: Terminal, placed: list[str]) -> None:
    assert overspill.answer("history", "vllm") == overspill.answer("history", "llm/vllm")


def test_history_of_a_workload_that_is_no_longer_in_the_fleet_is_still_told(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    fleet.commit("main", {"template.yaml": None})
    for name in ("vllm", "llm/vllm"):
        assert len(overspill.answer("history", name)["placements"]) == 2


@pytest.mark.parametrize("name", ["other", "llm/other", "worker-2"])
@pytest.mark.parametrize("options", [(), ("--since", "+1h"), ("--limit", "1")])
def test_history_of_an_unknown_name_names_those_there_are(
    overspill: Terminal, placed: list[str], name: str, options: tuple[str, ...]
) -> None:
    result = overspill("history", name, *options)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"'{name}'" in result.stderr
    assert "(there are: llm/vllm)" in result.stderr


def test_history_of_a_name_that_two_workspaces_have_asks_which(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    second = {
        "workspaces/2.yaml": SOURCE_FILES["workspaces.yaml"].replace("name: llm", "name: eval"),
        "template2.yaml": SOURCE_FILES["template.yaml"].replace("workspaceName: llm", "workspaceName: eval"),
    }
    fleet.commit("main", second)
    result = overspill("history", "vllm")
    assert (result.exit_code, "(there are: eval/vllm, llm/vllm)" in result.stderr) == (1, True)
    assert len(overspill.answer("history", "llm/vllm")["placements"]) == 2


def test_history_of_a_workload_that_has_not_burst_says_so_of_it_alone(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    template = SOURCE_FILES["template.yaml"].replace("name: vllm", "name: quiet")
    fleet.commit("main", {"quiet.yaml": template})
    told = "No placement of quiet in the history: it has not burst yet.\n"
    assert overspill.done("history", "quiet") == told
    ended = overspill.done("revert", *placed, "--author", ANN) and overspill.done("history", "--since", "+1h")
    assert ended == "No placement in the history since then.\n"


def test_history_stops_at_its_limit_and_says_so(overspill: Terminal, placed: list[str]) -> None:
    result = overspill("history", "--limit", "1")
    assert len(result.stdout.splitlines()) == 2
    assert "raise --limit" in result.stderr
    answer = overspill.answer("history", "--limit", "1")
    assert (answer["more"], len(answer["placements"])) == (True, 1)


def test_history_since_keeps_what_still_stands_and_drops_what_ended_before(
    overspill: Terminal, placed: list[str]
) -> None:
    overspill.done("revert", placed[0], "--author", ANN)
    assert [one["id"] for one in overspill.answer("history", "--since", "+1m")["placements"]] == [f"llm/{placed[1]}"]
    assert len(overspill.answer("history", "--since", "-1h")["placements"]) == 2


def test_history_since_takes_a_duration_for_so_long_ago(overspill: Terminal, placed: list[str]) -> None:
    for since in ("7d", "-7d", "1h30m"):
        assert len(overspill.answer("history", "--since", since)["placements"]) == 2
    result = overspill("history", "--since", "a week")
    assert (result.exit_code, "(try 2026-11-20T10:15:00Z, or -7d)" in result.stderr) == (2, True)


def test_history_finds_a_beginning_that_lies_hundreds_of_commits_back(
    overspill: Terminal, fleet: Remote, placed: list[str]
) -> None:
    tip = fleet.tip("placements")
    stream = "".join(
        f"commit refs/heads/placements\ncommitter Bot <bot@example.com> {1800000000 + number} +0000\ndata 4\nnote\n"
        + (f"from {tip}\n" if number == 0 else "")
        for number in range(450)
    )
    fleet.git("fast-import", "--quiet", stdin=stream.encode())
    assert [one["startedAt"] is None for one in overspill.answer("history")["placements"]] == [False, False]


def test_history_before_anything_has_burst_says_so(overspill: Terminal) -> None:
    assert overspill.done("history") == "No placement in the history: nothing has burst yet.\n"
    assert overspill.answer("history") == {"placements": [], "more": False}


def test_explanation_tells_of_each_cluster_and_ends_in_a_conclusion(overspill: Terminal, see: See) -> None:
    see(missing=9, worker_2=0)
    shown = overspill.done("explain", "llm/vllm")
    assert "Demand: 13 wanted, 4 running, 9 missing" in shown
    assert "NoCapacity: needs 1 GPU on one node" in shown
    assert "can take it" in shown
    assert shown.index("Clusters") < shown.index("Conclusion") < shown.index("9 replicas missing")


def test_explanation_tells_the_cause_of_what_waits_where_it_is_known() -> None:
    step = {"signal": "", "replicas": 1, "since": "2026-11-20T10:00:00Z", "spare": False}
    waiting = [{**step, "cause": "kueue queue-a waits for quota"}, {**step, "cause": ""}]
    shown = _demand({"wanted": 3, "running": 1, "deficit": 2, "waiting": waiting})
    assert shown == (
        "Demand: 3 wanted, 1 running, 2 missing (unschedulable: 1 since 2026-11-20T10:00:00Z, kueue queue-a waits for"
        " quota, 1 since 2026-11-20T10:00:00Z)"
    )


def test_explanation_counts_headroom_apart_from_what_is_missing(overspill: Terminal, fleet: Remote, see: See) -> None:
    fleet.commit("main", {"policies.yaml": SOURCE_FILES["policies.yaml"].replace("spec:\n", "spec:\n  headroom: 2\n")})
    see(missing=9, worker_2=0)
    shown = overspill.done("explain", "llm/vllm")
    assert "Demand: 13 wanted, 4 running, 9 missing, 2 wanted beforehand" in shown
    assert "9 replicas missing and 2 replicas wanted beforehand" in shown


def test_cluster_of_a_workload_that_is_held_back_has_room_but_takes_nothing(
    overspill: Terminal, placed: list[str]
) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--everywhere")
    shown = overspill.done("explain", "vllm")
    assert "Held back, Held" in shown
    assert ("has room" in shown, "can take it" in shown) == (True, False)


def test_cluster_of_a_workload_at_its_policys_limit_has_room_but_takes_nothing(
    overspill: Terminal, fleet: Remote, see: See
) -> None:
    fleet.commit("main", {"policies.yaml": SOURCE_FILES["policies.yaml"] + "  maxReplicas: 1\n"})
    see(missing=1)
    overspill.done("once")
    see(missing=3)
    shown = overspill.done("explain", "vllm")
    assert "Held back, PolicyLimit" in shown
    assert ("has room" in shown, "can take it" in shown) == (True, False)


def test_explanation_takes_the_templates_name_alone(overspill: Terminal, see: See) -> None:
    see()
    at = overspill.answer("explain", "llm/vllm")
    assert overspill.answer("explain", "vllm")["assessments"] == at["assessments"]


def test_explanation_of_an_unknown_workload_names_those_there_are(overspill: Terminal) -> None:
    for name in ("other", "llm/other"):
        result = overspill("explain", name)
        assert (result.exit_code, "there are llm/vllm" in result.stderr) == (1, True)


@pytest.mark.parametrize(("name", "hint"), [("llm/vlm", "try 'llm/vllm'"), ("vlm", "try 'vllm'")])
def test_explanation_of_a_misspelt_workload_suggests_the_nearest(overspill: Terminal, name: str, hint: str) -> None:
    result = overspill("explain", name)
    assert (result.exit_code, f"({hint})" in result.stderr) == (1, True)


def test_explanation_of_a_placement_names_its_workload(overspill: Terminal, placed: list[str]) -> None:
    for name in (placed[0], f"llm/{placed[0]}"):
        result = overspill("explain", name)
        assert (result.exit_code, "is a placement; name its workload: llm/vllm" in result.stderr) == (1, True)


def test_explanation_tells_the_scores_of_each_cluster(overspill: Terminal, fleet: Remote, see: See) -> None:
    see()
    assert "Scores" not in overspill.done("explain", "vllm")
    fleet.commit("main", {"policies.yaml": SOURCE_FILES["policies.yaml"] + "  scoring: [{name: PolicyOrder}]\n"})
    shown = overspill.done("explain", "vllm")
    assert "Scores\nworker-2 100: PolicyOrder 100\nworker-3 0: PolicyOrder 0\n" in shown


def test_explanation_as_json_is_complete(overspill: Terminal, see: See) -> None:
    see()
    answer = overspill.answer("explain", "vllm")
    assert set(answer) == {
        "workload", "primary", "policy", "demand", "placements", "ailing", "restraints", "assessments", "suppressed",
        "conclusion", "observedAt", "request", "distribution", "notes", "summary"
    }  # fmt: skip # a list of words, filled line by line
    assert set(answer["assessments"][0]) == {
        "cluster", "subset", "rank", "placed", "fits", "limit", "free", "pricePerGpuHour", "refusal", "scores", "start",
        "slices",
    }  # fmt: skip # a list of words, filled line by line


def test_explanation_tells_what_holds_a_workload_back(overspill: Terminal, placed: list[str]) -> None:
    overspill.done("revert", placed[0], "--author", ANN, "--reason", "audit")
    shown = overspill.done("explain", "vllm")
    until = overspill.answer("explain", "vllm")["restraints"][0]["until"]
    assert f"held back on worker-2 until {until}: {placed[0]} was ended by Ann: audit" in shown


def test_status_and_explanation_tell_what_engines_say(
    overspill: Terminal, placed: list[str], fleet: Remote, observations: Path
) -> None:
    files = fleet.files("placements")
    (digest,) = re.findall(r"sha256-[0-9a-f]+", files[f"clusters/worker-2/{placed[0]}/placement.yaml"].decode())
    at = {"digest": digest, "revision": fleet.tip("placements")}
    told: dict[str, list[dict[str, object]]] = {
        "worker-2": [
            {"name": placed[0], "bound": 2, "state": "Progressing", "message": "1 of 2 ready", **at},
            {"name": "vllm-gone", "bound": 3},
        ],
        "worker-3": [{"name": placed[1], "bound": 1, "ready": 1}],
    }
    for cluster, entries in told.items():
        file = observations / f"{cluster}.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "placements": entries}))
    answer = overspill.answer("status")
    first, second = answer["placements"]
    assert (first["phase"], first["provisioning"], first["engine"]) == ("Pending", "Successful", "Progressing")
    assert (first["message"], second["message"]) == ("1 of 2 ready", "")
    assert (second["phase"], second["provisioning"], second["engine"]) == ("Running", "Successful", None)
    assert answer["leaving"] == [{"cluster": "worker-2", "name": "vllm-gone", "pods": 3, "since": None, "message": ""}]
    shown = overspill.done("status")
    assert "Leaving" in shown
    assert "vllm-gone" in shown
    assert "Progressing, not healthy since" in overspill.done("explain", "vllm")
    assert overspill.answer("explain", "vllm")["ailing"].keys() == {f"clusters/worker-2/{placed[0]}"}


def test_cost_adds_up_what_runs_by_the_prices_of_the_cluster_files(
    overspill: Terminal, fleet: Remote, see: See
) -> None:
    text = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker-2}\nspec: {pricePerGPUHour: 36}\n"
    )
    rest = [text for text in SOURCE_FILES["clusters.yaml"].split("---\n") if "worker-2" not in text]
    fleet.commit("main", {"clusters.yaml": "---\n".join([*rest, text])}, at=datetime.now(UTC))
    see(missing=3)
    overspill.done("once")
    time.sleep(1)
    answer = overspill.answer("cost", "--since", "1h", "--by", "cluster")
    rows = {row["group"]["cluster"]: row for row in answer["rows"]}
    assert {name: row["gpusNow"] for name, row in rows.items()} == {"worker-2": 2, "worker-3": 1}
    assert rows["worker-2"]["dollars"] == pytest.approx(rows["worker-2"]["gpuHours"] * 36, abs=0.01)
    assert answer["unpriced"] == {"worker-3": rows["worker-3"]["gpuHours"]}
    result = overspill("cost", "--by", "workspace", "--by", "month", "-o", "markdown")
    assert result.stdout.startswith("| WORKSPACE | MONTH | GPU-HOURS | DOLLARS | GPU-HOURS WITHOUT PRICE | GPUS NOW |")
    assert "GPU-hours without a price, which the dollars leave out" in result.stderr


def test_cost_says_what_it_cannot_add_up(overspill: Terminal) -> None:
    assert overspill.done("cost") == "No costs: nothing has burst yet.\n"
    result = overspill("cost", "--since", "1d", "--until", "2d")
    assert (result.exit_code, "is not before --until" in result.stderr) == (2, True)


def test_cost_of_a_shallow_clone_says_how_to_get_the_rest(
    overspill: Terminal, fleet: Remote, see: See, tmp_path: Path
) -> None:
    see(missing=1)
    overspill.done("once")
    see(missing=3)
    overspill.done("once")
    clone = tmp_path / "shallow"
    fleet.git("clone", "-q", "--bare", "--depth=1", "--no-single-branch", f"file://{fleet.path}", str(clone))
    result = overspill("cost", "--repo", str(clone))
    assert (result.exit_code, "try git fetch --unshallow" in result.stderr) == (1, True)


def test_status_lists_budgets_and_warns_of_those_that_are_used_up(overspill: Terminal, fleet: Remote, see: See) -> None:
    budget = SOURCE_FILES["policies.yaml"] + "  budget: {perDay: 0, perMonth: 50}\n"
    fleet.commit("main", {"policies.yaml": budget})
    see(missing=3)
    result = overspill("status")
    rows = [columns(line) for line in result.stdout.splitlines() if line.startswith("policy gpu")]
    assert [(row[2].strip(), row[3].strip(), row[5].strip()) for row in rows] == [
        ("0.00 $", "0.00 $", "used up: nothing new is placed"),
        ("0.00 $", "50.00 $", "0 %"),
    ]
    assert "is used up: nothing new is placed and no burst renewed before" in result.stderr
    assert "OverBudget" in overspill.done("plan")
    assert "Held back, OverBudget: the budget of policy gpu for" in overspill.done("explain", "vllm")
