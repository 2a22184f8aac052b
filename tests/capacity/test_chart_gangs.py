"""What a chart deploys in groups goes whole as well: by the kind that is named, by its pods, or by its owner's word."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from reconciler.core.capacity.gangs import GangWorkload
from reconciler.core.commits.templates import render_templates
from reconciler.core.decide.decide import decide
from reconciler.core.decide.state.units import gang_of
from reconciler.core.explain.workload import explain
from reconciler.core.observe.kubernetes.cluster_state import ClusterState
from reconciler.core.observe.kubernetes.resources import Resource
from reconciler.model.action import Action
from reconciler.model.capacity import ClusterObservation, MissingReplicas, ObservedGroup, ReplicaShape
from reconciler.model.gpr import GpuLimits, WorkspaceLimits
from reconciler.model.ids import BlobId, ClusterName, WorkspaceName
from reconciler.model.plan import Plan, Reason
from reconciler.model.policy import Availability, BurstPolicy, Desired, EngineName
from reconciler.model.units import ONE, Quantity, Resources
from reconciler.model.workload import WorkloadRef
from tests.builders.deploy_specs import chart, spec
from tests.builders.fleet_files import FLEET, errors, load, warnings
from tests.builders.group_bursts import burst, lacks, roomy
from tests.builders.inputs import NOW, VLLM, cluster, desired, free, inputs, ledger, ordering, plan, seconds, shape
from tests.builders.kube_objects import NO_GPU, pod
from tests.builders.kube_objects import workload as made_by_server
from tests.builders.plans import begun
from tests.builders.subsets import wanted_before
from tests.builders.workload_kinds import lws

CPU = ReplicaShape(requests=Resources(amounts={"cpu": Quantity(ONE)}))
LWS = "LeaderWorkerSet"


def charted(
    kind: str = LWS,
    *,
    shared: bool = True,
    size: int | None = None,
    policy: BurstPolicy | None = None,
    **fields: object,
) -> Desired:
    """Make a fleet whose template is a chart that makes an object of a kind; `size` is its owner's word of a group."""
    made = desired(policy or ordering("worker-2", "worker-3"), **fields)
    engine = chart("engine", release_namespace="demo", values={"groups": "{{ replicas }}" if shared else 1})
    template = replace(
        made.templates[VLLM],
        spec=spec(engine, burst_duration=timedelta(hours=1)),
        ref=WorkloadRef(namespace="demo", name="vllm", kind=kind),
        uses_replicas=shared,
        group_size=size,
    )
    clusters = {name: replace(one, engine=EngineName.FLUX) for name, one in made.clusters.items()}
    return replace(made, templates={VLLM: template}, clusters=clusters)


def shows(
    pods: int,
    *alike: tuple[ReplicaShape, int],
    number: int = 0,
    kind: str = LWS,
    size: int = 0,
    running: int = 8,
    groups: tuple[str, ...] = (),
    least: int = 0,
) -> ClusterObservation:
    """Observe the full primary, where so many pods find no node, and what one group there is of."""
    seen = lacks(pods, running=running)
    (one,) = seen.workloads
    waiting = (
        tuple(MissingReplicas(replicas=1, since=NOW - seconds(45), group=group) for group in groups) or one.waiting
    )
    group = ObservedGroup(pods=alike, number=number, size=size, least=least) if alike else None
    ref = WorkloadRef(namespace="demo", name="vllm", kind=kind)
    return replace(seen, workloads=(replace(one, ref=ref, waiting=waiting, group=group),))


FOUR = (shape(8), 4)
"""Four pods with eight GPUs each."""


def placed(of: Plan) -> tuple[str, int, int]:
    """Say where what was placed goes, how many replicas, and of how many pods with GPUs each."""
    (change,) = of.changes
    assert change.action is Action.PLACE
    return change.placement.cluster, change.placement.replicas, change.placement.shape.group_size


def held(of: Plan) -> str:
    assert of.changes == ()
    (told,) = of.suppressed
    return told.message


def test_groups_of_a_chart_go_past_a_cluster_that_holds_only_one_of_them() -> None:
    made = plan(shows(8, FOUR, number=4), free("worker-2", *[8] * 7), free("worker-3", *[8] * 8), wanted=charted())
    assert placed(made) == ("worker-3", 2, 4)


