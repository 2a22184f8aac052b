"""The ledger is what the output branch says at its tip, whatever people did to it and however long we have watched."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.core.commits.messages import message
from reconciler.core.engines import Deployment, engine
from reconciler.core.ledger.placement_record import digest, ledger_path, write_placement, write_restraints
from reconciler.core.ledger.read import BrokenRecord, is_foreign_edit, read_record
from reconciler.daemon.branch import BranchReader
from reconciler.errors import Problem
from reconciler.model.action import Action
from reconciler.model.ids import BlobId, ClusterName, CommitId
from reconciler.model.ledger import Drift, Ledger
from reconciler.model.placement import Placement
from reconciler.model.plan import Change, Choice, Shortage
from reconciler.model.policy import EngineName, Workspace
from reconciler.model.tree import Commit, Identity
from reconciler.model.units import Resources
from reconciler.model.workload import DeploySpec, ManifestResource, Step, StepType
from tests.builders.placement_records import PLACEMENT, SOURCE, START, VLLM, files, placement, restraint
from tests.builders.remote import Remote

OURS = Identity(name="Overspill", email="overspill@overspill.dev")
FIRST, FIRST_FILES = files(PLACEMENT, app="kind: Deployment\n")
SECOND, SECOND_FILES = files(placement("vllm-2", "worker-3", replicas=2), app="kind: Deployment\n")
RECORD = f"{FIRST.path}/placement.yaml"
APP = f"{FIRST.path}/manifests/app.yaml"


class Branch:
    """The output branch as the daemon, people and readers see it."""

    def __init__(self, remote: Remote, repository: GitRepository, cache: Path) -> None:
        self._remote, self._repository, self._cache = remote, repository, cache
        self._read = 0
        self.reader = BranchReader(repository)
        remote.commit("main", {"fleet.yaml": "kind: Fleet\n"})

    def daemon(self, *placements: Placement, writes: Mapping[str, bytes], removes: tuple[str, ...] = ()) -> CommitId:
        """Write as the daemon does, in one commit."""
        shortage = Shortage(primary=FIRST.cluster, replicas=1, waited=timedelta(0), requests=Resources())
        choice = Choice(cluster=FIRST.cluster, rank=0, fits=1, free=Resources())
        change = Change(
            action=Action.PLACE, after=placements[0] if placements else FIRST, shortage=shortage, choice=choice
        )
        text = message(change, source=SOURCE)
        old = self._repository.fetch().output
        commit = Commit(message=text, author=OURS, at=START, removes=removes, writes=writes)
        (new,) = self._repository.write(old, [commit])
        self._repository.begin_push(new, old=old)()
        return new

    def person(self, edits: Mapping[str, bytes | str | None]) -> CommitId:
        return self._remote.commit("placements", edits)

    def follow(self) -> Ledger:
        """Read the tip with the reader that has followed all along."""
        return self.reader.ledger(self._repository.fetch().output)

    def now(self) -> Ledger:
        """Read the tip with the reader that has followed all along, and compare with one that starts here and now."""
        ledger = self.follow()
        self._read += 1
        with GitRepository(self._remote.url, cache=self._cache / str(self._read)) as shallow:
            assert BranchReader(shallow).ledger(shallow.fetch().output) == ledger
        return ledger


@pytest.fixture
def branch(remote: Remote, repository: GitRepository, tmp_path: Path) -> Branch:
    return Branch(remote, repository, tmp_path / "fresh")


@pytest.fixture(scope="module")
def two_placements(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A remote on which the daemon has written two placements."""
    directory = tmp_path_factory.mktemp("two")
    remote = Remote(directory / "remote.git")
    with GitRepository(remote.url, cache=directory / "cache") as repository:
        branch = Branch(remote, repository, directory / "fresh")
        branch.daemon(FIRST, writes=FIRST_FILES | {"README.md": b"Written by Overspill.\n"})
        branch.daemon(SECOND, writes=SECOND_FILES)
        branch.now()
    return remote.path


@pytest.fixture
def two(two_placements: Path, remote: Remote, branch: Branch) -> Branch:
    """A copy of that remote, whose reader has read it."""
    shutil.copytree(two_placements, remote.path, dirs_exist_ok=True)
    branch.follow()
    return branch


def said(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]


