"""What is counted for a subset are the pods as they are written: after all that it injects, and its patch."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.core.commits.templates import render_templates
from reconciler.core.decide.candidates.finder import CandidateFinder
from reconciler.core.decide.state.pass_input import PassInput
from reconciler.core.decide.state.working_plan import WorkingPlan
from reconciler.core.engines import Deployment, engine
from reconciler.core.pods.node_affinity import selects_node
from reconciler.core.pods.pod_shape import replica_shape
from reconciler.core.spread.inject import placement_injection
from reconciler.errors import InvalidInput
from reconciler.model.action import Action
from reconciler.model.capacity import Node, Pool, ReplicaShape
from reconciler.model.cluster import Prerequisite
from reconciler.model.ids import ClusterName, CommitId
from reconciler.model.kubernetes.requirements import Requirements
from reconciler.model.kubernetes.scheduling import Taint, Toleration
from reconciler.model.kubernetes.workload_spread import Subset
from reconciler.model.plan import Change, Choice, Plan
from reconciler.model.policy import Availability, Desired
from reconciler.text.timestamps import format_time
from tests.builders.inputs import GPU, NOW, VLLM, cluster, free, gpus, inputs, ledger, plan, short
from tests.builders.subsets import (
    OWN,
    POOL,
    RENTED,
    TIER,
    fleet,
    out,
    pooled,
    stands,
    subset,
    term,
    unknown_pods,
    with_pods,
)

SPOT = Toleration(key="spot", operator="Exists")
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pods(*, spec: Any = None, number: int | str = 1, **labels: str) -> dict[str, Any]:
    """Make a pod template of one container that asks for so many GPUs."""
    container = {"name": "vllm", "image": "vllm", "resources": {"limits": {GPU: number}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **(spec or {})}}


def seen(template: dict[str, Any]) -> ReplicaShape:
    """Read a pod of this template as the primary has it."""
    metadata = {**template["metadata"], "namespace": "demo"}
    metadata["labels"] = {**(metadata.get("labels") or {}), "pod-template-hash": "7f3a"}
    return replica_shape(template["spec"], metadata)


def decided(template: dict[str, Any], subset: Subset, *observed: Any, missing: int = 5) -> Plan:
    """Decide for a workload of these pods, of which the primary has too little room for some."""
    return plan(short(missing, replica=seen(template)), *observed, wanted=with_pods(fleet(subset), template))


def affinity(*expressions: Any) -> dict[str, Any]:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [*expressions]}]}}}


def among(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": [*values]}


def patched(spec: Any, **fields: Any) -> Subset:
    return replace(RENTED, patch={"spec": spec}, **fields)


H100, A100 = ({"spec": {"nodeSelector": {POOL: name}}} for name in ("h100", "a100"))
SIDECAR = {"name": "probe", "image": "probe", "restartPolicy": "Always", "resources": {"limits": {GPU: 1}}}


def test_a_null_in_a_node_selector_does_not_free_what_affinity_requires() -> None:
    own = pods(spec={"affinity": affinity(among(POOL, "h100"))})
    made = decided(own, patched({"nodeSelector": {POOL: None}}), pooled("worker-4", h100=2, a100=9))
    assert out(made) == {"worker-4/rented": 2}


def test_a_null_in_a_node_selector_frees_what_the_selector_asks_for() -> None:
    made = decided(pods(**H100), patched({"nodeSelector": {POOL: None}}), pooled("worker-4", h100=2, a100=9))
    assert out(made) == {"worker-4/rented": 5}


def test_another_label_in_a_node_selector_goes_before_the_templates() -> None:
    made = decided(pods(**H100), patched(A100["spec"]), pooled("worker-4", h100=9, a100=2))
    assert out(made) == {"worker-4/rented": 2}


def test_affinity_that_is_patched_away_takes_the_term_of_the_subset_along() -> None:
    subset = patched({"affinity": None}, required=term(tier="rented", pool="h100"))
    assert out(decided(pods(), subset, pooled("worker-4", h100=2, a100=2))) == {"worker-4/rented": 4}
    kept = replace(subset, patch={})
    assert out(decided(pods(), kept, pooled("worker-4", h100=2, a100=2))) == {"worker-4/rented": 2}


def test_tolerations_that_a_patch_replaces_open_no_node_any_more() -> None:
    tainted = free("worker-4", 4, taints=(Taint(key="spot"),))
    assert out(decided(pods(), replace(RENTED, tolerations=(SPOT,)), tainted)) == {"worker-4/rented": 4}
    assert out(decided(pods(), patched({"tolerations": []}, tolerations=(SPOT,)), tainted)) == {}


def test_resources_that_a_patch_raises_are_counted() -> None:
    more = patched({"containers": [{"name": "vllm", "resources": {"limits": {GPU: 4}}}]})
    made = decided(pods(), more, free("worker-4", 7, 4, 3))
    assert out(made) == {"worker-4/rented": 2}
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert change.placement.shape.requests == gpus(4)


def test_a_sidecar_that_a_patch_adds_is_counted() -> None:
    made = decided(pods(), patched({"initContainers": [SIDECAR]}), free("worker-4", 5))
    assert out(made) == {"worker-4/rented": 2}


@pytest.mark.parametrize(
    "way",
    [("metadata",), ("spec",), ("spec", "template", "spec", "volumes"), ("spec", "template", "spec", "containers")],
)
@pytest.mark.parametrize("text", ["{{ cluster.name }}", "{{ [1] }}", "{{ [{'name': [1]}] }}"])
def test_what_expressions_make_no_object_of_ends_no_pass(way: tuple[str, ...], text: str) -> None:
    wanted = with_pods(fleet(OWN, patched(A100["spec"])), pods())
    (template,) = wanted.templates.values()
    (resource,) = template.spec.manifests
    manifest = dict(resource.manifest)
    (*above, last), there = way, manifest
    for part in above:
        there[part] = there = dict(there[part])
    there[last] = text
    spec = replace(template.spec, manifests=(replace(resource, manifest=manifest),))
    made = plan(
        short(3), pooled("worker-4", a100=4), wanted=replace(wanted, templates={VLLM: replace(template, spec=spec)})
    )
    assert sum(out(made).values()) + sum(one.replicas for one in made.suppressed) == 3


def test_anti_affinity_that_a_patch_adds_is_counted() -> None:
    one = {"labelSelector": {"matchLabels": {"app": "vllm"}}, "topologyKey": HOSTNAME}
    apart = patched({"affinity": {"podAntiAffinity": {REQUIRED: [one]}}})
    nodes = tuple(Node(name=name, free=gpus(4), labels={HOSTNAME: name}, pods=()) for name in ("a", "b"))
    observed = replace(free("worker-4"), pools=(Pool(name="gpu", nodes=nodes),))
    assert out(decided(pods(app="vllm"), apart, observed)) == {"worker-4/rented": 2}


def test_where_the_primary_shows_other_requests_than_the_template_a_patch_of_these_fits_nowhere() -> None:
    own = pods(number=1)
    more = patched({"containers": [{"name": "vllm", "resources": {"limits": {GPU: 4}}}]})
    filled_in = replace(seen(own), requests=gpus(2))
    made = plan(short(1, replica=filled_in), free("worker-4", 8), wanted=with_pods(fleet(more), own))
    (refused,) = (one for one in made.suppressed[0].refusals if one.cluster == "worker-4")
    assert refused.message == (
        "subset rented patches the resources of containers vllm, which cannot be counted here:"
        " pods on the primary cluster differ from the template"
    )


def test_what_the_primary_s_limit_range_gave_to_its_pods_does_not_keep_a_patch_of_requests_from_being_counted() -> None:
    own = pods(number=1)
    given_ = {"annotations": {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container vllm"}}
    filled_in = {**own, "metadata": {**own["metadata"], **given_}}
    (container,) = own["spec"]["containers"]
    requests = {"limits": {GPU: 1}, "requests": {GPU: 1, "cpu": "1"}}
    filled_in["spec"] = {**own["spec"], "containers": [{**container, "resources": requests}]}
    more = patched({"containers": [{"name": "vllm", "resources": {"limits": {GPU: 4}}}]})
    made = plan(short(1, replica=seen(filled_in)), free("worker-4", 8), wanted=with_pods(fleet(more), own))
    (change,) = made.changes
    assert change.action is Action.PLACE
    assert change.placement.shape.requests == gpus(4)


def test_where_the_primary_shows_other_requests_a_patch_of_anything_else_leaves_them_as_they_are_seen() -> None:
    own = pods(number=1)
    filled_in = replace(seen(own), requests=gpus(2))
    observed = pooled("worker-4", h100=9, a100=4)
    made = plan(short(5, replica=filled_in), observed, wanted=with_pods(fleet(patched(A100["spec"])), own))
    assert out(made) == {"worker-4/rented": 2}


def test_of_pods_that_are_not_known_a_label_that_affinity_may_require_is_not_patched_away() -> None:
    made = plan(
        short(1, replica=replace(seen(pods()), node_selector={POOL: "h100"})),
        pooled("worker-4", h100=0, a100=9),
        wanted=unknown_pods(fleet(patched({"nodeSelector": {POOL: None}}))),
    )
    assert out(made) == {}


def rented(
    wanted: Desired, now: datetime, before: PassInput | None = None
) -> tuple[PassInput, ReplicaShape, tuple[Prerequisite, ...]]:
    """Say what a replica asks for on the rented cluster, and what has to be there first, in a pass after another."""
    begun = inputs(free("worker-4", 8), wanted=wanted, now=now)
    if before is not None:
        begun = replace(begun, drafted=before.drafted.next_pass())
    working_plan, template, policy = WorkingPlan(begun), wanted.templates[VLLM], wanted.policies[VLLM]
    finder = CandidateFinder(begun, working_plan)
    (candidate,) = (one for one in finder.order(VLLM) if one.cluster == "worker-4")
    shape = finder.shaped(template, policy, candidate, seen(pods()))
    needed = finder.prerequisites(template, policy, candidate)
    return replace(begun, drafted=working_plan.drafts.drafted()), shape, needed


def test_a_template_that_reads_the_time_is_counted_as_it_is_in_each_pass() -> None:
    number = f"{{{{ 1 if placement.createdAt == '{format_time(NOW)}' else 2 }}}}"
    wanted = with_pods(fleet(patched({"initContainers": [SIDECAR]})), pods(number=number))
    first, shape, _ = rented(wanted, NOW)
    assert shape.requests == gpus(2)
    second, later, _ = rented(wanted, NOW + timedelta(seconds=1), first)
    assert later.obstacle.startswith("subset rented patches the resources of initContainers probe")
    assert rented(wanted, NOW, second)[1].requests == gpus(2)


@pytest.mark.parametrize("name", ["vllm", "{{ cluster.name }}", "{{ template.name }}"])
def test_a_template_that_does_not_is_filled_in_once_for_as_long_as_it_stays(name: str) -> None:
    secret = {"name": "vllm", "envFrom": [{"secretRef": {"name": "token"}}]}
    wanted = with_pods(fleet(patched({"containers": [secret]})), pods(spec={"serviceAccountName": name}))
    begun, _, first = rented(wanted, NOW)
    assert "demo/token" in [one.name for one in first]
    other = replace(wanted, commit=CommitId("b" * 40), clusters={**wanted.clusters, "spare": cluster("spare")})
    assert rented(other, NOW + timedelta(hours=1), begun)[2] is first
    assert rented(wanted, NOW)[2] == first


# Whatever a patch says

_LABELS = st.dictionaries(st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "b"]), max_size=2)
_EXPRESSIONS = st.lists(st.builds(among, st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "b"])), max_size=2)
_TOLERATION = st.fixed_dictionaries({"key": st.sampled_from(["spot", "gpu"]), "operator": st.just("Exists")})
_LIMITS = st.dictionaries(st.sampled_from([GPU, "cpu", "memory"]), st.integers(1, 4), max_size=3)
_PORTS = st.lists(st.fixed_dictionaries({"containerPort": st.just(80), "hostPort": st.just(80)}), max_size=1)


def _term(key: str, app: str) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


_APART = st.lists(st.builds(_term, st.sampled_from([HOSTNAME, "zone"]), st.sampled_from(["vllm", "other"])), max_size=2)


def _maybe(found: st.SearchStrategy[Any], *, null: bool) -> st.SearchStrategy[Any]:
    return st.none() | found if null else found


def _container(*, null: bool) -> st.SearchStrategy[Any]:
    amounts = st.fixed_dictionaries({}, optional={"limits": _maybe(_LIMITS, null=null), "requests": _LIMITS})
    resources = _maybe(amounts, null=null)
    more = {"resources": resources, "ports": _PORTS, "restartPolicy": st.just("Always")}
    named = {"name": st.sampled_from(["vllm", "probe"]), "image": st.just("vllm")}
    return st.fixed_dictionaries(named, optional=more)


def _containers(*, null: bool) -> st.SearchStrategy[Any]:
    return st.lists(_container(null=null), max_size=2, unique_by=lambda one: one["name"])


def _affinity(*, null: bool) -> st.SearchStrategy[Any]:
    required = st.builds(lambda found: affinity(*found)["nodeAffinity"], _EXPRESSIONS)
    apart = st.builds(lambda found: {REQUIRED: found}, _APART)
    return st.fixed_dictionaries(
        {}, optional={"nodeAffinity": _maybe(required, null=null), "podAntiAffinity": _maybe(apart, null=null)}
    )


def _spec(*, null: bool) -> st.SearchStrategy[Any]:
    fields = {
        "nodeSelector": st.dictionaries(
            st.sampled_from(["pool", "zone"]), _maybe(st.sampled_from(["a", "b"]), null=null), max_size=2
        ),
        "affinity": _maybe(_affinity(null=null), null=null),
        "tolerations": _maybe(st.lists(_TOLERATION, max_size=2), null=null),
        "initContainers": _containers(null=null),
        "overhead": st.dictionaries(st.just("cpu"), st.integers(1, 2), max_size=1),
        "hostNetwork": st.booleans(),
    }
    if null:
        return st.fixed_dictionaries({}, optional={**fields, "containers": _containers(null=null)})
    return st.fixed_dictionaries({"containers": st.just(pods()["spec"]["containers"])}, optional=fields)


_OWN = st.fixed_dictionaries({"metadata": st.just({"labels": {"app": "vllm"}}), "spec": _spec(null=False)})
_NAMES = st.dictionaries(st.sampled_from(["app", "new"]), st.sampled_from(["vllm", "x"]))
_PATCHES = st.fixed_dictionaries(
    {}, optional={"spec": _spec(null=True), "metadata": st.fixed_dictionaries({"labels": _NAMES})}
)
_TERMS = st.none() | st.builds(lambda one: term(tier="rented", **one), _LABELS)


@given(template=_OWN, patch=_PATCHES, required=_TERMS, tolerations=st.sampled_from([(), (SPOT,)]))
def test_what_is_counted_is_what_is_written(
    template: dict[str, Any], patch: dict[str, Any], required: Requirements | None, tolerations: tuple[Toleration, ...]
) -> None:
    """Where what is written can be: a patch that breaks an object is refused when it is made."""
    subset = Subset(name="rented", required=required, tolerations=tolerations, patch=patch)
    wanted = with_pods(fleet(subset), template)
    begun = inputs(short(5, replica=seen(template)), free("worker-4", 1), wanted=wanted)
    finder = CandidateFinder(begun, WorkingPlan(begun))
    policy, template_ = wanted.policies[VLLM], wanted.templates[VLLM]
    (candidate,) = (one for one in finder.order(VLLM) if one.cluster == "worker-4")
    counted = finder.shaped(template_, policy, candidate, seen(template))
    placement = finder.placement(template_, policy, counted, candidate.cluster, 3, subset=candidate.subset)
    choice = Choice(cluster=candidate.cluster, rank=1, fits=3, free=gpus(3))
    pod = _written(wanted, Change(action=Action.PLACE, after=placement, shortage=None, choice=choice))
    assume(pod is not None)
    assert _asks(counted) == _asks(replica_shape(pod["spec"], {**pod["metadata"], "namespace": "demo"}))


def _asks(shape: ReplicaShape) -> tuple[Any, ...]:
    """Say what a shape asks for: of nodes, which of all that there may be it is for, however it says so."""
    labels = [{POOL: pool, "zone": zone, TIER: "rented"} for pool, zone in product("ab", "ab")]
    nodes = [selects_node(shape, one, "n") for one in (*labels, {POOL: "a"}, {"zone": "a"}, {})]
    return replace(shape, node_selector={}, node_terms=()).likeness, nodes


def _written(wanted: Desired, change: Change) -> Any:
    """Write a placement, and read the template of its pods; None where it cannot be written."""
    sheet = render_templates(Plan(changes=(change,)), wanted)[0]
    placement = change.placement
    if sheet.spec is None:
        return None
    try:
        deployment = Deployment(
            placement=replace(placement, target_namespace="demo"),
            spec=sheet.spec,
            workspace=wanted.workspaces[VLLM.workspace],
            injection=placement_injection(wanted, placement),
        )
        files = engine(placement.engine).files(deployment)
    except InvalidInput:
        return None
    made = [one for data in files.values() for one in yaml.safe_load_all(data) if one]
    return next(one for one in made if one["kind"] == "Deployment")["spec"]["template"]


def test_where_nobody_sees_a_replica_one_that_a_patch_has_changed_is_no_shape_for_other_subsets() -> None:
    """Such as in a lost cluster, while the primary is not seen either."""
    spare = subset("spare", term(tier="own"))
    wanted = fleet(patched({"tolerations": [{"operator": "Exists"}]}), spare)
    there = stands("worker-4", 1, "rented", shape=replace(seen(pods()), tolerations=(Toleration(operator="Exists"),)))
    name = ClusterName("worker-4")
    drained = {**wanted.clusters, name: replace(wanted.clusters[name], availability=Availability.DRAINING)}
    wanted = replace(wanted, clusters=drained)
    (ended,) = plan(free("worker-2", 8), wanted=wanted, there=ledger(there)).changes
    assert ended.action is Action.REVERT
    (moved,) = plan(short(1), free("worker-2", 8), wanted=wanted, there=ledger(there)).changes
    assert moved.action is Action.MOVE
