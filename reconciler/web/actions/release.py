"""The release of a workload from what holds it back."""

from __future__ import annotations

from reconciler.access.rights import AccessRole
from reconciler.api import orders
from reconciler.api.security.callers import require_role
from reconciler.core.decide.orders.steer import plan_release
from reconciler.core.decide.state.order import Steering
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName
from reconciler.model.plan import Plan
from reconciler.model.request import Verb
from reconciler.web.actions.action import Desk, OrderPreview, PageAction, draft_messages, steering_order
from reconciler.web.actions.form import Field, Form, Given, hidden, read_reason, reason_field
from reconciler.web.viewer import Viewer


def _workload(viewer: Viewer, given: Given) -> WorkloadId:
    """Return the workload that is meant; raises HttpError where the viewer may not change it."""
    workspace, _, name = given.get("workload", "").partition("/")
    require_role(viewer.caller, AccessRole.EDITOR, WorkspaceName(workspace))
    return WorkloadId(WorkspaceName(workspace), TemplateName(name))


def _release_form(viewer: Viewer, given: Given) -> Form:
    workload = _workload(viewer, given)
    inputs = viewer.snapshot.decision.inputs
    clusters = sorted({str(hold.cluster) for hold in inputs.ledger.restraints.get(workload, ()) if hold.cluster})
    choices = (("", "wherever it is held back"), *((name, f"on {name}") for name in clusters))
    where = Field(name="cluster", label="Where", value=given.get("cluster", ""), kind="choice", choices=choices)
    fields = hidden("workload", str(workload)), where, reason_field(given)
    return Form(about=str(workload), fields=fields)


def _release(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    workload, reason = _workload(viewer, given), read_reason(given)
    cluster = ClusterName(given["cluster"]) if given.get("cluster") else None
    author = orders.author(viewer.caller)

    def decide(inputs: PassInput) -> Plan:
        return plan_release(inputs, workload, cluster, by=author, reason=reason)

    where = f"on {cluster}" if cluster else "on every cluster"
    steering = Steering(workload=workload, cluster=cluster, reason=reason)
    return OrderPreview(
        order=steering_order(viewer, Verb.RELEASE, workload.name, workload.workspace, steering),
        sentence=f"Nothing holds {workload} back {where} any more; it is placed again as soon as it needs room.",
        messages=draft_messages(desk, viewer, decide),
    )


RELEASE = PageAction(
    title="Release a workload",
    words="What holds the workload back ends: a hold after a revert, or a cool-down after a failure.",
    button="Release it",
    form=_release_form,
    preview=_release,
)