def drifted(ledger: Ledger) -> list[tuple[str, bool]]:
    return [(change.placement.path, change.removed) for change in ledger.drifted]


# What is there


def test_a_branch_that_does_not_exist_is_an_empty_ledger(branch: Branch):
    assert branch.now() == Ledger(commit=None)


def test_placements_and_restraints_are_read_from_the_tip(two: Branch):
    kept = (restraint(),)
    tip = two.daemon(writes={ledger_path(VLLM): write_restraints(VLLM, kept)})
    assert two.now() == Ledger(commit=tip, placements={FIRST.path: FIRST, SECOND.path: SECOND}, restraints={VLLM: kept})


def test_the_same_tip_is_the_same_ledger(two: Branch):
    assert two.now() is two.now()


def test_placements_come_in_the_order_of_their_paths_whenever_they_were_made(two: Branch):
    early, early_files = files(placement("a-1", "worker-1"), app="x")
    two.daemon(early, writes=early_files)
    assert list(two.now().placements) == [early.path, FIRST.path, SECOND.path]


def test_a_ledger_that_was_handed_out_never_changes(two: Branch):
    before = two.now()
    two.daemon(writes={}, removes=(FIRST.path,))
    after = two.now()
    assert list(before.placements) == [FIRST.path, SECOND.path]
    assert list(after.placements) == [SECOND.path]


def test_a_lifted_restraint_is_gone_from_the_ledger(two: Branch):
    two.daemon(writes={ledger_path(VLLM): write_restraints(VLLM, (restraint(),))})
    two.now()
    two.daemon(writes={}, removes=(ledger_path(VLLM),))
    assert dict(two.now().restraints) == {}


def test_foreign_files_are_passed_over(two: Branch):
    two.person(
        {
            "clusters/worker-2/notes.yaml": "mine",
            "clusters/worker-2/flux/extra.yaml": "mine",
            "clusters/worker-2/vllm-7f3a90c1/deep/placement.yaml": "mine",
            f"{FIRST.path}/manifests/mine.yaml": "kind: ConfigMap\n",
            "clusters/worker-2/another/readme.md": "mine",
            "ledger/README.md": "mine",
            "ledger/llm/deep/er.yaml": "mine",
            "placement.yaml": "mine",
        }
    )
    ledger = two.now()
    assert dict(ledger.placements) == {FIRST.path: FIRST, SECOND.path: SECOND}
    assert (ledger.drifted, ledger.problems, ledger.blocked) == ((), (), frozenset())


def test_a_link_in_place_of_a_record_is_no_record(two: Branch, remote: Remote):
    link = b"commit refs/heads/placements\ncommitter A <a@example.com> 1795000000 +0000\ndata 1\nx\n"
    link += b"from refs/heads/placements^0\nM 120000 inline clusters/worker-9/vllm-9/placement.yaml\ndata 2\n..\n"
    remote.git("fast-import", "--quiet", stdin=link)
    ledger = two.now()
    assert (list(ledger.placements), ledger.problems) == ([FIRST.path, SECOND.path], ())


# What cannot be read


def test_a_broken_record_is_told_and_holds_up_its_own_workload_only(two: Branch):
    third, third_files = files(placement("vllm-3", "worker-4"), app="x")
    record = third_files[f"{third.path}/placement.yaml"].replace(b"origin: burst", b"origin: [")
    two.person({f"{third.path}/placement.yaml": record})
    ledger = two.now()
    assert list(ledger.placements) == [FIRST.path, SECOND.path]
    assert ledger.blocked == {VLLM}
    assert said(ledger.problems)[0].startswith("clusters/worker-4/vllm-3/placement.yaml:")
    two.person({f"{third.path}/placement.yaml": third_files[f"{third.path}/placement.yaml"]})
    mended = two.now()
    assert (mended.blocked, mended.problems, mended.placements[third.path]) == (frozenset(), (), third)


@pytest.mark.parametrize(
    "text",
    [
        "    overspill.dev/workspace: llm\n    overspill.dev/workload: vllm\nthen: [",
        '  "overspill.dev/workload": "vllm"\r\n  "overspill.dev/workspace": "llm"\r\n\t',
        "metadata:\n annotations:\n  'overspill.dev/workspace': 'llm'  \n  'overspill.dev/workload': 'vllm'\n",
    ],
)
def test_the_workload_is_told_from_the_annotations_of_what_is_no_record(text: str):
    record = read_record(text.encode(), RECORD)
    assert isinstance(record, BrokenRecord)
    assert record.workload == VLLM


