"""What a person asks for directly, as plans like any other: the end of placements, and another expiry."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.core import lifecycle
from reconciler.core.decide import sweep
from reconciler.core.situation import Situation
from reconciler.core.times import format_time
from reconciler.core.wording import clause, listed
from reconciler.errors import InvalidInput
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Change, Extend, Hold, Plan, Restore, Revert, Why
from reconciler.model.policy import BurstPolicy
from reconciler.model.units import format_duration


def find(ledger: Ledger, text: str) -> Placement:
    """Find a placement by its name, its id (``llm/vllm-7f3a90c1``) or its directory.

    Raises InvalidInput that names what there is when there is no such placement.
    """
    text = text.rstrip("/")
    for path, placement in ledger.placements.items():
        if text in (placement.name, placement.id, path):
            return placement
    there = sorted(ledger.placements.values(), key=lambda placement: placement.id)
    of_workload = [placement.id for placement in there if text == str(placement.workload)]
    if of_workload:
        raise InvalidInput(f"{text} is a workload; name its placements: {' '.join(of_workload)}")
    if not there:
        raise InvalidInput(f"no placement {text!r}: nothing is bursting")
    near = difflib.get_close_matches(text, [name for one in there for name in (one.name, one.id)], n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {listed(one.id for one in there)}"
    raise InvalidInput(f"no placement {text!r} ({hint})")


def withdraw(situation: Situation, placements: Sequence[Placement], *, by: str, reason: str, everywhere: bool) -> Plan:
    """End placements because a person asks for it, and hold each workload back as if they had been deleted by hand.

    The hold is for the cluster that it leaves or, with `everywhere`, for all of them.
    """
    told = clause(reason) or f"by {by}"
    reverts = [
        Revert(
            placement=placement,
            why=Why.REQUESTED,
            detail=told,
            restraint=_hold(situation, placement, by=by, reason=reason, everywhere=everywhere),
        )
        for placement in placements
    ]
    return Plan(changes=(*_amends(situation), *reverts))


def prolong(situation: Situation, placement: Placement, until: datetime, *, by: str, reason: str) -> Plan:
    """Give a placement another end, later or earlier.

    Raises InvalidInput for an end that has passed, that it has already, or that is beyond its policy's maximum
    duration, counted from when it was placed, or may be because the policy cannot be read.
    """
    if until <= situation.now:
        raise InvalidInput(
            f"extending {placement.id}: {format_time(until)} has passed (try `overspill revert {placement.name}`)"
        )
    if until == placement.expires_at:
        raise InvalidInput(f"extending {placement.id}: it ends at {format_time(until)} already")
    policy = situation.desired.policies.get(placement.workload)
    if policy is None and situation.desired.incomplete:
        raise InvalidInput(
            f"extending {placement.id}: its policy cannot be read, so nobody knows how long it may last"
            " (try mending the files that `overspill check` names)"
        )
    if policy is not None and policy.max_duration is not None:
        last = placement.created_at + policy.max_duration
        if until > last:
            raise InvalidInput(
                f"extending {placement.id} until {format_time(until)}: policy {policy.name} allows"
                f" {format_duration(policy.max_duration)}, which end at {format_time(last)}"
                f" (try --until {format_time(last)}, or raise spec.duration.max of the policy)"
            )
    detail = f"asked for by {by}: {clause(reason)}" if clause(reason) else f"asked for by {by}"
    after = replace(placement, expires_at=until)
    return Plan(changes=(*_amends(situation), Extend(before=placement, after=after, detail=detail)))


def _amends(situation: Situation) -> list[Change]:
    """Respect what people did on the branch first: a commit of ours on top would hide it from every later pass."""
    return [change for change in sweep(situation).changes if isinstance(change, Hold | Restore)]


def _hold(situation: Situation, placement: Placement, *, by: str, reason: str, everywhere: bool) -> Restraint | None:
    policy = situation.desired.policies.get(placement.workload) or BurstPolicy(name="")
    if not policy.hold:
        return None
    told = f"{placement.name} was ended by {by}"
    return replace(
        lifecycle.hold(placement, policy, situation.now),
        cluster=None if everywhere else placement.cluster,
        reason=f"{told}: {clause(reason)}" if clause(reason) else told,
    )
