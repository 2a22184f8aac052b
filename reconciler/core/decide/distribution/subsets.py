"""Subsets in order: each as far as its maximum, after all minimums; and back in the reverse.

OpenKruise's WorkloadSpread for the order and the maximums, its UnitedDeployment's two passes for the minimums
(docs/reference/workloadspread.md, "Choosing a subset" and "UnitedDeployment"). What is above a maximum comes home
before all else, the last subset's first: so what is in no subset any more is a last one that may hold nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconciler.core.decide.distribution.target import ClusterShare


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One subset: its clusters, which are filled by rank, and what it may hold altogether; `most` None bounds nothing.

    What its targets keep, or have, counts.
    """

    targets: tuple[ClusterShare, ...]
    most: int | None = None
    least: int = 0


Counts = tuple[tuple[int, ...], ...]
"""What each target of each layer comes to have, in the order in which they were given."""


def share_out(total: int, layers: Sequence[Layer]) -> Counts:
    """Divide a total: what a target keeps is part of it, and stays even where that is more than its subset may hold."""
    return _raised(total, layers, minimums(total, layers), [layer.most for layer in layers])


def minimums(total: int, layers: Sequence[Layer]) -> Counts:
    """Divide no more of a total than all minimums come to, in order."""
    kept = tuple(tuple(target.keeps for target in layer.targets) for layer in layers)
    return _raised(total, layers, kept, [_least(layer) for layer in layers])


def give_back(total: int, layers: Sequence[Layer]) -> Counts:
    """Say how many of a smaller total stay where; a target keeps nothing for certain, and `most` is what it has.

    Above the maximums goes first, then the last subset, minimums last; and within a subset the last cluster.
    """
    counts: Counts = tuple((0,) * len(layer.targets) for layer in layers)
    for levels in ([_least(one) for one in layers], [one.most for one in layers], [None] * len(layers)):
        counts = _raised(total, layers, counts, levels)
    return counts


def _least(layer: Layer) -> int:
    return layer.least if layer.most is None else min(layer.least, layer.most)


def _raised(total: int, layers: Sequence[Layer], counts: Counts, levels: Sequence[int | None]) -> Counts:
    """Bring each subset to its level, one after the other, as far as the total and the room of its clusters go."""
    more, raised = total - sum(map(sum, counts)), []
    for layer, row, level in zip(layers, counts, levels, strict=True):
        left = more if level is None else min(more, level - sum(row))
        new = list(row)
        for place in sorted(range(len(row)), key=lambda place: layer.targets[place].rank):
            given = max(0, min(left, layer.targets[place].most - row[place]))
            new[place] += given
            left -= given
        more -= sum(new) - sum(row)
        raised.append(tuple(new))
    return tuple(raised)
