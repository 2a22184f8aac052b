"""The actions, the page of each before it is confirmed, and the order once it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from reconciler.api.refusal import HttpError
from reconciler.core.decide.state.order import Order
from reconciler.daemon.orders.order_queue import OrderResult
from reconciler.errors import InvalidInput
from reconciler.text.wording import join_names
from reconciler.web.actions.action import Desk, OrderPreview, PageAction
from reconciler.web.actions.form import Form, Given
from reconciler.web.actions.placement import EXTEND, REVERT
from reconciler.web.actions.release import RELEASE
from reconciler.web.actions.request import REQUEST
from reconciler.web.actions.ruling import APPROVE, REJECT
from reconciler.web.viewer import Viewer

ACTIONS: Mapping[str, PageAction] = {
    "revert": REVERT,
    "extend": EXTEND,
    "release": RELEASE,
    "approve": APPROVE,
    "reject": REJECT,
    "request": REQUEST,
}
"""The actions, by the names in their addresses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionPage:
    """The page of an action, before it is confirmed."""

    name: str
    action: PageAction
    form: Form
    preview: OrderPreview | None
    """None while something is missing, or wrong."""
    problem: str
    """What is wrong; empty for nothing."""
    back: str
    """Where the page leads whoever cancels."""


def action_page(name: str, viewer: Viewer, given: Given, desk: Desk, back: str) -> ActionPage:
    """Make the page of an action, with what it would commit. Raises HttpError 404 for one that is not there."""
    action = _find(name)
    form = action.form(viewer, given)
    preview, problem = None, ""
    if action.is_complete(given):
        try:
            preview = action.preview(viewer, given, desk)
        except InvalidInput as error:
            problem = viewer.say(str(error))
        except HttpError as error:
            if error.status not in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY):
                raise
            problem = viewer.say("; ".join(str(part) for part in error.problems) or error.message)
    return ActionPage(name=name, action=action, form=form, preview=preview, problem=problem, back=back)


def order_of(name: str, viewer: Viewer, given: Given, desk: Desk) -> Order:
    """Return the order of a confirmed action. Raises HttpError where it is not possible."""
    action = _find(name)
    action.form(viewer, given)
    try:
        return action.preview(viewer, given, desk).order
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
