"""Orders from the page: what is asked, what it would commit, and the order that the next pass carries out.

An action is a value in `ACTIONS`: a page with its form, and a function from what was filled in to an `OrderPreview`.
The page shows the commits of the preview; the same form sent as a POST submits its order, under the name of whoever is
signed in. A further action is a further entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from http import HTTPStatus

from reconciler.access.rights import AccessRole
from reconciler.api import orders
from reconciler.api.asking import OneAtATime, asked
from reconciler.api.backend import Backend
from reconciler.api.refusal import HttpError
from reconciler.api.routes.placements import read_create
from reconciler.api.security.callers import require_role
from reconciler.core.decide.orders.approve import plan_approval, plan_rejection
from reconciler.core.decide.orders.steer import find_among, plan_extension, plan_release, plan_revert
from reconciler.core.decide.state.gate import describe_places
from reconciler.core.decide.state.order import Order, Steering
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.admission import admit
from reconciler.core.ledger.proposal_record import proposal_id
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.daemon.order_queue import OrderResult
from reconciler.errors import InvalidInput
from reconciler.model.approval import BurstProposal
from reconciler.model.ids import ClusterName, TemplateName, WorkloadId, WorkspaceName, is_name
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.request import Verb
from reconciler.model.units import format_duration, parse_duration
from reconciler.text.timestamps import format_time, parse_time
from reconciler.text.wording import join_names
from reconciler.web.viewer import Viewer

Given = Mapping[str, str]
"""What was filled in, by the names of the fields."""

_MOST_REASON = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a form."""

    name: str
    label: str
    value: str = ""
    hint: str = ""
    kind: str = "text"
    """`text`, `check`, `choice` or `hidden`."""
    choices: tuple[tuple[str, str], ...] = ()
    """The values of a choice, and their words."""
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPreview:
    """What an action would do."""

    order: Order
    sentence: str
    """What it comes to, as a sentence."""
    messages: tuple[str, ...] = ()
    """The messages of the commits that it would make now."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPage:
    """The page of an action, before it is confirmed."""

    name: str
    title: str
    about: str
    """What it is about: a placement or a workload."""
    words: str
    """What it does, in a sentence or two."""
    fields: tuple[Field, ...]
    button: str
    grave: bool
    proposal: OrderPreview | None
    """None while something is missing, or wrong."""
    problem: str
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What actions need: the API's back-end, and a bound on the questions of each caller."""

    backend: Backend
    busy: OneAtATime


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction:
    """An action."""

    title: str
    words: str
    button: str
    grave: bool
    fields: Callable[[Viewer, Given], tuple[str, tuple[Field, ...]]]
    """Returns what it is about, and its form; raises HttpError where the viewer may not."""
    propose: Callable[[Viewer, Given, Desk], OrderPreview]
    """Raises InvalidInput and HttpError for what is not possible."""
    is_complete: Callable[[Given], bool] = lambda _: True
    """Tells whether enough is filled in to propose anything."""


def action_page(name: str, viewer: Viewer, given: Given, desk: Desk, back: str) -> ActionPage:
    """Make the page of an action, with what it would commit. Raises HttpError 404 for one that is not there."""
    action = _find(name)
    about, fields = action.fields(viewer, given)
    proposal, problem = None, ""
    if action.is_complete(given):
        try:
            proposal = action.propose(viewer, given, desk)
        except InvalidInput as error:
            problem = viewer.say(str(error))
        except HttpError as error:
            if error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
            problem = viewer.say("; ".join(str(part) for part in error.problems) or error.message)
    return ActionPage(
        name=name,
        title=action.title,
        about=about,
        words=action.words,
        fields=fields,
        button=action.button,
        grave=action.grave,
        proposal=proposal,
        problem=problem,
        back=back,
    )


def order_of(name: str, viewer: Viewer, given: Given, desk: Desk) -> Order:
    """Return the order of a confirmed action. Raises HttpError where it is not possible."""
    action = _find(name)
    action.fields(viewer, given)
    try:
        return action.propose(viewer, given, desk).order
    except InvalidInput as error:
        raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, viewer.say(str(error))) from error


def commit_of(result: OrderResult) -> str:
    """Return the commit that an order has made, the first of several; empty where nothing had to change."""
    if result.carried is not None and result.carried.commits:
        return str(result.carried.commits[0])
    return str(result.commit or "")


def _find(name: str) -> PageAction:
    if name not in ACTIONS:
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no action {name}", hint=f"there are {join_names(ACTIONS)}")
    return ACTIONS[name]


# placements


def _placement(viewer: Viewer, given: Given) -> Placement:
    """Find the placement that is meant; raises HttpError where it is not there, or may not be changed."""
    placements = viewer.snapshot.decision.inputs.ledger.placements.values()
    visible = [placement for placement in placements if viewer.may_see(placement.workload.workspace)]
    try:
        placement = find_among(visible, given.get("placement", ""))
    except InvalidInput as error:
        raise HttpError(HTTPStatus.NOT_FOUND, viewer.say(str(error)), hint="it may have just ended") from error
    require_role(viewer.caller, AccessRole.EDITOR, placement.workload.workspace)
    return placement


