"""The first ordinal of a StatefulSet, in the fields of Kubernetes and of OpenKruise.

Kubernetes counts from ``spec.ordinals.start`` (1.31 and later). OpenKruise has the field since 1.7 behind a feature
gate that is off by default (``StatefulSetStartOrdinal``), so that its effect is unknown here. In v1beta1 it honours
``spec.reserveOrdinals``: pods skip these numbers, and there are as many pods as without (read from OpenKruise 1.9's
types and controller). So all ordinals before the first are reserved, as numbers, which 1.5 takes as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count, islice

from reconciler.core.pods.strategic_merge import Unmergeable
from reconciler.model.workload import Json
from reconciler.text.findings import Loc

KRUISE = "apps.kruise.io"
_RESERVED: Loc = ("spec", "reserveOrdinals")
_ORDINALS: Loc = ("spec", "ordinals")
_MOST = 1000
_RANGE = re.compile(r"([0-9]{1,9})-([0-9]{1,9})")


def with_first_ordinal(manifest: Mapping[str, Json], start: int) -> Mapping[str, Json]:
    """Return a StatefulSet that leaves the first `start` ordinals to others, beyond those that it skips itself.

    Raises Unmergeable where its fields cannot express that.
    """
    spec = manifest.get("spec")
    fields = spec if isinstance(spec, Mapping) else {}
    group, _, version = str(manifest.get("apiVersion")).rpartition("/")
    if group != KRUISE:
        return {**manifest, "spec": {**fields, "ordinals": _start_from(start, fields.get("ordinals"))}}
    if version == "v1alpha1":
        hint = f"try apiVersion: {KRUISE}/v1beta1 in the template"
        raise Unmergeable(("apiVersion",), "has no ordinals that a subset could leave to others; v1beta1 has", hint)
    if "ordinals" in fields:
        message = "may count or not, by a feature gate of OpenKruise; a subset needs it left out"
        raise Unmergeable(_ORDINALS, message, "leave it out of the template")
    if start > _MOST:
        hint = "lower maxReplicas of the subsets before it"
        raise Unmergeable(_RESERVED, f"would have {start} numbers, and {_MOST} are written at most", hint)
    own = fields.get("reserveOrdinals") or []
    reserved = _reserved_ordinals(own)
    before = islice((number for number in count() if number not in reserved), start)
    return {**manifest, "spec": {**fields, "reserveOrdinals": [*own, *before]}}


def _start_from(start: int, ordinals: Json) -> dict[str, Json]:
    """Add `start` to the object's own first ordinal."""
    fields = ordinals if isinstance(ordinals, Mapping) else {}
    own = fields.get("start")
    return {**fields, "start": start + (own if type(own) is int else 0)}


def _reserved_ordinals(own: Json) -> frozenset[int]:
    """Parse reserved ordinals: numbers, and ranges of them as ``3-5``."""
    numbers: set[int] = set()
    for entry in own if isinstance(own, list) else [None]:
        ends = _RANGE.fullmatch(entry) if isinstance(entry, str) else None
        if ends is not None and int(ends[2]) - int(ends[1]) <= _MOST:
            numbers.update(range(int(ends[1]), int(ends[2]) + 1))
        elif type(entry) is int:
            numbers.add(entry)
        else:
            hint = "try reserveOrdinals: [0, 3-5] in the template"
            raise Unmergeable(_RESERVED, "is no list of numbers, and of ranges such as 3-5", hint)
    return frozenset(numbers)