@pytest.mark.parametrize(
    "junk", [b"\n" * 3_000_000, b" " * 3_000_000, b"  overspill.dev/workload:" * 100_000, b"\0\xff"]
)
def test_junk_of_any_size_is_told_to_be_junk(junk: bytes):
    record = read_record(junk, RECORD)
    assert isinstance(record, BrokenRecord)
    assert record.problems
    assert record.workload is None


def test_a_broken_record_that_names_no_workload_is_asked_for_its_earlier_versions(two: Branch):
    third, third_files = files(placement("vllm-3", "worker-4"), app="x")
    record = f"{third.path}/placement.yaml"
    two.person({record: third_files[record]})
    two.person({record: "still good? no\n"})
    two.person({record: "worse\n"})
    two.daemon(writes={"README.md": b"A commit of ours, so that what people did is no longer news.\n"})
    ledger = two.now()
    assert ledger.blocked == {VLLM}
    assert ledger.drifted == ()


def test_a_broken_record_of_nobody_blocks_nobody(two: Branch):
    two.person({"clusters/worker-4/what/placement.yaml": "- is this\n"})
    ledger = two.now()
    (problem,) = said(ledger.problems)
    assert problem.startswith("clusters/worker-4/what/placement.yaml:1: must be a mapping, not a list (known here: ")
    assert ledger.blocked == frozenset()


def test_a_copied_placement_that_still_names_its_old_cluster_is_told(two: Branch):
    two.person({"clusters/worker-5/vllm-7f3a90c1/placement.yaml": FIRST_FILES[RECORD]})
    ledger = two.now()
    (problem,) = said(ledger.problems)
    assert problem.endswith("26: spec.clusterName: is 'worker-2', and the file lies under 'worker-5'")
    assert list(ledger.placements) == [FIRST.path, SECOND.path]


def test_a_broken_ledger_file_blocks_the_workload_of_its_path(two: Branch):
    two.person({ledger_path(VLLM): "kind: LedgerEntry\n"})
    ledger = two.now()
    assert ledger.blocked == {VLLM}
    assert "ledger/llm/vllm.yaml:1: spec: is required" in said(ledger.problems)
    assert list(ledger.placements) == [FIRST.path, SECOND.path]


# What people did


def test_a_deleted_directory_is_a_deletion_to_respect(two: Branch):
    two.person({FIRST.path: None})
    ledger = two.now()
    assert drifted(ledger) == [(FIRST.path, True)]
    assert ledger.drifted[0].placement == FIRST
    assert list(ledger.placements) == [SECOND.path]


def test_a_deleted_record_alone_is_a_deletion_too(two: Branch):
    two.person({RECORD: None})
    ledger = two.now()
    assert drifted(ledger) == [(FIRST.path, True)]
    assert set(ledger.drifted[0].files) == set(FIRST_FILES)


def test_an_edited_file_is_an_edit_to_put_right(two: Branch, repository: GitRepository):
    two.person({APP: "kind: Deployment\nspec: {replicas: 100}\n"})
    ledger = two.now()
    assert drifted(ledger) == [(FIRST.path, False)]
    assert dict(ledger.placements) == {FIRST.path: FIRST, SECOND.path: SECOND}
    blobs = ledger.drifted[0].files
    contents = repository.read(blobs.values())
    assert {path: contents[blob] for path, blob in blobs.items()} == FIRST_FILES


def test_a_deleted_manifest_is_an_edit(two: Branch):
    two.person({APP: None})
    assert drifted(two.now()) == [(FIRST.path, False)]


def test_an_edited_record_counts_as_the_daemon_left_it(two: Branch):
    two.person({RECORD: FIRST_FILES[RECORD].replace(b'replicas: "3"', b'replicas: "300"')})
    ledger = two.now()
    assert drifted(ledger) == [(FIRST.path, False)]
    assert ledger.placements[FIRST.path] == FIRST


