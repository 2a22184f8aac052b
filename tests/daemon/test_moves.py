"""People change the fleet repository, and what stands follows: moved in one commit, or brought home."""

from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

DRAINING = SOURCE_FILES["clusters.yaml"].replace(
    "metadata: {name: worker-2}\nspec: {}", "metadata: {name: worker-2}\nspec: {availability: Draining}"
)


def burst(missing: int = 3) -> Passes:
    passes = Passes(MemoryRepository(SOURCE_FILES))
    passes.missing = missing
    passes.run()
    passes.advance(30)
    return passes


def test_a_draining_cluster_gives_its_placement_to_the_next_in_one_commit() -> None:
    passes = burst()
    (before,) = passes.placements()
    passes.repository.person("source", {"clusters.yaml": DRAINING})
    passes.run()
    (after,) = passes.placements()
    assert (after.cluster, after.replicas, after.expires_at) == ("worker-3", 3, before.expires_at)
    head = passes.repository.heads["output"]
    (move,) = passes.repository.log(head, limit=1)
    assert move.subject == "move(llm/vllm): 3 replicas from worker-2 to worker-3"
    assert move.trailers["Overspill-Moved-From"] == "worker-2"
    parent = passes.repository.commits[head].parent
    assert parent is not None
    held = {path.split("/")[1] for path in passes.repository.commits[parent].tree if path.startswith("clusters/")}
    assert held == {"worker-2"}, "the commit before holds it there, this one here: never on none"


def test_a_cluster_that_leaves_the_workspace_sends_its_placement_home_if_nobody_has_room() -> None:
    passes = burst()
    passes.free["worker-3"] = 0
    workspace = SOURCE_FILES["workspaces.yaml"].replace("[worker-1, worker-2, worker-3]", "[worker-1, worker-3]")
    passes.repository.person("source", {"workspaces.yaml": workspace})
    passes.run()
    assert passes.placements() == []
    (commit,) = passes.repository.log(passes.repository.heads["output"], limit=1)
    assert commit.trailers["Overspill-Why"] == "policy"
    assert "not a cluster of workspace llm" in commit.body


def test_a_template_that_is_removed_takes_its_bursts_with_it() -> None:
    passes = burst()
    others = {f"{name}.yaml": SOURCE_FILES["template.yaml"].replace("vllm", name) for name in ("bert", "whisper")}
    passes.repository.person("source", others, removes=("template.yaml",))
    passes.run()
    assert passes.repository.tree(under="clusters") == {}


def test_a_changed_template_reaches_a_burst_with_its_next_resize() -> None:
    passes = burst()
    newer = SOURCE_FILES["template.yaml"].replace("vllm:1.0", "vllm:1.1")
    passes.repository.person("source", {"template.yaml": newer})
    passes.run()
    assert not any(b"vllm:1.1" in data for data in passes.repository.tree().values())
    passes.missing = 4
    passes.run()
    assert any(b"vllm:1.1" in data for data in passes.repository.tree(under="clusters/worker-2").values())


def test_a_template_that_cannot_be_filled_in_is_told_and_others_go_on() -> None:
    broken = (
        SOURCE_FILES["template.yaml"]
        .replace("name: vllm,", "name: odd,")
        .replace('replicas: "{{ replicas }}"', 'replicas: "{{ replicas // (replicas - replicas) }}"')
    )
    passes = Passes(MemoryRepository({**SOURCE_FILES, "odd.yaml": broken}))
    passes.names = ("vllm", "odd")
    passes.names = ("odd", "vllm")
    passes.missing = 1
    outcome = passes.run_once()
    (suppressed,) = outcome.rendered.suppressed
    assert str(suppressed.workload) == "llm/odd"
    assert {refusal.cluster: refusal.reason for refusal in suppressed.refusals} == {
        "worker-2": "NotRendered",
        "worker-3": "NotRendered",
    }
    assert [str(one.workload) for one in passes.placements()] == ["llm/vllm"]


def test_a_template_that_fails_for_one_cluster_goes_to_the_next() -> None:
    picky = SOURCE_FILES["template.yaml"].replace(
        'replicas: "{{ replicas }}"', "replicas: \"{{ replicas // (0 if cluster.name == 'worker-2' else 1) }}\""
    )
    passes = Passes(MemoryRepository({**SOURCE_FILES, "template.yaml": picky}))
    passes.missing = 3
    passes.run()
    assert [(one.cluster, one.replicas) for one in passes.placements()] == [("worker-3", 3)]
    (commit,) = passes.repository.log(passes.repository.heads["output"], limit=1)
    assert "worker-2 refused: " in commit.body


