"""A right that a cluster takes back makes objects unknown, and never gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from reconciler.core.workloads.train_job import TRAINER
from reconciler.model.ids import ClusterName
from reconciler.model.manifest_source import Companion, SourceKey, WorkloadSource
from tests.builders.kube_objects import claim_template, exactly, pod, workload
from tests.builders.train_jobs import runtime
from tests.builders.watched_clusters import ONE_NAME, TWO_NAME, Fleet, seen, until
from tests.kube.test_custom_objects import LISTED, TRAIN_JOBS, deploying_train_jobs, following

RUNTIME = WorkloadSource(kind="ClusterTrainingRuntime", group=TRAINER, namespace="", name="torch-distributed")
SETTINGS = Companion(kind="ConfigMap", namespace="demo", name="settings")


@dataclass(frozen=True)
class Situation:
    """Objects of one resource, and what is known for them."""

    prepare: Callable[[Fleet], None]
    path: str
    known: Callable[[Any], object]
    delete: tuple[str, str, str]
    cluster: ClusterName = ONE_NAME


def made_from(source: WorkloadSource, plural: str, raw: dict[str, Any]) -> Callable[[Fleet], None]:
    """Have a template made from an object of the primary."""

    def prepare(clusters: Fleet) -> None:
        clusters.one.put("deployments", workload("vllm", 6))
        clusters.one.put(plural, raw)
        clusters.desired = replace(clusters.desired, sources=frozenset({SourceKey(source, ONE_NAME)}))

    return prepare


def claiming(clusters: Fleet) -> None:
    """Have a pod wait for devices that a template of claims says."""
    claims = [{"name": "gpus", "resourceClaimTemplateName": "gpus"}]
    clusters.one.put("resourceclaimtemplates", claim_template(exactly()))
    clusters.one.put("deployments", workload("vllm", 1))
    waiting = pod("vllm-1", owner=("Deployment", "vllm"), waits="0/1 nodes are available: 1 cannot allocate", gpus=0)
    waiting["spec"]["resourceClaims"] = claims
    clusters.one.put("pods", waiting)


def objects(found: Any) -> list[str]:
    return [str(each.manifest["metadata"]["name"]) for each in found.objects]


SITUATIONS = {
    "objects of placements": Situation(
        deploying_train_jobs, TRAIN_JOBS, lambda found: found.bound, ("trainjobs", "llm", "demo"), TWO_NAME
    ),
    "workload objects": Situation(
        following,
        LISTED,
        lambda found: [each.wanted for each in found.workloads],
        ("leaderworkersets", "model", "demo"),
    ),
    "templates of claims": Situation(
        claiming,
        "/resourceclaimtemplates",
        lambda found: [bool(each.shape.devices) for each in found.workloads],
        ("resourceclaimtemplates", "gpus", "demo"),
    ),
    "referred objects": Situation(
        made_from(RUNTIME, "clustertrainingruntimes", runtime()),
        "/clustertrainingruntimes",
        objects,
        ("clustertrainingruntimes", "torch-distributed", ""),
    ),
    "companions": Situation(
        made_from(
            WorkloadSource(kind="Deployment", group="apps", namespace="demo", name="vllm", companions=(SETTINGS,)),
            "configmaps",
            {"metadata": {"name": "settings", "namespace": "demo"}, "data": {"MODEL": "llama"}},
        ),
        "/configmaps",
        objects,
        ("configmaps", "settings", "demo"),
    ),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
@pytest.mark.exhaustive(one_in=3)
def test_what_can_no_longer_be_read_stays_as_it_was_seen_and_is_told(clusters: Fleet, situation: Situation) -> None:
    situation.prepare(clusters)
    server = clusters.one if situation.cluster == ONE_NAME else clusters.two
    view = clusters.following()
    until(lambda: server.count(situation.path, watch=True))
    first = seen(view, situation.cluster)
    known = situation.known(first)
    until(lambda: seen(view, situation.cluster).observed_at > first.observed_at)
    server.refuses[situation.path] = 403
    server.drop()
    until(lambda: "are not looked at: forbids it" in str(view.observe().problems))
    server.delete(*situation.delete)
    tries = server.count(situation.path, watch=False)
    until(lambda: server.count(situation.path, watch=False) > tries + 1)
    assert situation.known(seen(view, situation.cluster)) == known
    server.refuses.clear()
    until(lambda: situation.known(seen(view, situation.cluster)) != known)
    until(lambda: view.observe().problems == ())  # those of placements are watched beside them


@pytest.mark.parametrize("status", [403, 404])
def test_objects_that_are_kept_without_the_right_go_with_their_kind(clusters: Fleet, status: int) -> None:
    following(clusters)
    view = clusters.following()
    until(lambda: clusters.one.count(LISTED, watch=True))
    first = seen(view)
    until(lambda: seen(view).observed_at > first.observed_at)
    clusters.one.refuses[LISTED] = status
    clusters.one.drop()
    until(lambda: clusters.one.count(LISTED, watch=False) > 2)
    clusters.one.refuses[LISTED] = 404
    until(lambda: [each.wanted for each in seen(view).workloads] == [1])
    assert (seen(view).unread, view.observe().problems) == ((), ())


def test_kind_that_cannot_be_read_any_more_is_named_with_its_last_time_and_the_way_out(clusters: Fleet) -> None:
    following(clusters)
    view = clusters.following()
    until(lambda: clusters.one.count(LISTED, watch=True))
    first = seen(view)
    assert first.unread == ()
    until(lambda: seen(view).observed_at > first.observed_at)
    clusters.one.refuses[LISTED] = 403
    clusters.one.drop()
    until(lambda: seen(view).unread)
    (unread,) = seen(view).unread
    assert (unread.kind, unread.title) == ("LeaderWorkerSet", "leaderworkersets.leaderworkerset.x-k8s.io")
    assert unread.at is not None
    assert unread.why.endswith("(apply bootstrap/rbac.yaml there)")
    until(lambda: seen(view).observed_at > unread.at)
    assert seen(view).unread == (unread,)


def test_kind_that_could_never_be_read_has_no_last_time(clusters: Fleet) -> None:
    following(clusters)
    clusters.one.refuses[LISTED] = 403
    view = clusters.following()
    assert [(each.kind, each.at) for each in seen(view).unread] == [("LeaderWorkerSet", None)]
