"""The tables of docs/reference/waits.md, from those of what components say; `reference_tables` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby

from reconciler.core.observe.kubernetes.words import kubelet, kueue, refusals, scheduler
from reconciler.core.observe.kubernetes.words.gates import GATES
from reconciler.core.observe.kubernetes.words.sayings import Saying
from reconciler.core.observe.kubernetes.words.volcano import GANG_REASONS
from reconciler.model.wait_reason import WaitReason

_SOURCES = {
    "had room": scheduler.BLOCKS,
    "lacks": tuple(chain(scheduler.LACKS, scheduler.QUOTA, scheduler.GROUP)),
    "bound": scheduler.BOUND,
    "refusals": refusals.REFUSALS,
    "kubelet": kubelet.REJECTIONS,
    "kueue": kueue.MESSAGES,
    "gates": GATES,
}


def wait_table(name: str) -> str:
    """Write a table of the page, as Markdown."""
    if name == "volcano":
        return "| reason | is | from |\n|---|---|---|\n" + "".join(
            f"| `{reason}` | {WaitReason.GANG} | {source} |\n" for reason, source in GANG_REASONS.items()
        )
    if name == "kueue reasons":
        rows = "".join(f"| `{reason}` | {wait} |\n" for reason, wait in kueue.REASONS.items())
        return f"| reason | is |\n|---|---|\n{rows}"
    return "| says | is |\n|---|---|\n" + "".join(_rows(_SOURCES[name]))


def _rows(sayings: Iterator[Saying]) -> Iterator[str]:
    """Yield a row for each file of a component, and below it one for each of its sayings."""
    for source, group in groupby(sayings, lambda saying: saying.source):
        yield f"| **{source}** | |\n"
        yield from (f"| `{saying.says}` | {saying.reason} |\n" for saying in group)
