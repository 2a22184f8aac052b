"""The patch of `plan --diff`: what git makes of it is what the commits would have made."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from reconciler.daemon.answers.patch import apply, patch
from reconciler.model.tree import Commit, Identity
from tests.builders.remote import MORNING

ANN = Identity(name="Ann", email="ann@example.com")
PATHS = st.sampled_from(["README.md", "a/x.yaml", "a/y z.yaml", 'a/"q".yaml', "a/ü.yaml", "b/c/d.yaml"])
LINE = st.sampled_from([b"one\n", b"two\n", b"--- three\n", b"diff --git a/x b/x\n", b"cr\r\n", b"\n"])
REST = st.sampled_from([b"", b"no line end", b"\xff\xfe"])
CONTENTS = st.builds(lambda lines, rest: b"".join(lines) + rest, st.lists(LINE, max_size=8), REST)
MESSAGES = ("Change", "Change\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n", "diff --git a/x b/x\n")
FILES = st.dictionaries(PATHS, CONTENTS, max_size=5)


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    removes = tuple(draw(st.lists(st.sampled_from(["a", "b/c", "README.md"]), unique=True, max_size=2)))
    message = draw(st.sampled_from(MESSAGES))
    return Commit(message=message, author=ANN, at=MORNING, removes=removes, writes=draw(FILES))


def applied_by_git(before: Mapping[str, bytes], text: bytes) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        for path, data in before.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(data)
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)}
        command = ["git", "apply", "--whitespace=nowarn", "-"]
        done = subprocess.run(command, input=text, cwd=tree, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return {path.relative_to(tree).as_posix(): path.read_bytes() for path in tree.rglob("*") if path.is_file()}


@given(before=FILES, commit=commits())
def test_git_applies_a_patch_to_what_the_commit_makes(before: dict[str, bytes], commit: Commit) -> None:
    after = apply(commit, before)
    if after == before:
        assert b"\ndiff --git" not in patch((commit,), before)
    else:
        assert applied_by_git(before, patch((commit,), before)) == after


def test_patches_of_several_commits_follow_each_other() -> None:
    first = Commit(message="First", author=ANN, at=MORNING, writes={"a/x": b"1\n2\n3\n", "b": b"x\n"})
    second = Commit(message="Second", author=ANN, at=MORNING, removes=("a",), writes={"a/x": b"1\n2\n4\n"})
    text = patch((first, second), {})
    assert text.count(b"diff --git a/b b/b") == 1
    head, _, rest = text.partition(b"commit 2 of 2\n")
    assert applied_by_git(applied_by_git({}, head), rest) == {"a/x": b"1\n2\n4\n", "b": b"x\n"}


def test_binary_content_is_named_and_not_printed() -> None:
    commit = Commit(message="Change", author=ANN, at=MORNING, writes={"x": b"\0\1"})
    assert patch((commit,), {}).endswith(b"Binary files /dev/null and b/x differ\n")
