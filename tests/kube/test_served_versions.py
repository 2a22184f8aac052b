"""The API versions of watched clusters are asked for again and again, and keep nothing else from being seen."""

from __future__ import annotations

from tests.builders.watched_clusters import Fleet, seen, until

GROUPS = "/apis"


def asked(clusters: Fleet) -> int:
    return sum(path == GROUPS for _, path, _ in list(clusters.one.asked))


def test_versions_are_known_with_the_first_observation(clusters: Fleet) -> None:
    clusters.one.groups = {"apps": ["v1"], "resource.k8s.io": ["v1beta1", "v1"]}
    view = clusters.following()
    assert seen(view).api_versions == {"apps/v1", "resource.k8s.io/v1beta1", "resource.k8s.io/v1"}


def test_a_kind_that_is_installed_later_wakes_the_daemon(clusters: Fleet) -> None:
    clusters.one.groups = {"apps": ["v1"]}
    view = clusters.following()
    assert seen(view).api_versions == {"apps/v1"}
    clusters.woken.clear()
    clusters.one.groups = {"apps": ["v1"], "jobset.x-k8s.io": ["v1alpha2"]}
    until(lambda: seen(view).api_versions == {"apps/v1", "jobset.x-k8s.io/v1alpha2"})
    until(lambda: clusters.woken)


def test_a_server_that_names_no_version_or_forbids_the_question_is_unknown(clusters: Fleet) -> None:
    view = clusters.following()
    assert seen(view).api_versions is None
    clusters.one.groups = {"apps": ["v1"]}
    until(lambda: seen(view).api_versions == {"apps/v1"})
    clusters.one.refuses[GROUPS] = 403
    until(lambda: seen(view).api_versions is None)
    assert seen(view).healthy


def test_a_server_that_fails_to_answer_serves_what_it_served(clusters: Fleet) -> None:
    clusters.one.groups = {"apps": ["v1"]}
    view = clusters.following()
    clusters.one.refuses[GROUPS] = 500
    before = asked(clusters)
    until(lambda: asked(clusters) >= before + 2)
    assert seen(view).api_versions == {"apps/v1"}


def test_an_answer_of_another_shape_is_unknown(clusters: Fleet) -> None:
    clusters.one.documents[GROUPS] = {"groups": [None, {"versions": [3, {}]}, {"versions": 3}]}
    view = clusters.following()
    assert seen(view).api_versions is None
