"""Actions on a placement: it is reverted, or extended."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from reconciler.access.rights import AccessRole
from reconciler.api.refusal import HttpError
from reconciler.api.security.callers import require_role
from reconciler.core.decide.orders.steer import find_among, plan_extension, plan_revert
from reconciler.core.decide.state.order import Steering
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.errors import InvalidInput
from reconciler.model.placement import Placement
from reconciler.model.plan import Plan
from reconciler.model.request import Verb
from reconciler.model.units import format_duration, parse_duration
from reconciler.text.timestamps import format_time, parse_time
from reconciler.web.actions.action import Desk, OrderPreview, PageAction, draft_messages, steering_order
from reconciler.web.actions.form import Field, Form, Given, hidden, read_reason, reason_field
from reconciler.web.viewer import Viewer


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


def _about(placement: Placement) -> str:
    count = f"{placement.replicas} of {placement.workload} on {placement.where}"
    return f"{placement.name}: {count} until {format_time(placement.expires_at)}"


def _revert_form(viewer: Viewer, given: Given) -> Form:
    placement = _placement(viewer, given)
    everywhere = Field(
        name="everywhere",
        label="Hold the workload back on every cluster",
        value=given.get("everywhere", ""),
        hint="and not on this one alone",
        kind="check",
    )
    fields = hidden("placement", placement.id), reason_field(given), everywhere
    return Form(about=_about(placement), fields=fields)


def _revert(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    placement, reason, everywhere = _placement(viewer, given), read_reason(given), bool(given.get("everywhere"))

    def decide(inputs: PassInput) -> Plan:
        return plan_revert(inputs, [placement], by=viewer.caller.name, reason=reason, everywhere=everywhere)

    steering = Steering(paths=(placement.path,), reason=reason, everywhere=everywhere)
    return OrderPreview(
        order=steering_order(viewer, Verb.REVERT, placement.name, placement.workload.workspace, steering),
        sentence=f"{placement.replicas} of {placement.workload} leave {placement.where} now.",
        messages=draft_messages(desk, viewer, decide),
    )


def _extend_form(viewer: Viewer, given: Given) -> Form:
    placement = _placement(viewer, given)
    lasting = Field(
        name="by",
        label="Longer by",
        value=given.get("by", "30m"),
        hint="such as 30m, 2h or 1h30m",
        required=True,
    )
    seen = hidden("ends", given.get("ends", "") or format_time(placement.expires_at))
    fields = hidden("placement", placement.id), seen, lasting, reason_field(given)
    return Form(about=_about(placement), fields=fields)


def _extend(viewer: Viewer, given: Given, desk: Desk) -> OrderPreview:
    placement, reason = _placement(viewer, given), read_reason(given)
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
        order=steering_order(viewer, Verb.EXTEND, placement.name, placement.workload.workspace, steering),
        sentence=f"{placement.id} ends at {format_time(until)}, {later} later.",
        messages=draft_messages(desk, viewer, decide),
    )


REVERT = PageAction(
    title="Revert a placement",
    words=(
        "The placement ends now, and its workload is held back there as if somebody had deleted it by hand. Its"
        " files leave the branch in one commit; the engine removes what runs."
    ),
    button="Revert it now",
    grave=True,
    form=_revert_form,
    preview=_revert,
)
EXTEND = PageAction(
    title="Extend a placement",
    words="The placement ends later, and no renewal moves that end.",
    button="Extend it",
    form=_extend_form,
    preview=_extend,
)
