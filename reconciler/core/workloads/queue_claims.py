"""How Kueue queues the pods of an object: by which LocalQueue, and which of them together.

The rules of kubernetes-sigs/kueue at ff69552, `pkg/controller/jobframework` and `pkg/controller/jobs`. Which kinds a
cluster's Kueue manages is in its configuration, which is not read: all that it has an integration for count as managed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.core.expressions.dialect import has_expression
from reconciler.core.pods.pod_admission import DEFAULT_QUEUE, QUEUE_LABEL, asks_for_topology
from reconciler.core.pods.pod_references import as_mapping
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import NO_KINDS, kind_of
from reconciler.core.workloads.kueue_pod_sets import template_annotations
from reconciler.core.workloads.kueue_queues import GROUP
from reconciler.core.workloads.paths import at
from reconciler.core.workloads.pods import PodTemplateSite, pod_labels_path
from reconciler.model.kubernetes.queues import QueueClaim
from reconciler.model.workload import Json

_NAMESPACE = ("metadata", "namespace")


def queue_claim(
    manifest: Mapping[str, Json], place: PodTemplateSite, others: Iterable[Mapping[str, Json]] = ()
) -> QueueClaim | None:
    """Return how the pods of one template of an object are queued; `others` are the objects deployed with it.

    An object of a kind that Kueue has an integration for names its queue by a label. Of other kinds each pod is by
    itself, and so it is where only the pod template has the label. None where an expression names the queue.
    """
    kind = kind_of(manifest, NO_KINDS)
    labels_path = pod_labels_path(manifest, place)
    own = as_mapping(at(manifest, ("metadata", "labels"))).get(QUEUE_LABEL)
    of_pods = as_mapping(at(manifest, labels_path)).get(QUEUE_LABEL) if labels_path else None
    name = str(own or of_pods or "")
    if has_expression(name):
        return None
    integrated = kind is not None and not kind.unqueued and not kind.one_by_one
    return QueueClaim(
        queue=name,
        each=not integrated or bool(of_pods and not own),
        topology=asks_for_topology(template_annotations(place, manifest)),
        cluster_queue=_included_cluster_queue(name, at(manifest, _NAMESPACE), others),
    )


def _included_cluster_queue(name: str, namespace: Json, others: Iterable[Mapping[str, Json]]) -> str:
    """Return the ClusterQueue of a LocalQueue that comes with an object; empty where none does.

    What names no queue is in the default one, where that comes along, too.
    """
    for other in others:
        around = at(other, _NAMESPACE)
        if around and namespace and around != namespace:
            continue
        if group_kind(other) == f"{GROUP}/LocalQueue" and at(other, ("metadata", "name")) == (name or DEFAULT_QUEUE):
            return str(at(other, ("spec", "clusterQueue")) or "")
    return ""