def test_an_edit_that_breaks_the_record_is_put_right_and_blocks_nobody(two: Branch):
    two.person({RECORD: "oops: [\n"})
    ledger = two.now()
    assert drifted(ledger) == [(FIRST.path, False)]
    assert ledger.placements[FIRST.path] == FIRST
    assert (ledger.problems, ledger.blocked) == ((), frozenset())


def test_several_edits_by_people_are_compared_with_what_the_daemon_wrote(two: Branch):
    two.person({APP: "kind: Other\n"})
    two.now()
    two.person({SECOND.path: None})
    two.now()
    two.person({"README.md": "changed"})
    assert drifted(two.now()) == [(FIRST.path, False), (SECOND.path, True)]


def test_an_edit_that_was_taken_back_is_none(two: Branch):
    two.person({APP: "kind: Other\n", SECOND.path: None})
    assert len(two.now().drifted) == 2
    two.person({APP: FIRST_FILES[APP], **SECOND_FILES})
    ledger = two.now()
    assert ledger.drifted == ()
    assert dict(ledger.placements) == {FIRST.path: FIRST, SECOND.path: SECOND}


def test_what_the_daemon_put_right_is_news_no_longer(two: Branch):
    two.person({APP: "kind: Other\n"})
    assert len(two.now().drifted) == 1
    two.daemon(FIRST, writes=FIRST_FILES)
    assert two.now().drifted == ()


def test_a_file_of_a_person_within_a_placement_is_theirs_to_change(two: Branch):
    two.person({f"{FIRST.path}/manifests/mine.yaml": "a: 1\n"})
    two.daemon(writes={"README.md": b"A commit of ours on top.\n"})
    two.person({f"{FIRST.path}/manifests/mine.yaml": "a: 2\n"})
    assert two.now().drifted == ()
    two.person({f"{FIRST.path}/manifests/mine.yaml": None})
    assert two.now().drifted == ()
    two.person({APP: None})
    assert drifted(two.now()) == [(FIRST.path, False)]


NOTES = f"{FIRST.path}/NOTES.md"


def test_foreign_files_beside_a_placement_play_no_part(two: Branch):
    two.person({NOTES: "a\n", f"{FIRST.path}/docs/manifests/x.yaml": "a: 1\n", f"{FIRST.path}/manifests.md": "a\n"})
    two.daemon(writes={"README.md": b"A commit of ours on top.\n"})
    two.person({NOTES: "b\n", f"{FIRST.path}/manifests.md": None})
    assert two.now().drifted == ()
    two.person({f"{FIRST.path}/manifests/mine.yaml": "a: 1\n"})
    two.daemon(writes={"README.md": b"Another one.\n"})
    two.person({f"{FIRST.path}/manifests/mine.yaml": "a: 2\n"})
    assert two.now().drifted == ()


def test_only_our_files_are_put_back_after_an_edit_of_foreign_ones_too(two: Branch):
    two.person({NOTES: "a\n"})
    two.daemon(writes={"README.md": b"A commit of ours on top.\n"})
    two.person({NOTES: "b\n", RECORD: FIRST_FILES[RECORD].replace(b'replicas: "3"', b'replicas: "300"')})
    (change,) = two.now().drifted
    assert (change.placement, change.removed) == (FIRST, False)
    assert set(change.files) == set(FIRST_FILES)


def test_a_placement_that_a_person_adds_whole_is_a_placement(two: Branch):
    two.daemon(writes={}, removes=(FIRST.path,))
    assert list(two.now().placements) == [SECOND.path]
    two.person(dict(FIRST_FILES))
    ledger = two.now()
    assert ledger.placements[FIRST.path] == FIRST
    assert ledger.drifted == ()


def test_a_renamed_placement_is_a_deletion_and_a_record_in_the_wrong_place(two: Branch):
    moved = {path.replace("worker-2", "worker-7"): data for path, data in FIRST_FILES.items()}
    two.person({FIRST.path: None, **moved})
    ledger = two.now()
    assert drifted(ledger) == [(FIRST.path, True)]
    assert [problem.path for problem in ledger.problems] == ["clusters/worker-7/vllm-7f3a90c1/placement.yaml"]


def test_a_commit_with_our_trailers_by_somebody_else_is_not_ours(two: Branch, remote: Remote):
    text = "Mine\n\nOverspill-Action: Place\n"
    remote.commit("placements", {APP: "kind: Other\n"}, message=text, author="Eve <eve@example.com>")
    assert drifted(two.now()) == [(FIRST.path, False)]


