"""What a branch changes, against what has been changed since it left; and which charts it may have rendered."""

from __future__ import annotations

import pytest

from reconciler.daemon.answers.proposal import MOST_FILES, ReviewedCharts, to_merge
from reconciler.errors import InvalidInput
from reconciler.model.ids import BlobId, WorkspaceName
from reconciler.model.tree import FileChange
from reconciler.model.workload import HelmConfig


def change(path: str, new: str | None) -> FileChange:
    return FileChange(path=path, old=BlobId("0"), new=None if new is None else BlobId(new))


def test_only_what_the_source_branch_lacks_is_merged() -> None:
    ours = [change("same.yaml", "1"), change("gone.yaml", None), change("ours.yaml", "2")]
    theirs = [
        change("same.yaml", "1"),
        change("gone.yaml", None),
        change("theirs.yaml", "3"),
        change("away.yaml", None),
    ]
    assert [merged.path for merged in to_merge("pr", ours, theirs)] == ["theirs.yaml", "away.yaml"]


def test_files_that_are_not_read_are_never_in_conflict() -> None:
    assert to_merge("pr", [change("README.md", "1")], [change("README.md", "2"), change(".github/ci.yaml", "3")]) == ()


def test_conflicts_are_named_a_few_at_a_time() -> None:
    paths = [f"{letter}.yaml" for letter in "abcde"]
    ours, theirs = [[change(path, new) for path in paths] for new in ("1", "2")]
    with pytest.raises(InvalidInput, match=r"both change a.yaml, b.yaml, c.yaml and 2 more \(try merging"):
        to_merge("pr", ours, theirs)


def test_branch_that_changes_too_much_is_refused() -> None:
    changes = [change(f"{number}.yaml", "1") for number in range(MOST_FILES + 1)]
    with pytest.raises(InvalidInput, match=f"changes {MOST_FILES + 1} files, over {MOST_FILES}"):
        to_merge("pr", [], changes)


class _AnyChart:
    def available(self) -> bool:
        return True

    def template(self, chart: HelmConfig, *, hooks: bool, workspace: WorkspaceName) -> tuple[dict[str, str], ...]:
        return ({"kind": chart.chart},)


def test_chart_of_a_repository_that_nobody_has_reviewed_is_not_fetched() -> None:
    charts = ReviewedCharts(charts=_AnyChart(), repositories=frozenset({"https://charts.example.com"}))
    known = HelmConfig(
        name="server",
        chart="vllm",
        release_name="vllm",
        release_namespace="demo",
        repo_url="https://charts.example.com",
    )
    assert charts.available()
    assert charts.template(known, hooks=True, workspace=WorkspaceName("llm")) == ({"kind": "vllm"},)
    other = HelmConfig(
        name="server", chart="vllm", release_name="vllm", release_namespace="demo", repo_url="https://10.0.0.1"
    )
    with pytest.raises(InvalidInput, match="its repository is not on the source branch yet"):
        charts.template(other, hooks=True, workspace=WorkspaceName("llm"))