def _reason(given: Given) -> str:
    return given.get("reason", "").strip()[:_MOST_REASON]


def _reason_field(given: Given) -> Field:
    return Field(name="reason", label="Reason", value=_reason(given), hint="for the commit message; may stay empty")


def _hidden(name: str, value: str) -> Field:
    return Field(name=name, label="", value=value, kind="hidden")


def _about(placement: Placement) -> str:
    count = f"{placement.replicas} of {placement.workload} on {placement.where}"
    return f"{placement.name}: {count} until {format_time(placement.expires_at)}"


def _messages(desk: Desk, viewer: Viewer, decide: Callable[[PassInput], Plan]) -> tuple[str, ...]:
    """Return the messages of the commits that a plan would make now."""
    author = orders.author(viewer.caller)
    with desk.busy.of(viewer.caller), asked(viewer.snapshot, viewer.caller):
        answer = desk.backend.answers.draft(decide, author)
    return tuple(viewer.say(commit.message) for commit in answer.rendered.commits)


def _steering_order(viewer: Viewer, verb: Verb, name: str, workspace: WorkspaceName, steering: Steering) -> Order:
    return Order(
        number=0,
        verb=verb,
        name=name,
        workspace=None,
        author=orders.author(viewer.caller),
        within=frozenset({workspace}),
        steering=steering,
    )


def _revert_fields(viewer: Viewer, given: Given) -> tuple[str, tuple[Field, ...]]:
    placement = _placement(viewer, given)
    everywhere = Field(
        name="everywhere",
        label="Hold the workload back on every cluster",
        value=given.get("everywhere", ""),
        hint="and not on this one alone",
        kind="check",
    )
    return _about(placement), (_hidden("placement", placement.id), _reason_field(given), everywhere)


