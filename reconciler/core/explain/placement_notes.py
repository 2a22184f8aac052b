"""Notes on placements: what each was made from, what its subset changes, the loss of its cluster, its replicas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.core.decide.steps.lost_cluster import lost_timeout
from reconciler.core.explain.scaled_down import scaled_down_by
from reconciler.core.spread.inject import placement_injection
from reconciler.core.spread.subset_pods import Injection
from reconciler.core.workloads import replica_count
from reconciler.errors import InvalidInput
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration
from reconciler.text.timestamps import format_time
from reconciler.text.wording import conjugate, join_names, sanitize


def notes_by_placement(inputs: PassInput, placements: Iterable[Placement]) -> Mapping[str, tuple[str, ...]]:
    """Return the notes on placements, by directory; placements without notes are left out."""
    return {placement.path: lines for placement in placements if (lines := placement_notes(inputs, placement))}


def placement_notes(inputs: PassInput, placement: Placement) -> tuple[str, ...]:
    """Return notes about one placement, as sentences without a full stop; none for most."""
    return (
        *_describe_source(placement),
        *([f"{sanitize(placement.kept, 600)}; the next placement takes it up"] if placement.kept else []),
        *describe_injection(inputs.desired, placement),
        *_describe_lost_cluster(inputs, placement),
    )


def _describe_source(placement: Placement) -> Iterator[str]:
    """Say what a placement was made from, where its template holds no copy."""
    made_from = placement.made_from
    if made_from is not None:
        images = f", with {made_from.images}" if made_from.images else ""
        yield sanitize(f"made from {made_from.text}{images}", 400)


def describe_injection(desired: Desired, placement: Placement) -> Iterator[str]:
    """Describe the changes of a placement's subset to its pods, by the current file."""
    if placement.cluster not in desired.clusters:
        return
    try:
        injection = placement_injection(desired, placement)
    except InvalidInput:
        return  # reported as NotRendered elsewhere
    if injection is not None and injection.changes:
        yield f"{sanitize(injection.called)} changes its pods: {join_names(_changes(injection))}"


def _changes(injection: Injection) -> Iterator[str]:
    """Yield each change, in the order of injection."""
    for toleration in injection.subset.tolerations:
        key = sanitize(toleration.key) or "every taint"
        yield f"tolerates {key}={sanitize(toleration.value)}" if toleration.value else f"tolerates {key}"
    if injection.preferred:
        labels = (label for preferred in injection.preferred for label in preferred.term.labels)
        yield f"prefers nodes with {join_names(sanitize(str(label)) for label in labels)}"
    if injection.required:
        yield f"requires nodes with {join_names(sanitize(str(term)) for term in injection.required)}"
    fields = [
        sanitize(f"{part}.{name}", 80)
        for part in ("metadata", "spec")
        for name in (injection.subset.patch[part] if isinstance(injection.subset.patch.get(part), Mapping) else ())
    ]
    if fields:
        yield f"patches {join_names(fields)}"
    if injection.start:
        yield f"counts from ordinal {injection.start}"


def _describe_lost_cluster(inputs: PassInput, placement: Placement) -> Iterator[str]:
    """Describe the loss of a placement's cluster, and the time at which it leaves.

    The time of the loss is known to a running daemon only: for a single look, and for its first pass, it is now.
    """
    since = inputs.lost.get(placement.cluster)
    timeout = lost_timeout(inputs, placement) if since is not None else None
    if since is None or timeout is None:
        return
    policy = inputs.desired.policies.get(placement.workload)
    unit = unit_of_workload(inputs, placement.workload, placement)
    gang = bool(unit.groups(placement.replicas))
    if unit.why_kept(placement.replicas, placement.replicas):
        return  # it stays, and is suppressed with the reason
    whole = gang and unit.is_set
    goes = "all of it moves" if whole else "its replicas move"
    own = policy is not None and policy.worker_lost_timeout is not None
    whose = f"policy {policy.name}'s" if own and policy is not None else "the Fleet's" if gang else "a policy's"
    lasting = f"{whose} workerLostTimeout of {format_duration(timeout)}"
    if since == inputs.now:
        yield (
            f"{placement.cluster} is lost: {goes} once that has lasted for {lasting},"
            " counted from when the daemon first missed it (--server asks it)"
        )
    elif since + timeout > inputs.now:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}: {goes} at"
            f" {format_time(since + timeout)} if that lasts, after {lasting}"
        )
    else:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}, for longer than {lasting}:"
            f" {goes} as soon as another cluster has room"
        )


def describe_placed_replicas(inputs: PassInput, placements: Iterable[Placement]) -> str:
    """Count the replicas with a node outside of the primary, those that wait for one, those to come or scaled down."""
    runs, rest = 0, list[str]()
    for placement in placements:
        seen, where = inputs.observed.clusters.get(placement.cluster), sanitize(placement.where)
        if seen is None:
            rest.append(f"{placement.replicas} placed on {where}, which is not seen")
            continue
        bound = min(placement.replicas, replica_count.bound_replicas(placement, seen))
        # Pods that the engine is about to delete are no replicas any more.
        waiting = min(replica_count.pending_replicas(placement, seen), placement.replicas - bound)
        starting = placement.replicas - bound - waiting
        runs += bound
        rest += [f"{waiting} waiting for a node on {where}"] if waiting else []
        scaler = scaled_down_by(placement, inputs)
        unstarted = (
            f"{starting} scaled down on {where} by its {scaler}" if scaler else f"{starting} not started on {where} yet"
        )
        rest += [unstarted] if starting else []
    return ", ".join((f"{runs} {conjugate(runs, 'runs')} elsewhere", *rest))
