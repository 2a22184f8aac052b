"""Observations in files: read when they change, and never believed when they broke."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.adapters.observations.observation_files import FileObservations
from reconciler.errors import InvalidInput, Severity
from reconciler.model.ids import ClusterName

WORKER_1, WORKER_2 = ClusterName("worker-1"), ClusterName("worker-2")


def text(cluster: str = "worker-1", *, minute: int = 0, message: str = "") -> str:
    return (
        "apiVersion: overspill.dev/v1alpha1\n"
        "kind: Observation\n"
        f"cluster: {cluster}\n"
        f'observedAt: "2026-11-20T12:{minute:02}:00Z"\n'
        f'message: "{message}"\n'
    )


def minute(view: FileObservations, cluster: ClusterName = WORKER_1) -> int:
    return view.observe().clusters[cluster].observed_at.minute


def test_one_file_may_hold_several_clusters(tmp_path: Path) -> None:
    path = tmp_path / "seen.yaml"
    path.write_text(text() + "---\n" + text("worker-2"))
    assert set(FileObservations(path).observe().clusters) == {WORKER_1, WORKER_2}


def test_directory_is_read_by_suffix_and_hidden_files_are_not(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yml", "c.json", ".d.yaml", "e.txt"):
        (tmp_path / name).write_text(text(f"worker-{name.strip('.')[0]}"))
    (tmp_path / "f.yaml").mkdir()
    assert set(FileObservations(tmp_path).observe().clusters) == {"worker-a", "worker-b", "worker-c"}


def test_newest_observation_of_a_cluster_stands_whatever_its_file_is_called(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text(minute=5))
    (tmp_path / "b.yaml").write_text(text(minute=3))
    assert minute(FileObservations(tmp_path)) == 5


def test_second_observation_of_a_cluster_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text("worker-2") + "---\n" + text(minute=3))
    (tmp_path / "b.yaml").write_text(text(minute=5))
    seen = FileObservations(tmp_path).observe()
    assert seen.places[WORKER_1] == (str(tmp_path / "b.yaml"), 3)
    (problem,) = seen.problems
    assert (problem.path, problem.line, problem.severity) == (str(tmp_path / "a.yaml"), 9, Severity.WARNING)
    assert problem.message == f"worker-1 is observed in {tmp_path / 'b.yaml'} as well, which counts"


def test_path_that_does_not_exist_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        FileObservations(tmp_path / "nothing")


def test_empty_directory_shows_nothing_and_is_no_problem(tmp_path: Path) -> None:
    seen = FileObservations(tmp_path).observe()
    assert (dict(seen.clusters), seen.problems) == ({}, ())


def test_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text())
    view = FileObservations(tmp_path)
    assert view.changed()
    assert minute(view) == 0
    assert not view.changed()
    path.write_text(text(minute=10, message="longer"))
    assert view.changed()
    assert minute(view) == 10


def test_unchanged_file_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text())
    view = FileObservations(tmp_path)
    first = view.observe().clusters[WORKER_1]
    assert view.observe().clusters[WORKER_1] is first


def test_renaming_over_a_file_is_noticed_even_with_its_size_and_time(tmp_path: Path) -> None:
    path, beside = tmp_path / "a.yaml", tmp_path / ".a.yaml.tmp"
    path.write_text(text(minute=10))
    view = FileObservations(tmp_path)
    assert minute(view) == 10
    beside.write_text(text(minute=11))
    stat = path.stat()
    os.utime(beside, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    beside.rename(path)
    assert view.changed()
    assert minute(view) == 11


def test_broken_file_keeps_its_last_good_version_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text(minute=1))
    view = FileObservations(tmp_path)
    view.observe()
    path.write_text("cluster: [worker-1\n")
    for _ in range(2):
        seen = view.observe()
        assert seen.clusters[WORKER_1].observed_at.minute == 1
        assert [problem.path for problem in seen.problems] == [str(path)]
        assert seen.problems[0].line
    path.write_text(text(minute=2))
    assert minute(view) == 2
    assert view.observe().problems == ()


def test_broken_file_holds_up_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("][")
    (tmp_path / "b.yaml").write_text(text("worker-2"))
    seen = FileObservations(tmp_path).observe()
    assert set(seen.clusters) == {WORKER_2}
    assert len(seen.problems) == 1


@pytest.mark.parametrize("part", [0, 20, 45, 75])
def test_file_that_is_half_written_keeps_its_last_good_version(tmp_path: Path, part: int) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text(minute=1))
    view = FileObservations(tmp_path)
    view.observe()
    path.write_text(text(minute=2)[:part])
    assert minute(view) == 1
    assert view.observe().problems


def test_yaml_that_was_cut_within_a_number_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text(minute=1))
    view = FileObservations(path)
    view.observe()
    node = "pools:\n- name: gpu\n  nodes:\n  - name: gpu-1\n    allocatable: {cpu: 32}\n    used:\n      cpu: 16\n"
    path.write_text((text(minute=2) + node)[:-2])
    assert minute(view) == 1
    path.write_text(text(minute=2) + node)
    assert minute(view) == 2


def test_yaml_without_a_last_newline_is_taken_at_the_second_look(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text(minute=1).rstrip())
    view = FileObservations(path)
    assert minute(view) == 1
    path.write_text(text(minute=2, message="longer").rstrip())
    assert [minute(view), minute(view)] == [1, 2]


def test_yaml_without_a_last_newline_wakes_until_it_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text(minute=1))
    view = FileObservations(tmp_path)
    view.observe()
    path.write_text(text(minute=2, message="longer").rstrip())
    assert [view.changed(), minute(view), view.changed(), minute(view), view.changed()] == [True, 1, True, 2, False]


def test_yaml_that_grows_between_looks_is_not_believed_before_it_rests(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text(minute=1))
    view = FileObservations(tmp_path)
    view.observe()
    whole = text(minute=2, message="longer").rstrip()
    for part in (len(whole) - 12, len(whole) - 6, len(whole)):
        path.write_text(whole[:part])
        assert (minute(view), view.changed()) == (1, True)
    assert (minute(view), view.changed()) == (2, False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_file_that_may_not_be_read_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text())
    path.chmod(0)
    view = FileObservations(tmp_path)
    assert str(view.observe().problems[0]) == f"{path}: cannot be read: Permission denied"
    path.chmod(0o600)
    assert minute(view) == 0


def test_vanished_file_takes_its_clusters_along(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text())
    view = FileObservations(tmp_path)
    view.observe()
    path.unlink()
    assert view.changed()
    seen = view.observe()
    assert (dict(seen.clusters), seen.problems) == ({}, ())


def test_vanished_directory_shows_nothing_and_is_reported(tmp_path: Path) -> None:
    directory = tmp_path / "seen"
    directory.mkdir()
    view = FileObservations(directory)
    directory.rmdir()
    seen = view.observe()
    assert dict(seen.clusters) == {}
    assert str(seen.problems[0]) == f"{directory}: cannot be read: No such file or directory"


def test_file_over_a_mebibyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text() + "# " + "x" * 2**20)
    seen = FileObservations(tmp_path).observe()
    assert dict(seen.clusters) == {}
    assert "1 MiB" in str(seen.problems[0])


def test_links_are_followed_as_a_mounted_config_map_needs(tmp_path: Path) -> None:
    for version in (1, 2):
        (tmp_path / f"..v{version}").mkdir()
        (tmp_path / f"..v{version}" / "a.yaml").write_text(text(minute=version))
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "a.yaml").symlink_to("..data/a.yaml")
    view = FileObservations(tmp_path)
    assert minute(view) == 1
    (tmp_path / "..next").symlink_to("..v2")
    (tmp_path / "..next").rename(tmp_path / "..data")
    assert minute(view) == 2