def test_groups_that_fit_on_two_clusters_alone_wait() -> None:
    made = plan(shows(8, FOUR, number=4), free("worker-2", *[8] * 4), free("worker-3", *[8] * 4), wanted=charted())
    assert held(made).startswith("it fits on no cluster as a whole, with 2 replicas; worker-2: needs 8 GPUs for each")


def test_the_share_of_a_chart_is_a_number_of_groups() -> None:
    wanted = charted()
    made = plan(shows(5, FOUR, number=4), free("worker-2", *[8] * 8), wanted=wanted)
    (rendered,) = render_templates(made, wanted).values()
    assert rendered.spec is not None
    assert rendered.spec.helm[0].values == {"groups": 2}


def test_two_groups_of_a_chart_that_each_lack_a_pod_are_two() -> None:
    seen = shows(2, FOUR, number=3, running=10, groups=("0", "2"))
    assert placed(plan(seen, free("worker-2", *[8] * 8), wanted=charted())) == ("worker-2", 2, 4)


def test_leader_and_workers_need_room_beside_each_other_as_the_primary_shows_them() -> None:
    seen = shows(3, (shape(2), 1), (shape(8), 2), number=3, running=6)
    made = plan(seen, free("worker-2", 8, 8), free("worker-3", 8, 8, 2), wanted=charted())
    assert placed(made) == ("worker-3", 1, 3)


def test_a_leader_without_gpus_is_none_of_the_pods_that_are_waited_for() -> None:
    seen = shows(3, (CPU, 1), (shape(8), 2), number=3, running=6)
    assert placed(plan(seen, roomy("worker-2", 8, 8), wanted=charted())) == ("worker-2", 1, 2)


def test_a_group_that_is_not_all_there_yet_counts_as_all_it_is_to_be_each_like_the_largest() -> None:
    seen = shows(1, (shape(8), 1), number=1, size=4, running=0, groups=("0",))
    made = plan(seen, free("worker-2", *[8] * 3), free("worker-3", *[8] * 4), wanted=charted())
    assert placed(made) == ("worker-3", 1, 4)


def test_a_kind_that_nobody_names_is_known_by_its_pods() -> None:
    made = plan(shows(5, FOUR, number=4), free("worker-2", *[8] * 7), free("worker-3", *[8] * 8), wanted=charted(""))
    assert placed(made) == ("worker-3", 2, 4)


def test_pods_of_a_chart_that_run_in_no_groups_are_lent_one_by_one() -> None:
    seen = shows(5, kind="Deployment")
    made = plan(seen, free("worker-2", *[8] * 3), free("worker-3", *[8] * 8), wanted=charted(""))
    assert [placement.replicas for placement in begun(made)] == [3, 2]


RAY = ((CPU, 1), (shape(8), 3))
"""A head, and three workers with eight GPUs each."""


@pytest.mark.parametrize("pods", [1, 4])
def test_a_chart_without_a_share_goes_out_as_one_copy_whichever_of_its_pods_is_missing(pods: int) -> None:
    seen = shows(pods, *RAY, kind="RayCluster", running=4 - pods)
    wanted = charted("RayCluster", shared=False)
    assert placed(plan(seen, roomy("worker-2", 8, 8, 8), wanted=wanted)) == ("worker-2", 1, 3)
    assert plan(seen, roomy("worker-2", 8, 8, 7), wanted=wanted).changes == ()


def test_one_copy_of_several_groups_is_all_of_them() -> None:
    seen = shows(1, FOUR, number=2, running=7)
    wanted = charted(shared=False)
    assert plan(seen, free("worker-2", *[8] * 7), wanted=wanted).changes == ()
    assert placed(plan(seen, free("worker-2", *[8] * 8), wanted=wanted)) == ("worker-2", 1, 8)


@pytest.mark.parametrize(("running", "lent_out"), [(3, 0), (2, 1)])
def test_no_copy_of_a_chart_s_gang_is_lent_that_runs_with_its_minimum_at_home(running: int, lent_out: int) -> None:
    seen = shows(5 - running, (shape(8), 5), kind="PyTorchJob", running=running, least=3)
    made = plan(seen, free("worker-2", *[8] * 8), wanted=charted("PyTorchJob", shared=False))
    assert len(made.changes) == lent_out


