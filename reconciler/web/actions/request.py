"""The request of a placement by the name of its template."""

from __future__ import annotations

from http import HTTPStatus

from reconciler.access.rights import AccessRole
from reconciler.api import orders
from reconciler.api.refusal import HttpError
from reconciler.api.routes.placements import read_create
from reconciler.api.security.callers import require_role
from reconciler.core.decide.state.order import Order
from reconciler.core.fleet.admission import admit
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.errors import InvalidInput
from reconciler.model.ids import WorkloadId, WorkspaceName, is_name
from reconciler.model.request import Verb
from reconciler.model.units import format_duration
from reconciler.web.actions.action import Desk, OrderPreview, PageAction
from reconciler.web.actions.form import Field, Form, Given
from reconciler.web.viewer import Viewer


def _request_form(viewer: Viewer, given: Given) -> Form:
    if not viewer.editable:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"{viewer.caller.name} is an Editor of no workspace",
            hint="ask whoever runs Overspill for the role Editor",
        )
    desired = viewer.snapshot.decision.inputs.desired
    templates = sorted(
        str(workload) for workload in desired.templates if not workload.request and viewer.may_edit(workload.workspace)
    )
    clusters = sorted({name for space in viewer.editable for name in desired.workspaces[space].destinations})
    fields = (
        Field(
            name="template",
            label="Template",
            value=given.get("template", ""),
            hint="what to deploy; its workspace is the request's",
            kind="choice",
            choices=(("", "choose one"), *((name, name) for name in templates)),
            required=True,
        ),
        Field(name="name", label="Name", value=given.get("name", ""), hint="a-z, 0-9 and dashes", required=True),
        Field(
            name="cluster",
            label="Cluster",
            value=given.get("cluster", ""),
            kind="choice",
            choices=(("", "the first that has room"), *((name, name) for name in clusters)),
        ),
        Field(
            name="lasting", label="For", value=given.get("lasting", "1h"), hint="such as 30m, 2h or 1d", required=True
        ),
    )
    return Form(about="", fields=fields)


def _is_request(given: Given) -> bool:
    return bool(given.get("template") and given.get("name"))


def _request(viewer: Viewer, given: Given, _: Desk) -> OrderPreview:
    workspace, template = given.get("template", "").partition("/")[::2]
    name, lasting = given.get("name", "").strip(), given.get("lasting", "").strip()
    require_role(viewer.caller, AccessRole.EDITOR, WorkspaceName(workspace))
    if not is_name(name):
        raise InvalidInput(f"{name!r} is not a name (try a-z, 0-9 and dashes, at most 63 of them)")
    body = {
        "name": name,
        "workspaceName": workspace,
        "workloadTemplateName": template,
        "burstDuration": lasting,
        **({"clusters": [given["cluster"]]} if given.get("cluster") else {"autoSelectCluster": True}),
    }
    draft = read_create(body)
    if isinstance(draft, tuple):
        raise InvalidInput(problems=tuple(finding.problem(path="request", line=0) for finding in draft))
    return _preview(viewer, draft, WorkspaceName(workspace), given)


def _preview(viewer: Viewer, draft: RequestDraft, workspace: WorkspaceName, given: Given) -> OrderPreview:
    inputs = viewer.snapshot.decision.inputs
    if WorkloadId(workspace, draft.name, request=True) in inputs.ledger.requests:
        raise InvalidInput(f"{workspace}/{draft.name} is there already (try another name)")
    admitted = admit(draft, inputs.desired)
    if isinstance(admitted, tuple):
        raise InvalidInput(problems=tuple(finding.problem(path="request", line=0) for finding in admitted))
    where = f"on {given['cluster']}" if given.get("cluster") else "on the first cluster that has room"
    lasting = admitted.spec.burst_duration
    order = Order(
        number=0,
        verb=Verb.CREATE,
        name=draft.name,
        workspace=workspace,
        author=orders.author(viewer.caller),
        within=frozenset({workspace}),
        draft=draft,
    )
    lasts = f" for {format_duration(lasting)}" if lasting else ""
    return OrderPreview(
        order=order,
        sentence=f"{given.get('template', '')} is placed {where}{lasts}, as request {workspace}/{draft.name}.",
        messages=(f"request({workspace}/{draft.name}): received\n",),
    )


REQUEST = PageAction(
    title="Request a placement",
    words="A template is deployed by name, whether or not anything is missing, and ends with its time.",
    button="Request it",
    form=_request_form,
    preview=_request,
    is_complete=_is_request,
)
