"""The objects that the files of placements make, by which a placement is compared with what stands on its cluster.

What a chart makes is known once it is rendered, so that it meets the others here at the earliest: the end of one would
delete the object of the other. What outlives placements has the label of none, and is shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.engines.objects import file_suffix
from reconciler.core.engines.standing_objects import FileObject, ObjectKey, read_objects
from reconciler.core.workloads.paths import at
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json


def file_suffixes(manifests: Iterable[Json]) -> frozenset[str]:
    """Return the ends of the names of the files that hold objects of the same kinds and names, in any namespace."""
    names = [(manifest, at(manifest, ("metadata", "name"))) for manifest in manifests]
    return frozenset(file_suffix(manifest, name) for manifest, name in names if isinstance(name, str))


def new_objects(files: Mapping[str, bytes], standing: Mapping[str, bytes]) -> dict[ObjectKey, Json]:
    """Return the objects that a placement would make, and that its own `standing` files do not make yet.

    What it makes already is no news: nothing is gained by holding up the placement then.
    """
    made = _made(files)
    for key in _made(standing) if made else ():
        made.pop(key, None)
    return {key: entry.manifest for key, entry in made.items()}


def shared_object(new: Mapping[ObjectKey, Json], others: Mapping[str, bytes]) -> tuple[ObjectKey, str] | None:
    """Return the first of some objects that other files make already, with the path of its file."""
    ends = tuple(file_suffixes(new.values()))
    made = _made({path: data for path, data in others.items() if path.endswith(ends)})
    return min(((key, entry.path) for key, entry in made.items() if key in new), default=None)


def _made(files: Mapping[str, bytes]) -> dict[ObjectKey, FileObject]:
    return {
        key: entry
        for key, entry in read_objects(files, files).items()
        if at(entry.manifest, ("metadata", "labels", PLACEMENT_LABEL))
    }
