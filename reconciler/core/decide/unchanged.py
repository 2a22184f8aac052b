"""The plan of the pass before, where it still holds: a pass in which nothing has changed costs nearly nothing.

Most passes of a full fleet begin since time has passed, and find thousands of bursts that wait for what they waited for
before. `decide` follows from its input alone, so an input that differs in nothing but the time gives the same plan, up
to the moment at which the plan itself says that time alone may decide otherwise. It does not where pods of subsets are
untried: the next pass renders more of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta

from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.pass_memory import PassMemory
from reconciler.core.observe.demand import unseen
from reconciler.model.capacity import ClusterObservation, Observed
from reconciler.model.plan import Plan

LONGEST = timedelta(seconds=15)
"""Time for which a plan is taken over: what follows time without being told by `Plan.wake_at`, as a price by the hour
or the end of a replica's flight, is late by no more than this."""

_COMPARED = tuple(
    field.name
    for field in fields(PassInput)
    # Compared below, or part of the demands; what is rendered in advance only matters while some of it is untried.
    if field.name not in ("now", "observed", "demands", "history", "drafted")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedPass:
    """A pass as it was decided, without any taking over, and what the next one may use of it."""

    inputs: PassInput
    plan: Plan
    memory: PassMemory = field(default_factory=PassMemory, compare=False)


def decide_again(inputs: PassInput, before: DecidedPass | None) -> DecidedPass:
    """Return the pass `before` where its plan holds for this input too; else decide, with what that one knows."""
    if before is not None and _holds(before, inputs):
        return before
    memory = PassMemory() if before is None else before.memory
    return DecidedPass(inputs=inputs, plan=decide(inputs, memory), memory=memory)


def _holds(before: DecidedPass, inputs: PassInput) -> bool:
    then, plan = before.inputs, before.plan
    # 1. The plan changes something, or was made in spite of an error.
    if plan.changes or plan.bugs or inputs.orders or inputs.lost:
        return False
    # 2. It waits for pods that each pass goes on to render.
    if plan.drafted.has_untried:
        return False
    # 3. Time alone may decide otherwise by now.
    until = then.now + LONGEST if plan.wake_at is None else min(plan.wake_at, then.now + LONGEST)
    if not then.now <= inputs.now < until:
        return False
    # 4. Something has changed, but the time at which each cluster was seen.
    return (
        all(_alike(getattr(then, name), getattr(inputs, name)) for name in _COMPARED)
        and not inputs.rollouts.ailing  # why one is to be ended tells for how long it has ailed
        and _same_clusters(then, inputs)
        and _alike(then.demands, inputs.demands)
    )


def _alike(value: object, other: object) -> bool:
    return value is other or value == other


def _same_clusters(then: PassInput, inputs: PassInput) -> bool:
    """Tell whether all clusters show what they showed, and have been seen lately both times."""
    before, after = then.observed, inputs.observed
    return (
        _same_parts(before, after, {"clusters"})
        and before.clusters.keys() == after.clusters.keys()
        and all(_same_parts(seen, after.clusters[name], _MOMENTS) for name, seen in before.clusters.items())
        and _are_fresh(then)
        and _are_fresh(inputs)
    )


def _same_parts(
    before: Observed | ClusterObservation, after: Observed | ClusterObservation, but: Collection[str]
) -> bool:
    """Tell whether two observations are alike in everything `but` some fields."""
    names = _NAMES[type(before)]
    return all(name in but or _alike(getattr(before, name), getattr(after, name)) for name in names)


_MOMENTS = frozenset({"observed_at", "changed_at"})
"""The fields of a cluster's observation that go on while nothing changes."""

_NAMES: Mapping[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind)) for kind in (Observed, ClusterObservation)
}


def _are_fresh(inputs: PassInput) -> bool:
    fleet, observed, now = inputs.desired.fleet, inputs.observed, inputs.now
    return all(
        seen.observed_at <= now and not unseen(fleet, observed, name, now) for name, seen in observed.clusters.items()
    )
