"""The gates of a pass: workloads whose bursts wait for an approval, or are placed exactly as they were approved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from types import MappingProxyType
from typing import TypeAlias

from reconciler.core.capacity.gpu_models import gpus_of_pod
from reconciler.core.capacity.gpu_slices import with_gpu_share
from reconciler.core.capacity.units import PlacementUnit
from reconciler.core.cost.prices import price_of
from reconciler.core.cost.rate import HourlyRate, hourly_rate
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.ledger.proposal_record import as_written
from reconciler.model.approval import ApprovalRule, BurstProposal, ProposalEnd, ProposedPlacement
from reconciler.model.capacity import WHOLE
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Change, Reason, Refusal, Suppressed
from reconciler.text.timestamps import format_time
from reconciler.text.wording import count, join_names, sanitize


class GateState(Enum):
    """What the turn of a workload may place."""

    OPEN = auto()
    """What was shown and is approved, or nothing."""
    WAITING = auto()
    """Nothing. Where it has no room, this pass tries what else could be proposed."""
    TRIAL = auto()
    """What it can, to see what would be proposed in the place of what has no room."""
    TRIED = auto()
    """Nothing, and nothing else is tried in this pass."""
    NEW = auto()
    """Nothing: this pass proposes it."""
    ENDED = auto()
    """What it can: this pass ends the proposal."""

    @property
    def is_closed(self) -> bool:
        """Whether the turn places nothing."""
        return self in (GateState.WAITING, GateState.TRIED, GateState.NEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The proposal of a workload in one pass, and what its turn may place by it."""

    proposal: BurstProposal
    state: GateState = GateState.WAITING
    end: ProposalEnd | None = None
    """How this pass ends it; None where it stands."""
    why: str = ""
    """Of an end: the reason; of a proposal that stands: what it waits for beside a yes."""
    approvals: tuple[str, ...] = ()
    """Paths of its approvals."""
    restraint: Restraint | None = None
    """Of an end: what keeps the workload from being proposed again."""
    before: Gate | None = None
    """The gate of the proposal that this one replaces."""

    def ended(self, end: ProposalEnd, why: str, restraint: Restraint | None = None) -> Gate:
        """Return the gate of a proposal that this pass ends."""
        return replace(self, state=GateState.ENDED, end=end, why=why, restraint=restraint)

    def unit(self, unit: PlacementUnit) -> PlacementUnit:
        """Return the unit of its workload's turn: what was approved goes as it was shown."""
        return replace(unit, shown=self.proposal.placements) if self.state is GateState.OPEN else unit


Gates: TypeAlias = Mapping[WorkloadId, Gate]
Bursts: TypeAlias = Mapping[WorkloadId, Sequence[Change]]
"""What the turns of workloads have placed."""

NO_GATES: Gates = MappingProxyType({})


def proposed_placements(inputs: PassInput, bursts: Iterable[Change]) -> tuple[ProposedPlacement, ...]:
    """Return what a proposal shows of the placements that a burst begins and resizes."""
    return tuple(_proposed(inputs, change) for change in bursts)


def _proposed(inputs: PassInput, change: Change) -> ProposedPlacement:
    after, replicas = change.placement, change.growth
    return as_written(
        ProposedPlacement(
            cluster=after.cluster,
            subset=after.subset,
            replicas=replicas,
            beside=change.replicas_before,
            gpus=gpus_of_pod(after.shape) * after.shape.group_size * replicas,
            price_per_gpu_hour=_price(inputs, after, after.cluster),
            duration=after.expires_at - after.created_at,
        )
    )


def is_as_shown(shown: Sequence[ProposedPlacement], made: Sequence[ProposedPlacement]) -> bool:
    """Tell whether placements are what was shown, at no higher price; one that grows keeps the end that it has."""
    if len(shown) != len(made):
        return False
    by_place = {(placement.cluster, placement.subset): placement for placement in shown}
    return all(_is_as_shown(by_place.get((placement.cluster, placement.subset)), placement) for placement in made)


def _is_as_shown(shown: ProposedPlacement | None, made: ProposedPlacement) -> bool:
    if shown is None:
        return False
    alike = replace(shown, price_per_gpu_hour=made.price_per_gpu_hour)
    if made.beside:
        alike = replace(alike, duration=made.duration)
    return alike == made and not is_dearer(shown.price_per_gpu_hour, made.price_per_gpu_hour)


