"""Objects that clusters run themselves: a placement would overwrite them, and its end would delete them.

A cluster runs what a template of any workspace, whose primary it is, counts or makes, and what it is seen to run
without the label of a placement. An Observation may leave the label out: what a placement on the output branch makes is
ours all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property

from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.fleet.object_owners import ObjectId, ReferenceKey, reference_key, reference_keys
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
        return f"what {cluster} runs itself" if any(cluster in named for named in self._named(object_id)) else ""

    def is_seen(self, object_id: ObjectId, but: ClusterName | None = None) -> bool:
        """Return whether any cluster but one is seen to run an object itself."""
        return any(cluster != but for named in self._named(object_id) for cluster in named)

    @property
    def are_seen(self) -> bool:
        """Whether any cluster is seen to run anything itself."""
        return bool(self._seen)

    def _named(self, object_id: ObjectId) -> Iterator[Collection[ClusterName]]:
        """Yield the clusters that are seen to run an object, for each way to refer to it."""
        if self._seen:
            yield from (self._seen[key] for key in reference_keys(object_id) if key in self._seen)

    @cached_property
    def _seen(self) -> Mapping[ReferenceKey, Collection[ClusterName]]:
        """The clusters that run something themselves, by what it is, in time linear in what they list."""
        seen: dict[ReferenceKey, set[ClusterName]] = {}
        for cluster, observation in self._clusters.items():
            if not observation.unplaced:
                continue
            made, counted = self._placed_on(cluster)
            for ref in observation.unplaced:
                key = reference_key(ref)
                if key not in made and not any(map(ref.may_be, counted.get(key[:2], ()))):
                    seen.setdefault(key, set()).add(cluster)
        return seen

    def _placed_on(
        self, cluster: ClusterName
    ) -> tuple[Collection[ReferenceKey], Mapping[tuple[str, str], Collection[WorkloadRef]]]:
        """Return all that means what the placements of a cluster make, and what their charts make.

        A chart makes what is counted, which is listed by namespace and name.
        """
        made: set[ReferenceKey] = set()
        counted: dict[tuple[str, str], set[WorkloadRef]] = {}
        for workload in {placement.workload for placement in self._placements.on(cluster).placements}:
            template = self._templates.get(workload)
            if template is None:
                continue
            for object_id in self._makers.known_objects_of(workload):
                made.update(reference_keys(object_id))
            ref = template.ref if template.spec.helm else None
            if ref is not None:
                counted.setdefault((ref.namespace, ref.name), set()).add(ref)
        return made, counted