def test_the_minimum_of_several_groups_is_that_of_each() -> None:
    seen = shows(3, FOUR, number=2, kind="PodCliqueSet", running=5, least=3)
    assert len(plan(seen, free("worker-2", *[8] * 8), wanted=charted("PodCliqueSet", shared=False)).changes) == 1


def test_where_nobody_says_how_many_pods_a_replica_is_nothing_is_lent_and_the_way_out_is_told() -> None:
    seen = shows(4, *RAY, kind="RayCluster", running=0)
    assert held(plan(seen, roomy("worker-2", 8, 8, 8), wanted=charted("RayCluster"))) == (
        "cannot compute fit: the number of pods of one replica is unknown "
        "(annotate its template: overspill.dev/group-size)"
    )


@pytest.mark.parametrize(("missing", "kept"), [(8, True), (0, False)])
def test_while_nobody_says_how_many_replicas_are_missing_none_is_taken_back(missing: int, kept: bool) -> None:
    there = burst(groups=2, lasting=timedelta(hours=2))
    near, seen = free("worker-2", bound={there.name: 8}), shows(missing)
    made = plan(seen, near, wanted=charted(), there=ledger(there), history=wanted_before(min(1, missing)))
    assert (made.changes == ()) is kept
    assert any("its 2 replicas elsewhere stay until they expire" in one.message for one in made.suppressed) is kept


def test_its_owner_says_how_many_pods_a_replica_is() -> None:
    seen = shows(4, *RAY, kind="RayCluster", running=4)
    made = plan(seen, roomy("worker-2", 8, 8, 8, 8), wanted=charted("RayCluster", size=2))
    assert placed(made) == ("worker-2", 2, 2)


def test_a_chart_of_a_kind_that_nobody_knows_goes_whole_by_its_owners_word() -> None:
    seen = shows(5, kind="ModelFarm")
    wanted = charted("ModelFarm", size=4)
    made = plan(seen, free("worker-2", *[8] * 7), free("worker-3", *[8] * 8), wanted=wanted)
    assert placed(made) == ("worker-3", 2, 4)


def test_groups_of_which_an_observation_says_the_size_need_no_other_word() -> None:
    seen = lacks(2)
    (one,) = seen.workloads
    ref = WorkloadRef(namespace="demo", name="vllm", kind=LWS)
    pushed = replace(seen, workloads=(replace(one, ref=ref, shape=shape(8, group_size=4)),))
    made = plan(pushed, free("worker-2", *[8] * 7), free("worker-3", *[8] * 8), wanted=charted())
    assert placed(made) == ("worker-3", 2, 4)


def test_more_groups_come_where_the_others_are_and_never_as_a_second_copy() -> None:
    there = burst()
    empty = free("worker-3", *[8] * 20)
    near = free("worker-2", *[8] * 4, bound={there.name: 4})
    (change,) = plan(shows(8, FOUR, number=4), near, empty, wanted=charted(), there=ledger(there)).changes
    assert change.action is Action.RESIZE
    assert (change.after.path, change.after.replicas) == (there.path, 2)
    full = free("worker-2", *[8] * 3, bound={there.name: 4})
    made = plan(shows(8, FOUR, number=4), full, empty, wanted=charted(), there=ledger(there))
    assert held(made).startswith("1 replica more can go only where the rest is, on worker-2")


def test_the_end_of_the_demand_ends_the_whole_copy() -> None:
    there = burst(size=3)
    seen = replace(shows(0, *RAY, kind="RayCluster", running=4), observed_at=NOW)
    (one,) = seen.workloads
    calm = replace(seen, workloads=(replace(one, deficit_since=NOW - seconds(600)),))
    wanted = charted("RayCluster", shared=False)
    (change,) = plan(calm, free("worker-2", bound={there.name: 3}), wanted=wanted, there=ledger(there)).changes
    assert change.action is Action.REVERT


