"""Labels and annotations of Overspill's own, which no template, patch, chart or command may set.

By the label of a placement its pods are counted and its health is told, by that of a step a command's Job is known from
a workload, and by annotations engines keep or charge objects. An object that sets them itself would be counted for
another placement, or for none. The one that may stand is the label of its own placement, as in the templates of kinds
whose pods are not labelled by `engines.objects`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from reconciler.model.ids import PlacementName
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json
from reconciler.text.findings import Finding, Loc, shortened

_DOMAIN = "overspill.dev"
_OWN = "{{ placement.name }}"


def check_reserved_names(
    value: Json, loc: Loc, placement: PlacementName | None, later: Callable[[Json], bool]
) -> Iterator[Finding]:
    """Check a value and all below it for maps of labels or annotations that set a name of Overspill's own.

    `placement` is that of a rendered object; None while it is unknown. `later` tells of a value whether an expression
    is going to decide it.
    """
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from check_reserved_names(item, (*loc, index), placement, later)
    if not isinstance(value, dict):
        return
    for field, below in value.items():
        where = (*loc, field)
        if isinstance(below, dict) and _sets_metadata(field):
            yield from _check_names(below, where, placement, later)
        if isinstance(below, dict | list):
            yield from check_reserved_names(below, where, placement, later)


def _sets_metadata(field: str) -> bool:
    """Return whether a field is one of labels or annotations, as ``podLabels``; a selector's only reads them."""
    return field.lower().endswith(("labels", "annotations")) and field != "matchLabels"


def _check_names(
    names: dict[str, Json], loc: Loc, placement: PlacementName | None, later: Callable[[Json], bool]
) -> Iterator[Finding]:
    for name, value in names.items():
        domain, slash, _ = name.partition("/")
        if not slash or not (domain == _DOMAIN or domain.endswith(f".{_DOMAIN}")):
            continue
        if name == PLACEMENT_LABEL:
            if later(value) or (placement is not None and value == str(placement)):
                continue
            message = f"{PLACEMENT_LABEL} {shortened(str(value))!r} is not the object's own placement"
            hint = f'write "{_OWN}"'
        else:
            message, hint = f"{shortened(name)} is set by Overspill alone", "leave it out"
        yield Finding(loc=(*loc, name), message=message, hint=hint)
