"""Pods of subsets that are rendered while deciding cost a workspace no more than its bound in each pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from reconciler.core.expressions.work import MAX_WORK
from reconciler.core.fleet.cluster_order import ClusterOrder
from reconciler.core.fleet.spread.pods import SubsetDrafts
from reconciler.model.bounds import SUBSET_WORK
from reconciler.model.ids import ClusterName, WorkloadId
from reconciler.model.policy import Desired
from reconciler.text.timestamps import format_time
from tests.builders.inputs import NOW, desired, seconds, template
from tests.builders.subsets import CLUSTERS, spreading, subset

LONG = "{% for i in range(90000) %}{% endfor %}"
MOMENT, TEMPLATE = "{{ placement.createdAt }}", "{{ template.name }}"
PATCH = {"spec": {"containers": [{"name": "vllm", "envFrom": [{"secretRef": {"name": "token"}}]}]}}
UNKNOWN = "demo"
"""The namespace of a Secret that a patch adds to pods nobody knows."""
NEIGHBOUR = WorkloadId("other", "vllm")


def fleet(number: int, namespace: str, note: Any) -> Desired:
    """Make a fleet with a number of workloads in one workspace, and one in another, each with a patched subset."""
    workloads = [WorkloadId("llm", f"a{index:03}") for index in range(number)]
    made = desired(spreading(subset("all", patch=PATCH)), clusters=CLUSTERS, workloads=(*workloads, NEIGHBOUR))
    metadata = {"name": "vllm", "namespace": namespace, "annotations": {"note": note}}
    (resource,) = template(NEIGHBOUR).spec.manifests
    pods = {"spec": {"containers": [{"name": "vllm", "image": "vllm"}]}}
    manifest = {**resource.manifest, "metadata": metadata, "spec": {"template": pods}}
    spec = replace(template(NEIGHBOUR).spec, manifests=(replace(resource, manifest=manifest),))
    return replace(made, templates={name: replace(one, spec=spec) for name, one in made.templates.items()})


def namespaces(drafts: SubsetDrafts, wanted: Desired, now: datetime, workspace: str = "llm") -> Counter[str]:
    """Count the namespaces in which the workloads of a workspace need the Secret of the patch, as of a moment."""
    (only,) = spreading(subset("all", patch=PATCH)).spread.subsets
    needed = [
        drafts.needed(one, wanted.policies[name], only, wanted.clusters[ClusterName("worker-2")], now=now)
        for name, one in wanted.templates.items()
        if name.workspace == workspace
    ]
    return Counter(secret.name.rpartition("/")[0] for (secret,) in needed)


MOST = 1 + SUBSET_WORK.most // 90_000
"""The most of the long templates that a pass renders."""


def test_long_templates_of_subsets_share_the_bound_of_their_workspace_and_are_all_read_in_time() -> None:
    number = 2 * MOST
    wanted = fleet(number, TEMPLATE, LONG)
    drafts = ClusterOrder(wanted).drafts
    read = [number - namespaces(drafts, wanted, NOW + seconds(after))[UNKNOWN] for after in range(3)]
    assert SUBSET_WORK.most // MAX_WORK <= read[0] <= MOST
    assert read[0] < read[1] <= 2 * read[0]
    assert read[2] == number


def test_workspace_at_its_bound_touches_no_other() -> None:
    wanted = fleet(2 * MOST, TEMPLATE, LONG)
    drafts = ClusterOrder(wanted).drafts
    assert namespaces(drafts, wanted, NOW)[UNKNOWN] > 0
    assert namespaces(drafts, wanted, NOW, "other")[UNKNOWN] == 0


def test_pods_that_change_with_each_pass_cost_the_second_one_no_more_than_the_first() -> None:
    number = 2 * MOST
    wanted = fleet(number, MOMENT, LONG)
    drafts = ClusterOrder(wanted).drafts
    first = namespaces(drafts, wanted, NOW)[format_time(NOW)]
    assert first <= MOST
    assert namespaces(drafts, wanted, NOW) == {format_time(NOW): first, UNKNOWN: number - first}
    for after in range(1, 6):
        now = NOW + seconds(after)
        counted = namespaces(drafts, wanted, now)
        assert first // 2 <= counted[format_time(now)] <= first
    assert counted[UNKNOWN] == 0


def test_looks_at_other_moments_give_a_pass_no_second_bound() -> None:
    wanted = fleet(2 * MOST, MOMENT, LONG)
    drafts = ClusterOrder(wanted).drafts
    first = namespaces(drafts, wanted, NOW)
    ahead = namespaces(drafts, wanted, NOW + seconds(3600))
    again = namespaces(drafts, wanted, NOW)
    assert again[UNKNOWN] == ahead[UNKNOWN] < first[UNKNOWN]
    assert again[format_time(NOW)] <= first[format_time(NOW)]


def test_large_objects_count_without_long_expressions() -> None:
    number = 100
    wanted = fleet(number, MOMENT, {f"k{index}": str(index) for index in range(2_000)})
    assert 0 < namespaces(ClusterOrder(wanted).drafts, wanted, NOW)[UNKNOWN] < number


def test_template_over_the_bound_leaves_the_others_their_turn() -> None:
    wanted = fleet(3, TEMPLATE, MOMENT)
    first, *_ = sorted(name for name in wanted.templates if name.workspace == "llm")
    large = wanted.templates[first]
    (resource,) = large.spec.manifests
    manifest = {**resource.manifest, "data": {f"k{index}": "v" for index in range(SUBSET_WORK.most // 45)}}
    spec = replace(large.spec, manifests=(replace(resource, manifest=manifest),))
    wanted = replace(wanted, templates={**wanted.templates, first: replace(large, spec=spec)})
    drafts = ClusterOrder(wanted).drafts
    unknown = [namespaces(drafts, wanted, NOW + seconds(30 * after))[UNKNOWN] for after in range(3)]
    assert unknown == [2, 0, 0]


@pytest.mark.parametrize("previewed", [False, True])
def test_older_pods_are_rendered_again_in_turn(previewed: bool) -> None:
    """Also where somebody looks at one workload between any two passes."""
    number = 2 * MOST
    wanted = fleet(number, MOMENT, LONG)
    drafts = ClusterOrder(wanted).drafts
    (only,) = spreading(subset("all", patch=PATCH)).spread.subsets
    last = WorkloadId("llm", f"a{number - 1:03}")
    for after in range(20):
        counted = namespaces(drafts, wanted, NOW + seconds(30 * after))
        if previewed:
            cluster, later = wanted.clusters[ClusterName("worker-2")], NOW + seconds(30 * after + 1)
            drafts.needed(wanted.templates[last], wanted.policies[last], only, cluster, now=later)
    assert counted.total() == number
    assert min(counted) > format_time(NOW + seconds(30 * 10))