def test_a_set_of_a_chart_leaves_a_lost_cluster_whole_though_its_primary_is_out_of_sight_as_well() -> None:
    there = burst(groups=2, lasting=timedelta(hours=2))
    for seen in ((shows(8, FOUR, number=4),), ()):
        made = inputs(*seen, free("worker-3", *[8] * 8), wanted=charted(), there=ledger(there))
        (change,) = decide(replace(made, lost={ClusterName("worker-2"): NOW - timedelta(minutes=15)})).changes
        assert change.action is Action.MOVE
        assert (change.before, change.after.cluster, change.after.replicas) == (there, "worker-3", 2)


def test_a_drained_cluster_is_left_whole_in_one_commit() -> None:
    there = burst(groups=2, lasting=timedelta(hours=2))
    clusters = (cluster("worker-1"), cluster("worker-2", availability=Availability.DRAINING), cluster("worker-3"))
    near, far = free("worker-2", bound={there.name: 8}), free("worker-3", *[8] * 8)
    made = plan(shows(8, FOUR, number=4), near, far, wanted=charted(clusters=clusters), there=ledger(there))
    (change,) = made.changes
    assert change.action is Action.MOVE
    assert (change.after.cluster, change.after.replicas) == ("worker-3", 2)


def test_what_a_chart_deploys_is_worked_out_once_for_as_long_as_its_primary_shows_the_same() -> None:
    wanted = charted()

    def deploys(each: int) -> GangWorkload | None:
        return gang_of(inputs(shows(8, (shape(8), each), number=4), wanted=wanted), VLLM)

    first = deploys(4)
    assert first is not None
    assert deploys(4) is first
    assert deploys(3) != first


def test_a_group_that_is_seen_of_another_size_in_each_pass_changes_nothing_that_stands() -> None:
    wanted = charted()
    wanted = replace(wanted, templates={VLLM: replace(wanted.templates[VLLM], blob=BlobId("b" * 40))})
    there = burst(groups=2, lasting=timedelta(hours=2), template_version="a" * 12)
    near = free("worker-2", *[8] * 8, bound={there.name: 8})
    (change,) = plan(shows(6, (shape(8), 3), number=4), near, wanted=wanted, there=ledger(there)).changes
    assert change.action is Action.RESIZE
    assert change.after.shape.group_size == 3
    for pods in (4, 3, 4):
        seen = shows(2 * pods, (shape(8), pods), number=4)
        assert plan(seen, near, wanted=wanted, there=ledger(change.after)).changes == ()


def test_the_limit_of_a_gpr_counts_all_pods_of_all_groups() -> None:
    limits = WorkspaceLimits(workspace=WorkspaceName("llm"), limits=GpuLimits(gpus=40))
    wanted = replace(charted(), limits={WorkspaceName("llm"): limits})
    made = plan(shows(8, FOUR, number=4), free("worker-2", *[8] * 8), wanted=wanted)
    assert made.changes == ()
    assert made.suppressed[0].refusals[0].reason is Reason.GPR_LIMIT


def test_explain_tells_of_each_cluster_whether_all_of_it_fits() -> None:
    seen = (shows(8, FOUR, number=4), free("worker-2", *[8] * 7), free("worker-3", *[8] * 20))
    made = inputs(*seen, wanted=charted())
    told = explain(VLLM, made, decide(made))
    assert [(one.cluster, one.fits) for one in told.assessments] == [("worker-2", 0), ("worker-3", 2)]


def test_groups_are_read_off_the_pods_of_a_server_whatever_the_release_makes_of_its_name() -> None:
    primary = ClusterState({WorkloadRef(namespace="demo", name="vllm")})
    since = (NOW - timedelta(minutes=5)).isoformat()
    leaders = made_by_server("vllm", 3, owner=(LWS, "vllm"))
    leaders["spec"]["template"]["metadata"] = {"labels": {"leaderworkerset.sigs.k8s.io/name": "vllm"}}
    primary.apply(Resource.STATEFUL_SETS, leaders)
    for group, index in product(range(3), range(3)):
        lacks_room = group > 0 and index == 2
        labels = {
            "leaderworkerset.sigs.k8s.io/name": "vllm",
            "leaderworkerset.sigs.k8s.io/group-index": str(group),
            "leaderworkerset.sigs.k8s.io/worker-index": str(index),
        }
        made = pod(
            f"vllm-{group}-{index}",
            "" if lacks_room else "gpu-1",
            owner=("StatefulSet", f"vllm-{group}" if index else "vllm"),
            labels=labels,
            gpus=8 if index else 1,
            waits=NO_GPU if lacks_room else "",
            since=since,
        )
        primary.apply(Resource.PODS, made)
    seen = primary.observation(ClusterName("worker-1"), NOW)
    two = plan(seen, roomy("worker-2", 8, 8, 8, 1), roomy("worker-3", 8, 8, 8, 8, 1, 1), wanted=charted(""))
    assert placed(two) == ("worker-3", 2, 3)


