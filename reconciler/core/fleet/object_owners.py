"""The objects that each workload creates on a cluster, as far as its spec tells.

Only certain objects count: those of manifests and commands, and Helm releases, whose kind, namespace and name hold no
expression but of the cluster, by which two of them on one cluster can be compared. What others live in is no object of
anybody: it outlives them (`safety.scope`). The objects of a chart are unknown until it is rendered, and so are those
whose names other expressions make: they are compared when they are written (`commits.write`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial

from reconciler.bulkhead import Seam, attempt
from reconciler.core.engines.deployment import chart_steps, made_manifests, target_namespace
from reconciler.core.expressions.dialect import has_expression, read_expression
from reconciler.core.safety.scope import is_cluster_scoped, outlives_placements
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, Kinds
from reconciler.errors import Bug
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, ObjectSchemas
from reconciler.model.policy import Desired, Workspace
from reconciler.model.workload import DeploySpec, WorkloadRef

ObjectId = tuple[str, str, str]
"""``group/Kind``, namespace (empty for cluster-scoped objects) and name."""

ReferenceKey = tuple[str, str, str, str]
"""Namespace, name, kind (empty for any built-in one) and group (empty for any) of a reference to a workload."""

_Cache = dict[WorkloadId, tuple[DeploySpec, tuple[str, ...], tuple[ObjectId, ...]]]
"""The objects of a workload, with the spec and the namespaces of the workspace that they were computed from."""

RELEASE = "helm/Release"
"""The kind of what a chart is installed as."""


class ObjectOwners:
    """The owners of objects, and the objects that stand on primary clusters, over all workloads of one fleet."""

    def __init__(self, desired: Desired) -> None:
        """Start without an index."""
        self._desired = desired
        self._known: _Cache = {}
        self._open: dict[WorkloadId, tuple[DeploySpec, bool]] = {}
        self._makers: dict[ObjectId, list[WorkloadId]] | None = None
        self._counted: dict[tuple[str, str], list[tuple[WorkloadId, WorkloadRef]]] = {}
        self._standing: dict[ObjectId, Mapping[ClusterName, tuple[WorkloadId, ...]]] = {}

    @cached_property
    def has_requests(self) -> bool:
        """Whether any of the workloads is a request."""
        return any(workload.request for workload in self._desired.templates)

    def with_requests(self, desired: Desired, changed: Collection[WorkloadId]) -> ObjectOwners:
        """Return the owners for a fleet that differs in these requests only.

        Shares cached objects with the previous index.
        """
        other = ObjectOwners(desired)
        other._known, other._counted, other._standing = self._known, self._counted, self._standing
        other._open = self._open
        if self._makers is not None:
            other._makers = self._makers.copy()
            for workload in changed:
                for object_id in self.known_objects_of(workload) if workload in self._desired.templates else ():
                    others = [owner for owner in other._makers.pop(object_id, ()) if owner != workload]
                    if others:
                        other._makers[object_id] = others
                if workload in desired.templates:
                    other._list(workload, other._makers)
                else:
                    self._known.pop(workload, None)
        return other

    def of(self, object_id: ObjectId) -> Sequence[WorkloadId]:
        """List the workloads that create an object."""
        if self._makers is None:
            self._makers = self._index()
        return self._makers.get(object_id, ())

    def objects_of(self, workload: WorkloadId) -> tuple[ObjectId, ...]:
        """List the objects that a workload certainly creates."""
        spec = self._desired.templates[workload].spec
        workspace = self._desired.workspaces[workload.workspace]
        cached = self._known.get(workload)
        if cached is None or cached[0] is not spec or cached[1] != workspace.namespaces:
            kinds, schemas = self._desired.kinds, self._desired.schemas
            made = objects_made(spec, workspace, kinds, schemas)
            cached = self._known[workload] = spec, workspace.namespaces, made
        return cached[2]

    def has_open_objects(self, workload: WorkloadId) -> bool:
        """Return whether an expression decides what an object of a workload is, so that only its rendering tells."""
        spec = self._desired.templates[workload].spec
        cached = self._open.get(workload)
        if cached is None or cached[0] is not spec:
            is_open = attempt(Seam.OBJECTS, workload, partial(_has_open_objects, spec, self._desired.kinds))
            cached = self._open[workload] = spec, is_open is not False
        return cached[1]

    def standing(self, object_id: ObjectId) -> Mapping[ClusterName, tuple[WorkloadId, ...]]:
        """Return the primary clusters that have an object of their own, each with the templates that it belongs to.

        A template is a copy of what runs on its primary: the object that it counts stands there, and so do the objects
        that it makes.
        """
        known = self._standing.get(object_id)
        if known is None:
            makers = [workload for workload in self.of(object_id) if not workload.request]
            named = self._counted.get(object_id[1:], ())
            counting = [workload for workload, ref in named if means_object(ref, object_id)]
            by_cluster: dict[ClusterName, tuple[WorkloadId, ...]] = {}
            for workload in dict.fromkeys((*counting, *makers)):
                primary = self._desired.workspaces[workload.workspace].primary
                by_cluster[primary] = (*by_cluster.get(primary, ()), workload)
            known = self._standing[object_id] = by_cluster
        return known

    def is_standing(self, object_id: ObjectId, but: WorkloadId) -> bool:
        """Return whether an object stands on a primary for another workload."""
        return any(workload != but for owners in self.standing(object_id).values() for workload in owners)

    def _index(self) -> dict[ObjectId, list[WorkloadId]]:
        makers: dict[ObjectId, list[WorkloadId]] = {}
        for workload, template in self._desired.templates.items():
            self._list(workload, makers)
            if template.ref is not None:
                named = self._counted.setdefault((template.ref.namespace, template.ref.name), [])
                named.append((workload, template.ref))
        for workload in self._known.keys() - self._desired.templates.keys():
            self._known.pop(workload, None)  # a preview in another thread may have dropped it
        return makers

    def _list(self, workload: WorkloadId, makers: dict[ObjectId, list[WorkloadId]]) -> None:
        """Index a workload by its objects: templates in their order, then requests by name."""
        for object_id in self.known_objects_of(workload):
            listed = [*makers.get(object_id, ())]
            if workload.request:
                insort(listed, workload, key=_sort_key)
            else:
                listed.append(workload)
            makers[object_id] = listed

    def known_objects_of(self, workload: WorkloadId) -> tuple[ObjectId, ...]:
        """List the objects of a workload in the index; none where they are unknown, so that it conflicts with no other.

        What becomes of the workload itself is decided where its objects are asked for.
        """
        made = attempt(Seam.OBJECTS, workload, partial(self.objects_of, workload))
        return () if isinstance(made, Bug) else made


def _sort_key(workload: WorkloadId) -> tuple[bool, WorkloadId]:
    return workload.request, workload


def objects_made(
    spec: DeploySpec, workspace: Workspace, kinds: Kinds = NO_KINDS, schemas: ObjectSchemas = NO_SCHEMAS
) -> tuple[ObjectId, ...]:
    """List the objects that a spec certainly creates, wrapped ones among them, each once, in the order of its steps."""
    around = target_namespace(spec, workspace)
    keys = [(RELEASE, chart.release_namespace or around, chart.release_name) for chart in chart_steps(spec)]
    for manifest in made_manifests(spec, kinds):
        metadata = manifest.get("metadata")
        if not isinstance(metadata, dict) or outlives_placements(manifest, kinds, schemas):
            continue
        kind = group_kind(manifest)
        namespace = "" if is_cluster_scoped(kind, kinds, schemas) else metadata.get("namespace") or around
        keys.append((kind, str(namespace), str(metadata.get("name", ""))))
    return tuple(dict.fromkeys(object_id for object_id in keys if object_id[2] and all(map(_is_certain, object_id))))


def _has_open_objects(spec: DeploySpec, kinds: Kinds) -> bool:
    texts = [text for chart in chart_steps(spec) for text in (chart.release_namespace, chart.release_name)]
    for manifest in made_manifests(spec, kinds):
        metadata = manifest.get("metadata")
        identity = metadata if isinstance(metadata, dict) else {}
        texts += [group_kind(manifest), str(identity.get("namespace") or ""), str(identity.get("name") or "")]
    return not all(map(_is_certain, texts))


def _is_certain(text: str) -> bool:
    """Return whether a text means the same in every template on one cluster."""
    return not has_expression(text) or set(read_expression(text).names) == {"cluster"}


def describe_object(object_id: ObjectId) -> str:
    """Name an object in messages: ``Kind namespace/name``."""
    kind, namespace, name = object_id
    return f"{kind.rpartition('/')[2]} {namespace}/{name}" if namespace else f"{kind.rpartition('/')[2]} {name}"


def reference_key(ref: WorkloadRef) -> ReferenceKey:
    """Return the key of a reference, by which `reference_keys` finds it; a group says nothing without a kind."""
    return ref.namespace, ref.name, ref.kind, ref.group if ref.kind else ""


def reference_keys(object_id: ObjectId) -> tuple[ReferenceKey, ...]:
    """List the keys of all references that may mean an object; one without a kind means any built-in one."""
    kind, namespace, name = object_id
    group, _, plain = kind.rpartition("/")
    exact, of_any_group = (namespace, name, plain, group), (namespace, name, plain, "")
    if kind in BUILT_IN or kind == RELEASE:
        return exact, of_any_group, (namespace, name, "", "")
    return exact, of_any_group


def means_object(ref: WorkloadRef, object_id: ObjectId) -> bool:
    """Return whether a reference to a workload may mean an object."""
    return reference_key(ref) in reference_keys(object_id)
