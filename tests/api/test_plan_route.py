"""Plans that the API answers with: of now, with suppositions, and of other branches; nothing of them is committed."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.builders.daemon import EDITOR, OWNER, STRANGER, VIEWER, Daemon, Reply
from tests.builders.passes import SOURCE_FILES

PLAN = "/api/v1/plan"
POLICY = SOURCE_FILES["policies.yaml"]


def plan(daemon: Daemon, *questions: str, token: str = OWNER, branch: str = "") -> Reply:
    query = "&".join([*(f"whatIf={quote(question)}" for question in questions), f"sourceBranch={branch}"])
    return daemon.call("GET", f"{PLAN}?{query}", token=token)


def placed(reply: Reply) -> list[tuple[str, str, int]]:
    rows = [commit["row"] for commit in reply.body["data"]["commits"]]
    return [(row["action"], row["cluster"], row["replicas"]) for row in rows]


def proposed(daemon: Daemon, branch: str, files: dict[str, str | None], *, late: dict[str, str] | None = None) -> None:
    """Push a branch of main, and commits to main after it."""
    main = daemon.remote.tip("main")
    assert main is not None
    daemon.remote.move(branch, main)
    daemon.remote.commit(branch, files)
    if late:
        daemon.remote.commit("main", late)


def test_supposition_is_planned_and_nothing_is_pushed(shared: Daemon) -> None:
    pushed = shared.pushed()
    reply = plan(shared, "llm/vllm+3")
    assert placed(reply) == [("Place", "worker-2", 3)]
    assert reply.body["data"]["supposed"] == [
        "What if 3 more replicas of llm/vllm had been missing on worker-1 for 30s?"
    ]
    assert placed(plan(shared, "llm/vllm+3", "cluster/worker-2=down")) == [("Place", "worker-3", 3)]
    assert placed(plan(shared, "vllm+3")) == [("Place", "worker-2", 3)]
    assert plan(shared, "vllm+3", token=VIEWER).status == 422
    assert placed(plan(shared)) == []
    assert shared.pushed() == pushed


def test_branch_is_planned_as_if_it_was_merged(shared: Daemon) -> None:
    """The branch is behind: what the source branch has got since is not taken back."""
    only = POLICY.replace("{name: worker-2}, ", "")
    proposed(shared, "only-3", {"policies.yaml": only, "notes.txt": "ours"}, late={"notes.txt": "theirs"})
    reply = plan(shared, "llm/vllm+3", branch="only-3")
    assert placed(reply) == [("Place", "worker-3", 3)]
    assert reply.body["data"]["source"] == shared.remote.tip("only-3")
    assert placed(plan(shared, "llm/vllm+3")) == [("Place", "worker-2", 3)]


def test_file_that_both_branches_change_is_refused(shared: Daemon) -> None:
    late = {"late.yaml": "# theirs\n"}
    proposed(shared, "behind", {"late.yaml": "# ours\n"}, late=late)
    reply = plan(shared, branch="behind")
    assert reply.status == 422
    assert "both change late.yaml (try merging that into it)" in reply.body["message"]
    proposed(shared, "same", late)
    assert plan(shared, branch="same").status == 200


def test_template_of_a_branch_is_not_observed_and_says_so(shared: Daemon) -> None:
    template = SOURCE_FILES["template.yaml"].replace("vllm", "other")
    proposed(shared, "another", {"other.yaml": template})
    reply = plan(shared, branch="another")
    (problem,) = [problem for problem in reply.body["data"]["problems"] if problem["path"] == "other.yaml"]
    assert "is observed once it is on the source branch" in problem["message"]


def test_cluster_of_a_branch_is_asked_nowhere_and_counts_as_unseen(shared: Daemon) -> None:
    """A connection in a branch sends no login of the daemon to the server that it names."""
    cluster = (
        "apiVersion: overspill.dev/v1alpha1\nkind: Cluster\nmetadata: {name: worker-9}\n"
        "spec: {connection: {context: elsewhere}}\n"
    )
    workspace = SOURCE_FILES["workspaces.yaml"].replace("worker-3]", "worker-3, worker-9]")
    policy = POLICY.replace("[{name: worker-2}, {name: worker-3}]", "[{name: worker-9}]")
    files = {"clusters/nine.yaml": cluster, "workspaces.yaml": workspace, "policies.yaml": policy}
    proposed(shared, "nine", files)
    reply = plan(shared, "llm/vllm+3", branch="nine")
    (held,) = reply.body["data"]["suppressed"]
    assert [(refusal["cluster"], refusal["reason"]) for refusal in held["refusals"]] == [("worker-9", "Unseen")]


@pytest.mark.parametrize("branch", ["nowhere", "placements", "placements-worker-2", "--all", "../main", "a b"])
def test_name_that_is_no_branch_of_people_is_refused(shared: Daemon, branch: str) -> None:
    assert plan(shared, branch=quote(branch)).status == 422


def test_branch_takes_a_role_for_all_workspaces(shared: Daemon) -> None:
    """Its Workspace file could give a caller clusters that the source branch does not."""
    proposed(shared, "mine", {"policies.yaml": POLICY})
    assert plan(shared, branch="mine", token=EDITOR).status == 403
    assert plan(shared, branch="nowhere", token=EDITOR).status == 403


def test_caller_sees_commits_of_its_workspaces_and_files_of_their_placements(shared: Daemon) -> None:
    seen = plan(shared, "llm/vllm+3", token=STRANGER).body["data"]
    (commit,) = seen["commits"]
    assert commit["row"]["workload"] == "llm/vllm"
    assert all(path.startswith(f"clusters/worker-2/{commit['row']['placement']}/") for path in commit["writes"])
    assert seen["problems"] == []
    refused = plan(shared, "llm/vllm+3", token=VIEWER)
    assert (refused.status, refused.body["message"]) == (404, "there is no workspace llm")
    assert plan(shared, "cluster/worker-3=down", token=VIEWER).status == 404
    assert plan(shared, "cluster/worker-2=down", token=VIEWER).body["data"]["commits"] == []


def test_wrong_supposition_is_refused(shared: Daemon) -> None:
    assert plan(shared, "more").status == 422
    assert plan(shared, "llm/nothing+3").status == 422
    assert plan(shared, *["llm/vllm+1"] * 11).status == 422
    assert shared.call("GET", f"{PLAN}?what=1").status == 422
