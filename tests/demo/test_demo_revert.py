"""A person's revert in the demo ends the burst, also where a later commit builds upon the one that began it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.demo.stage import DemoDirectory, revert


@pytest.fixture
def stage(tmp_path: Path) -> DemoDirectory:
    """A remote whose output branch has two bursts, of which the first was resized, and a clone of it."""
    stage = DemoDirectory(out=tmp_path)
    stage.git("init", "-q", "--bare", "--initial-branch=placements", str(stage.remote), directory=tmp_path)
    stage.git("clone", "-q", str(stage.remote), str(stage.fleet), directory=tmp_path)
    for path, text, subject in (
        ("README.md", "", "start"),
        ("clusters/worker-2/vllm-1/manifests/a.yaml", "replicas: 3\n", "burst(llm/vllm): 3"),
        ("clusters/worker-2/vllm-1/manifests/a.yaml", "replicas: 4\n", "resize(llm/vllm): 3 to 4"),
        ("clusters/worker-3/vllm-2/manifests/a.yaml", "replicas: 2\n", "burst(llm/vllm): 2"),
    ):
        file = stage.fleet / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        stage.git("add", path)
        stage.git("commit", "-q", "-m", subject)
    stage.git("push", "-q", "origin", "HEAD")
    return stage


def placements(stage: DemoDirectory) -> set[str]:
    files = stage.git("ls-tree", "-r", "--name-only", "placements", "clusters/", directory=stage.remote)
    return {name.split("/")[2] for name in files.splitlines()}


def commit(stage: DemoDirectory, back: int) -> str:
    return stage.git("rev-parse", "--short", f"placements~{back}", directory=stage.remote)


def test_a_burst_is_reverted_by_git_revert_and_a_resized_one_by_removing_its_files(stage: DemoDirectory) -> None:
    assert revert(stage, commit(stage, 0), "vllm-2") == 'Revert "burst(llm/vllm): 2"'
    assert placements(stage) == {"vllm-1"}
    assert revert(stage, commit(stage, 3), "vllm-1") == "Remove vllm-1"
    assert placements(stage) == set()
