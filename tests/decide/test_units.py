"""What is placed together: one copy of what runs once, whatever its form, and all of a run or nothing of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from reconciler.core.decide.orders.rebalance import rebalance
from reconciler.core.decide.state.units import unit_of_workload
from reconciler.errors import InvalidInput
from reconciler.model.capacity import MissingReplicas
from reconciler.model.demand import Sample
from reconciler.model.plan import Reason
from reconciler.model.policy import Desired
from reconciler.model.signal import ReplicaRequest
from reconciler.model.workload import Json
from tests.builders.fleet_files import FLEET, load, workspace
from tests.builders.inputs import NOW, VLLM, free, inputs, ledger, ordering, placement, plan, seconds, short
from tests.builders.plans import begun
from tests.builders.workload_kinds import pod, run, template, workload

_OBJECT = """\
  manifestResources:
  - name: server
    manifest: {manifest}
  steps:
  - {{name: server, type: manifest}}
"""
_CHART = """\
  helmConfig:
  - name: server
    chart: train
    repoURL: https://charts.example.com
    version: 1.0.0
    releaseName: vllm
    releaseNamespace: demo
    values: {values}
  steps:
  - {{name: server, type: helm}}
"""


def read(kind: str, spec: str, **annotations: str) -> Desired:
    """Read a template of an object that is counted as this kind; it may go to three clusters."""
    notes = {
        "workload": f"{kind}/demo/vllm",
        **{name.replace("_", "-"): note for name, note in annotations.items()},
    }
    made = f"""\
apiVersion: gpr.kubeslice.io/v1alpha1
kind: WorkloadTemplate
metadata:
  name: vllm
  namespace: kubeslice-acme
  annotations:
{"".join(f"    overspill.dev/{name}: '{note}'" + chr(10) for name, note in notes.items())}\
spec:
  workspaceName: llm
