"""Changes of one pass that are written down as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reconciler.model.plan import Amend, Change, Place, Receive
from reconciler.model.request import RequestRecord


def written_once(changes: Sequence[Change]) -> list[Change]:
    """Have a request that begins in the pass that took it in, or changed it, written down once, as it is in the end.

    All commits of a pass are pushed together, so that nobody meets one without the other.
    """
    folded, last = list(changes), {}
    for position, change in enumerate(changes):
        match change:
            case Receive(record=record) | Amend(after=record):
                last[record.workload] = position
            case Place(record=RequestRecord() as record) if record.workload in last:
                at = last[record.workload]
                earlier = folded[at]
                if isinstance(earlier, Receive):
                    folded[at] = replace(earlier, record=record, written=None)
                elif isinstance(earlier, Amend):
                    folded[at] = replace(earlier, after=record)
                folded[position] = replace(change, record=None)
            case _:
                pass
    return folded
