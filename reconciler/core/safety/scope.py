"""Which objects of placements have no namespace, and so may be what others live in.

A CustomResourceDefinition in the fleet repository says it of its kind; next come the names of `workloads.api_kinds`.
Workloads and their companions live in namespaces. Of any other custom kind nothing is known: an API server would tell,
and rendering is pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.core.safety.allowed_kinds import COMPANIONS
from reconciler.core.safety.lifetime import has_own_effect
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS, cluster_scoped, group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, Kinds
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.workload import Json


def is_cluster_scoped(kind: str, kinds: Kinds, schemas: ObjectSchemas) -> bool | None:
    """Return whether objects of a ``group/Kind`` have no namespace; None where it is unknown."""
    custom = schemas.custom.get(kind)
    if custom is not None and custom.cluster_scoped is not None:
        return custom.cluster_scoped
    if cluster_scoped(kind):
        return True
    is_known = kind.partition("/")[0] in KUBERNETES_GROUPS or kind in BUILT_IN or kind in kinds or kind in COMPANIONS
    return False if is_known else None


def has_unknown_scope(manifest: Mapping[str, Json], kinds: Kinds, schemas: ObjectSchemas) -> bool:
    """Return whether an object names no namespace, and nothing is known of the scope of its kind."""
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    return not namespace and is_cluster_scoped(group_kind(manifest), kinds, schemas) is None


def outlives_placements(manifest: Mapping[str, Json], kinds: Kinds, schemas: ObjectSchemas) -> bool:
    """Return whether others live in, or go by, an object, so that no end may prune it; also where they may."""
    kind = group_kind(manifest)
    if has_own_effect(kind):
        return False
    return bool(is_cluster_scoped(kind, kinds, schemas)) or has_unknown_scope(manifest, kinds, schemas)
