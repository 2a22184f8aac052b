"""Only a deletion deletes: a path that still stands keeps the objects that it held, whatever stands there now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.adapters.git.history import FIRST_STEP
from reconciler.adapters.git.repository import COMMITTER
from reconciler.daemon.source import SourceReader
from reconciler.errors import Transient
from reconciler.model.bounds import FILE_SIZE, SOURCE_HISTORY
from reconciler.model.ids import CommitId, WorkloadId
from reconciler.model.tree import Commit
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, warnings
from tests.builders.remote import MORNING
from tests.fakes.memory_repository import MemoryRepository

VLLM = WorkloadId("llm", "vllm")
PATH = "templates/vllm.yaml"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'4d' * 32}\nsize 1234\n"
FILE, LINK, SUBMODULE = "100644", "120000", "160000"
SETTINGS = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {engine: flux}\n"

SHAPES: dict[str, tuple[str, bytes, str]] = {
    "LFS pointer": (FILE, POINTER.encode(), "is a Git LFS pointer"),
    "error page": (FILE, b"<!DOCTYPE html><html><body>502 Bad Gateway</body></html>\n", "is a page of HTML or XML"),
    "null bytes": (FILE, b"\0" * 200, "is nothing but null bytes"),
    "binary": (FILE, b"\x7fELF\0\1\2", "is binary"),
    "cut in its first line": (FILE, b"apiVer", "holds nothing that has a kind of ours"),
    "ansible-vault": (FILE, b"$ANSIBLE_VAULT;1.1;AES256\n6238\n", "is encrypted by ansible-vault"),
    "SOPS": (FILE, b"data: ENC[AES256_GCM,data:x]\nsops: {mac: ENC[x]}\n", "is encrypted by SOPS"),
    "UTF-16": (FILE, "replicas: 1\n".encode("utf-16"), "is UTF-16, not UTF-8"),
    "not UTF-8": (FILE, b"name: \xe9\xff\n", "is not UTF-8"),
    "another kind": (FILE, b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "holds ConfigMap"),
    "another tool's template": (FILE, b"{{- if .Values.x }}\nkind: Deployment\n{{ end }}\n", "holds Deployment"),
    "a scalar": (FILE, b"null and void\n", "holds nothing that has a kind of ours"),
    "only our words": (FILE, b"Moved to overspill.dev, kind of.\n", "holds nothing that has a kind of ours"),
    "empty": (FILE, b"", "is empty"),
    "a comment": (FILE, b"# to be written\n---\n", "is empty"),
    "too large": (FILE, b"#" * (FILE_SIZE.most + 1), "is 1.0 MB; files over 1 MiB are not read"),
    "conflict markers": (FILE, b"<<<<<<< HEAD\n" + TEMPLATE.encode(), "holds a merge conflict marker"),
    "link": (LINK, b"other.yaml", "is a symbolic link"),
    "submodule": (SUBMODULE, b"", "is a submodule"),
}


def replace_path(remote, path: str, mode: str, data: bytes, *, removes: str = "", adds: Mapping[str, str] = {}) -> None:
    """Commit something at a path, in the place of a file or of a directory, and add blobs at others."""
    stream = "commit refs/heads/main\ncommitter Ann <ann@example.com> 1790000000 +0000\ndata 1\nx\n"
    stream += "from refs/heads/main^0\n" + (f"D {removes}\n" if removes else "")
    if mode == SUBMODULE:
        content = f"M {mode} {'1' * 40} {path}\n".encode()
    else:
        content = f"M {mode} inline {path}\ndata {len(data)}\n".encode() + data + b"\n"
    content += "".join(f"M {FILE} {blob} {added}\n" for added, blob in adds.items()).encode()
    remote.git("fast-import", "--quiet", stdin=stream.encode() + content)


def fresh(remote, tmp_path, name: str = "fresh"):
    """Read with an empty disk, into which the newest commit alone is fetched."""
    with GitRepository(remote.url, cache=tmp_path / name) as repository:
        return SourceReader(repository).desired(repository.fetch().source)


@pytest.fixture
def real(remote, tmp_path):
    """A repository with a fleet, read once."""
    remote.commit("main", FLEET | {"fleet.yaml": SETTINGS, "templates/keep.md": "x"})
    with GitRepository(remote.url, cache=tmp_path / "cache") as repository:
        reader = SourceReader(repository)
        assert VLLM in reader.desired(repository.fetch().source).templates
        yield remote, repository, reader


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.exhaustive(one_in=3)
def test_what_stood_in_a_path_stays_in_force_and_is_told(real, tmp_path, shape):
    remote, repository, reader = real
    mode, data, content = SHAPES[shape]
    replace_path(remote, PATH, mode, data)
    replace_path(remote, "fleet.yaml", mode, data)
    remote.commit("main", {"README.md": "later"})
    running = reader.desired(repository.fetch().source)
    for desired in (running, fresh(remote, tmp_path)):
        assert VLLM in desired.templates
        assert str(desired.fleet.engine) == "flux"
        assert not desired.incomplete
        told = {problem.path: problem for problem in desired.problems if problem.severity.value == "error"}
        assert set(told) == {PATH, "fleet.yaml"}
        assert content in told[PATH].message
        assert len([line for line in warnings(desired) if "stays in force" in line]) == 2
    assert running == fresh(remote, tmp_path, "again")


@pytest.mark.parametrize("directory", ["templates", "templates/x", "templates/v1.2", "apps.yaml", "apps.yml/y"])
@pytest.mark.parametrize("mode", [FILE, LINK, SUBMODULE])
@pytest.mark.exhaustive(one_in=3)
def test_a_directory_that_becomes_something_else_keeps_its_files(real, tmp_path, mode, directory):
    remote, repository, reader = real
    path = f"{directory}/a/vllm.yaml"
    remote.commit("main", {PATH: None, path: TEMPLATE})
    replace_path(remote, directory, mode, b"elsewhere", removes=directory)
    assert VLLM in reader.desired(repository.fetch().source).templates
    remote.commit("main", {"README.md": "later"})
    content = {FILE: "(is a file|holds nothing)", LINK: "is a symbolic link", SUBMODULE: "is a submodule"}[mode]
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM in desired.templates
        (problem,) = errors(desired)
        assert re.search(f"^{path}: is gone with its directory {directory}, which {content}.* now", problem)
        assert problem.endswith(f"WorkloadTemplate vllm stood in it (delete {directory} if that is to go)")
    remote.commit("main", {directory: None})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path, "later")):
        assert VLLM not in desired.templates
        assert errors(desired) == []


@pytest.mark.parametrize("mode", [FILE, LINK])
def test_what_has_moved_out_of_a_directory_that_becomes_something_else_is_deleted_where_it_is(real, tmp_path, mode):
    """It came back from the directory that it had left."""
    remote, repository, reader = real
    directory, path = "templates/x", "templates/x/vllm.yaml"
    remote.commit("main", {PATH: None, path: TEMPLATE})
    assert VLLM in reader.desired(repository.fetch().source).templates
    blob = remote.git("rev-parse", f"main:{path}")
    replace_path(remote, directory, mode, b"../apps", removes=directory, adds={"apps/vllm.yaml": blob})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert desired.templates[VLLM].path == "apps/vllm.yaml"
        assert errors(desired) == []
    remote.commit("main", {"apps/vllm.yaml": None})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path, "later")):
        assert VLLM not in desired.templates
        assert errors(desired) == []


@pytest.mark.parametrize("mode", [LINK, SUBMODULE])
def test_a_file_with_a_dot_before_its_name_is_not_lost_either(real, tmp_path, mode):
    remote, repository, reader = real
    remote.commit("main", {PATH: None, "templates/.vllm.yaml": TEMPLATE})
    replace_path(remote, "templates/.vllm.yaml", mode, b"elsewhere")
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM in desired.templates


def test_a_file_in_place_of_a_directory_that_was_deleted_before_holds_nothing(real, tmp_path):
    remote, repository, reader = real
    remote.commit("main", {PATH: None, "templates/keep.md": None})
    remote.commit("main", {"templates": "x"})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM not in desired.templates
        assert errors(desired) == []


@pytest.mark.parametrize("rest", ["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "# moved\n"])
def test_a_template_that_has_moved_away_is_deleted_where_it_is(real, tmp_path, rest):
    """It came back from the file that it had left when that held something else since then."""
    remote, repository, reader = real
    remote.commit("main", {PATH: rest, "templates/moved.yaml": TEMPLATE})
    remote.commit("main", {"README.md": "later"})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert desired.templates[VLLM].path == "templates/moved.yaml"
        assert errors(desired) == []
    remote.commit("main", {"templates/moved.yaml": None})
    remote.commit("main", {"README.md": "later still"})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path, "later")):
        assert VLLM not in desired.templates
        assert errors(desired) == []


@pytest.mark.parametrize("into", ["templates/moved.yaml", ".hidden/moved.yaml"])
def test_a_template_that_has_moved_into_no_good_file_is_not_gone_with_that(real, tmp_path, into):
    remote, repository, reader = real
    broken = TEMPLATE.replace("metadata:", "metadata: [", 1)
    remote.commit("main", {PATH: "# moved\n", into: TEMPLATE if into.startswith(".") else broken})
    assert VLLM in reader.desired(repository.fetch().source).templates
    remote.commit("main", {into: None})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM in desired.templates
        assert [line.partition(":")[0] for line in errors(desired)] == [PATH]


def test_a_directory_in_the_place_of_a_file_deletes_nothing(real, tmp_path):
    remote, repository, reader = real
    remote.commit("main", {PATH: None, f"{PATH}/README.md": "x"})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM in desired.templates
        assert errors(desired) == [
            f"{PATH}: is a directory, and WorkloadTemplate vllm stood in it (delete the file if that is to go)"
        ]


@pytest.mark.parametrize("mode", [LINK, SUBMODULE])
def test_what_is_new_and_cannot_be_read_is_told_among_files_of_ours_alone(real, tmp_path, mode):
    remote, repository, reader = real
    for path in ("templates/new.yaml", "docs/theme", "values.yaml", ".hidden/x.yaml", "templates/more"):
        replace_path(remote, path, mode, b"elsewhere")
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert errors(desired) == []
        told = {problem.path for problem in desired.problems}
        assert told == {"templates/new.yaml", "templates/more", "values.yaml"}


def test_what_is_not_read_beside_files_of_ours_is_told_by_the_daemon_as_well(real, tmp_path):
    remote, repository, reader = real
    remote.commit(
        "main", {"templates/new.yaml": POINTER, "templates/old.yaml.bak": TEMPLATE, "docs/x.yaml.bak": TEMPLATE}
    )
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert [line.partition(" (")[0] for line in errors(desired)] == [
            "templates/new.yaml: is a Git LFS pointer, and nothing is read in it"
        ]
        assert [line.partition(" (")[0] for line in warnings(desired)] == [
            "templates/old.yaml.bak: is not read for its name, and holds WorkloadTemplate vllm"
        ]


def test_the_history_is_found_behind_many_commits_and_many_bad_versions(real, tmp_path):
    remote, repository, reader = real
    for number in range(FIRST_STEP + 5):
        remote.commit("main", {PATH: f"{POINTER}# {number}\n"})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM in desired.templates


def rewrite(remote, files) -> None:
    """Put a branch without a past in the place of the source branch."""
    number = len(remote.git("for-each-ref").splitlines())
    remote.commit(f"new-{number}", files)
    remote.git("update-ref", "refs/heads/main", f"refs/heads/new-{number}")


@pytest.mark.parametrize("running", [True, False], ids=["running", "restarted"])
@pytest.mark.parametrize("shape", ["a pointer", "broken", "a directory"])
def test_what_stood_before_history_was_rewritten_stays_in_force(real, tmp_path, running, shape):
    remote, repository, reader = real
    files = {path: text for path, text in FLEET.items() if path != PATH} | {"fleet.yaml": SETTINGS}
    files |= {"a pointer": {PATH: POINTER}, "broken": {PATH: TEMPLATE + " ]"}, "a directory": {"templates": "x"}}[shape]

    def read():
        repository.fetch()
        return (reader if running else SourceReader(repository)).desired(repository.tips().source)

    for number in range(3):
        rewrite(remote, {**files, "README.md": str(number)})
        assert VLLM in read().templates
        remote.commit("main", {"docs.md": "later"})
        desired = read()
        assert VLLM in desired.templates
        assert any(line.startswith(f"{PATH}:") for line in errors(desired))
        assert not desired.incomplete
    remote.commit("main", {"templates" if shape == "a directory" else PATH: None})
    assert VLLM not in read().templates
    remote.commit("main", {"templates" if shape == "a directory" else PATH: "a: 1\n"})
    desired = read()
    assert VLLM not in desired.templates
    assert errors(desired) == []


@pytest.mark.parametrize("by", ["a commit before it", "the rewriting"])
@pytest.mark.parametrize("left", ["a comment", "a file for the directory"])
def test_what_a_rewritten_history_has_moved_away_is_deleted_where_it_is(real, by, left):
    remote, repository, _ = real
    if by == "a commit before it":
        remote.commit("main", {PATH: "# moved\n", "apps/vllm.yaml": TEMPLATE})
        repository.fetch()
    kept = {path: text for path, text in FLEET.items() if path != PATH} | {"fleet.yaml": SETTINGS}
    stub = {PATH: "# moved\n"} if left == "a comment" else {"templates": "moved"}
    rewrite(remote, {**kept, **stub, "apps/vllm.yaml": TEMPLATE})
    assert VLLM in SourceReader(repository).desired(repository.fetch().source).templates
    remote.commit("main", {"apps/vllm.yaml": None})
    desired = SourceReader(repository).desired(repository.fetch().source)
    assert VLLM not in desired.templates
    assert errors(desired) == []


def decide(repository, number: int = 0) -> None:
    """Push a commit of ours, decided on the source branch as it is now."""
    tips = repository.fetch()
    message = f"burst\n\nOverspill-Action: Place\nOverspill-Source: {tips.source}\n"
    at = MORNING + timedelta(minutes=number)
    commit = Commit(message=message, author=COMMITTER, at=at, writes={f"clusters/w2/{number}": b"x"})
    (made,) = repository.write(tips.output, [commit])
    repository.begin_push(made, old=tips.output)()


@pytest.mark.parametrize("memory", ["beside the daemon", "empty disk", "broken mirror", "broken mirror, and collected"])
@pytest.mark.parametrize("later", ["nothing", "decisions", "another rewriting"])
def test_what_stood_before_history_was_rewritten_is_found_without_memory(real, tmp_path, memory, later):
    remote, repository, _ = real
    for number in range(2):
        remote.commit("main", {"docs.md": f"before {number}"})
        decide(repository, number)
    broken = FLEET | {"fleet.yaml": SETTINGS, PATH: POINTER}
    rewrite(remote, broken)
    decide(repository, 2) if later != "nothing" else repository.fetch()
    for number in range(3):
        remote.commit("main", {"docs.md": str(number)})
    if later == "another rewriting":
        rewrite(remote, {**broken, "README.md": "x"})
        decide(repository, 3)
    if memory.startswith("broken mirror"):
        if memory.endswith("collected"):
            remote.git("reflog", "expire", "--expire=now", "--all")
            remote.git("gc", "-q", "--prune=now")
        repository._branches._renew()
        desired = SourceReader(repository).desired(repository.fetch().source)
    else:
        desired = fresh(remote, tmp_path, "cache" if memory == "beside the daemon" else "fresh")
    assert VLLM in desired.templates
    assert any(line.startswith(f"{PATH}:") for line in errors(desired))


def decide_and_rewrite(remote, repository, times: int = 1) -> CommitId:
    """Put a branch without a past in the place of one that was decided on, some times; return its tip before that."""
    before = remote.tip("main")
    for number in range(times):
        decide(repository, number)
        rewrite(remote, FLEET | {"fleet.yaml": SETTINGS, PATH: POINTER, "README.md": str(number)})
    return before


@pytest.mark.parametrize("place", ["same disk", "beside it"])
def test_a_process_that_fetched_and_never_read_leaves_the_search_to_the_next(real, tmp_path, place):
    remote, repository, _ = real
    decide_and_rewrite(remote, repository)
    with GitRepository(remote.url, cache=tmp_path / "fresh") as ended:
        ended.fetch()
    for number in range(2):
        remote.commit("main", {"docs.md": str(number)})
        cache, main = ("fresh", None) if place == "same disk" else (f"other{number}", tmp_path / "fresh")
        with GitRepository(remote.url, cache=tmp_path / cache, main_cache=main) as next_one:
            next_one.fetch()
            assert VLLM in SourceReader(next_one).desired(next_one.tips().source).templates


@pytest.mark.parametrize("mended", [True, False])
def test_a_remote_that_fails_is_asked_again_for_what_was_before(real, tmp_path, mended):
    remote, repository, _ = real
    before = decide_and_rewrite(remote, repository)
    blob = remote.git("rev-parse", f"{before}:{PATH}")
    stored = remote.path / "objects" / blob[:2] / blob[2:]
    content = stored.read_bytes()
    stored.unlink()
    for _ in range(3 if mended else 9):
        with pytest.raises(Transient, match="fetching commit"):
            fresh(remote, tmp_path)
    if mended:
        stored.write_bytes(content)
    assert (VLLM in fresh(remote, tmp_path).templates) == mended
    stored.write_bytes(content)
    assert (VLLM in fresh(remote, tmp_path).templates) == mended


def test_a_remote_that_has_thrown_away_what_was_before_is_not_asked_for_all_of_it(real, tmp_path):
    remote, repository, _ = real
    decide_and_rewrite(remote, repository, times=9)
    for branch in remote.git("for-each-ref", "--format=%(refname:short)", "refs/heads/new-*").splitlines():
        remote.move(branch, None)
    remote.git("gc", "-q", "--prune=now")
    calls: list[str] = []

    @contextmanager
    def measure(call):
        yield lambda _: calls.append(call.verb)

    with GitRepository(remote.url, cache=tmp_path / "fresh", measure=measure) as counted:
        tip = counted.fetch().source
        calls.clear()
        assert VLLM not in SourceReader(counted).desired(tip).templates
    assert 3 <= calls.count("fetch") <= 8


def test_decisions_of_a_shallow_remote_are_read_as_far_as_it_has_them(real, tmp_path):
    remote, repository, _ = real
    remote.commit("main", {"docs.md": "before"})
    decide(repository)
    decide_and_rewrite(remote, repository, times=2)
    remote.path.joinpath("shallow").write_text(f"{remote.git('rev-parse', 'placements~1')}\n")
    for _ in range(2):
        assert VLLM in fresh(remote, tmp_path).templates


SAME_TEMPLATE = TEMPLATE.replace("10m", "20m")
HEAD_OF_TEMPLATE = TEMPLATE.partition("  manifestResources")[0].replace("vllm", "pinned")


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        ("templates/new.yaml", SETTINGS + "x: [\n", "did not find"),
        ("a.yaml", SAME_TEMPLATE, "is already in"),
        (
            "templates/pinned.yaml",
            f"{HEAD_OF_TEMPLATE}  from: {{path: apps/vllm, pin: {'a' * 40}}}\n",
            "mend spec.from.pin",
        ),
    ],
    ids=["broken", "a name twice", "pinned"],
)
def test_a_shallow_remote_of_the_source_branch_ends_no_pass(real, tmp_path, path, content, message):
    remote, _, _ = real
    remote.commit("main", {path: content})
    remote.commit("main", {"docs.md": "later"})
    remote.path.joinpath("shallow").write_text(f"{remote.git('rev-parse', 'main')}\n")
    desired = fresh(remote, tmp_path)
    assert VLLM in desired.templates
    assert message in "".join(errors(desired))


def test_who_had_a_name_first_keeps_it_where_the_remote_has_no_more_history(real):
    remote, repository, reader = real
    remote.commit("main", {"a.yaml": SAME_TEMPLATE})
    assert reader.desired(repository.fetch().source).templates[VLLM].path == PATH
    remote.commit("main", {"docs.md": "later"})
    remote.path.joinpath("shallow").write_text(f"{remote.git('rev-parse', 'main')}\n")
    repository._branches._renew()
    assert reader.desired(repository.fetch().source).templates[VLLM].path == PATH


def test_an_output_branch_that_moves_before_its_decisions_are_read_is_read_in_the_next_pass(real, tmp_path):
    remote, repository, _ = real
    decide_and_rewrite(remote, repository, times=2)
    with GitRepository(remote.url, cache=tmp_path / "fresh") as late:
        tip = late.fetch().source
        remote.commit("elsewhere", {"a": "1"})
        remote.move("placements", remote.tip("elsewhere"))
        with pytest.raises(Transient, match="moved"):
            SourceReader(late).desired(tip)


@pytest.mark.parametrize("cut", ["bound", "shallow remote"])
def test_a_commit_further_back_than_history_is_read_is_not_taken_for_a_rewriting(real, tmp_path, cut, monkeypatch):
    remote, repository, _ = real
    decide(repository)
    remote.commit("main", {PATH: None})
    for number in range(FIRST_STEP + 10):
        remote.commit("main", {"docs.md": str(number)})
    remote.commit("main", {PATH: POINTER})
    decide(repository, 1)
    assert VLLM not in fresh(remote, tmp_path).templates
    if cut == "bound":
        monkeypatch.setattr("reconciler.adapters.git.history.SOURCE_HISTORY", replace(SOURCE_HISTORY, most=10))
    else:
        remote.path.joinpath("shallow").write_text(f"{remote.git('rev-parse', 'main~5')}\n")
    assert VLLM not in fresh(remote, tmp_path, "cut").templates


@pytest.mark.parametrize(
    "how", ["set back", "deleted", "deleted after a rewriting", "merged into a branch", "forgotten"]
)
def test_an_empty_disk_takes_no_edit_for_a_rewriting(real, tmp_path, how):
    """What was decided on is at or before the tip, or after it, or nobody has it."""
    remote, repository, _ = real
    before = remote.commit("main", {"values.yaml": "a: 1\n"})
    decide(repository)
    if how == "deleted after a rewriting":
        rewrite(remote, {**FLEET, "fleet.yaml": SETTINGS})
        decide(repository, 1)
    if how == "set back":
        remote.commit("main", {"values.yaml": FLEET["clusters/worker-1.yaml"].replace("worker-1", "worker-9")})
        decide(repository, 1)
        remote.git("update-ref", "refs/heads/main", before)
        assert errors(fresh(remote, tmp_path)) == []
        return
    if how == "merged into a branch":
        side = remote.commit("side", {**FLEET, "fleet.yaml": SETTINGS, PATH: None})
        tree = remote.git("rev-parse", f"{side}^{{tree}}")
        identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]
        merge = remote.git(*identity, "commit-tree", tree, "-p", side, "-p", before, "-m", "merge")
        remote.git("update-ref", "refs/heads/main", merge)
    elif how == "forgotten":
        rewrite(remote, {**FLEET, "fleet.yaml": SETTINGS})
        remote.git("reflog", "expire", "--expire=now", "--all")
        remote.git("gc", "-q", "--prune=now")
    else:
        remote.commit("main", {PATH: None})
    remote.commit("main", {PATH: POINTER})
    desired = fresh(remote, tmp_path)
    assert (VLLM in desired.templates) == (how == "forgotten")


def test_a_branch_that_is_set_back_is_not_rewritten(real):
    remote, repository, reader = real
    before = remote.tip("main")
    remote.commit("main", {"values.yaml": FLEET["clusters/worker-1.yaml"].replace("worker-1", "worker-9")})
    reader.desired(repository.fetch().source)
    remote.git("update-ref", "refs/heads/main", before)
    repository.fetch()
    remote.commit("main", {"values.yaml": "a: 1\n"})
    assert reader.desired(repository.fetch().source).problems == ()


def test_the_way_out_works(real, tmp_path):
    remote, repository, reader = real
    remote.commit("main", {PATH: POINTER})
    assert errors(reader.desired(repository.fetch().source))
    remote.commit("main", {PATH: None})
    desired = reader.desired(repository.fetch().source)
    assert VLLM not in desired.templates
    assert desired.problems == ()
    remote.commit("main", {PATH: POINTER})
    for desired in (reader.desired(repository.fetch().source), fresh(remote, tmp_path)):
        assert VLLM not in desired.templates
        (problem,) = errors(desired)
        assert problem.startswith(f"{PATH}: is a Git LFS pointer, and nothing is read in it")


def test_a_clone_of_a_shallow_remote_takes_what_it_cannot_know_for_foreign(remote, tmp_path):
    remote.commit("main", FLEET)
    remote.commit("main", {"values.yaml": "a: 1\n"})
    remote.git("clone", "-q", "--bare", "--depth=1", f"file://{remote.url}", str(tmp_path / "shallow.git"))
    with GitRepository(str(tmp_path / "shallow.git"), cache=tmp_path / "cache") as repository:
        desired = SourceReader(repository).desired(repository.fetch().source)
    assert desired.problems == ()


class Counted(MemoryRepository):
    """Counts the questions about history, and may be away."""

    def __init__(self, source) -> None:
        self.asked: list[tuple[frozenset[str], bool]] = []
        self.away = False
        super().__init__(source)

    def past_versions(self, commit, paths, *, base=None):
        if self.away:
            raise Transient("the remote is away")
        self.asked.append((frozenset(paths), base is not None))
        return super().past_versions(commit, paths, base=base)


FOREIGN = {"values.yaml": "a: 1\n", "charts/x/values.yaml": "b: 1\n", "monitoring/rules.yaml": "kind: Rules\n"}


def test_files_that_never_held_anything_are_asked_about_once_and_together():
    fleet = Counted(FLEET | FOREIGN)
    reader = SourceReader(fleet)
    reader.desired(fleet.tips().source)
    assert fleet.asked == [(frozenset(FOREIGN), False)]
    reader.desired(fleet.tips().source)
    assert len(fleet.asked) == 1
    desired = reader.desired(fleet.person("source", {"values.yaml": "a: 2\n"}))
    assert fleet.asked[1:] == [(frozenset(FOREIGN), True)]
    assert desired.problems == ()


def test_one_document_of_several_that_loses_its_kind_is_broken():
    both = FLEET["clusters/worker-1.yaml"] + "---\n" + cluster("worker-9")
    fleet = Counted(FLEET | {"clusters/worker-1.yaml": both})
    reader = SourceReader(fleet)
    cut = FLEET["clusters/worker-1.yaml"] + "---\nmetadata: {name: worker-9}\n"
    for text in (cut, cut + "# again\n"):
        commit = fleet.person("source", {"clusters/worker-1.yaml": text})
        for read in (reader, SourceReader(fleet)):
            desired = read.desired(commit)
            assert {"worker-1", "worker-9"} <= set(desired.clusters)
            (problem,) = errors(desired)
            assert "has something else in the place of Cluster worker-9" in problem


NOTE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {a: b}\n"


@pytest.mark.parametrize(
    "junk", ["ENC[AES256]\n", "metadata: {name: worker-9}\n", "kind: Thing\nmetadata: {name: x}\n"]
)
def test_junk_in_the_place_of_an_object_is_told_though_another_document_goes(junk):
    one = FLEET["clusters/worker-1.yaml"]
    fleet = Counted(FLEET | {"clusters/worker-1.yaml": f"{one}---\n{cluster('worker-9')}---\n{NOTE}"})
    commit = fleet.person("source", {"clusters/worker-1.yaml": f"{one}---\n{junk}"})
    desired = SourceReader(fleet).desired(commit)
    assert {"worker-1", "worker-9"} <= set(desired.clusters)
    assert "has something else in the place of Cluster worker-9" in errors(desired)[0]
    commit = fleet.person("source", {"clusters/worker-1.yaml": one})
    desired = SourceReader(fleet).desired(commit)
    assert "worker-9" not in desired.clusters
    assert errors(desired) == []


def test_an_object_is_deleted_while_a_foreign_document_beside_it_is_edited():
    one = FLEET["clusters/worker-1.yaml"]
    fleet = Counted(FLEET | {"clusters/worker-1.yaml": f"{one}---\n{cluster('worker-9')}---\n{NOTE}"})
    commit = fleet.person("source", {"clusters/worker-1.yaml": f"{one}---\n{NOTE}".replace("a: b", "c: d")})
    desired = SourceReader(fleet).desired(commit)
    assert "worker-9" not in desired.clusters
    assert errors(desired) == []


def test_one_document_of_several_that_is_taken_out_is_deleted():
    both = FLEET["clusters/worker-1.yaml"] + "---\n" + cluster("worker-9")
    fleet = Counted(FLEET | {"clusters/worker-1.yaml": both})
    commit = fleet.person("source", {"clusters/worker-1.yaml": FLEET["clusters/worker-1.yaml"]})
    desired = SourceReader(fleet).desired(commit)
    assert "worker-9" not in desired.clusters
    assert errors(desired) == []


@pytest.mark.parametrize("later", [False, True])
def test_an_object_that_has_moved_to_another_file_is_not_lost(later):
    fleet = Counted(FLEET)
    reader = SourceReader(fleet)
    reader.desired(fleet.tips().source)
    moved = {"apps/vllm.yaml": TEMPLATE}
    commit = fleet.person("source", {PATH: "a: 1\n"} | ({} if later else moved))
    if later:
        assert errors(reader.desired(commit))
        commit = fleet.person("source", moved)
    for read in (reader, SourceReader(fleet)):
        desired = read.desired(commit)
        assert desired.templates[VLLM].path == "apps/vllm.yaml"
        assert desired.problems == ()


def test_a_template_of_one_name_in_another_workspace_is_another_object():
    other = TEMPLATE.replace("workspaceName: llm", "workspaceName: other")
    fleet = Counted(FLEET)
    commit = fleet.person("source", {PATH: POINTER, "apps/other.yaml": other})
    assert VLLM in SourceReader(fleet).desired(commit).templates


def test_what_the_fleet_ignores_is_not_asked_for():
    fleet = Counted(
        FLEET | {"fleet.yaml": SETTINGS.replace("engine: flux", "ignore: [old/**]"), "old/a.yaml": TEMPLATE}
    )
    commit = fleet.person("source", {"old/a.yaml": POINTER, "fleet.yaml": POINTER})
    assert [problem.partition(":")[0] for problem in errors(SourceReader(fleet).desired(commit))] == ["fleet.yaml"]


def test_while_the_remote_is_away_memory_will_do():
    fleet = Counted(FLEET)
    reader = SourceReader(fleet)
    reader.desired(fleet.tips().source)
    commit = fleet.person("source", {PATH: POINTER})
    fleet.away = True
    assert VLLM in reader.desired(commit).templates
    with pytest.raises(Transient):
        SourceReader(fleet).desired(commit)
    fleet.away = False
    assert reader.desired(commit) == SourceReader(fleet).desired(commit)
