"""The objects that the files of placements make, by which two placements of one cluster are compared.

What a chart makes is known once it is rendered, so that two of them meet here at the earliest: the end of one would
delete the object of the other. What outlives placements has the label of none, and is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.engines.objects import file_suffix
from reconciler.core.engines.standing_objects import ObjectKey, read_objects
from reconciler.core.workloads.paths import at
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json


def file_suffixes(manifests: Iterable[Json]) -> frozenset[str]:
    """Return the ends of the names of the files that hold objects of the same kinds and names, in any namespace."""
    names = [(manifest, at(manifest, ("metadata", "name"))) for manifest in manifests]
    return frozenset(file_suffix(manifest, name) for manifest, name in names if isinstance(name, str))


def shared_object(
    files: Mapping[str, bytes], standing: Mapping[str, bytes], others: Mapping[str, bytes]
) -> tuple[ObjectKey, str] | None:
    """Return the first object that a placement would make and another one makes already, with the path of the other.

    An object that the placement's own `standing` files make as well is no news: nothing is gained by holding up the
    placement then.
    """
    made = _made(others)
    new = _made(files).keys() - _made(standing).keys() if made else frozenset()
    return min(((key, made[key]) for key in new if key in made), default=None)


def _made(files: Mapping[str, bytes]) -> dict[ObjectKey, str]:
    return {
        key: entry.path
        for key, entry in read_objects(files, files).items()
        if at(entry.manifest, ("metadata", "labels", PLACEMENT_LABEL))
    }
