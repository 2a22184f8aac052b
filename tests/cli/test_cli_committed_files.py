"""`check` compares a checkout with what git holds of it: the daemon reads commits, and never a work tree."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.model.bounds import SOURCE_HISTORY
from tests.builders.fleet_files import FLEET, TEMPLATE
from tests.cli.conftest import Terminal
from tests.fleet.test_standing_paths import POINTER, SHAPES

PATH = "templates/vllm.yaml"
Git = Callable[..., str]


@pytest.fixture
def terminal() -> Terminal:
    """Open a terminal that knows of no repository."""
    return Terminal(env={})


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Commit the fleet to a checkout."""
    return _checkout(tmp_path / "fleet", tmp_path / "fleet")


def _checkout(top: Path, directory: Path) -> Path:
    directory.mkdir(parents=True)
    git(top, "init", "--quiet", "--initial-branch=main")
    for path, text in FLEET.items():
        (directory / path).parent.mkdir(exist_ok=True)
        (directory / path).write_text(text)
    commit(top)
    return directory


def git(directory: Path, *arguments: str, stdin: str | None = None) -> str:
    settings = ("user.name=Ann", "user.email=ann@example.com", "protocol.file.allow=always")
    command = ["git", "-C", str(directory), *(part for setting in settings for part in ("-c", setting)), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=stdin).stdout


def commit(directory: Path) -> None:
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message=x")


def put(directory: Path, shape: str, path: str = PATH) -> str:
    """Put something in the place of a file; return its description."""
    mode, data, content = SHAPES[shape]
    place = directory / path
    place.unlink()
    if mode == "120000":
        place.symlink_to(data.decode())
    elif mode == "160000":
        git(directory, "rm", "--cached", "--quiet", path)
        git(directory, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},{path}")
        place.mkdir()
    else:
        place.write_bytes(data)
    return content


@pytest.mark.parametrize("committed", [False, True], ids=["in the work tree", "committed"])
@pytest.mark.parametrize("shape", ["LFS pointer", "null bytes", "another kind", "empty", "link", "submodule"])
def test_what_stood_in_a_path_is_an_error_with_its_way_out(
    terminal: Terminal, checkout: Path, shape: str, committed: bool
) -> None:
    content = put(checkout, shape)
    if committed:
        if shape != "submodule":
            git(checkout, "add", "--all")
        git(checkout, "commit", "--quiet", "--message=x")
    result = terminal("check", str(checkout))
    assert result.exit_code == 1
    wanted = f"{checkout}/{PATH}: {content}, and WorkloadTemplate vllm stood in it (delete the file if that is to go)"
    assert result.stderr.count(wanted) + result.stdout.count(wanted) == 1
    assert f"{PATH}: its last good version, blob " in result.output
    assert f"{PATH}: is not read" not in result.output
    assert re.search(r"1 template.*: 1 error, ", result.output)


def test_the_way_out_is_taken(terminal: Terminal, checkout: Path) -> None:
    put(checkout, "error page")
    assert terminal("check", str(checkout)).exit_code == 1
    (checkout / PATH).unlink()
    terminal.done("check", str(checkout))
    commit(checkout)
    terminal.done("check", str(checkout))
    (checkout / PATH).write_text("another: tool\n")  # what comes after a deletion is new
    terminal.done("check", str(checkout))


