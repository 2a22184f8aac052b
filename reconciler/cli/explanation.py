"""An explanation in words and tables, made from its JSON: one of this machine and one of a daemon read alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from reconciler.cli import printing
from reconciler.model.placement import where
from reconciler.model.plan import Reason
from reconciler.model.units import Resources, parse_quantity
from reconciler.text.wording import amounts

Told: TypeAlias = Mapping[str, Any]

_NO_MATTER = frozenset({Reason.NOTHING_FITS.value, Reason.SCALE_DOWN_WINDOW.value, Reason.SIGNAL_UNHEARD.value})
"""What holds replicas back and is a cluster's doing, or keeps none from being placed."""


def tell(told: Told) -> None:
    """Print what ``explain -o json`` prints, as people read it."""
    _head(told)
    for one in told["placements"]:
        place = where(one["cluster"], one["subset"])
        printing.sentence(f"  {one['name']}: {one['replicas']} on {place} until {one['expiresAt']}")
        if ailment := told["ailing"].get(f"clusters/{one['cluster']}/{one['name']}"):
            words = f": {ailment['message']}" if ailment["message"] else ""
            printing.sentence(f"    {ailment['state']}, not healthy since {ailment['since']}{words}")
        for note in told.get("notes", {}).get(f"clusters/{one['cluster']}/{one['name']}", ()):
            printing.sentence(f"    {note}")
    for restraint in told["restraints"]:
        place = where(restraint["cluster"], restraint["subset"]) if restraint["cluster"] else "every cluster"
        printing.sentence(f"  held back on {place} until {restraint['until']}: {restraint['reason']}")
    printing.heading("Clusters")
    printing.table(
        ("RANK", "CLUSTER", "FITS", "PLACED", "LIMIT", "FREE", "$/GPU-h", "VERDICT", "WHAT WOULD CHANGE IT"),
        [_row(one, taken=not _held_back(told)) for one in told["assessments"]],
        empty="No cluster was looked at: nothing says what one replica needs.",
    )
    printing.heading("Conclusion")
    for sentence in told["conclusion"]:
        printing.sentence(sentence)


def _head(told: Told) -> None:
    """Say what it is about: a workload and its demand, or a request and how it is."""
    asked = told["request"]
    if asked is not None:
        state = f"{asked['provisioning']}, {asked['phase']}, from {asked['record']['asker']}"
        printing.sentence(f"Request {told['workload']}: {state}")
        return
    policy = f"policy {told['policy']}" if told["policy"] else "no policy"
    printing.sentence(f"{told['workload']}: primary {told['primary']}, {policy}")
    if told["distribution"]:
        printing.sentence(f"Distribution: {told['distribution']}")
    printing.sentence(_demand(told["demand"]))


def _demand(demand: Told | None) -> str:
    if demand is None:
        return "Demand: unknown."
    if "wanted" not in demand:
        return f"Demand: unseen. {demand['message']}."
    waiting = demand["waiting"]
    pods = [f"{one['replicas']} since {one['since']}" for one in waiting if not one["signal"]]
    told = [f"unschedulable: {', '.join(pods)}"] if pods else []
    told += [
        f"{one['signal']} {one['cause']}: {one['replicas']} since {one['since']}" for one in waiting if one["signal"]
    ]
    missing = f"{demand['wanted']} wanted, {demand['running']} running, {demand['deficit']} missing"
    return f"Demand: {missing}" + (f" ({'; '.join(told)})" if told else "")


def _held_back(told: Told) -> bool:
    """Tell whether something that is no cluster's doing keeps replicas from being placed."""
    return any(one["reason"] not in _NO_MATTER for one in told["suppressed"])


def _row(one: Told, *, taken: bool) -> tuple[object, ...]:
    refusal = one["refusal"]
    room = one.get("start") or ("can take it" if taken else "has room")
    verdict = f"{refusal['reason']}: {refusal['message']}" if refusal else room
    free = Resources(amounts={name: parse_quantity(amount) for name, amount in one["free"].items()})
    return (
        one["rank"], where(one["cluster"], one["subset"]), one["fits"], one["placed"], one["limit"],
        ", ".join(amounts(free)), one["pricePerGpuHour"], verdict, refusal["remedy"] if refusal else None,
    )  # fmt: skip # a row as it is printed
