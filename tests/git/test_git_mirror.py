"""The mirror's directory: what a killed process leaves, who may use it, and what happens when it breaks."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.errors import InvalidInput, Transient
from reconciler.model.tree import Commit, Identity

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
BOT = Identity(name="Overspill", email="overspill@overspill.dev")


def _commit(number: int) -> Commit:
    return Commit(message=f"Place {number}", author=BOT, at=NOON, writes={f"p{number}": b"%d" % number})


def _mirrors(cache: Path) -> list[Path]:
    return sorted(cache.glob("*/mirror.git"))


@pytest.fixture
def filled(remote):
    """Fill both branches with a few commits."""
    for number in range(3):
        remote.commit("main", {f"a{number}": str(number) * 100})
        remote.commit("placements", {f"b{number}": str(number) * 100})
    return remote


def test_second_start_goes_on_with_the_mirror_that_is_there(filled, tmp_path):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        tips = repository.fetch()
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        assert repository.tips() == tips
        assert repository.fetch() == tips


def test_tip_that_was_pushed_is_known_after_a_restart(filled, tmp_path):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        old = repository.fetch().output
        (made,) = repository.write(old, [_commit(1)])
        repository.begin_push(made, old=old)()
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        assert repository.tips().output == made


def test_first_fetch_brings_both_branches_in_one_pack(filled, tmp_path):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
        assert len(list((tmp_path / "cache").glob("*/mirror.git/objects/pack/*.pack"))) == 1


def test_second_process_gets_a_mirror_of_its_own_and_removes_it(filled, tmp_path):
    cache = tmp_path / "cache"
    with GitRepository(filled.url, cache=cache) as first:
        first.fetch()
        with GitRepository(filled.url, cache=cache) as second:
            assert second.fetch() == first.tips()
            assert len(_mirrors(cache)) == 2
        assert len(_mirrors(cache)) == 1
        assert first.fetch() == first.tips()


def test_remotes_do_not_share_a_mirror(filled, tmp_path):
    shutil.copytree(filled.path, tmp_path / "copy.git")
    with (
        GitRepository(filled.url, cache=tmp_path / "cache") as one,
        GitRepository(str(tmp_path / "copy.git"), cache=tmp_path / "cache") as other,
    ):
        assert one.fetch() == other.fetch()
        assert len(_mirrors(tmp_path / "cache")) == 2


_HOLD = """
import sys, time
from pathlib import Path
from reconciler.adapters.git import GitRepository
GitRepository(sys.argv[1], cache=Path(sys.argv[2])).fetch()
print("holding", flush=True)
time.sleep(60)
"""


@pytest.mark.exhaustive(one_in=None)
def test_mirrors_of_killed_processes_are_taken_over_and_cleared_away(filled, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    root = Path(__file__).parents[2]
    holders = []
    for _ in range(2):
        holder = subprocess.Popen(
            [sys.executable, "-c", _HOLD, filled.url, str(cache)], stdout=subprocess.PIPE, cwd=root
        )
        holder.stdout.readline()
        holders.append(holder)
    assert len(_mirrors(cache)) == 2
    for holder in holders:
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    with GitRepository(filled.url, cache=cache) as repository:
        assert repository.fetch().source == filled.tip("main")
        assert len(_mirrors(cache)) == 1


@pytest.mark.parametrize(
    "left",
    [
        "shallow.lock",
        "config.lock",
        "packed-refs.lock",
        "refs/overspill/source.lock",
        "refs/overspill/known/output/placements.lock",
        "objects/pack/tmp_pack_x1y2z3",
    ],
)
def test_what_a_killed_git_left_behind_stops_nobody(filled, tmp_path, left):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
    (mirror,) = _mirrors(tmp_path / "cache")
    (mirror / left).parent.mkdir(exist_ok=True)
    (mirror / left).write_bytes(b"")
    source, output = filled.commit("main", {"x": "1"}), filled.commit("placements", {"x": "1"})
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        tips = repository.fetch()
        assert (tips.source, tips.output) == (source, output)
        assert len(repository.log(output)) == 4
        assert not (mirror / left).exists()


def _truncate_packs(mirror: Path) -> None:
    for pack in mirror.glob("objects/pack/*.pack"):
        pack.chmod(0o644)
        pack.write_bytes(pack.read_bytes()[:40])


def _remove_packs(mirror: Path) -> None:
    shutil.rmtree(mirror / "objects" / "pack")


def _empty_refs(mirror: Path) -> None:
    for ref in (mirror / "refs" / "overspill" / "source", *mirror.glob("refs/overspill/known/output/*")):
        ref.write_text("")


def _nonsense_config(mirror: Path) -> None:
    (mirror / "config").write_text("[core\n")


def _forget_the_shallow_end(mirror: Path) -> None:
    (mirror / "shallow").unlink()


def _remove_head(mirror: Path) -> None:
    (mirror / "HEAD").unlink()


@pytest.mark.parametrize(
    "damage",
    [_truncate_packs, _remove_packs, _empty_refs, _nonsense_config, _forget_the_shallow_end, _remove_head],
)
@pytest.mark.parametrize("running", [True, False])
@pytest.mark.exhaustive(one_in=4)
def test_broken_mirror_is_made_anew(filled, tmp_path, damage, running):
    repository = GitRepository(filled.url, cache=tmp_path / "cache")
    repository.fetch()
    (mirror,) = _mirrors(tmp_path / "cache")
    if not running:
        repository.close()
        damage(mirror)
        repository = GitRepository(filled.url, cache=tmp_path / "cache")
    else:
        damage(mirror)
    filled.commit("main", {"x": "1"})
    with repository:
        for _ in range(3):  # the pass that finds the damage may fail; the loop runs another
            try:
                tips = repository.fetch()
                entries = repository.entries(tips.source)
                contents = repository.read(entry.blob for entry in entries)
                (made,) = repository.write(tips.output, [_commit(len(contents))])
                repository.begin_push(made, old=tips.output)()
                break
            except Transient:
                continue
        assert [entry.path for entry in entries] == ["a0", "a1", "a2", "x"]
        assert repository.tips().output == filled.tip("placements") == made


def test_broken_mirror_stays_until_the_disk_takes_what_is_known(filled, tmp_path):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
        (mirror,) = _mirrors(tmp_path / "cache")
        _remove_head(mirror)
        in_the_way = mirror.parent / "known_new"
        in_the_way.mkdir()
        filled.commit("main", {"x": "1"})
        with pytest.raises(Transient, match=r"writing .*known"):
            repository.fetch()
        assert mirror.is_dir()
        in_the_way.rmdir()
        assert repository.fetch().source == filled.tip("main")


def test_many_small_packs_are_put_together_and_nothing_is_lost(filled, tmp_path):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        tip = repository.fetch().output
        repository.maintain()
        for number in range(42):
            (tip,) = repository.write(tip, [_commit(number)])
        packs = list((tmp_path / "cache").glob("*/mirror.git/objects/pack/*.pack"))
        assert len(packs) > 40
        before = repository.entries(tip)
        repository.maintain()
        assert len(list((tmp_path / "cache").glob("*/mirror.git/objects/pack/*.pack"))) < 10
        assert repository.entries(tip) == before
        assert len(repository.read(entry.blob for entry in before)) == len({entry.blob for entry in before})


def test_machine_without_git_is_told_so(remote, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):  # the second finds the mirror's directory free again
        with pytest.raises(InvalidInput, match="install git"):
            GitRepository(remote.url, cache=tmp_path / "cache")
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_cache_that_cannot_be_written_is_transient(remote, tmp_path):
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(Transient, match="opening the mirror"):
        GitRepository(remote.url, cache=tmp_path / "cache")


@pytest.fixture
def umask():
    """Let a test have any umask, and give back the one there was."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def _mode(path: Path) -> str:
    return f"{path.stat().st_mode & 0o777:o}"