def test_a_lost_fleet_keeps_its_settings(terminal: Terminal, checkout: Path) -> None:
    settings = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {ignore: [attic/**]}\n"
    (checkout / "fleet.yaml").write_text(settings)
    (checkout / "attic").mkdir()
    (checkout / "attic" / "a.yaml").write_text(TEMPLATE)  # would be a second vllm
    commit(checkout)
    terminal.done("check", str(checkout))
    put(checkout, "LFS pointer", "fleet.yaml")
    result = terminal("check", str(checkout))
    assert (result.exit_code, ": 1 error, " in result.output) == (1, True)
    assert "fleet.yaml: is a Git LFS pointer, and Fleet f stood in it" in result.output


def test_a_fleet_in_a_folder_is_compared_with_its_folder(terminal: Terminal, tmp_path: Path) -> None:
    directory = _checkout(tmp_path / "repository", tmp_path / "repository" / "gpus" / "fleet")
    put(directory, "null bytes")
    result = terminal("check", str(directory))
    assert (result.exit_code, f"{directory}/{PATH}: is nothing but null bytes, and" in result.output) == (1, True)
    assert terminal("check", str(directory / PATH)).exit_code == 1


@pytest.mark.parametrize("mode", ["link", "submodule", "file"])
def test_a_directory_that_becomes_something_else_deletes_nothing(terminal: Terminal, checkout: Path, mode: str) -> None:
    shutil.rmtree(checkout / "templates")
    if mode == "link":
        (checkout / "templates").symlink_to("../elsewhere")
    elif mode == "file":
        (checkout / "templates").write_text("../elsewhere")
    else:
        git(checkout, "rm", "-r", "--cached", "--quiet", "templates")
        git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},templates")
        (checkout / "templates").mkdir()
    result = terminal("check", str(checkout))
    content = {"link": "symbolic link", "submodule": "submodule", "file": "file"}[mode]
    said = f"{PATH}: is gone with its directory templates, which is a {content} now"
    assert (result.exit_code, said in result.output) == (1, True)


def test_a_directory_in_the_place_of_a_file_deletes_nothing(terminal: Terminal, checkout: Path) -> None:
    (checkout / PATH).unlink()
    (checkout / PATH).mkdir()
    (checkout / PATH / "x.md").write_text("x")
    assert f"{PATH}: is a directory, and WorkloadTemplate vllm" in terminal("check", str(checkout)).output
    (checkout / PATH / "x.md").unlink()
    terminal.done("check", str(checkout))  # git has no empty directories


def test_a_submodule_that_is_not_fetched_is_told(terminal: Terminal, checkout: Path) -> None:
    git(checkout, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},templates/team")
    (checkout / "templates" / "team").mkdir()
    assert "templates/team: is a submodule, whose files are not read" in terminal.done("check", str(checkout))


@pytest.mark.parametrize(
    ("attribute", "stored", "content"),
    [
        ("filter=lfs diff=lfs merge=lfs -text", POINTER, "is a Git LFS pointer"),
        ("filter=git-crypt diff=git-crypt", "\0GITCRYPT\0abc", "is encrypted by git-crypt"),
        ("filter=strip", "", "is empty"),
        ("filter=upper", "apiVersion: gpr.kubeslice.io/v1alpha1\nkind: WorkloadTemplate\n", "is broken"),
    ],
)
def test_what_a_filter_stores_is_what_counts(
    terminal: Terminal, checkout: Path, attribute: str, stored: str, content: str
) -> None:
    blob = git(checkout, "hash-object", "-w", "--stdin", stdin=stored).strip()
    git(checkout, "update-index", "--cacheinfo", f"100644,{blob},{PATH}")
    (checkout / ".gitattributes").write_text(f"{PATH} {attribute}\n")
    git(checkout, "add", ".gitattributes")
    git(checkout, "commit", "--quiet", "--message=x")
    result = terminal("check", str(checkout))
    assert result.exit_code == 1
    assert f"{PATH}: {content} where git stores it, and the daemon reads that: filter=" in result.output
    # The way out works.
    (checkout / ".gitattributes").write_text("")
    git(checkout, "add", "--all")
    git(checkout, "add", "--renormalize", PATH)
    terminal.done("check", str(checkout))


def test_a_filter_that_stores_what_is_read_is_no_error(terminal: Terminal, checkout: Path) -> None:
    (checkout / ".gitattributes").write_text("*.yaml filter=lfs\n")
    commit(checkout)  # no program is configured for it
    assert terminal.done("check", str(checkout)).endswith(": 0 errors, 0 warnings\n")
    (checkout / "templates" / "new.yaml").write_text(TEMPLATE.replace("name: vllm", "name: other"))
    assert "new.yaml: goes through the filter lfs once it is added" in terminal("check", str(checkout)).output


def test_a_file_that_git_converts_to_utf_8_is_read(terminal: Terminal, checkout: Path) -> None:
    (checkout / PATH).write_text(TEMPLATE, encoding="utf-16")
    assert terminal("check", str(checkout)).exit_code == 1
    (checkout / ".gitattributes").write_text("templates/* working-tree-encoding=UTF-16\n")
    commit(checkout)
    assert git(checkout, "cat-file", "-p", f":{PATH}") == TEMPLATE
    terminal.done("check", str(checkout))


def test_a_shallow_clone_says_that_it_lacks_commits(terminal: Terminal, checkout: Path, tmp_path: Path) -> None:
    put(checkout, "LFS pointer")
    commit(checkout)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--depth=1", checkout.as_uri(), str(clone))
    result = terminal("check", str(clone))
    assert (result.exit_code, f"{PATH}: is a Git LFS pointer, and nothing is read in it" in result.output) == (1, True)
    assert "this clone is shallow (try `git fetch --unshallow`)" in result.output
    git(clone, "fetch", "--quiet", "--unshallow")
    result = terminal("check", str(clone))
    assert (result.exit_code, "clone is shallow" in result.output) == (1, False)


@pytest.mark.exhaustive(one_in=None)
def test_history_is_read_up_to_its_bound(terminal: Terminal, checkout: Path) -> None:
    put(checkout, "LFS pointer")
    commit(checkout)
    head = "commit refs/heads/main\ncommitter Ann <a@b> 0 +0000\ndata 0\n"
    stream = [head, "from refs/heads/main^0\n", head * (SOURCE_HISTORY.most - 2)]
    git(checkout, "fast-import", "--quiet", stdin="".join(stream))
    lost = f"{PATH}: is a Git LFS pointer, and WorkloadTemplate vllm stood in it"
    assert lost in terminal("check", str(checkout)).output
    git(checkout, "commit", "--quiet", "--all", "--allow-empty", "--message=x")
    assert lost not in terminal("check", str(checkout)).output


def test_no_program_of_a_checkout_is_run(terminal: Terminal, checkout: Path, tmp_path: Path) -> None:
    trap, mark = tmp_path / "trap", tmp_path / "mark"
    trap.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    trap.chmod(0o755)
    put(checkout, "LFS pointer")
    commit(checkout)
    (checkout / ".gitattributes").write_text("* filter=trap diff=trap\n")
    git(checkout, "add", ".gitattributes")
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-index-change", "post-checkout", "fsmonitor-watchman", "reference-transaction"):
        shutil.copy(trap, hooks / hook)
    programs = ("core.fsmonitor", "core.pager", "diff.external", "gpg.program", "core.sshCommand", "core.askPass")
    programs += ("filter.trap.clean", "filter.trap.smudge", "filter.trap.process", "diff.trap.textconv", "alias.log")
    with (checkout / ".git" / "config").open("a") as config:
        for name in programs:
            section, _, key = name.rpartition(".")
            first, _, second = section.partition(".")
            config.write(f'[{first} "{second}"]\n' if second else f"[{first}]\n")
            config.write(f"\t{key} = {'!' if first == 'alias' else ''}{trap}\n")
        config.write("[log]\n\tshowSignature = true\n[extensions]\n\tpartialClone = origin\n")
        config.write(f'[remote "origin"]\n\turl = ext::{trap}\n\tpromisor = true\n[protocol]\n\tallow = always\n')
    assert terminal("check", str(checkout)).exit_code == 1
    assert not mark.exists()
    subprocess.run(["git", "-C", checkout, "status"], capture_output=True, check=False)
    assert mark.exists()  # the trap works


def test_a_checkout_that_cannot_be_read_is_checked_without_its_history(terminal: Terminal, checkout: Path) -> None:
    (checkout / ".git" / "index").write_bytes(b"DIRC" + b"\0" * 40)
    assert "the files are checked without their history; try `git fsck`" in terminal.done("check", str(checkout))


def test_variables_of_a_hook_lead_to_no_other_repository(
    terminal: Terminal, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "--quiet", "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "other" / ".git" / "index"))
    put(checkout, "a scalar")
    assert terminal("check", str(checkout)).exit_code == 1