def _revert(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    placement, reason, everywhere = _placement(viewer, given), _reason(given), bool(given.get("everywhere"))

    def decide(inputs: PassInput) -> Plan:
        return plan_revert(inputs, [placement], by=viewer.caller.name, reason=reason, everywhere=everywhere)

    steering = Steering(paths=(placement.path,), reason=reason, everywhere=everywhere)
    return OrderPreview(
        order=_steering_order(viewer, Verb.REVERT, placement.name, placement.workload.workspace, steering),
        sentence=f"{placement.replicas} of {placement.workload} leave {placement.where} now.",
        messages=_messages(desk, viewer, decide),
    )


def _extend_fields(viewer: Viewer, given: Given) -> tuple[str, tuple[Field, ...]]:
    placement = _placement(viewer, given)
    lasting = Field(
        name="by",
        label="Longer by",
        value=given.get("by", "30m"),
        hint="such as 30m, 2h or 1h30m",
        required=True,
    )
    seen = _hidden("ends", given.get("ends", "") or format_time(placement.expires_at))
    return _about(placement), (_hidden("placement", placement.id), seen, lasting, _reason_field(given))


def _extend(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    placement, reason = _placement(viewer, given), _reason(given)
    # The end is told, and not how much later it is, so that a form that is sent twice extends once.
    ends = given.get("ends", "") or format_time(placement.expires_at)
    try:
        until = parse_time(ends) + parse_duration(given.get("by", "") or "30m")
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"extending {placement.id}: {error} (try 30m)") from error

    def decide(inputs: PassInput) -> Plan:
        return plan_extension(inputs, placement, until, by=viewer.caller.name, reason=reason)

    steering = Steering(paths=(placement.path,), reason=reason, until=until)
    later = format_duration(max(until - placement.expires_at, timedelta(seconds=1)))
    return OrderPreview(
        order=_steering_order(viewer, Verb.EXTEND, placement.name, placement.workload.workspace, steering),
        sentence=f"{placement.id} ends at {format_time(until)}, {later} later.",
        messages=_messages(desk, viewer, decide),
    )


# workloads


def _workload(viewer: Viewer, given: Given) -> WorkloadId:
    """Return the workload that is meant; raises HttpError where the viewer may not change it."""
    workspace, _, name = given.get("workload", "").partition("/")
    require_role(viewer.caller, AccessRole.EDITOR, WorkspaceName(workspace))
    return WorkloadId(WorkspaceName(workspace), TemplateName(name))


def _release_fields(viewer: Viewer, given: Given) -> tuple[str, tuple[Field, ...]]:
    workload = _workload(viewer, given)
    inputs = viewer.snapshot.decision.inputs
    clusters = sorted({str(hold.cluster) for hold in inputs.ledger.restraints.get(workload, ()) if hold.cluster})
    choices = (("", "wherever it is held back"), *((name, f"on {name}") for name in clusters))
    where = Field(name="cluster", label="Where", value=given.get("cluster", ""), kind="choice", choices=choices)
    return str(workload), (_hidden("workload", str(workload)), where, _reason_field(given))


def _release(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    workload, reason = _workload(viewer, given), _reason(given)
    cluster = ClusterName(given["cluster"]) if given.get("cluster") else None
    author = orders.author(viewer.caller)

    def decide(inputs: PassInput) -> Plan:
        return plan_release(inputs, workload, cluster, by=author, reason=reason)

    where = f"on {cluster}" if cluster else "on every cluster"
    return OrderPreview(
        order=_steering_order(
            viewer,
            Verb.RELEASE,
            workload.name,
            workload.workspace,
            Steering(workload=workload, cluster=cluster, reason=reason),
        ),
        sentence=f"Nothing holds {workload} back {where} any more; it is placed again as soon as it needs room.",
        messages=_messages(desk, viewer, decide),
    )


# proposals


def _proposal(viewer: Viewer, given: Given) -> BurstProposal:
    """Return the proposal that is meant; raises HttpError where it is not the viewer's to answer."""
    workspace, _, name = given.get("workload", "").partition("/")
    require_role(viewer.caller, AccessRole.OWNER, WorkspaceName(workspace))
    workload = WorkloadId(WorkspaceName(workspace), TemplateName(name))
    proposal = viewer.snapshot.decision.inputs.ledger.proposals.get(workload)
    if proposal is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"no burst of {workload} awaits an approval")
    return proposal


def _ruling_fields(viewer: Viewer, given: Given) -> tuple[str, tuple[Field, ...]]:
    proposal = _proposal(viewer, given)
    shown = _hidden("proposal", given.get("proposal", "") or proposal_id(proposal))
    return str(proposal.workload), (_hidden("workload", str(proposal.workload)), shown, _reason_field(given))


def _rule(viewer: Viewer, given: Given, desk: Desk, verb: Verb, decide: Callable[..., Plan]) -> OrderPreview:
    """Answer the proposal that the page has shown; one that has taken its place is not meant."""
    proposal, reason, author = _proposal(viewer, given), _reason(given), orders.author(viewer.caller)
    if given.get("proposal", "") not in ("", proposal_id(proposal)):
        raise InvalidInput(f"the proposal of {proposal.workload} has just ended (look at it again)")
    places, price = describe_places(proposal.placements), proposal.dollars_per_hour
    cost = "" if price is None else f", {price:.2f} $ an hour"
    return OrderPreview(
        order=orders.ruling(proposal, verb, author, reason),
        sentence=f"{places} for {proposal.workload}{cost}: {proposal.reason}; {proposal.renewals}.",
        messages=_messages(desk, viewer, lambda inputs: decide(inputs, proposal=proposal, by=author, reason=reason)),
    )


def _approve(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    return _rule(viewer, given, desk, Verb.APPROVE, plan_approval)


def _reject(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    return _rule(viewer, given, desk, Verb.REJECT, plan_rejection)


# requests


def _request_fields(viewer: Viewer, given: Given) -> tuple[str, tuple[Field, ...]]:
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
    return "", (
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
    return _request_proposal(viewer, draft, WorkspaceName(workspace), given)


def _request_proposal(viewer: Viewer, draft: RequestDraft, workspace: WorkspaceName, given: Given) -> OrderPreview:
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
        within=None,
        draft=draft,
    )
    lasts = f" for {format_duration(lasting)}" if lasting else ""
    return OrderPreview(
        order=replace(order, within=frozenset({workspace})),
        sentence=f"{given.get('template', '')} is placed {where}{lasts}, as request {workspace}/{draft.name}.",
        messages=(f"request({workspace}/{draft.name}): received\n",),
    )


ACTIONS: Mapping[str, PageAction] = {
    "revert": PageAction(
        title="Revert a placement",
        words=(
            "The placement ends now, and its workload is held back there as if somebody had deleted it by hand. Its"
            " files leave the branch in one commit; the engine removes what runs."
        ),
        button="Revert it now",
        grave=True,
        fields=_revert_fields,
        propose=_revert,
    ),
    "extend": PageAction(
        title="Extend a placement",
        words="The placement ends later, and no renewal moves that end.",
        button="Extend it",
        grave=False,
        fields=_extend_fields,
        propose=_extend,
    ),
    "release": PageAction(
        title="Release a workload",
        words="What holds the workload back ends: a hold after a revert, or a cool-down after a failure.",
        button="Release it",
        grave=False,
        fields=_release_fields,
        propose=_release,
    ),
    "approve": PageAction(
        title="Approve a burst",
        words="The next pass places exactly what is shown here, or says why it cannot.",
        button="Approve it",
        grave=False,
        fields=_ruling_fields,
        propose=_approve,
    ),
    "reject": PageAction(
        title="Refuse a burst",
        words="Nothing of it is placed, and its workload is held back until its demand has gone once or the hold ends.",
        button="Refuse it",
        grave=True,
        fields=_ruling_fields,
        propose=_reject,
    ),
    "request": PageAction(
        title="Request a placement",
        words="A template is deployed by name, whether or not anything is missing, and ends with its time.",
        button="Request it",
        grave=False,
        fields=_request_fields,
        propose=_request,
        is_complete=_is_request,
    ),
}
"""The actions, by the names in their addresses."""
