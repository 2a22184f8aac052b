"""While a WorkspacePolicy is not in force, no GPR begins in its workspace: its limits are unknown."""

from __future__ import annotations

import pytest

from reconciler.adapters.git import GitRepository
from reconciler.daemon.source import SourceReader
from reconciler.model.action import Action
from reconciler.model.ids import WorkspaceName
from reconciler.model.plan import Reason
from tests.builders.fleet_files import FLEET, errors, load
from tests.builders.inputs import desired, free, ordering, plan, short
from tests.builders.remote import Remote

LLM = frozenset({WorkspaceName("llm")})
POLICY = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkspacePolicy
metadata: {name: any, namespace: kubeslice-acme}
spec:
  sliceRef: {name: llm}
  maxGPRs: 2
"""
BROKEN = {
    "a limit below nothing": POLICY.replace("2", "-1"),
    "an unknown field": POLICY.replace("maxGPRs", "maxGpus"),
    "by its own name": POLICY.replace("name: any", "name: llm").replace("sliceRef", "slice"),
    "no YAML": POLICY + "  ]\n",
}


@pytest.mark.parametrize("source", BROKEN.values(), ids=BROKEN)
def test_a_workspace_is_stalled_while_its_policy_has_no_good_version(source: str) -> None:
    made = load({**FLEET, "policies/limits.yaml": source})
    assert errors(made)
    assert made.stalled_workspaces == LLM


def test_a_workspace_whose_policy_is_good_or_which_has_none_is_not() -> None:
    assert load({**FLEET, "policies/limits.yaml": POLICY}).stalled_workspaces == frozenset()
    assert load(FLEET).stalled_workspaces == frozenset()
    another = POLICY.replace("name: llm", "name: vision").replace("2", "-1")
    assert load({**FLEET, "policies/limits.yaml": another}).stalled_workspaces == frozenset()


def test_a_file_that_may_hold_no_policy_of_it_stalls_nothing() -> None:
    broken = POLICY.replace("2", "-1")
    assert load({**FLEET, "templates/limits.yaml": broken}).stalled_workspaces == frozenset()


def test_the_last_good_version_goes_on_and_a_mended_file_ends_the_matter(
    remote: Remote, repository: GitRepository
) -> None:
    reader = SourceReader(repository)
    for source, stalled in ((POLICY.replace("2", "-1"), LLM), (POLICY, frozenset()), (POLICY + " ]", frozenset())):
        commit = remote.commit("main", {**FLEET, "policies/limits.yaml": source})
        repository.fetch()
        assert reader.desired(commit).stalled_workspaces == stalled


def test_nothing_begins_in_a_stalled_workspace_and_it_says_why_and_how_to_go_on() -> None:
    wanted = desired(ordering("worker-2"), stalled_workspaces=LLM)
    decided = plan(short(2), free("worker-2", 8), wanted=wanted)
    assert not [change for change in decided.changes if change.action is Action.PLACE]
    (held,) = decided.suppressed
    (refusal,) = held.refusals
    assert refusal.reason is Reason.GPR_LIMIT
    assert refusal.message.startswith("the WorkspacePolicy of llm is broken")
    assert "`overspill check`" in refusal.remedy
