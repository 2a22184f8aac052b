"""Orders of a person, as plans like any other: the end of placements, and another expiry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.decide.steps.end import revert
from reconciler.core.decide.steps.follow_requests import amend
from reconciler.core.decide.steps.manual_changes import follow_manual_changes
from reconciler.core.ledger import lifecycle
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.end_reason import EndReason
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.ledger import Ledger
from reconciler.model.placement import Placement, Restraint
from reconciler.model.plan import Change, Plan
from reconciler.model.policy import BurstPolicy
from reconciler.model.tree import Identity
from reconciler.model.units import format_duration
from reconciler.text.spelling import closest, nearest
from reconciler.text.timestamps import NO_SUCH_YEAR, format_time, is_plausible
from reconciler.text.wording import as_clause, join_names


class UnknownPlacement(InvalidInput):
    """A name that no placement has; it may be that of one that has ended."""

    def __init__(self, name: str, message: str) -> None:
        """Keep the name beside the message."""
        super().__init__(message)
        self.name = name


def find_placement(ledger: Ledger, text: str) -> Placement:
    """Find a placement by its name, its id (``llm/vllm-7f3a90c1``) or its directory.

    Raises UnknownPlacement listing the known placements if none matches.
    """
    return find_among(ledger.placements.values(), text)


def find_among(placements: Iterable[Placement], text: str) -> Placement:
    """Find a placement among some; raises UnknownPlacement listing these if none matches."""
    placements = sorted(placements, key=lambda placement: placement.id)
    for placement in placements:
        if placement.is_called(text):
            return placement
    of_workload = [placement.id for placement in placements if text == str(placement.workload)]
    if of_workload:
        raise InvalidInput(f"{text} is a workload; name its placements: {' '.join(of_workload)}")
    if not placements:
        raise UnknownPlacement(text, f"no placement {text!r}: nothing is bursting")
    near = closest(text, (name for placement in placements for name in (placement.name, placement.id)))
    hint = f"did you mean {near}?" if near else f"there are: {join_names(placement.id for placement in placements)}"
    raise UnknownPlacement(text, f"no placement {f'{text!r}' if text else 'is named'} ({hint})")


def find_workload(inputs: PassInput, text: str) -> WorkloadId:
    """Find a workload that bursts by its name: ``llm/vllm``, or ``vllm`` where only one workspace has it.

    Raises InvalidInput listing the known workloads if none matches.
    """
    placed = (placement.workload for placement in inputs.ledger.placements.values())
    workloads = {*inputs.desired.templates, *placed, *inputs.ledger.restraints}
    bursting = sorted(workload for workload in workloads if not workload.request)
    matches = [workload for workload in bursting if text in (str(workload), workload.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise InvalidInput(f"{text!r} is in several workspaces; name one of {join_names(map(str, matches))}")
    for placement in inputs.ledger.placements.values():
        if placement.is_called(text):
            raise InvalidInput(f"{text} is a placement; name its workload: {placement.workload}")
    if any(text in (str(workload), workload.name) for workload in workloads):
        raise InvalidInput(f"{text} is a request, whose clusters were chosen when it was made (ask for it again)")
    near = closest(text, (name for workload in bursting for name in (workload.name, str(workload))))
    names = join_names(map(str, bursting)) or "none"
    hint = f"did you mean {near}?" if near else f"there are: {names}"
    raise InvalidInput(f"no workload {f'{text!r}' if text else 'is named'} ({hint})")


def plan_revert(inputs: PassInput, placements: Sequence[Placement], *, by: str, reason: str, everywhere: bool) -> Plan:
    """End placements because a person asks for it, and hold each workload back as if they had been deleted by hand.

    The hold is for the cluster that it leaves or, with `everywhere`, for all of them. A request does not come back to
    that cluster, and is over when it has no other placement, or `everywhere` at once.
    """
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # a commit of ours on top would hide it from every later pass
    for placement in placements:
        revert_on_request(inputs, working_plan, placement, by=by, reason=reason, everywhere=everywhere)
    return Plan(changes=working_plan.plan().changes)


def revert_on_request(
    inputs: PassInput,
    working_plan: WorkingPlan,
    placement: Placement,
    *,
    by: str,
    reason: str = "",
    everywhere: bool = False,
    author: Identity | None = None,
) -> None:
    """End a placement as `plan_revert` does, in a plan under way."""
    hold = _hold(inputs, placement, by=by, reason=reason, everywhere=everywhere)
    detail = as_clause(reason) or f"by {by}"
    is_apart = unit_of_workload(inputs, placement.workload, placement).apart
    for ended in working_plan.of(placement.workload) if everywhere and is_apart else (placement,):
        revert(inputs, working_plan, ended, EndReason.REQUESTED, detail, author=author, restraint=hold)


def plan_release(
    inputs: PassInput, workload: WorkloadId, cluster: ClusterName | None, *, by: Identity, reason: str
) -> Plan:
    """End what holds a workload back, on one cluster or (None) wherever it is held.

    Raises InvalidInput where nothing holds it back there.
    """
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # as above
    release_on_request(inputs, working_plan, workload, cluster, by=by, reason=reason)
    return Plan(changes=working_plan.plan().changes)


def release_on_request(
    inputs: PassInput,
    working_plan: WorkingPlan,
    workload: WorkloadId,
    cluster: ClusterName | None,
    *,
    by: Identity,
    reason: str,
) -> None:
    """End what holds a workload back as `plan_release` does, in a plan under way."""
    restraints = working_plan.restraints(workload)
    ended = tuple(restraint for restraint in restraints if cluster in (None, restraint.cluster))
    if not ended:
        raise InvalidInput(f"releasing {workload}: {_not_held(inputs, working_plan, workload, cluster)}")
    detail = f"released by {by.name}: {as_clause(reason)}" if as_clause(reason) else f"released by {by.name}"
    working_plan.change(Change(action=Action.RELEASE, workload=workload, restraints=ended, detail=detail, author=by))


def _not_held(inputs: PassInput, working_plan: WorkingPlan, workload: WorkloadId, cluster: ClusterName | None) -> str:
    """Say why there is nothing to release, and what there is."""
    restraints = working_plan.restraints(workload)
    # 1. No file describes the cluster.
    clusters = inputs.desired.clusters
    if cluster is not None and clusters and cluster not in clusters:
        return f"there is no cluster {cluster} ({nearest(cluster, clusters)})"
    # 2. It is held back elsewhere.
    if any(restraint.cluster is None for restraint in restraints):
        return f"it is held back on every cluster, and not on {cluster} alone (try it without --cluster)"
    if restraints:
        places = join_names(sorted({str(restraint.cluster) for restraint in restraints}))
        return f"nothing holds it back on {cluster}; it is held back on {places}"
    # 3. Others are held back.
    held = sorted(name for name in inputs.ledger.restraints if working_plan.restraints(name))
    others = f"held back are: {join_names(map(str, held))}" if held else "nor any other workload"
    return f"nothing holds it back ({others})"


def plan_extension(inputs: PassInput, placement: Placement, until: datetime, *, by: str, reason: str) -> Plan:
    """Give a placement another end, later or earlier; one of a request with all others of that request.

    Raises InvalidInput as `prolonged` does.
    """
    working_plan = WorkingPlan(inputs)
    follow_manual_changes(inputs, working_plan)  # as above
    extend_on_request(inputs, working_plan, placement, until, by=by, reason=reason)
    return Plan(changes=working_plan.plan().changes)


def moved_end(placement: Placement, by: timedelta) -> datetime:
    """Return the end of a placement moved by a duration. Raises InvalidInput for one beyond all calendars."""
    with suppress(OverflowError):
        until = placement.expires_at + by
        if is_plausible(until):
            return until
    raise InvalidInput(f"extending {placement.id} by {format_duration(by)}: that {NO_SUCH_YEAR} (try a shorter one)")


def extend_on_request(
    inputs: PassInput,
    working_plan: WorkingPlan,
    placement: Placement,
    until: datetime,
    *,
    by: str,
    reason: str,
    author: Identity | None = None,
) -> None:
    """Give a placement another end as `plan_extension` does, in a plan under way."""
    change = replace(requested_extension(inputs, placement, until, by=by, reason=reason), author=author)
    record = working_plan.requests.get(placement.workload)
    if record is None or record.ended is not None:
        working_plan.change(change)
        return
    lasting = until - (record.began_at or placement.created_at)
    spec = replace(record.request.spec, burst_duration=lasting)
    after = replace(record, request=replace(record.request, spec=spec), changed_at=inputs.now)
    amend(inputs, working_plan, record, after, detail=change.detail, author=author)


def requested_extension(
    inputs: PassInput, placement: Placement, until: datetime, *, by: str, reason: str = ""
) -> Change:
    """Make another end for a placement.

    Raises InvalidInput for an end that has passed, that it has already, or that is beyond the maximum duration of its
    policy or its workspace, counted from when it was placed, or may be because the policy cannot be read.
    """
    if until <= inputs.now:
        raise InvalidInput(
            f"extending {placement.id}: {format_time(until)} has passed (try `overspill revert {placement.name}`)"
        )
    if until == placement.expires_at:
        raise InvalidInput(f"extending {placement.id}: it ends at {format_time(until)} already")
    policy = inputs.desired.policies.get(placement.workload)
    if policy is None and inputs.desired.incomplete:
        raise InvalidInput(
            f"extending {placement.id}: its policy cannot be read, so its longest duration is unknown"
            " (try mending the files that `overspill check` names)"
        )
    longest = _longest(inputs, placement, policy)
    if longest is not None and until > placement.created_at + longest[0]:
        last = placement.created_at + longest[0]
        raise InvalidInput(
            f"extending {placement.id} until {format_time(until)}: {longest[1]} allows"
            f" {format_duration(longest[0])}, which end at {format_time(last)}"
            f" (try --until {format_time(last)}, or raise {longest[2]})"
        )
    detail = f"asked for by {by}: {as_clause(reason)}" if as_clause(reason) else f"asked for by {by}"
    return Change(
        action=Action.EXTEND,
        before=placement,
        after=replace(placement, expires_at=until, fixed_end=True),
        detail=detail,
    )


def _longest(inputs: PassInput, placement: Placement, policy: BurstPolicy | None) -> tuple[timedelta, str, str] | None:
    """Say how long a placement may last in all, by whose word, and where that stands."""
    limits = inputs.desired.limits.get(placement.workload.workspace)
    limits_stated: list[tuple[timedelta, str, str]] = []
    if limits is not None:
        limits_stated.append(
            (limits.longest, f"workspace {limits.workspace}", "maxExitDurationPerGPR of its WorkspacePolicy")
        )
    if policy is not None and policy.max_duration is not None:
        limits_stated.append((policy.max_duration, f"policy {policy.name}", "spec.duration.max of the policy"))
    return min(limits_stated, default=None)


def _hold(inputs: PassInput, placement: Placement, *, by: str, reason: str, everywhere: bool) -> Restraint | None:
    policy = inputs.desired.policies.get(placement.workload) or BurstPolicy(name="")
    lasts = policy.hold or placement.runs_once
    hold = lifecycle.hold(placement, policy, inputs.now) if lasts else None
    if hold is None:
        return None
    words = f"{placement.name} was ended by {by}"
    return replace(
        hold,
        cluster=None if everywhere else placement.cluster,
        reason=f"{words}: {as_clause(reason)}" if as_clause(reason) else words,
    )