def test_a_template_that_cannot_be_filled_in_takes_no_room_from_others() -> None:
    broken = SOURCE_FILES["template.yaml"].replace('"{{ replicas }}"', '"{{ replicas // 0 }}"')
    other = SOURCE_FILES["template.yaml"].replace("name: vllm,", "name: zz,", 1)
    other = other.replace(
        "metadata: {name: zz,", "metadata: {annotations: {overspill.dev/workload: demo/zz}, name: zz,"
    )
    passes = Passes(MemoryRepository({**SOURCE_FILES, "template.yaml": broken, "zz.yaml": other}))
    passes.free = {"worker-2": 3, "worker-3": 0}
    passes.names = ("vllm", "zz")
    passes.missing = 3
    passes.run()
    assert [(str(one.workload), one.cluster) for one in passes.placements()] == [("llm/zz", "worker-2")]


def spread(passes: Passes) -> list[tuple[str, int]]:
    return [(one.cluster, one.replicas) for one in passes.placements()]


def test_two_placements_that_move_to_one_cluster_become_one_and_lose_nothing() -> None:
    four = (
        SOURCE_FILES["clusters.yaml"]
        + "---\n"
        + SOURCE_FILES["clusters.yaml"].rpartition("---\n")[2].replace("worker-3", "worker-4")
    )
    workspace = SOURCE_FILES["workspaces.yaml"].replace("worker-3]", "worker-3, worker-4]")
    policy = SOURCE_FILES["policies.yaml"].replace("{name: worker-3}", "{name: worker-3}, {name: worker-4}")
    passes = Passes(
        MemoryRepository({**SOURCE_FILES, "clusters.yaml": four, "workspaces.yaml": workspace, "policies.yaml": policy})
    )
    passes.free = {"worker-2": 4, "worker-3": 2, "worker-4": 0}
    passes.missing = 6
    passes.run()
    assert spread(passes) == [("worker-2", 4), ("worker-3", 2)]
    passes.advance(30)
    passes.free["worker-4"] = 6
    draining = four.replace("spec: {}", "spec: {availability: Draining}", 3).replace(
        "{name: worker-1}\nspec: {availability: Draining}", "{name: worker-1}\nspec: {}"
    )
    passes.repository.person("source", {"clusters.yaml": draining})
    passes.run()
    assert spread(passes) == [("worker-4", 6)]
    (placement,) = passes.placements()
    deployment = passes.repository.tree()[f"{placement.path}/manifests/01-server-deployment-vllm.yaml"]
    assert b"replicas: 6" in deployment


def test_a_move_to_where_the_workload_is_already_lets_that_placement_grow() -> None:
    passes = burst(missing=6)
    assert spread(passes) == [("worker-2", 4), ("worker-3", 2)]
    passes.repository.person("source", {"clusters.yaml": DRAINING})
    passes.run()
    assert spread(passes) == [("worker-3", 6)]
    (commit,) = passes.repository.log(passes.repository.heads["output"], limit=1)
    assert commit.subject == "move(llm/vllm): 4 replicas from worker-2 to worker-3"
    assert "which grows to 6 replicas" in commit.body


def test_a_lowered_limit_of_one_cluster_is_carried_out() -> None:
    passes = burst(missing=3)
    lower = SOURCE_FILES["policies.yaml"].replace("{name: worker-2}", "{name: worker-2, maxReplicas: 1}")
    passes.repository.person("source", {"policies.yaml": lower})
    passes.run()
    assert spread(passes) == [("worker-2", 1), ("worker-3", 2)]


def test_a_placement_keeps_its_cluster_while_the_policy_it_came_from_cannot_be_read() -> None:
    passes = burst(missing=6)
    general = SOURCE_FILES["policies.yaml"].replace("name: gpu", "name: general").replace("{name: worker-2}, ", "")
    passes.repository.person(
        "source", {"policies/general.yaml": general, "policy-2.yaml": "kind: BurstPolicy\nspec: [\n"}
    )
    passes.repository.person("source", removes=("policies.yaml",))
    passes.run()
    assert spread(passes) == [("worker-2", 4), ("worker-3", 2)]


def test_a_burst_on_a_cluster_that_nobody_describes_any_more_holds_up_no_pass() -> None:
    passes = burst(missing=6)
    two = "---\n".join(SOURCE_FILES["clusters.yaml"].split("---\n")[:2])
    passes.repository.person("source", {"clusters.yaml": two, "broken.yaml": "kind: Cluster\nspec: [\n"})
    passes.missing, passes.steady_since = 5, passes.moment
    passes.advance(61)
    passes.run()
    passes.missing = 0
    passes.advance(600)
    passes.run()
    assert passes.placements() == []


def test_a_resize_that_takes_up_a_changed_template_says_so() -> None:
    passes = burst()
    newer = SOURCE_FILES["template.yaml"].replace("vllm:1.0", "vllm:1.1")
    passes.repository.person("source", {"template.yaml": newer})
    passes.missing = 4
    passes.run()
    (commit,) = passes.repository.log(passes.repository.heads["output"], limit=1)
    assert "Its template has changed, from " in commit.body
