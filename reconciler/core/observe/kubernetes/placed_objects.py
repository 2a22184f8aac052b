"""Objects of placements that are watched themselves: for the end of their run, or since their pods get no label.

Of the latter the object has the label, and its pods name the object: Kubeflow Trainer hands no label of a TrainJob on
to pods (`labels` of a TrainJob's spec go to its JobSet alone: pkg/runtime/framework/plugins/jobset of
github.com/kubeflow/trainer v2.0.0).
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.core.observe.kubernetes.resources import CustomResource, Owner
from reconciler.core.workloads.ends import read_end
from reconciler.core.workloads.watch import ChangeEffect, key_of
from reconciler.model.capacity import FailedObject
from reconciler.model.ids import PlacementName
from reconciler.model.kubernetes.workload_kind import WorkloadKind
from reconciler.model.placement import PLACEMENT_LABEL
from reconciler.model.workload import Json
from reconciler.text.wording import engine_message


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedRecord:
    """The placement of an object, and how its run has ended by its own status; both are None while it has not."""

    placement: PlacementName
    uid: str = ""
    complete_at: datetime | None = None
    failed: FailedObject | None = None

    @property
    def ended_at(self) -> datetime | None:
        """The moment of its end; None while its run goes on."""
        return self.failed.since if self.failed is not None else self.complete_at


def read_placed(raw: Json, kind: WorkloadKind) -> PlacedRecord | None:
    """Read an object by its label and the status of its kind; None for one of no placement."""
    metadata = raw["metadata"]
    placement = (metadata.get("labels") or {}).get(PLACEMENT_LABEL)
    if not placement:
        return None
    end, going_on = read_end(kind, raw), PlacedRecord(placement=PlacementName(placement), uid=metadata.get("uid") or "")
    if end is None or end.at is None:
        return going_on
    if end.complete:
        return replace(going_on, complete_at=end.at)
    title, said = f"{kind.kind} {metadata['name']}", engine_message(end.message)
    message = f"{title} has failed: {said}" if said else f"{title} has failed"
    return replace(going_on, failed=FailedObject(message=message, since=end.at))


class PlacedObjects:
    """The part of one kind of these objects (a `watch.ResourcePart`), in all namespaces.

    `changed` is called with each object whose record changes.
    """

    def __init__(
        self,
        resource: CustomResource,
        kind: WorkloadKind,
        changed: Callable[[Owner, PlacedRecord | None], None],
    ) -> None:
        self._resource = resource
        self._kind = kind
        self._changed = changed
        self._records: dict[str, PlacedRecord] = {}

    def apply(self, raw: Json) -> ChangeEffect:
        """Apply an object."""
        return self._put(key_of(raw), read_placed(raw, self._kind))

    def remove(self, key: str) -> ChangeEffect:
        """Apply the deletion of an object."""
        return self._put(key, None)

    def keys(self) -> AbstractSet[str]:
        """Return the keys of the objects of placements."""
        return self._records.keys()

    def _put(self, key: str, record: PlacedRecord | None) -> ChangeEffect:
        if self._records.get(key) == record:
            return ChangeEffect.NOTHING
        if record is None:
            del self._records[key]
        else:
            self._records[key] = record
        kind, group = self._resource.owning
        namespace, _, name = key.partition("/")
        self._changed(Owner(kind, namespace, name, group), record)
        return ChangeEffect.DEMAND
