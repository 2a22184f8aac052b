"""Reading back through a past that the mirror did not fetch at first."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.commits import parse
from reconciler.adapters.git.history import FIRST_STEP
from reconciler.adapters.git.repository import COMMITTER
from reconciler.core.commits.trailers import superseded
from reconciler.errors import Conflict, InvalidInput, Transient
from reconciler.model.bounds import SOURCE_HISTORY
from reconciler.model.ids import BlobId, CommitId
from reconciler.model.tree import Commit, Proposal
from tests.builders.remote import MORNING

OURS = "Overspill <overspill@overspill.dev>"
PLACE = "burst(llm/vllm): 3 replicas\n\nOverspill-Action: Place\n"
LONG = FIRST_STEP * 5 + 7


def _past(remote, branch: str, count: int) -> list[CommitId]:
    """Make a branch of commits by hand in one go, oldest first."""
    stream = []
    for number in range(count):
        when = int((MORNING + timedelta(minutes=number)).timestamp())
        stream.append(f"commit refs/heads/{branch}\ncommitter Ann <ann@example.com> {when} +0000\n")
        stream.append(f"data <<END\nEdit {number}\nEND\n")
        if number == 0 and remote.tip(branch):
            stream.append(f"from refs/heads/{branch}^0\n")
        stream.append(f"M 100644 inline file\ndata <<END\n{number} on {branch}\nEND\n\n")
    remote.git("fast-import", "--quiet", stdin="".join(stream).encode())
    return [CommitId(one) for one in remote.git("rev-list", "--reverse", branch).split()][-count:]


@pytest.fixture
def fresh(remote, tmp_path):
    """Open a repository that has fetched the last commits only, as after a start on an empty disk."""
    opened: list[GitRepository] = []

    def open_and_fetch() -> GitRepository:
        opened.append(GitRepository(remote.url, cache=tmp_path / f"cache{len(opened)}"))
        opened[-1].fetch()
        return opened[-1]

    yield open_and_fetch
    for repository in opened:
        repository.close()


def test_last_written_is_the_tip_when_nobody_came_after(remote, fresh):
    made = remote.commit("placements", {"a": "1"}, message=PLACE, author=OURS)
    assert fresh().last_written(made) == made


@pytest.mark.parametrize("edits", [1, FIRST_STEP, LONG])
def test_last_written_is_found_behind_edits_by_hand(remote, fresh, edits):
    remote.commit("placements", {"a": "0"})
    made = remote.commit("placements", {"a": "1"}, message=PLACE, author=OURS)
    tip = _past(remote, "placements", edits)[-1]
    repository = fresh()
    assert repository.last_written(tip) == made
    assert [change.path for change in repository.changes(made, tip)] == ["file"]


def test_last_written_is_brought_in_again_when_the_mirror_is_made_anew(remote, fresh):
    made = remote.commit("placements", {"a": "1"}, message=PLACE, author=OURS)
    tip = remote.commit("placements", {"a": "2"})
    repository = fresh()
    assert repository.last_written(tip) == made
    with pytest.raises(Transient):
        repository.read([BlobId("1" * 40)])
    repository.fetch()
    assert repository.last_written(tip) == made
    assert len(repository.changes(made, tip)) == 1


def test_nothing_was_written_where_only_people_committed(remote, fresh):
    tip = _past(remote, "placements", LONG)[-1]
    assert fresh().last_written(tip) is None


@pytest.mark.parametrize(
    ("message", "author"),
    [
        (PLACE, "Ann <ann@example.com>"),
        ("burst(llm/vllm): 3 replicas\n", OURS),
        ("Overspill-Action: Place\n", OURS),
        ("Subject\n\nOverspill-Action: Place\n\nSigned-off-by: Ann <ann@example.com>\n", OURS),
    ],
)
def test_commit_is_ours_only_with_our_trailer_and_our_committer(remote, fresh, message, author):
    tip = remote.commit("placements", {"a": "1"}, message=message, author=author)
    assert fresh().last_written(tip) is None


def test_last_written_follows_first_parents_only(remote, fresh):
    base = remote.commit("placements", {"a": "1"})
    ours = remote.commit("side", {"b": "1"}, message=PLACE, author=OURS)
    tree = remote.git("rev-parse", f"{base}^{{tree}}")
    ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    merge = CommitId(remote.git(*ann, "commit-tree", "-p", base, "-p", ours, "-m", "Merge", tree))
    remote.move("placements", merge)
    assert fresh().last_written(merge) is None


def test_log_reads_back_to_a_number(remote, fresh):
    past = _past(remote, "placements", LONG)
    repository = fresh()
    assert [commit.id for commit in repository.log(past[-1], limit=1)] == [past[-1]]
    assert [commit.id for commit in repository.log(past[-1], limit=70)] == past[: -70 - 1 : -1]
    assert [commit.id for commit in repository.log(past[-1])] == past[::-1]


def test_log_reads_back_to_a_time(remote, fresh):
    past = _past(remote, "placements", LONG)
    since = MORNING + timedelta(minutes=LONG - FIRST_STEP - 20)
    assert [commit.id for commit in fresh().log(past[-1], since=since)] == past[: -FIRST_STEP - 20 - 1 : -1]


def test_log_reads_commits_as_they_were_written(remote, fresh):
    message = "Subject\n\nBody, first.\n\nOverspill-Action: Place\nOverspill-Why: one\nOverspill-Why: two\n  lines\n"
    tip = remote.commit("placements", {"a": "1"}, message=message, author="Änn <ann@example.com>")
    (commit,) = fresh().log(tip)
    assert commit.at == MORNING + timedelta(minutes=1)
    assert (commit.author.name, commit.committer.email) == ("Änn", "ann@example.com")
    assert commit.subject == "Subject"
    assert commit.body.startswith("Body, first.\n\nOverspill-Action: Place\n")
    assert commit.trailers == {"Overspill-Action": "Place", "Overspill-Why": "two lines"}


def test_reading_back_moves_no_tip(remote, fresh):
    past = _past(remote, "placements", LONG)
    repository = fresh()
    tips = repository.tips()
    remote.commit("placements", {"later": "1"})
    assert len(repository.log(past[-1])) == LONG
    assert repository.tips() == tips
    assert repository.fetch().output == remote.tip("placements")


def test_reading_back_on_one_branch_leaves_the_other_shallow(remote, fresh, tmp_path):
    source, output = _past(remote, "main", LONG), _past(remote, "placements", LONG)
    repository = fresh()
    repository.log(output[-1])
    (shallow,) = (tmp_path / "cache0").glob("*/mirror.git/shallow")
    assert shallow.read_text().split() == [source[-1]]


def test_no_more_is_fetched_than_is_searched(remote, fresh, tmp_path):
    first, *_, tip = _past(remote, "main", 2 * SOURCE_HISTORY.most)
    repository = fresh()
    (mirror,) = (tmp_path / "cache0").glob("*/mirror.git")

    def held() -> int:
        return int(subprocess.check_output(["git", "-C", mirror, "rev-list", "--count", tip]))

    for commit in (CommitId("1" * 40), first):
        with pytest.raises(InvalidInput, match="is not among the last 10,000 commits of the fleet repository's source"):
            repository.entries(commit)
        assert held() == SOURCE_HISTORY.most
    repository = fresh()
    (mirror,) = (tmp_path / "cache1").glob("*/mirror.git")
    section = repository.section(tip, since=MORNING - timedelta(days=1), limit=SOURCE_HISTORY.most)
    assert len(section.commits) == SOURCE_HISTORY.most
    assert held() == SOURCE_HISTORY.most + 1


def test_history_with_merges_is_read_back_as_far_as_is_asked(remote, fresh, monkeypatch):
    monkeypatch.setattr(
        "reconciler.adapters.git.repository.SOURCE_HISTORY", replace(SOURCE_HISTORY, most=2 * FIRST_STEP)
    )
    _past(remote, "main", 1)
    for number in range(2):
        remote.git("update-ref", "refs/heads/side", "refs/heads/main")
        side, _ = _past(remote, "side", 2 * FIRST_STEP)[-1], _past(remote, "main", 2 * FIRST_STEP)
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        merge = remote.git(*identity, "commit-tree", "main^{tree}", "-p", "main", "-p", side, "-m", f"merge {number}")
        remote.move("main", merge)
    repository = fresh()
    for limit in (2 * FIRST_STEP, 3 * FIRST_STEP):
        section = repository.section(remote.tip("main"), since=MORNING - timedelta(days=1), limit=limit)
        ids = [each.commit.id for each in section.commits]
        assert ids == remote.git("rev-list", "--first-parent", "--reverse", f"-{limit}", "main").split()


def test_commit_of_a_history_with_dates_out_of_order_is_found(remote, fresh):
    first = remote.commit("main", {"file": "1"}, at=MORNING + timedelta(days=9000))
    for number in range(9):
        remote.commit("main", {"file": f"later {number}"}, at=MORNING - timedelta(days=number))
    repository = fresh()
    assert [entry.path for entry in repository.entries(first)] == ["file"]


def test_history_that_was_rewritten_meanwhile_is_a_conflict(remote, fresh):
    past = _past(remote, "placements", LONG)
    repository = fresh()
    remote.move("placements", None)
    with pytest.raises(Conflict, match="gone"):
        repository.log(past[-1])
    remote.commit("placements", {"other": "1"})
    with pytest.raises(Conflict, match="rewritten"):
        repository.last_written(past[-1])


def test_earlier_versions_come_newest_first(remote, fresh):
    for version in ("one", "two", "three"):
        remote.commit("main", {"dir/file": version})
        remote.commit("main", {"other": version})
    repository = fresh()
    earlier = repository.earlier(repository.tips().source, "dir/file")
    assert list(repository.read(earlier).values()) == [b"two", b"one"]
    assert repository.earlier(repository.tips().source, "dir/file", limit=1) == earlier[:1]
    assert repository.earlier(repository.tips().source, "nowhere") == []


def test_states_of_several_files_come_newest_first(remote, fresh):
    remote.commit("main", {"a": "1"})
    remote.commit("main", {"a": "2", "odd \x01\tname": "3", "other": "x"})
    remote.commit("main", {"other": "y"})
    remote.commit("main", {"a": None})
    repository = fresh()
    tip = repository.tips().source
    states = repository.states(tip, ("a", "odd \x01\tname", "nowhere"), limit=9)
    read = [{path: repository.read([blob])[blob] for path, blob in state.items()} for state in states]
    assert read == [{"a": b"2", "odd \x01\tname": b"3"}, {"a": b"1"}, {}]
    assert repository.states(tip, ("a", "odd \x01\tname"), limit=1) == states[:1]
    assert repository.states(tip, ("nowhere",), limit=9) == []


def test_earlier_versions_are_found_far_back_and_over_a_removal(remote, fresh):
    remote.commit("main", {"kept": "good"})
    remote.commit("main", {"kept": None})
    remote.commit("main", {"kept": "bad"})
    tip = _past(remote, "main", LONG)[-1]
    repository = fresh()
    assert list(repository.read(repository.earlier(tip, "kept")).values()) == [b"good"]


def test_files_of_a_shallow_remote_are_read_as_far_back_as_it_has_them(remote, fresh):
    for version in ("1", "2", "3", "4"):
        remote.commit("main", {"a": version, "kept": "x"})
    remote.path.joinpath("shallow").write_text(f"{remote.git('rev-parse', 'main~2')}\n")
    repository = fresh()
    tip = repository.tips().source
    two, three = (BlobId(remote.git("rev-parse", f"main~{back}:a")) for back in (2, 1))
    assert repository.earlier(tip, "a") == [three, two]
    assert [state["a"] for state in repository.states(tip, ("a", "kept"), limit=9)] == [three, two]
    assert [state["a"] for state in repository.states(tip, ("a", "kept"), limit=1)] == [three]
    with pytest.raises(InvalidInput, match="is not among the last 10,000 commits"):
        repository.entries(CommitId("1" * 40))


def test_earlier_versions_of_a_removed_file_are_found(remote, fresh):
    remote.commit("main", {"gone": "good"})
    tip = remote.commit("main", {"gone": None})
    repository = fresh()
    assert list(repository.read(repository.earlier(tip, "gone")).values()) == [b"good"]


def test_version_that_came_back_is_listed_once_and_not_as_earlier_than_itself(remote, fresh):
    for version in ("a", "b", "a", "b", "a"):
        remote.commit("main", {"file": version})
    repository = fresh()
    earlier = repository.earlier(repository.tips().source, "file")
    assert list(repository.read(earlier).values()) == [b"b"]


def test_versions_of_an_unmerged_branch_were_never_in_force(remote, fresh):
    remote.commit("main", {"file": "first"})
    remote.git("branch", "feature", "main")
    remote.commit("feature", {"file": "draft"})
    feature = remote.commit("feature", {"file": "final"})
    main = remote.commit("main", {"other": "1"})
    tree = remote.git("rev-parse", f"{feature}^{{tree}}")
    ann = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    merge = CommitId(remote.git(*ann, "commit-tree", "-p", main, "-p", feature, "-m", "Merge", tree))
    remote.move("main", merge)
    repository = fresh()
    assert list(repository.read(repository.earlier(merge, "file")).values()) == [b"first"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"tree 1\n\n",
        b"author nobody\ncommitter <> 99999999999999999999 +0000\n\n\xff\xfe\n\n: x\n",
        b"author A <a> x\ngpgsig -----BEGIN\n parent 1\n -----END\n\nSubject",
    ],
)
def test_odd_commits_are_read_without_an_error(raw):
    commit = parse(CommitId("1" * 40), raw)
    assert commit.logged.id == "1" * 40
    assert commit.parents == ()


def test_a_section_has_each_commit_with_its_files_down_to_our_own_before_a_moment(remote, fresh):
    first = remote.commit("placements", {"clusters/a/x": "1", "note": "1"}, message=PLACE, author=OURS)
    remote.commit("placements", {"clusters/a/x": None, "clusters/b/ÿ": "2"}, message=PLACE, author=OURS)
    remote.commit("placements", {"note": "2"})
    tip = remote.commit("placements", {f"clusters/{'0' * 40}": "3"})
    section = fresh().section(tip, since=MORNING + timedelta(minutes=2), under=("clusters",))
    assert section.base is not None
    assert section.base.id == first
    changed = [[(file.path, file.old is None, file.new is None) for file in one.files] for one in section.commits]
    assert changed == [
        [("clusters/a/x", False, True), ("clusters/b/ÿ", True, False)],
        [],
        [(f"clusters/{'0' * 40}", True, False)],
    ]
    assert section.commits[-1].commit.id == tip


def test_a_section_begins_with_the_branch_or_with_its_base(remote, fresh):
    commits = _past(remote, "placements", LONG)
    repository = fresh()
    whole = repository.section(commits[-1], since=MORNING)
    assert whole.base is None
    assert [one.commit.id for one in whole.commits] == commits
    assert [file.path for file in whole.commits[0].files] == ["file"]
    part = repository.section(commits[-1], since=MORNING, base=commits[-3])
    assert part.base is not None
    assert (part.base.id, [one.commit.id for one in part.commits]) == (commits[-3], commits[-2:])


def test_a_section_passes_by_others_whose_clocks_are_wrong(remote, fresh):
    ours = remote.commit("placements", {"a": "1"}, message=PLACE, author=OURS, at=MORNING - timedelta(hours=1))
    remote.commit("placements", {"a": "2"}, at=MORNING - timedelta(days=400))
    tip = remote.commit("placements", {"a": "3"}, message=PLACE, author=OURS, at=MORNING)
    section = fresh().section(tip, since=MORNING)
    assert section.base is not None
    assert (section.base.id, len(section.commits)) == (ours, 2)


def test_branch_is_fetched_as_far_back_as_it_left_the_source_branch(remote, fresh):
    past = _past(remote, "main", LONG)
    remote.move("pr-1", past[10])
    tip = remote.commit("pr-1", {"file": "mine"})
    repository = fresh()
    assert repository.propose("pr-1") == Proposal(commit=tip, base=past[10])
    assert [change.path for change in repository.changes(past[10], tip)] == ["file"]
    assert [commit.id for commit in repository.log(past[-1])] == past[::-1]


def test_commit_on_top_of_the_source_branch_has_the_history_of_that_one(remote, fresh):
    past = _past(remote, "main", LONG)
    repository = fresh()
    commit = Commit(message="Merge\n", author=COMMITTER, at=MORNING + timedelta(days=9), writes={"new": b"file"})
    (merged,) = repository.write(past[-1], [commit])
    assert len(repository.log(merged)) == LONG + 1


def test_branch_without_a_commit_of_the_source_branch_is_refused(remote, fresh):
    _past(remote, "main", 3)
    remote.commit("alone", {"file": "alone"})
    with pytest.raises(InvalidInput, match="shares no commit with the source branch"):
        fresh().propose("alone")


def test_files_of_an_older_commit_are_read_as_far_back_as_it_is(remote, fresh):
    past = _past(remote, "main", LONG)
    repository = fresh()
    (entry,) = repository.entries(past[10])
    assert repository.read([entry.blob])[entry.blob] == b"10 on main\n"
    assert repository.tips().source == past[-1]


@pytest.mark.parametrize("what", ["nothing", "a file", "a commit of another branch"])
def test_files_of_what_is_no_commit_of_the_history_leave_the_mirror_alone(remote, fresh, what):
    past = _past(remote, "main", 3)
    other = _past(remote, "other", 3)[-1]
    repository = fresh()
    (entry,) = repository.entries(past[-1])
    unknown = {"nothing": "a" * 40, "a file": entry.blob, "a commit of another branch": other}[what]
    for _ in range(2):
        with pytest.raises(InvalidInput, match="is not in the history of the fleet repository's source branch"):
            repository.entries(CommitId(unknown))
    assert repository.tips().source == past[-1]
    assert len(repository.log(past[-1])) == 3


@pytest.mark.parametrize(
    "paragraph",
    [f"Overspill-Supersedes: a{' ' * 60_000}b", f"A: b{f'{chr(10)} aaaaaaa' * 300_000}"],
    ids=["spaces", "lines"],
)
def test_message_of_a_commit_is_read_in_linear_time(paragraph: str) -> None:
    """Whoever may push writes it; each took twenty seconds."""
    began = time.thread_time()
    assert superseded(parse(CommitId("1" * 40), f"tree x\n\nsubject\n\n{paragraph}\n".encode()).logged) == []
    assert time.thread_time() - began < 3


def test_trailers_of_lost_commits_are_read_from_the_last_paragraph_alone() -> None:
    one, two, three = (character * 40 for character in "123")
    lines = [f"Overspill-Supersedes: {one}", "", "A: b", f"Overspill-Supersedes:{two}", f" Overspill-Supersedes: {one}"]
    message = "\n".join(["subject", "", *lines, "Overspill-Supersedes: -x", f"Overspill-Supersedes:  {three} ", ""])
    assert superseded(parse(CommitId("4" * 40), f"tree x\n\n{message}".encode()).logged) == [three, two]
