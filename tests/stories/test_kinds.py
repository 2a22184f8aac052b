"""Each kind of workload goes from one cluster to three and comes back, with its share where its kind has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, kind_of
from reconciler.core.workloads.paths import at, replicas_at
from reconciler.core.workloads.pods import pod_labels_path, pod_template_sites
from reconciler.errors import Severity
from reconciler.model.kubernetes.workload_kind import EACH
from tests.stories.kinds import KINDS, LACKING, LENDERS, PEAK, STORIES, Played, expected, play, read

LABEL = "overspill.dev/placement"
STEPS = range(len(LACKING))
NO_STORY = {"Pod", "ReplicationController", "DaemonSet", "CronJob", "BroadcastJob", "AdvancedCronJob"}
"""Built-in kinds that do not burst: of one pod there is no share, and nobody counts the pods of the last four."""


def test_every_built_in_kind_that_lends_has_a_story_and_so_has_a_charts_value() -> None:
    told = set()
    for story in STORIES:
        for template in read(story).desired.templates.values():
            made = [kind_of(one.manifest, NO_KINDS) for one in template.spec.manifests]
            told |= {kind.name for kind in made if kind is not None} | {"chart" for _ in template.spec.helm}
    assert told == {kind.name for kind in BUILT_IN.values() if kind.kind not in NO_STORY} | {"chart"}


@pytest.mark.parametrize("story", STORIES, ids=[story.stem for story in STORIES])
def test_the_templates_of_a_story_have_no_error(story: Path) -> None:
    desired = read(story).desired
    assert [problem for problem in desired.problems if problem.severity is Severity.ERROR] == []
    assert {workload.name for workload in desired.policies} == {workload.name for workload in desired.templates}


# Playing a story takes longer than all that is asked of it.
@pytest.mark.parametrize("story", STORIES, ids=[story.stem for story in STORIES])
@pytest.mark.exhaustive(one_in=5)
def test_a_kind_goes_from_one_cluster_to_three_and_comes_back(story: Path) -> None:
    made = play(read(story))
    comes_out_as_it_is_written_down(story, made)
    clusters_are_taken_one_after_the_other_and_given_back_in_reverse(made)
    what_is_lent_is_what_home_is_short_of(made)
    what_goes_whole_is_on_one_cluster_at_a_time(made)
    the_share_of_a_cluster_is_written_where_its_kind_has_its_replicas(made)
    every_pod_is_counted_that_a_kind_lets_be_labelled(made)


def comes_out_as_it_is_written_down(story: Path, made: Played) -> None:
    assert expected(made) == story.with_suffix(".txt").read_text()


def clusters_are_taken_one_after_the_other_and_given_back_in_reverse(made: Played) -> None:
    taken = [[cluster for cluster, there in made.placed(step).items() if there] for step in STEPS]
    assert taken == [list(LENDERS[:lacking]) for lacking in LACKING]
    assert made.trees[-1] == {}


def what_is_lent_is_what_home_is_short_of(made: Played) -> None:
    burst = [sum(sum(there.values()) for there in made.placed(step).values()) for step in STEPS]
    assert burst == [made.story.short(step) for step in STEPS]


def what_goes_whole_is_on_one_cluster_at_a_time(made: Played) -> None:
    for step in STEPS if made.story.whole else ():
        there = [name for names in made.placed(step).values() for name in names]
        assert len(there) == len({*there}) == LACKING[step]


def the_share_of_a_cluster_is_written_where_its_kind_has_its_replicas(made: Played) -> None:
    shares = made.placed(PEAK)
    for cluster, _, manifest in made.objects(PEAK):
        kind = kind_of(manifest, NO_KINDS)
        if kind is not None and not made.story.whole:
            assert replicas_at(manifest, kind.replicas) == sum(shares[cluster].values())


def every_pod_is_counted_that_a_kind_lets_be_labelled(made: Played) -> None:
    for _, path, manifest in made.objects(PEAK):
        for place in pod_template_sites(manifest):
            way = pod_labels_path(manifest, place)
            stands = bool(place.loc) and at(manifest, tuple(map(str, place.loc))) is not None
            if stands and place.template.labels:
                assert EACH not in way
                assert at(manifest, way)[LABEL] == path.split("/")[2]


def test_no_story_is_left_without_what_is_expected_and_nothing_is_expected_of_none() -> None:
    assert {path.stem for path in KINDS.glob("*.txt")} == {path.stem for path in STORIES}