@pytest.mark.parametrize("mask", [0, 0o002, 0o077])
def test_cache_is_made_for_its_owner_alone_whatever_the_umask(filled, tmp_path, umask, mask):
    umask(mask)
    with GitRepository(filled.url, cache=tmp_path / "made" / "cache") as repository:
        umask(0o022)
        repository.fetch()
        with GitRepository(filled.url, cache=tmp_path / "made" / "cache"):
            made = [tmp_path / "made", tmp_path / "made/cache", *(tmp_path / "made/cache").iterdir()]
            assert [_mode(path) for path in made] == ["700"] * 4


@pytest.mark.parametrize("mode", [0o775, 0o702, 0o1777])
def test_cache_that_others_can_write_is_refused_with_a_way_out(filled, tmp_path, mode):
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(mode)
    with pytest.raises(InvalidInput, match=r"cache: others can write there \(try chmod go-w .*cache/overspill"):
        GitRepository(filled.url, cache=cache)
    assert list(cache.iterdir()) == []
    with GitRepository(filled.url, cache=cache / "overspill") as repository:
        assert repository.fetch().source == filled.tip("main")


def test_cache_of_another_user_is_refused_with_a_way_out(filled, tmp_path):
    cache = Path("/")
    if os.geteuid() == 0:
        cache = tmp_path / "cache"
        cache.mkdir(mode=0o755)
        os.chown(cache, 12345, 12345)
    with pytest.raises(InvalidInput, match=r"belongs to user \d+ \(try OVERSPILL_CACHE_DIR="):
        GitRepository(filled.url, cache=cache)


