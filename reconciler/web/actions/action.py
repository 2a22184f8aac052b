"""An action: its form, the preview of what it would do, and what both need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconciler.api import orders
from reconciler.api.asking import OneAtATime, asked
from reconciler.api.backend import Backend
from reconciler.core.decide.state.order import Order, Steering
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.model.ids import WorkspaceName
from reconciler.model.plan import Plan
from reconciler.model.request import Verb
from reconciler.web.actions.form import Form, Given
from reconciler.web.viewer import Viewer


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderPreview:
    """What an action would do."""

    order: Order
    sentence: str
    """What follows from it, as a sentence."""
    messages: tuple[str, ...] = ()
    """The messages of the commits that it would make now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What actions need: the API's back-end, and a bound on the questions of each caller."""

    backend: Backend
    busy: OneAtATime


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAction:
    """What somebody may order from the page."""

    title: str
    words: str
    """What it does, in a sentence or two."""
    button: str
    grave: bool = False
    """Whether something ends by it."""
    form: Callable[[Viewer, Given], Form]
    """Raises HttpError where the viewer may not."""
    preview: Callable[[Viewer, Given, Desk], OrderPreview]
    """Raises InvalidInput and HttpError for what is not possible."""
    is_complete: Callable[[Given], bool] = lambda _: True
    """Says whether enough is filled in for a preview."""


def draft_messages(desk: Desk, viewer: Viewer, decide: Callable[[PassInput], Plan]) -> tuple[str, ...]:
    """Return the messages of the commits that a plan would make now."""
    author = orders.author(viewer.caller)
    with desk.busy.of(viewer.caller), asked(viewer.snapshot, viewer.caller):
        answer = desk.backend.answers.draft(decide, author)
    return tuple(viewer.say(commit.message) for commit in answer.rendered.commits)


def steering_order(viewer: Viewer, verb: Verb, name: str, workspace: WorkspaceName, steering: Steering) -> Order:
    """Make an order on what is there already, within its workspace."""
    return Order(
        number=0,
        verb=verb,
        name=name,
        workspace=None,
        author=orders.author(viewer.caller),
        within=frozenset({workspace}),
        steering=steering,
    )
