"""Another turn of a workload takes back what its turn before has noted, and nothing else."""

from __future__ import annotations

from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.model.plan import Reason, Suppressed
from tests.builders.inputs import VLLM, inputs


def _held(reason: Reason, message: str) -> Suppressed:
    return Suppressed(workload=VLLM, reason=reason, message=message)


def test_what_holds_an_update_or_a_renewal_back_is_told_after_another_turn() -> None:
    working_plan = WorkingPlan(inputs())
    working_plan.suppress(_held(Reason.AWAITING_APPROVAL, "its old version stays"))
    working_plan.suppress(_held(Reason.OVER_BUDGET, "is not renewed"))
    working_plan.suppress(_held(Reason.CLUSTER_LIMIT, "a set has one cluster"), in_turn=True)
    working_plan.suppress(_held(Reason.NOTHING_FITS, "fits on no cluster"), in_turn=True)
    working_plan.retract(VLLM)
    assert working_plan.unplaceable(VLLM) is None
    assert [held.message for held in working_plan.plan().suppressed] == ["its old version stays", "is not renewed"]
