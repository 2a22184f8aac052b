"""A plan for now from the newest pass: what it observed and remembers, with suppositions or another fleet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.steps import lost_cluster
from reconciler.core.observe import demand
from reconciler.core.observe.node_pool_differences import with_node_pool_differences
from reconciler.core.observe.supposition import Supposition, suppose
from reconciler.core.observe.template_differences import with_template_differences
from reconciler.core.observe.unknown_clusters import with_unknown_clusters
from reconciler.model.capacity import Observed
from reconciler.model.policy import Desired


def later_input(
    before: PassInput, now: datetime, suppositions: Sequence[Supposition] = (), fleet: Desired | None = None
) -> tuple[PassInput, tuple[str, ...]]:
    """Return the input of a pass now, as the pass after `before` would have it, and each supposition as a question.

    The observation is that of `before`: no cluster is asked, whatever another `fleet` says of connections. Raises
    InvalidInput for a supposition about what does not exist.
    """
    desired, observed = before.fleet, before.observed
    if fleet is not None:  # the problems of its own files are told in place of those of the fleet in force
        desired = fleet
        observed = with_template_differences(with_unknown_clusters(replace(observed, problems=()), fleet), fleet)
        observed = with_node_pool_differences(observed, fleet)
    supposed = suppose(observed, desired, suppositions, now)
    history = demand.next_history(before.demands)
    past = demand.next_past(before.past, before.demands, now)
    demands = demand.measure(desired, supposed.observed, history, now, past)
    enrolment = before.enrolment.updated(desired, before.ledger.requests)
    inputs = replace(
        before,
        desired=enrolment.desired,
        observed=supposed.observed,
        demands=demands,
        now=now,
        reach=enrolment.reach,
        history=history,
        past=past,
        unwritable={},
        enrolment=enrolment,
        orders=(),
        lost=lost_cluster.lost_since({**before.lost, **supposed.lost}, desired, supposed.observed, now),
    )
    return inputs, supposed.questions


@dataclass(frozen=True, slots=True, kw_only=True)
class PastView:
    """The observation of a pass that has ended (a `ports.ClusterView`)."""

    observed: Observed

    def follow(self, desired: Desired) -> None:
        """Watch nothing."""

    def observe(self) -> Observed:
        """Return that observation."""
        return self.observed
