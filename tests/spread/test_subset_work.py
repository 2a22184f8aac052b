"""Pods of subsets that are rendered while deciding cost a workspace no more than its bound in each pass."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from reconciler.core.expressions.work import MAX_WORK
from reconciler.core.fleet.sources.patches import PatchedTemplates
from reconciler.core.fleet.spread.drafts import SubsetDrafts
from reconciler.model.bounds import SUBSET_WORK
from reconciler.model.drafted_subsets import DraftedSubsets
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


def drafts(wanted: Desired, now: datetime = NOW, before: SubsetDrafts | None = None) -> SubsetDrafts:
    """Begin a pass over a fleet, with what the pass `before` has rendered."""
    drafted = DraftedSubsets() if before is None else before.drafted().next_pass()
    return SubsetDrafts(drafted, wanted, PatchedTemplates(wanted), now)


def secrets(made: SubsetDrafts, wanted: Desired, workspace: str = "llm") -> dict[str, str]:
    """Return the namespace in which each workload of a workspace needs the Secret of the patch, by its name."""
    (only,) = spreading(subset("all", patch=PATCH)).spread.subsets
    needed = {
        name.name: made.needed(one, wanted.policies[name], only, wanted.clusters[ClusterName("worker-2")])
        for name, one in wanted.templates.items()
        if name.workspace == workspace
    }
    return {name: secret.name.rpartition("/")[0] for name, (secret,) in needed.items()}


def namespaces(made: SubsetDrafts, wanted: Desired, workspace: str = "llm") -> Counter[str]:
    """Count the namespaces in which the workloads of a workspace need the Secret of the patch."""
    return Counter(secrets(made, wanted, workspace).values())


MOST = 1 + SUBSET_WORK.most // 90_000
"""The most of the long templates that a pass renders."""


def test_long_templates_of_subsets_share_the_bound_of_their_workspace_and_are_all_read_in_time() -> None:
    number = 2 * MOST
    wanted, made, read = fleet(number, TEMPLATE, LONG), None, []
    for after in range(3):
        made = drafts(wanted, NOW + seconds(after), made)
        read.append(number - namespaces(made, wanted)[UNKNOWN])
        assert made.drafted().has_untried == (read[-1] < number)
    assert SUBSET_WORK.most // MAX_WORK <= read[0] <= MOST
    assert read[0] < read[1] <= 2 * read[0]
    assert read[2] == number


def test_passes_of_the_same_second_go_on_with_what_is_left() -> None:
    wanted = fleet(2 * MOST, TEMPLATE, LONG)
    first = drafts(wanted)
    assert namespaces(first, wanted)[UNKNOWN] > namespaces(drafts(wanted, NOW, first), wanted)[UNKNOWN]


def test_workspace_at_its_bound_touches_no_other() -> None:
    wanted = fleet(2 * MOST, TEMPLATE, LONG)
    made = drafts(wanted)
    assert namespaces(made, wanted)[UNKNOWN] > 0
    assert namespaces(made, wanted, "other")[UNKNOWN] == 0


def test_pods_that_change_with_each_pass_cost_the_second_one_no_more_than_the_first() -> None:
    number = 2 * MOST
    wanted = fleet(number, MOMENT, LONG)
    made = drafts(wanted)
    first = namespaces(made, wanted)[format_time(NOW)]
    assert first <= MOST
    assert namespaces(made, wanted) == {format_time(NOW): first, UNKNOWN: number - first}
    for after in range(1, 6):
        now = NOW + seconds(after)
        made = drafts(wanted, now, made)
        counted = namespaces(made, wanted)
        assert first // 2 <= counted[format_time(now)] <= first
    assert counted[UNKNOWN] == 0


def test_look_at_another_moment_leaves_the_drafts_of_the_pass_as_they_are() -> None:
    wanted = fleet(2 * MOST, MOMENT, LONG)
    made = drafts(wanted)
    first = secrets(made, wanted)
    preview = drafts(wanted, NOW + seconds(3600), made)
    assert secrets(preview, wanted) != first
    assert secrets(made, wanted) == first


def test_decision_of_the_same_pass_goes_on_with_what_is_left_of_its_bound() -> None:
    wanted = fleet(2 * MOST, TEMPLATE, LONG)
    made = drafts(wanted)
    left = namespaces(made, wanted)[UNKNOWN]
    again = SubsetDrafts(made.drafted(), wanted, PatchedTemplates(wanted), NOW)
    assert namespaces(again, wanted)[UNKNOWN] == left
    assert again.drafted().has_untried
    assert namespaces(drafts(wanted, NOW, again), wanted)[UNKNOWN] < left


def test_what_a_pass_hands_on_stays_as_it_is_while_others_render_more() -> None:
    """Threads of the API read it meanwhile."""
    wanted = fleet(2 * MOST, MOMENT, LONG)
    made = drafts(wanted)
    namespaces(made, wanted)
    drafted = made.drafted().next_pass()
    shown = deepcopy(drafted)
    namespaces(made, wanted)
    namespaces(SubsetDrafts(drafted, wanted, PatchedTemplates(wanted), NOW + seconds(30)), wanted)
    assert drafted == shown


def untried(before: Desired, after: Desired) -> set[str]:
    """Name the workloads of the first workspace whose pods, rendered in one fleet, are to be rendered in another."""
    made = drafts(before)
    namespaces(made, before)
    kept = drafts(after, NOW + seconds(1), made).drafted()
    rendered = {workload for (workload, _), _, _, cluster in kept.drafts if cluster in (None, ClusterName("worker-2"))}
    return {name.name for name in after.templates if name.workspace == "llm" and name not in rendered}


def with_part(wanted: Desired, part: str, name: str, **fields: object) -> Desired:
    """Change a template, policy, workspace or cluster of a fleet."""
    values = getattr(wanted, part)
    return replace(
        wanted, **{part: {key: replace(one, **fields) if str(key) == name else one for key, one in values.items()}}
    )


OTHER_SPREAD = spreading(subset("all", patch={"spec": {"hostNetwork": True}})).spread


@pytest.mark.parametrize(
    ("part", "name", "fields", "again"),
    [
        ("templates", "llm/a000", {"namespace": "more"}, {"a000"}),
        ("templates", "llm/a000", {"path": "moved.yaml", "line": 7, "blob": "b" * 40}, set()),
        ("policies", "llm/a000", {"spread": OTHER_SPREAD}, {"a000"}),
        ("policies", "llm/a000", {"default_duration": seconds(7)}, {"a000"}),
        ("policies", "llm/a000", {"priority": 7, "max_replicas": 7}, set()),
        ("workspaces", "llm", {"namespaces": ("demo", "more")}, {"a000", "a001"}),
        ("workspaces", "llm", {"weight": 7}, set()),
        ("workspaces", "other", {"namespaces": ("demo", "more")}, set()),
        ("clusters", "worker-2", {"labels": {"zone": "b"}}, set()),
    ],
)
def test_pods_are_rendered_again_once_what_they_are_rendered_from_changes(
    part: str, name: str, fields: dict[str, Any], again: set[str]
) -> None:
    wanted = fleet(2, TEMPLATE, "x")
    assert untried(wanted, with_part(wanted, part, name, **fields)) == again


def test_pods_of_templates_that_read_their_cluster_follow_its_labels_alone() -> None:
    wanted = fleet(2, TEMPLATE, "{{ cluster.name }}")
    assert untried(wanted, with_part(wanted, "clusters", "worker-2", labels={"zone": "b"})) == {"a000", "a001"}
    assert untried(wanted, with_part(wanted, "clusters", "worker-2", price_per_gpu_hour=7.0)) == set()
    assert untried(wanted, with_part(wanted, "clusters", "worker-3", labels={"zone": "b"})) == set()


def test_large_objects_count_without_long_expressions() -> None:
    number = 100
    wanted = fleet(number, MOMENT, {f"k{index}": str(index) for index in range(2_000)})
    assert 0 < namespaces(drafts(wanted), wanted)[UNKNOWN] < number


def test_template_over_the_bound_leaves_the_others_their_turn() -> None:
    wanted = fleet(3, TEMPLATE, MOMENT)
    first, *_ = sorted(name for name in wanted.templates if name.workspace == "llm")
    large = wanted.templates[first]
    (resource,) = large.spec.manifests
    manifest = {**resource.manifest, "data": {f"k{index}": "v" for index in range(SUBSET_WORK.most // 45)}}
    spec = replace(large.spec, manifests=(replace(resource, manifest=manifest),))
    wanted = replace(wanted, templates={**wanted.templates, first: replace(large, spec=spec)})
    made, unknown = None, []
    for after in range(3):
        made = drafts(wanted, NOW + seconds(30 * after), made)
        unknown.append(namespaces(made, wanted)[UNKNOWN])
    assert unknown == [2, 0, 0]


@pytest.mark.parametrize("previewed", [False, True])
def test_older_pods_are_rendered_again_in_turn(previewed: bool) -> None:
    """Also where passes that ask for one workload alone come between any two."""
    number = 2 * MOST
    wanted, made = fleet(number, MOMENT, LONG), None
    (only,) = spreading(subset("all", patch=PATCH)).spread.subsets
    last = WorkloadId("llm", f"a{number - 1:03}")
    for after in range(20):
        made = drafts(wanted, NOW + seconds(30 * after), made)
        counted = namespaces(made, wanted)
        if previewed:
            made = drafts(wanted, NOW + seconds(30 * after + 1), made)
            made.needed(wanted.templates[last], wanted.policies[last], only, wanted.clusters[ClusterName("worker-2")])
    assert counted.total() == number
    assert min(counted) > format_time(NOW + seconds(30 * 10))