def test_cache_behind_a_link_of_ones_own_is_taken(filled, tmp_path):
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        assert repository.fetch().source == filled.tip("main")


@pytest.mark.parametrize("mode", [0o750, 0o755, 0o2750])
def test_mirror_that_others_could_read_still_knows_what_the_remote_has_lost(filled, tmp_path, mode):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        known = repository.fetch().output
    (mirror,) = _mirrors(tmp_path / "cache")
    for place in (mirror.parent, *mirror.rglob("*")):
        place.chmod(mode if place == mirror.parent else place.stat().st_mode & ~0o022)
    filled.move("placements", None)
    filled.git("gc", "-q", "--prune=now")
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        assert [loss.branch for loss in repository.fetch().losses] == ["placements"]
        assert repository.shelf.read([known])
    assert _mode(mirror.parent) == "700"


@pytest.mark.parametrize("opened", [".", "mirror.git/config", "mirror.git/hooks/x"])
def test_mirror_that_others_could_write_to_is_made_again_and_what_was_known_stays_known(filled, tmp_path, opened):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
    (mirror,) = _mirrors(tmp_path / "cache")
    mirror.parent.chmod(0o755)
    opened = mirror.parent / opened
    opened.parent.mkdir(exist_ok=True)
    opened.touch()
    opened.chmod(0o777)
    os.mkfifo(mirror / "refs/overspill/known/output/pipe")
    (mirror / "config").write_text("[other]\n\twrote = this\n")
    filled.move("placements", None)
    for _ in range(2):
        with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
            assert "wrote" not in (mirror / "config").read_text()
            assert [loss.branch for loss in repository.fetch().losses] == ["placements"]


def _let_others_write(place: Path) -> None:
    place.chmod(0o777)


def _put_a_link(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    place.symlink_to("elsewhere")


def _give_away(place: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives directories away")
    os.chown(place, 12345, 12345)


@pytest.mark.parametrize("made", [_let_others_write, _put_a_link, _give_away])
def test_configuration_in_a_mirror_that_we_did_not_make_is_not_believed(filled, tmp_path, made):
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        repository.fetch()
    (mirror,) = _mirrors(tmp_path / "cache")
    (tmp_path / "evil").write_text(f'#!/bin/sh\ntouch {tmp_path}/done\nexec git-upload-pack "$@"\n')
    (tmp_path / "evil").chmod(0o755)
    with (mirror / "config").open("a") as config:
        config.write(f'[remote "fleet"]\n\tuploadpack = {tmp_path}/evil\n')
    made(mirror.parent)
    with GitRepository(filled.url, cache=tmp_path / "cache") as repository:
        assert repository.fetch().source == filled.tip("main")
    assert not (tmp_path / "done").exists()
    assert _mode(mirror.parent) == "700"


@pytest.mark.parametrize(
    "branch", ["", "-d", "a..b", "a b", "a:b", "+a", "a/", "/a", "a.lock", "a^", "refs/heads/", "a*"]
)
def test_branch_names_that_git_reads_differently_are_refused(remote, tmp_path, branch):
    with pytest.raises(InvalidInput, match="not a branch name"):
        GitRepository(remote.url, cache=tmp_path / "cache", output_branch=branch)


def test_one_branch_cannot_be_both_read_and_written(remote, tmp_path):
    with pytest.raises(InvalidInput, match="both read and written"):
        GitRepository(remote.url, cache=tmp_path / "cache", output_branch="refs/heads/main")
