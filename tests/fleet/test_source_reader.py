"""The source branch in force: a broken file keeps its last good version, and nothing is parsed twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.daemon.source import SourceReader
from reconciler.errors import Transient
from reconciler.model.ids import WorkloadId
from reconciler.model.tree import blob_of
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, policy, warnings, workspace
from tests.fakes.memory_repository import MemoryRepository

VLLM = WorkloadId("llm", "vllm")
PATH = "templates/vllm.yaml"
LONGER = TEMPLATE.replace("burstDuration: 10m", "burstDuration: 20m")
BROKEN = TEMPLATE.replace("burstDuration: 10m", "burstDuration: soon")
MESSAGE = f"{PATH}:8: spec.burstDuration: 'soon' is not a duration (try '10m' or '1h30m')"


@pytest.fixture
def fleet():
    return MemoryRepository(FLEET)


def tip(fleet):
    return fleet.tips().source


def stays(text: str, path: str = PATH) -> str:
    blob = blob_of(text.encode())[:12]
    return (
        f"{path}: its last good version, blob {blob}, stays in force until this is mended "
        f"(see it with git cat-file -p {blob})"
    )


def test_an_unchanged_commit_gives_the_same_object(fleet):
    reader = SourceReader(fleet)
    first = reader.desired(tip(fleet))
    read = len(fleet.reads)
    assert reader.desired(tip(fleet)) is first
    assert len(fleet.reads) == read


def test_an_unchanged_file_is_never_parsed_twice(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    assert sorted(fleet.reads) == sorted(blob_of(text.encode()) for text in FLEET.values())
    for text in (LONGER, BROKEN, LONGER + "# again\n"):
        fleet.reads.clear()
        reader.desired(fleet.person("source", {PATH: text}))
        assert fleet.reads == [blob_of(text.encode())]
    fleet.reads.clear()
    moved = {"copy.txt": "x", "clusters/moved.yaml": FLEET["clusters/worker-1.yaml"]}
    assert "worker-1" in reader.desired(fleet.person("source", moved, removes=["clusters/worker-1.yaml"])).clusters
    assert fleet.reads == []


def test_versions_that_are_in_no_tree_are_forgotten(fleet):
    reader = SourceReader(fleet)
    for minutes in range(10, 30):
        reader.desired(fleet.person("source", {PATH: TEMPLATE.replace("10m", f"{minutes}m")}))
    assert len(reader._parsed) == len(FLEET)


def test_files_of_other_kinds_are_never_read(fleet):
    fleet.person("source", {"README.md": "overspill.dev", ".ci/x.yaml": "apiVersion: overspill.dev/v1\nkind: X\n"})
    assert SourceReader(fleet).desired(tip(fleet)).problems == ()
    assert len(set(fleet.reads)) == len(FLEET)


def test_a_broken_file_keeps_its_last_good_version_in_force(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    reader.desired(fleet.person("source", {PATH: LONGER}))
    desired = reader.desired(fleet.person("source", {PATH: BROKEN}))
    assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=20)
    assert desired.templates[VLLM].blob == blob_of(LONGER.encode())
    assert errors(desired) == [MESSAGE]
    assert warnings(desired) == [stays(LONGER)]
    assert not desired.incomplete


def test_it_stays_so_while_other_files_change_and_until_it_is_mended(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    for commit in (
        fleet.person("source", {PATH: BROKEN}),
        fleet.person("source", {"clusters/worker-3.yaml": cluster("worker-3")}),
        fleet.person("source", {PATH: BROKEN + "# still\n"}),
    ):
        desired = reader.desired(commit)
        assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=10)
        assert errors(desired) == [MESSAGE]
    desired = reader.desired(fleet.person("source", {PATH: LONGER}))
    assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=20)
    assert desired.problems == ()


@pytest.mark.parametrize("nothing", ["", "\n", "# to be written\n---\n"])
def test_a_file_that_was_emptied_keeps_what_was_in_it(fleet, nothing):
    for text in (LONGER, nothing, nothing + "\n"):
        fleet.person("source", {PATH: text})
    desired = SourceReader(fleet).desired(tip(fleet))
    assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=20)
    assert errors(desired) == [
        f"{PATH}: is empty, and WorkloadTemplate vllm stood in it (delete the file if that is to go)"
    ]
    assert warnings(desired) == [stays(LONGER)]
    assert not desired.incomplete


def test_a_file_that_was_deleted_and_then_given_to_another_use_takes_its_objects_with_it(fleet):
    assert VLLM not in SourceReader(fleet).desired(fleet.person("source", {}, removes=[PATH])).templates
    desired = SourceReader(fleet).desired(fleet.person("source", {PATH: "kind: ConfigMap\n"}))
    assert VLLM not in desired.templates
    assert errors(desired) == []


def test_an_empty_file_that_never_held_anything_of_ours_is_nobodys_business(fleet):
    fleet.person("source", {"notes.yaml": "a: 1\n"})
    assert SourceReader(fleet).desired(fleet.person("source", {"notes.yaml": "", "new.yaml": ""})).problems == ()


def test_a_typo_in_the_group_keeps_a_cluster_in_force(fleet):
    path = "clusters/worker-2.yaml"
    typo = FLEET[path].replace("overspill.dev", "overspil.dev")
    desired = SourceReader(fleet).desired(fleet.person("source", {path: typo}))
    assert "worker-2" in desired.clusters
    assert errors(desired) == [f"{path}:1: apiVersion: unknown group overspil.dev (try 'overspill.dev/v1alpha1')"]


def test_a_restart_finds_the_last_good_version_in_history(fleet):
    for text in (LONGER, BROKEN, BROKEN + "# again\n", "nonsense: [overspill.dev\nkind: Fleet\n"):
        fleet.person("source", {PATH: text})
    desired = SourceReader(fleet).desired(tip(fleet))
    assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=20)
    assert warnings(desired) == [stays(LONGER)]
    assert not desired.incomplete


def test_history_is_searched_once_for_a_broken_version(fleet):
    fleet.person("source", {PATH: BROKEN})
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    read = len(fleet.reads)
    reader.desired(fleet.person("source", {"clusters/worker-3.yaml": cluster("worker-3")}))
    assert len(fleet.reads) == read + 1


def test_without_any_good_version_the_file_takes_no_part_and_that_is_told(fleet):
    fleet.person("source", {"templates/new.yaml": BROKEN.replace("name: vllm", "name: new", 1)})
    desired = SourceReader(fleet).desired(tip(fleet))
    assert desired.incomplete
    assert set(desired.templates) == {VLLM}
    assert warnings(desired) == ["templates/new.yaml: it has never been valid, so nothing in it is in force"]


def test_a_fleet_below_the_root_is_one_error_and_not_one_for_each_file():
    below = MemoryRepository({f"fleets/gpu/{path}": text for path, text in FLEET.items()})
    assert len(errors(SourceReader(below).desired(tip(below)))) > 1  # no directory of the root is laid out as a fleet
    below = MemoryRepository({f"gpu/{path}": text for path, text in FLEET.items()})
    below.person("source", {"policies/other.yaml": FLEET["policies/gpu.yaml"]})
    desired = SourceReader(below).desired(tip(below))
    (problem,) = desired.problems
    assert str(problem) == (
        "fleet.yaml: no fleet repository begins at the root of the source branch, but in gpu (name another repository"
        " with --repo, or give that directory a repository of its own)"
    )
    assert desired.incomplete


def test_a_fleet_that_moves_below_the_root_stays_in_force_and_each_file_is_reported(fleet):
    moved = {f"gpu/{path}": text for path, text in FLEET.items()}
    desired = SourceReader(fleet).desired(fleet.person("source", moved, removes=list(FLEET)))
    assert desired.clusters
    assert len(errors(desired)) > 1


def test_one_broken_document_takes_its_whole_file_back(fleet):
    both = FLEET["clusters/worker-1.yaml"] + "---\n" + cluster("worker-9")
    fleet.person("source", {"clusters/worker-1.yaml": both})
    reader = SourceReader(fleet)
    assert "worker-9" in reader.desired(tip(fleet)).clusters
    broken = both.replace("worker-9", "Worker 9").replace("worker-1", "worker-8")
    desired = reader.desired(fleet.person("source", {"clusters/worker-1.yaml": broken}))
    assert set(desired.clusters) == {"worker-1", "worker-2", "worker-9"}


def test_an_error_found_beside_other_files_takes_a_file_back_too(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    foreign = LONGER.replace("namespace: llm-demo", "namespace: kube-system")
    for read in (reader, SourceReader(fleet)):
        desired = read.desired(fleet.person("source", {PATH: foreign}))
        assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=10)
        assert warnings(desired) == [stays(TEMPLATE)]
        (problem,) = errors(desired)
        assert "'kube-system' is no namespace of workspace llm" in problem
        assert not desired.incomplete


def test_a_copy_of_a_template_is_left_out_and_holds_up_nothing(fleet):
    fleet.person("source", {"templates/z.yaml": TEMPLATE})
    desired = SourceReader(fleet).desired(tip(fleet))
    assert desired.templates[VLLM].path == PATH
    assert [problem.path for problem in desired.problems] == ["templates/z.yaml", "templates/z.yaml"]


def test_a_renamed_template_that_collides_goes_back_to_its_own_name(fleet):
    other = TEMPLATE.replace("name: vllm", "name: chat", 1)
    fleet.person("source", {"templates/z.yaml": other})
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    desired = reader.desired(fleet.person("source", {"templates/z.yaml": TEMPLATE}))
    assert set(desired.templates) == {VLLM, WorkloadId("llm", "chat")}
    assert not desired.incomplete


def test_a_workspace_that_vanishes_takes_its_templates_along_and_that_is_incomplete(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    desired = reader.desired(fleet.person("source", removes=["workspaces/llm.yaml"]))
    assert desired.templates == {}
    assert desired.incomplete
    assert "no file describes Workspace llm" in errors(desired)[0]


def test_a_deleted_file_is_gone_however_good_it_was(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    desired = reader.desired(fleet.person("source", removes=[PATH]))
    assert desired.templates == {}
    assert not desired.incomplete


def test_a_file_of_ten_megabytes_is_told_by_its_size_and_never_read(fleet):
    fleet.person("source", {"templates/big.json": b" " * 10 * 2**20, PATH: TEMPLATE + "#" * 2**20})
    desired = SourceReader(fleet).desired(tip(fleet))
    assert errors(desired) == [
        (
            "templates/big.json: is 10.0 MB; files over 1 MiB are not read "
            "(try splitting it, or list it in the Fleet's spec.ignore)"
        ),
        f"{PATH}: is 1.0 MB; files over 1 MiB are not read (try splitting it, or list it in the Fleet's spec.ignore)",
    ]
    assert VLLM in desired.templates
    assert blob_of(b" " * 10 * 2**20) not in fleet.reads


def test_an_earlier_version_that_was_too_large_stands_in_for_nobody(fleet):
    reader = SourceReader(fleet)
    path = "templates/new.yaml"
    reader.desired(fleet.person("source", {path: b" " * 2 * 2**20}))
    commit = fleet.person("source", {path: BROKEN})
    for read in (reader, SourceReader(fleet)):
        desired = read.desired(commit)
        assert desired.incomplete
        assert warnings(desired) == [f"{path}: it has never been valid, so nothing in it is in force"]


def test_what_the_fleet_ignores_is_no_gap(fleet):
    ignoring = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {ignore: [data]}\n"
    fleet.person("source", {"data/big.json": b" " * 2 * 2**20, "data/x.yaml": BROKEN, "fleet.yaml": ignoring})
    desired = SourceReader(fleet).desired(tip(fleet))
    assert desired.problems == ()
    assert not desired.incomplete
    desired = SourceReader(fleet).desired(
        fleet.person("source", {"fleet.yaml": ignoring.replace("Fleet", "Fleet\nx: 1")})
    )
    assert {problem.path for problem in desired.problems} == {"fleet.yaml"}
    assert not desired.incomplete


def test_a_reader_that_has_seen_it_all_agrees_with_one_that_starts_now(fleet):
    reader = SourceReader(fleet)
    for change in (
        {PATH: BROKEN},
        {"policies/gpu.yaml": policy("gpu", "{hold: x}")},
        {PATH: LONGER, "workspaces/llm.yaml": workspace().replace("clusters", "clusteres")},
        {"workspaces/llm.yaml": workspace(more="allowUnpinnedCharts: true"), PATH: BROKEN},
        {"policies/gpu.yaml": policy("gpu", "{hold: 2h}")},
    ):
        commit = fleet.person("source", change)
        assert reader.desired(commit) == SourceReader(fleet).desired(commit)


STRAY = LONGER.replace("workspaceName: llm", "workspaceName: lmm")


def test_a_version_that_is_rejected_beside_the_others_gives_way_to_an_earlier_one(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    for text in (STRAY, BROKEN):
        commit = fleet.person("source", {PATH: text})
        for read in (reader, SourceReader(fleet)):
            desired = read.desired(commit)
            assert desired.templates[VLLM].blob == blob_of(TEMPLATE.encode())
            assert warnings(desired) == [stays(TEMPLATE)]
            assert not desired.incomplete


def test_a_version_that_went_by_unseen_counts_for_whoever_watched_all_along_too(fleet):
    reader = SourceReader(fleet)
    reader.desired(fleet.person("source", {PATH: BROKEN}))
    fleet.person("source", {PATH: LONGER})
    commit = fleet.person("source", {PATH: BROKEN})
    assert reader.desired(commit) == SourceReader(fleet).desired(commit)
    assert reader.desired(commit).templates[VLLM].spec.burst_duration == timedelta(minutes=20)


def test_a_version_that_others_kept_out_is_in_force_for_both_once_it_could_be(fleet):
    reader = SourceReader(fleet)
    reader.desired(fleet.person("source", {PATH: STRAY}))
    commit = fleet.person(
        "source", {PATH: BROKEN, "workspaces/lmm.yaml": workspace("lmm", "").replace("lmm-d", "llm-d")}
    )
    assert reader.desired(commit) == SourceReader(fleet).desired(commit)
    assert set(reader.desired(commit).templates) == {WorkloadId("lmm", "vllm")}


def test_many_broken_versions_do_not_hide_the_good_one_behind_them(fleet):
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    for number in range(30):
        fleet.person("source", {PATH: f"{BROKEN}# {number}\n"})
    for read in (reader, SourceReader(fleet)):
        assert read.desired(tip(fleet)).templates[VLLM].spec.burst_duration == timedelta(minutes=10)


STEPS = st.dictionaries(
    st.sampled_from([PATH, "templates/z.yaml", "workspaces/llm.yaml", "workspaces/lmm.yaml", "policies/gpu.yaml"]),
    st.sampled_from(
        [TEMPLATE, LONGER, STRAY, BROKEN, workspace(), workspace("lmm").replace("lmm-d", "llm-d"), "", "a: ["]
    ),
    min_size=1,
    max_size=3,
)


@given(steps=st.lists(st.tuples(STEPS, st.booleans()), min_size=1, max_size=6))
def test_what_is_in_force_depends_on_the_commit_alone(steps: list[tuple[dict[str, str], bool]]):
    fleet = MemoryRepository(FLEET)
    reader = SourceReader(fleet)
    for files, look in steps:
        commit = fleet.person("source", files)
        if look:
            assert reader.desired(commit) == SourceReader(fleet).desired(commit)


def test_what_stands_in_while_the_remote_is_away_is_asked_for_again(fleet):
    class Sometimes(MemoryRepository):
        away = True

        def earlier(self, commit, path, *, limit=20):
            if self.away:
                raise Transient("the remote is away")
            return super().earlier(commit, path, limit=limit)

    fleet = Sometimes(FLEET)
    reader = SourceReader(fleet)
    reader.desired(tip(fleet))
    fleet.person("source", {PATH: LONGER})
    commit = fleet.person("source", {PATH: BROKEN})
    assert reader.desired(commit).templates[VLLM].spec.burst_duration == timedelta(minutes=10)
    fleet.away = False
    assert reader.desired(commit) == SourceReader(fleet).desired(commit)


def test_the_remote_being_away_while_history_is_needed_is_transient(fleet):
    class Away(MemoryRepository):
        def earlier(self, commit, path, *, limit=20):
            raise Transient("the remote is away")

    away = Away(FLEET)
    reader = SourceReader(away)
    reader.desired(tip(away))
    assert reader.desired(away.person("source", {PATH: BROKEN})).templates  # memory will do
    with pytest.raises(Transient):
        SourceReader(away).desired(tip(away))


def test_it_reads_real_repositories(remote, repository):
    remote.commit("main", FLEET)
    remote.commit("main", {PATH: BROKEN})
    commit = repository.fetch().source
    desired = SourceReader(repository).desired(commit)
    assert desired.templates[VLLM].spec.burst_duration == timedelta(minutes=10)
    assert errors(desired) == [MESSAGE]