def test_the_edit_of_a_hundred_placements_is_told_whole(branch: Branch):
    made = [files(placement(f"vllm-{number}", f"worker-{number % 9}"), app="x") for number in range(250)]
    branch.daemon(made[0][0], writes={path: data for _, written in made for path, data in written.items()})
    branch.now()
    branch.person({of.path: None for of, _ in made})
    ledger = branch.now()
    assert sorted(of.path for of, _ in made) == [path for path, removed in drifted(ledger) if removed]


# A branch that jumps


@pytest.mark.parametrize("kept", [True, False], ids=["set back", "deleted"])
def test_a_branch_that_lacks_known_commits_is_read_as_it_was_known(branch: Branch, remote: Remote, kept: bool):
    early = branch.daemon(FIRST, writes=FIRST_FILES)
    branch.daemon(SECOND, writes=SECOND_FILES)
    known = branch.now()
    remote.move("placements", early if kept else None)
    assert branch.follow() == known


def test_a_mirror_that_was_lost_is_read_anew(two: Branch, remote: Remote, tmp_path: Path):
    before = two.now()
    with GitRepository(remote.url, cache=tmp_path / "another") as other:
        two.reader._repository = other
        two.person({"README.md": "moved on"})
        tip = other.fetch().output
        ledger = None
        for _ in range(2):  # git's adapter makes a mirror anew that lacks what it is asked for
            try:
                ledger = two.reader.ledger(other.fetch().output)
            except Exception:  # noqa: BLE001 -- the first try may fail in any way, the second must not
                continue
        assert ledger == replace(before, commit=tip)


def test_nothing_that_stayed_is_read_again(two: Branch, repository: GitRepository):
    class Counting:
        """Passes everything on, and counts the blobs that are read."""

        def __init__(self) -> None:
            self.read_blobs: list[BlobId] = []

        def __getattr__(self, name: str) -> object:
            return getattr(repository, name)

        def read(self, blobs):
            wanted = list(blobs)
            self.read_blobs += wanted
            return repository.read(wanted)

    counting = Counting()
    reader = BranchReader(counting)
    reader.ledger(repository.fetch().output)
    assert len(counting.read_blobs) == 2
    two.daemon(writes={"README.md": b"Nothing to see.\n"})
    reader.ledger(repository.fetch().output)
    assert len(counting.read_blobs) == 2
    third, third_files = files(placement("vllm-3", "worker-4"), app="x")
    two.daemon(third, writes=third_files)
    reader.ledger(repository.fetch().output)
    assert len(counting.read_blobs) == 3


def test_tampered_names_every_file_of_the_placement(two: Branch):
    two.person({FIRST.path: None})
    (change,) = two.now().drifted
    assert isinstance(change, Drift)
    assert set(change.files) == set(FIRST_FILES)


@pytest.mark.parametrize("name", list(EngineName))
def test_what_an_engine_writes_is_ours_and_what_lies_beside_it_is_not(name: EngineName):
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "vllm-demo"}}
    spec = DeploySpec(
        manifests=(ManifestResource(name="app", manifest=item),), steps=(Step(name="app", type=StepType.MANIFEST),)
    )
    chosen, of = engine(name), replace(PLACEMENT, engine=name)
    workspace = Workspace(name=VLLM.workspace, primary=ClusterName("worker-1"), clusters=())
    deployment = Deployment(placement=of, spec=spec, workspace=workspace, charts={})
    written = dict(chosen.files(deployment))
    of = replace(of, digest=digest(written, of, spec))
    written[chosen.marker_path(of)] = chosen.marker(replace(deployment, placement=of))
    record, mine = f"{of.name}/placement.yaml", f"{of.name}/manifests/mine.yaml"
    written[record] = write_placement(of, spec, charts="engine")
    beside = written | {mine: b"a: 1\n"}
    assert is_foreign_edit(of, beside, [mine])
    for path in written:
        assert not is_foreign_edit(of, beside, [path])
        assert not is_foreign_edit(of, beside, [path, mine])
    longer = replace(of, expires_at=of.expires_at + timedelta(hours=1))
    beside[record] = write_placement(longer, spec, charts="engine")
    assert is_foreign_edit(longer, beside, [mine])