"""
    names = [f"worker-{number}" for number in range(2, 5)]
    allowed = (
        workspace(more='allowedKinds: ["example.com/Widget"]')
        .replace("worker-2]", f"{', '.join(names)}]")
        .replace("llm-demo", "demo")
    )
    clusters = {f"clusters/{name}.yaml": FLEET["clusters/worker-2.yaml"].replace("worker-2", name) for name in names}
    return load({**FLEET, **clusters, "workspaces/llm.yaml": allowed, "templates/vllm.yaml": made + spec})


def manifest(api_version: str, kind: str, spec: Json) -> str:
    return _OBJECT.format(manifest=workload(api_version, kind, spec, name="vllm", namespace="demo"))


JOB = manifest("batch/v1", "Job", {"parallelism": 6, "completions": 6, "template": run(1)})
CHART, SHARED_CHART = _CHART.format(values="{}"), _CHART.format(values='{replicas: "{{ replicas }}"}')
FORMS = {
    "chart": read("Deployment", CHART, runs_once="true"),
    "chart of a Job": read("Job", CHART),
    "chart with its share": read("Job", SHARED_CHART),
    "chart of fixed replicas": read("Job", CHART, replicas="2"),
    "Job": read("Job", JOB),
    "Pod": read("Pod", manifest("v1", "Pod", pod(1)), runs_once="true"),
    "kind in no table": read("Widget", manifest("example.com/v1", "Widget", {}), runs_once="true"),
    "fixed replicas": read(
        "Deployment",
        manifest("apps/v1", "Deployment", {"replicas": 2, "template": template(1)}),
        runs_once="true",
        replicas="fixed",
    ),
}


def roomy() -> tuple[object, ...]:
    return tuple(free(f"worker-{number}", 8) for number in range(2, 5))


@pytest.mark.parametrize("form", FORMS)
def test_what_runs_once_has_one_copy_whatever_its_form(form: str) -> None:
    wanted = FORMS[form]
    assert wanted.templates[VLLM].runs_once
    made = plan(short(6, running=0, held=True), *roomy(), wanted=wanted)
    (first,) = begun(made)
    assert first.cluster == "worker-2"
    assert made.suppressed == ()
    again = plan(short(6, running=0, held=True), *roomy(), wanted=wanted, there=ledger(first))
    assert (again.changes, {held.reason for held in again.suppressed}) in [((), {Reason.RUNS_ONCE}), ((), set())]


@pytest.mark.parametrize("form", ["chart", "chart of a Job", "Pod", "kind in no table"])
def test_a_copy_of_what_runs_once_needs_room_for_all_pods_that_it_has_at_home(form: str) -> None:
    wanted = FORMS[form]
    assert [problem for problem in wanted.problems if "where its replicas are written" in problem.message] == []
    made = plan(
        short(6, running=0, held=True), free("worker-2", 5), free("worker-3", 2, 4), *roomy()[2:], wanted=wanted
    )
    (first,) = begun(made)
    assert (first.cluster, first.replicas, first.shape.group_size) == ("worker-3", 1, 6)
    nowhere = plan(short(6, running=0, held=True), free("worker-2", 5), wanted=wanted)
    assert (begun(nowhere), nowhere.suppressed[0].reason) == ([], Reason.NOTHING_FITS)


def test_a_queue_tells_how_many_pods_a_job_has_that_has_none_yet() -> None:
    seen = short(0, running=0, held=True)
    (job,) = seen.workloads
    ask = ReplicaRequest(
        signal="kueue queue-a", replicas=6, since=NOW - seconds(45), cause="waits for quota", beyond=False
    )
    queued = replace(seen, workloads=(replace(job, asks=(ask,)),))
    made = plan(queued, free("worker-2", 5), free("worker-3", 8), wanted=FORMS["chart of a Job"])
    assert [(first.cluster, first.shape.group_size) for first in begun(made)] == [("worker-3", 6)]


def test_units() -> None:
    def unit(wanted: Desired) -> tuple[int, bool, bool, int]:
        own = unit_of_workload(inputs(short(6), wanted=wanted), VLLM)
        return own.size, own.whole, own.once, own.step

    assert unit(load()) == (1, False, False, 1)
    assert unit(FORMS["Job"]) == (0, True, True, 0)
    assert unit(FORMS["fixed replicas"]) == (2, True, True, 0)
    copies = replace(load().templates[VLLM], copy=2)
    assert unit(replace(load(), templates={VLLM: copies})) == (2, True, False, 2)
    together = replace(load().templates[VLLM], shares_domain=True)
    assert unit(replace(load(), templates={VLLM: together})) == (0, True, False, 0)


def test_a_run_waits_until_all_of_its_pods_are_due() -> None:
    young = short(6, running=0, held=True)
    (seen,) = young.workloads
    waiting = (
        MissingReplicas(replicas=4, since=NOW - seconds(45)),
        MissingReplicas(replicas=2, since=NOW - seconds(5)),
    )
    young = replace(young, workloads=(replace(seen, waiting=waiting),))
    made = plan(young, *roomy(), wanted=FORMS["Job"])
    assert (begun(made), {held.reason for held in made.suppressed}) == ([], {Reason.SCALE_UP_WINDOW})
    assert made.wake_at == NOW + seconds(25)


@pytest.mark.parametrize("most", [4, 6])
def test_a_maximum_lets_all_of_a_run_through_or_nothing(most: int) -> None:
    wanted = replace(FORMS["Job"], policies={VLLM: ordering("worker-2", "worker-3", max_replicas=most)})
    made = plan(short(6, running=0, held=True), *roomy(), wanted=wanted)
    assert [first.replicas for first in begun(made)] == ([6] if most == 6 else [])
    assert [(held.reason, held.replicas) for held in made.suppressed] == (
        [] if most == 6 else [(Reason.POLICY_LIMIT, 6)]
    )


def test_a_cluster_whose_limit_is_below_a_run_says_so() -> None:
    wanted = replace(FORMS["Job"], policies={VLLM: ordering(("worker-2", 4), "worker-3")})
    made = plan(short(6, running=0, held=True), *roomy(), wanted=wanted)
    (first,) = begun(made)
    assert (first.cluster, first.replicas) == ("worker-3", 6)
    (refused,) = made.changes[0].refused
    assert refused.reason is Reason.CLUSTER_LIMIT
    assert refused.message == "may have 4 at most, and its 6 replicas go together: they run once"


def test_a_run_is_not_rebalanced() -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(minutes=1)))
    given = inputs(short(6, running=0, held=True), *roomy(), wanted=FORMS["Job"], there=there)
    with pytest.raises(InvalidInput, match="it runs once, so that there is nothing to share out"):
        rebalance(given, VLLM, by="ada")


def test_a_run_does_not_shrink_with_what_is_missing() -> None:
    there = ledger(placement("worker-2", 6, created=NOW - timedelta(hours=1), lasting=timedelta(hours=9)))
    history = {VLLM: (Sample(at=NOW - timedelta(hours=2), missing=4, asked=False),)}
    seen = short(4, running=0, held=True)
    assert plan(seen, *roomy(), wanted=FORMS["Job"], there=there, history=history).changes == ()
