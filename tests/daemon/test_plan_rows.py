"""The rows of a plan say what each commit does."""

from __future__ import annotations

from reconciler.core.commits.write import RenderedPlan
from reconciler.daemon.answers.plan_rows import plan_rows
from tests.builders.changes import RESIZE, UPDATE


def test_update_of_a_source_is_no_resize() -> None:
    update, resize = plan_rows(RenderedPlan(commits=(), changes=(UPDATE, RESIZE), suppressed=()))
    assert (update.action, update.replicas) == ("Update", UPDATE.after.replicas)
    assert update.why.startswith("its source runs vllm/vllm-openai:v0.11.0 now, vllm/vllm-openai:v0.10.1 before")
    assert (resize.action, resize.replicas) == ("Resize", f"{RESIZE.before.replicas} -> {RESIZE.after.replicas}")