def is_dearer(shown: float | None, now: float | None) -> bool:
    """Tell whether a price is higher than shown; one that was shown and is unknown now is."""
    return now != shown and (shown is None or now is None or now > shown)


def rule_of(inputs: PassInput, placement: Placement) -> ApprovalRule | None:
    """Return the rule of the policy that governs a burst."""
    policy = inputs.desired.policies.get(placement.workload)
    return None if policy is None else policy.approval


def needs_approval(inputs: PassInput, rule: ApprovalRule, bursts: Sequence[Change]) -> bool:
    """Tell whether a burst waits for an approval, beside what its workload has outside its primary."""
    if rule.always:
        return True
    after = [change.placement for change in bursts]
    if any(placement.cluster in rule.clusters for placement in after):
        return True
    written = {placement.path for placement in after}
    others = inputs.ledger.placements.of(after[0].workload).placements
    rate = hourly_rate(
        (*after, *(placement for placement in others if placement.path not in written)),
        inputs.desired.clusters,
        inputs.now,
    )
    return _is_above(rule, rate)


def update_waits(inputs: PassInput, resize: Change) -> Suppressed | None:
    """Hold back an update that raises the GPUs or the hourly rate of a burst to where it has to be approved first."""
    rule, clusters = rule_of(inputs, resize.placement), inputs.desired.clusters
    old, new = (hourly_rate((each,), clusters, inputs.now) for each in (resize.former, resize.placement))
    raised = new.gpus > old.gpus or new.dollars > old.dollars
    if rule is None or not raised or not needs_approval(inputs, rule, [resize]):
        return None
    before = resize.former
    way_out = f"raise the rule, or `overspill revert {before.name}`, so that it is proposed anew"
    return Suppressed(
        workload=before.workload,
        reason=Reason.AWAITING_APPROVAL,
        message=f"{resize.detail}; on {before.cluster} that needs an approval, and its old version stays ({way_out})",
        replicas=before.replicas,
    )


def _is_above(rule: ApprovalRule, rate: HourlyRate) -> bool:
    if rule.above_gpus is not None and rate.gpus > rule.above_gpus:
        return True
    most = rule.above_dollars_per_hour
    return most is not None and (rate.dollars > most or rate.unpriced_gpus > 0)


def may_not_move(inputs: PassInput, placement: Placement, cluster: ClusterName) -> Refusal | None:
    """Refuse a cluster that a burst may not move to without an approval; None where it may."""
    rule = rule_of(inputs, placement)
    if rule is None or cluster == placement.cluster:
        return None
    dearer = rule.above_dollars_per_hour is not None and is_dearer(
        _price(inputs, placement, placement.cluster), _price(inputs, placement, cluster)
    )
    if not (rule.always or cluster in rule.clusters or dearer):
        return None
    message = "nobody has approved the burst there, and no burst moves to where it has to be approved"
    return Refusal(cluster=cluster, reason=Reason.AWAITING_APPROVAL, message=message)


def _price(inputs: PassInput, placement: Placement, name: ClusterName) -> float | None:
    """Return the price of what a placement gets for each GPU on a cluster: of a slice, its part."""
    cluster = inputs.desired.clusters.get(name)
    price = None if cluster is None else price_of(cluster, placement.shape, inputs.now)
    shape = with_gpu_share(placement.shape, inputs.observed.clusters.get(name))
    return price if price is None or shape.gpu_share == WHOLE else price * float(shape.gpu_share)


def describe_places(placements: Sequence[ProposedPlacement]) -> str:
    """Name the replicas and the clusters of placements."""
    return join_names(f"{count(placement.replicas, 'replica')} on {placement.where}" for placement in placements)


def describe_waiting(gate: Gate) -> str:
    """Say what a workload waits for whose burst is proposed."""
    proposal = gate.proposal
    if not proposal.placements:
        return "what else has to be approved is proposed in the next pass"
    since, until = format_time(proposal.proposed_at), format_time(proposal.until)
    where = proposal.pull_request or f"`overspill approve {proposal.workload}`"
    waits = f"{describe_places(proposal.placements)} await approval since {since} until {until} ({where})"
    if gate.approvals:
        waits = f"{describe_places(proposal.placements)} are approved until {until}"
    return "; ".join(filter(None, (waits, gate.why, sanitize(proposal.foreign))))
