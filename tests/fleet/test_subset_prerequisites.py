"""What a subset's patch refers to is asked of clusters first, as what a template refers to is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconciler.core.decide.decide import decide
from reconciler.core.explain.workload import explain
from reconciler.core.fleet.prerequisites import prerequisites
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.plan import Plan, Reason, Refusal
from reconciler.model.policy import Cluster, Desired
from reconciler.model.workload import Json
from tests.builders.deploy_specs import chart, spec
from tests.builders.inputs import VLLM, free, inputs, plan, short
from tests.builders.platform_objects import obj, providing
from tests.builders.requests import manifests
from tests.builders.subsets import CLUSTERS, fleet, out, subset

CONTAINER = {"name": "vllm", "image": "vllm:1"}


def from_secret(name: str, **more: Json) -> Json:
    """Patch a variable out of a Secret into the container."""
    variable = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": name, "key": "token", **more}}}
    return {"containers": [{"name": "vllm", "env": [variable]}]}


def patched(pod: Json, *clusters: Cluster, own: Json = None, beside: tuple[Json, ...] = ()) -> Desired:
    """A fleet of one subset whose patch says so of pods; they are a Deployment's, with others deployed beside it."""
    made = fleet(Subset(name="rented", patch={"spec": pod}), clusters=(CLUSTERS[0], *clusters))
    template = {"metadata": {"labels": {"app": "vllm"}}, "spec": {"containers": [CONTAINER], **(own or {})}}
    server = obj("apps/v1", "Deployment", name="vllm", spec={"replicas": "{{ replicas }}", "template": template})
    return deploying(made, manifests(server, *beside))


def deploying(made: Desired, deployed: Any) -> Desired:
    needs = prerequisites(deployed, made.workspaces[VLLM.workspace], NO_KINDS)
    template = replace(made.templates[VLLM], spec=deployed, prerequisites=needs)
    return replace(made, templates={VLLM: template})


def refused(wanted: Desired) -> list[Refusal]:
    made = plan(short(1), free("worker-2", 8), wanted=wanted)
    return [one for held in made.suppressed for one in held.refusals]


def test_a_cluster_without_the_secret_that_a_patch_refers_to_is_passed_over() -> None:
    lacks, has = providing("worker-2", secrets=()), providing("worker-3", secrets=("ml/login",))
    made = plan(short(1), free("worker-2", 8), free("worker-3", 8), wanted=patched(from_secret("login"), lacks, has))
    assert out(made) == {"worker-3/rented": 1}
    (change,) = made.changes
    (refusal,) = change.refused
    assert (refusal.reason, refusal.subset) == (Reason.NEEDS_FIRST, "rented")
    assert refusal.message == "has no Secret ml/login, which Deployment vllm in subset rented needs"
    assert refusal.remedy == (
        "create it there and list it in its spec.provides.secrets (what a list does not name, the cluster lacks), or"
        " ship it with the workload"
    )


def test_whatever_pods_refer_to_is_asked_of_a_patch_too() -> None:
    said = providing("worker-2", priorityClasses=(), runtimeClasses=(), serviceAccounts=(), volumes=(), configMaps=())
    claims = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "models"}}]}
    pod = {"priorityClassName": "high", "runtimeClassName": "kata", "serviceAccountName": "reader", **claims}
    (refusal,) = refused(patched(pod, said))
    assert refusal.message == (
        "has no priority class high, which Deployment vllm in subset rented needs, nor RuntimeClass kata, "
        "PersistentVolumeClaim ml/models and ServiceAccount ml/reader"
    )


def test_what_a_patch_takes_away_is_not_asked_for() -> None:
    said = providing("worker-2", priorityClasses=("low",))
    own = {"priorityClassName": "high"}
    assert [one.reason for one in refused(patched({}, said, own=own))] == [Reason.NEEDS_FIRST]
    assert refused(patched({"priorityClassName": "low"}, said, own=own)) == []
    assert refused(patched({"priorityClassName": None}, said, own=own)) == []


def test_what_comes_along_or_may_be_missing_is_not_asked_for() -> None:
    said = providing("worker-2", secrets=())
    assert refused(patched(from_secret("login"), said, beside=(obj("v1", "Secret", name="login"),))) == []
    assert refused(patched(from_secret("login", optional=True), said)) == []


def test_one_subset_is_asked_for_its_own_patch_alone() -> None:
    said = providing("worker-2", secrets=())
    made = patched(from_secret("login"), said)
    policy = made.policies[VLLM]
    assert policy.spread is not None
    spread = replace(policy.spread, subsets=(*policy.spread.subsets, subset("plain")))
    made = replace(made, policies={VLLM: replace(policy, spread=spread)})
    assert out(plan(short(1), free("worker-2", 8), wanted=made)) == {"worker-2/plain": 1}


def test_of_a_chart_the_patch_itself_tells_what_it_refers_to() -> None:
    clusters = CLUSTERS[0], providing("worker-2", secrets=())
    made = fleet(Subset(name="rented", patch={"spec": from_secret("login")}), clusters=clusters)
    made = deploying(made, spec(chart()))
    seen = inputs(short(1), free("worker-2", 8), wanted=made)
    seen = replace(seen, observed=replace(seen.observed, helm=True))
    (refusal,) = decide(seen).suppressed[0].refusals
    assert refusal.message == "has no Secret demo/login, which subset rented needs"


def test_explain_tells_what_nobody_knows_of_a_subset() -> None:
    made = patched(from_secret("login"), providing("worker-2"))
    told = explain(VLLM, inputs(short(1), free("worker-2", 8), wanted=made), Plan(changes=(), suppressed=()))
    assert told.conclusion[-1] == (
        "worker-2 does not say whether it has Secret ml/login: list what it has in its spec.provides.secrets."
    )
