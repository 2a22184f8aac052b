"""What is to be known of a placement beside its record: whose pods it has, and when it leaves a lost cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconciler.core.affinity import said
from reconciler.core.grouping import gangs_of
from reconciler.core.injecting import of_placement
from reconciler.core.situation import PassInput
from reconciler.core.subsets import Injection
from reconciler.core.times import format_time
from reconciler.core.wording import listed, plain
from reconciler.errors import InvalidInput
from reconciler.model.placement import Placement
from reconciler.model.policy import Desired
from reconciler.model.units import format_duration


def notes(inputs: PassInput, placement: Placement) -> tuple[str, ...]:
    """Say in sentences, without a stop, what holds for one placement now; nothing for most."""
    return (*of_subset(inputs.desired, placement), *_of_lost(inputs, placement))


def of_subset(desired: Desired, placement: Placement) -> Iterator[str]:
    """Say what the subset of a placement changes in its pods, as its file says it now."""
    if placement.cluster not in desired.clusters:
        return
    try:
        found = of_placement(desired, placement)
    except InvalidInput:
        return  # told as NotRendered where it matters
    if found is not None and found.changes:
        yield f"{plain(found.called)} changes its pods: {listed(_changes(found))}"


def _changes(found: Injection) -> Iterator[str]:
    """Name each thing that is changed, in the order in which it is."""
    for one in found.subset.tolerations:
        key = plain(one.key) or "every taint"
        yield f"tolerates {key}={plain(one.value)}" if one.value else f"tolerates {key}"
    if found.preferred:
        yield f"prefers nodes with {listed(plain(said(one)) for term in found.preferred for one in term.term.labels)}"
    if found.required:
        yield f"requires nodes with {listed(plain(said(one)) for one in found.required)}"
    fields = [
        plain(f"{part}.{name}", 80)
        for part in ("metadata", "spec")
        for name in (found.subset.patch[part] if isinstance(found.subset.patch.get(part), Mapping) else ())
    ]
    if fields:
        yield f"patches {listed(fields)}"
    if found.start:
        yield f"counts from ordinal {found.start}"


def _of_lost(inputs: PassInput, placement: Placement) -> Iterator[str]:
    """Say since when the cluster of what goes whole has been lost, and when that leaves it.

    Only who keeps looking knows since when: to one look, and to the first of a daemon, it has just been lost.
    """
    since = inputs.lost.get(placement.cluster)
    if since is None or not gangs_of(inputs, placement):
        return
    timeout = inputs.desired.fleet.worker_lost_timeout
    lasting = f"the Fleet's workerLostTimeout of {format_duration(timeout)}"
    if since == inputs.now:
        yield (
            f"{placement.cluster} is lost: all of it moves once that has lasted for {lasting},"
            " counted from when the daemon first missed it (--server asks it)"
        )
    elif since + timeout > inputs.now:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}: all of it moves at"
            f" {format_time(since + timeout)} if that lasts, after {lasting}"
        )
    else:
        yield (
            f"{placement.cluster} has been lost since {format_time(since)}, for longer than {lasting}:"
            " all of it moves as soon as another cluster has room"
        )
