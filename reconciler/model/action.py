"""The actions of commits, and what differs between the changes of a plan by their action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from types import MappingProxyType

from reconciler.model.events.event_kind import EventKind


class Action(StrEnum):
    """What a commit does, as the trailer `Trailer.ACTION` has it."""

    START = "Start"  # the output branch, a cluster's directory or a cluster's branch
    FOLLOW = "Follow"  # brings a cluster's branch to where the output branch is
    PLACE = "Place"  # begins a placement
    RESIZE = "Resize"  # changes the replicas, or the source, of a placement that stays
    EXTEND = "Extend"  # sets a later or earlier end, or another deletion policy
    MOVE = "Move"  # has the same replicas on another cluster; the end stays
    REVERT = "Revert"  # ends a placement, in a final phase
    HOLD = "Hold"  # holds a workload back where a person deleted its placement
    RELEASE = "Release"  # ends restraints of a workload: its demand has gone once, or a person asked for it
    RESTORE = "Restore"  # puts the files of a placement back that a person edited
    RECEIVE = "Receive"  # takes a request into the ledger
    AMEND = "Amend"  # changes an open request: its spec, or its notes
    CLOSE = "Close"  # ends a request, whose record stays in the ledger so that it does not begin again
    FORGET = "Forget"  # takes a request without a file or caller out of the ledger
    PROPOSE = "Propose"  # has a burst wait for an approval from here on
    APPROVE = "Approve"  # is a person's yes to a proposal; the next pass places it
    END_PROPOSAL = "EndProposal"  # ends a proposal, and the approvals of it
    DISCARD = "Discard"  # what came with an approval and was not proposed


PLACEMENT_ENDS = frozenset({Action.REVERT, Action.HOLD})
"""Actions after which a placement is gone under any id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTraits:
    """What differs between changes by their action."""

    verb: str
    """The first word of the subject; empty where the placement has it."""
    event: EventKind
    required: Mapping[str, str]
    """Fields of `model.plan.Change` that all changes of the action have, by their names in JSON."""
    optional: Mapping[str, str]
    """The other fields that they may have."""

    @property
    def published(self) -> Mapping[str, str]:
        """All fields that changes of the action may have, by their names in JSON and in its order."""
        return {**self.required, **self.optional}


def _fields(text: str) -> Mapping[str, str]:
    """Read ``placement=after choice`` as names in JSON, each with its field of a change."""
    words = (word.partition("=") for word in text.split())
    return MappingProxyType({name: field or name for name, _, field in words})


def _traits(verb: str, event: EventKind, required: str, optional: str = "") -> ActionTraits:
    return ActionTraits(verb=verb, event=event, required=_fields(required), optional=_fields(optional))


TRAITS: Mapping[Action, ActionTraits] = {
    Action.PLACE: _traits("", EventKind.PLACED, "placement=after shortage choice", "refused record detail"),
    Action.RESIZE: _traits("resize", EventKind.RESIZED, "before after detail", "shortage choice refused restraint why"),
    Action.EXTEND: _traits("extend", EventKind.EXTENDED, "before after detail", "author"),
    Action.MOVE: _traits("move", EventKind.MOVED, "before after why detail choice", "refused joined restraint"),
    Action.REVERT: _traits("Revert", EventKind.ENDED, "placement=before why detail", "restraint phase author"),
    Action.HOLD: _traits("hold", EventKind.DELETED, "workload placement=before restraint"),
    Action.RELEASE: _traits("release", EventKind.RELEASED, "workload restraints detail", "author"),
    Action.RESTORE: _traits("restore", EventKind.RESTORED, "drifted detail"),
    Action.RECEIVE: _traits("request", EventKind.REQUEST_RECEIVED, "record", "notes author written"),
    Action.AMEND: _traits("request", EventKind.REQUEST_CHANGED, "before=record_before after=record detail", "author"),
    Action.CLOSE: _traits("request", EventKind.REQUEST_CLOSED, "before=record_before after=record", "author"),
    Action.FORGET: _traits("request", EventKind.REQUEST_FORGOTTEN, "record detail", "author"),
    Action.PROPOSE: _traits("propose", EventKind.PROPOSED, "proposal", "before=proposal_before"),
    Action.APPROVE: _traits("approve", EventKind.APPROVED, "proposal detail", "author"),
    Action.END_PROPOSAL: _traits(
        "proposal", EventKind.PROPOSAL_ENDED, "proposal why detail", "approvals restraint author"
    ),
}
"""The actions that a plan decides on. `Start`, `Follow` and `Discard` keep the branches in order."""


_FREE = frozenset({"action", "workload"})
"""Fields that all changes may have."""
_NULLABLE = frozenset({"workload", "shortage"})
"""Fields that may be None where they are required."""
_RESTORED = frozenset({"before", "after"})
"""Fields that a change with `drifted` has from there."""


class FieldRules:
    """Which fields the changes of an action must have, and which they must not; asked of each change that is made."""

    def __init__(self, traits: ActionTraits, defaults: Mapping[str, object]) -> None:
        """Read the rules off the traits of an action, and the defaults of all fields of a change."""
        known = {*_FREE, *traits.published.values()}
        known |= _RESTORED if "drifted" in known else set()
        self._required = tuple(name for name in traits.required.values() if name not in _NULLABLE)
        self._foreign = {name: default for name, default in defaults.items() if name not in known}
        self._defaults = tuple(self._foreign.values())
        # Several names each, so that both return tuples.
        self._needed_values: Callable[[object], tuple[object, ...]] = attrgetter("action", *self._required)
        self._foreign_values: Callable[[object], tuple[object, ...]] = attrgetter(*self._foreign)

    def describe_fault(self, change: object) -> str:
        """Say which fields a change lacks, and which it must not have; empty for none."""
        if None not in self._needed_values(change) and self._foreign_values(change) == self._defaults:
            return ""
        lacks = [name for name in self._required if getattr(change, name) is None]
        more = [name for name, default in self._foreign.items() if getattr(change, name) != default]
        parts = (f"needs {', '.join(lacks)}" if lacks else "", f"has no {', '.join(more)}" if more else "")
        return " and ".join(filter(None, parts))
