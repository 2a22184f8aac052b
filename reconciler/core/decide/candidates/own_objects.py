"""Objects that clusters run themselves: a placement would overwrite them, and its end would delete them.

A cluster runs what a template of any workspace, whose primary it is, counts or makes, and what it is seen to run
without the label of a placement. An Observation may leave the label out: what a placement on the output branch makes is
ours all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.object_owners import ObjectId, means_object
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.workload import WorkloadRef


class OwnObjects:
    """Finds what clusters run themselves, as the files and the observations of one pass say."""

    def __init__(self, inputs: PassInput) -> None:
        """Look at nothing yet."""
        self._templates = inputs.desired.templates
        self._makers = inputs.reach.makers
        self._clusters = inputs.observed.clusters
        self._placements = inputs.ledger.placements

    def of_template(self, workload: WorkloadId, cluster: ClusterName, object_id: ObjectId) -> str:
        """Say that the template of another workload has an object on its primary; empty where none has.

        Other workspaces are not named.
        """
        standing = self._makers.standing(object_id).get(cluster, ())
        own = next((name for name in standing if name != workload), None)
        if own is None:
            return ""
        workspace = f"workspace {own.workspace}" if own.workspace == workload.workspace else "another workspace"
        return f"what {workspace} runs there itself"

    def seen(self, cluster: ClusterName, object_id: ObjectId) -> str:
        """Say that a cluster is seen to run an object, which no placement has made; empty where it is not."""
        named = self._seen.get(object_id[1:], ())
        is_seen = any(place == cluster and means_object(ref, object_id) for place, ref in named)
        return f"what {cluster} runs itself" if is_seen else ""

    def is_seen(self, object_id: ObjectId, but: ClusterName | None = None) -> bool:
        """Return whether any cluster but one is seen to run an object itself."""
        named = self._seen.get(object_id[1:], ())
        return any(cluster != but and means_object(ref, object_id) for cluster, ref in named)

    @property
    def are_seen(self) -> bool:
        """Whether any cluster is seen to run anything itself."""
        return bool(self._seen)

    @cached_property
    def _seen(self) -> Mapping[tuple[str, str], Sequence[tuple[ClusterName, WorkloadRef]]]:
        """What clusters are seen to run themselves, by namespace and name."""
        seen: dict[tuple[str, str], list[tuple[ClusterName, WorkloadRef]]] = {}
        for cluster, observation in self._clusters.items():
            for ref in observation.unplaced:
                if not self._is_placed(cluster, ref):
                    seen.setdefault((ref.namespace, ref.name), []).append((cluster, ref))
        return seen

    def _is_placed(self, cluster: ClusterName, ref: WorkloadRef) -> bool:
        """Return whether a placement of a cluster makes what a reference means; a chart makes what is counted."""
        for placement in self._placements.on(cluster).placements:
            template = self._templates.get(placement.workload)
            if template is None:
                continue
            if any(means_object(ref, object_id) for object_id in self._makers.known_objects_of(placement.workload)):
                return True
            if template.spec.helm and template.ref is not None and _may_be_same(ref, template.ref):
                return True
        return False


def _may_be_same(ref: WorkloadRef, other: WorkloadRef) -> bool:
    """Return whether two references may mean one object; one without a kind means any."""
    kinds = {ref.kind, other.kind} - {""}
    return (ref.namespace, ref.name) == (other.namespace, other.name) and len(kinds) <= 1