TEMPLATE = """\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata:
  name: vllm
  namespace: kubeslice-llm
  annotations:
    overspill.dev/workload: {workload}
    overspill.dev/group-size: "{size}"
spec:
  workspaceName: llm
  helmConfig:
    - name: engine
      chart: vllm-stack
      repoURL: https://vllm-project.github.io/production-stack
      version: 0.1.7
      releaseName: vllm
      releaseNamespace: llm-demo
  steps:
    - {{name: engine, type: helm}}
"""


def read(workload: str = "LeaderWorkerSet/llm-demo/vllm", size: str = "4") -> Desired:
    return load({**FLEET, "templates/vllm.yaml": TEMPLATE.format(workload=workload, size=size)})


def test_the_annotation_is_read_and_what_goes_whole_needs_no_share() -> None:
    found = read()
    assert (errors(found), warnings(found)) == ([], [])
    assert [template.group_size for template in found.templates.values()] == [4]


@pytest.mark.parametrize("size", ["0", "four", "-1", "1.5", "", "1000000"])
def test_what_is_no_number_of_pods_is_an_error_with_its_line(size: str) -> None:
    (found,) = errors(read(size=size))
    where = 'templates/vllm.yaml:8: metadata.annotations["overspill.dev/group-size"]'
    assert found == f"{where}: {size!r} is no number of pods (try '4')"


def test_the_manifests_of_a_template_hold_before_the_annotation() -> None:
    manifest = json.dumps(lws("{{ replicas }}"))
    head, _, _ = TEMPLATE.format(workload="LeaderWorkerSet/llm-demo/model", size="3").partition("  helmConfig")
    text = (
        f"{head}  manifestResources: [{{name: set, manifest: {manifest}}}]\n  steps: [{{name: set, type: manifest}}]\n"
    )
    found = load({**FLEET, "templates/vllm.yaml": text.replace('"namespace": "demo"', '"namespace": "llm-demo"')})
    (told,) = [one for one in warnings(found) if "group-size" in one]
    assert told.endswith("its manifests say how many pods a group has (leave the annotation out)")
    assert [template.group_size for template in found.templates.values()] == [None]


SPREAD = """\
apiVersion: apps.kruise.io/v1alpha1
kind: WorkloadSpread
metadata: {name: vllm, namespace: llm-demo}
spec:
  targetRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: vllm}
  subsets: [{name: first, maxReplicas: 1}, {name: second}]
"""


def test_a_spread_of_what_a_chart_deploys_in_groups_bounds_its_clusters_and_is_told() -> None:
    text = TEMPLATE.format(workload="LeaderWorkerSet/llm-demo/vllm", size="4")
    found = load({**FLEET, "templates/vllm.yaml": text, "spread.yaml": SPREAD})
    assert any("runs in groups and has one cluster, so that subsets only bound its" in one for one in warnings(found))
    assert [(policy.spread, policy.bounds is None) for policy in found.policies.values()] == [(None, False)]


def test_a_chart_of_pods_for_themselves_is_told_that_it_is_placed_in_copies() -> None:
    unsaid = TEMPLATE.replace('    overspill.dev/group-size: "{size}"\n', "")
    for kind, told in (("Deployment", 1), (LWS, 0)):
        text = unsaid.format(workload=f"{kind}/llm-demo/vllm")
        found = [one for one in warnings(load({**FLEET, "templates/vllm.yaml": text})) if "one copy of" in one]
        assert len(found) == told
