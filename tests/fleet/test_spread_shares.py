"""A share is written at the paths of a spread, divided in proportion to what the template's own file has there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.routes.placements import read_create
from reconciler.core.commits.templates import render_templates
from reconciler.core.expressions.sandbox import shares
from reconciler.core.fleet.admission import admit
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.workloads.paths import at
from reconciler.model.action import Action
from reconciler.model.plan import Change, Plan
from reconciler.model.policy import Desired
from reconciler.model.request import Request
from tests.builders.fleet_files import FLEET, cluster, errors, load, text, warnings
from tests.builders.inputs import placement
from tests.builders.spread_files import VLLM

HEAD = text("""
    apiVersion: apps.kruise.io/v1alpha1
    kind: WorkloadSpread
    metadata: {name: train, namespace: llm-demo}
    spec:
      subsets: [{name: all}]
      targetRef: {apiVersion: batch.example.com/v1, kind: RoleJob, name: vllm}
    """)
KIND = text("""
    apiVersion: overspill.dev/v1alpha1
    kind: WorkloadKind
    metadata: {name: role-jobs}
    spec:
      group: batch.example.com
      kind: RoleJob
      replicasPaths: [spec.roles.*.replicas]
      podTemplates: [{path: spec.roles.*.template, counts: [{path: spec.roles.*.replicas}]}]
    """)
"""A kind with roles, whose pods are no group: what is one has one cluster."""
PROVIDED = "{provides: {kinds: [batch.example.com/RoleJob]}}"
ROLES = "spec.roles"
WORKER, PS, CHIEF = (f"{ROLES}.{role}.replicas" for role in ("Worker", "PS", "Chief"))
ASK: dict[str, Any] = {"name": "ask", "workspaceName": "llm", "clusters": ["worker-2"]}
TOTALS, WEIGHTS = st.integers(0, 10**6), st.lists(st.integers(0, 1000), min_size=1, max_size=8)


def job(*, worker: Any = 4, ps: Any = 2, chief: Any = 1, more: str = "") -> str:
    """Write a template of a job whose roles have so many replicas."""
    pod = "{spec: {containers: [{name: main, image: registry.example.com/train:1}]}}"
    roles = "\n".join(
        f"            {role}: {{replicas: {number}, template: {pod}}}"
        for role, number in (("Worker", worker), ("PS", ps), ("Chief", chief))
        if number is not None
    )
    return (
        text("""
        apiVersion: gpr.kubeslice.io/v1alpha1
        kind: WorkloadTemplate
        metadata:
          name: vllm
          namespace: kubeslice-acme
          annotations: {overspill.dev/workload: RoleJob/llm-demo/vllm}
        spec:
          workspaceName: llm
          burstDuration: 10m
          steps: [{name: job, type: manifest}]
          manifestResources:
          - name: job
            manifest:
              apiVersion: batch.example.com/v1
              kind: RoleJob
              metadata: {name: vllm, namespace: llm-demo}
              spec:
        """)
        + f"{more}          roles:\n{roles}\n"
    )


def fleet(*paths: str, template: str | None = None, head: str = HEAD) -> Desired:
    """Read a fleet with a spread whose list has these paths."""
    spread = head + f"  targetFilter: {{replicasPathList: [{', '.join(map(repr, paths))}]}}\n"
    workers = {f"clusters/{name}.yaml": cluster(name, PROVIDED) for name in ("worker-1", "worker-2")}
    return load({**FLEET, **workers, "templates/vllm.yaml": template or job(), "kinds.yaml": KIND, "s.yaml": spread})


def written(wanted: Desired, replicas: int) -> Any:
    """Return the object of a placement with such a share."""
    made = placement(replicas=replicas, workload=VLLM, subset="all")
    sheet = render_templates(Plan(changes=(Change(action=Action.RESIZE, before=made, after=made, detail=""),)), wanted)[
        0
    ]
    assert sheet.spec is not None, sheet.problem
    return sheet.spec.manifests[0].manifest


def roles(wanted: Desired, replicas: int) -> tuple[Any, ...]:
    """Return what a placement with such a share has of workers, parameter servers and chiefs."""
    made = written(wanted, replicas)
    return tuple(at(made, tuple(way.split("."))) for way in (WORKER, PS, CHIEF))


# By largest remainder


@given(TOTALS, WEIGHTS)
def test_the_shares_are_together_what_is_shared(total: int, weights: list[int]) -> None:
    assert sum(shares(total, weights)) == total


@given(TOTALS, WEIGHTS)
def test_each_share_is_less_than_one_off_its_proportion(total: int, weights: list[int]) -> None:
    whole_of = sum(weights)
    parts, whole_of = (weights, whole_of) if whole_of else ([1] * len(weights), len(weights))
    for share, part in zip(shares(total, weights), parts, strict=True):
        assert abs(share * whole_of - total * part) < whole_of


@given(TOTALS, WEIGHTS)
def test_of_equal_weights_the_earlier_has_as_much_or_one_more(total: int, weights: list[int]) -> None:
    made = shares(total, weights)
    for place, (weight, share) in enumerate(zip(weights, made, strict=True)):
        later = [made[other] for other in range(place + 1, len(weights)) if weights[other] == weight]
        assert all(0 <= share - other <= 1 for other in later)


@given(WEIGHTS.filter(any))
def test_what_the_file_has_is_divided_as_the_file_has_it(weights: list[int]) -> None:
    assert shares(sum(weights), weights) == weights


def test_where_all_are_0_it_is_divided_equally() -> None:
    assert shares(5, [0, 0, 0]) == [2, 2, 1]


# In what a placement deploys


def test_a_share_is_divided_over_the_paths_and_other_roles_keep_what_is_written() -> None:
    wanted = fleet(WORKER, PS)
    assert wanted.problems == ()
    assert [roles(wanted, share) for share in (1, 2, 3, 6)] == [(1, 0, 1), (1, 1, 1), (2, 1, 1), (4, 2, 1)]


def test_one_path_has_the_whole_share() -> None:
    assert roles(fleet(WORKER), 7) == (7, 2, 1)


def test_a_tie_goes_to_the_earlier_path() -> None:
    alike = job(worker=1, ps=1)
    assert roles(fleet(PS, WORKER, template=alike), 3) == (1, 2, 1)
    assert roles(fleet(WORKER, PS, template=alike), 3) == (2, 1, 1)


def test_a_path_counts_once_and_the_empty_one_never() -> None:
    assert roles(fleet(WORKER, PS, WORKER, ""), 6) == (4, 2, 1)


def test_each_item_that_a_path_leads_to_has_its_share() -> None:
    assert roles(fleet(f"{ROLES}.*.replicas"), 14) == (8, 4, 2)


def test_a_share_at_the_path_of_a_known_kind_is_written_with_and_without_the_path() -> None:
    clone = FLEET["templates/vllm.yaml"].replace('"{{ replicas }}"', "3")
    head = HEAD.replace("batch.example.com/v1, kind: RoleJob", "apps/v1, kind: Deployment")
    wanted = fleet("spec.replicas", template=clone, head=head)
    assert wanted.problems == ()
    assert written(wanted, 5)["spec"]["replicas"] == 5
    assert fleet(template=clone, head=head).templates[VLLM].spec == wanted.templates[VLLM].spec


def test_a_share_that_the_template_writes_at_the_one_path_stays_there() -> None:
    wanted = fleet(WORKER, template=job(worker='"{{ replicas }}"'))
    assert wanted.problems == ()
    assert roles(wanted, 7) == (7, 2, 1)


def test_what_people_ask_for_by_name_is_as_the_template_has_it() -> None:
    wanted = fleet(WORKER, PS)
    draft = read_create({**ASK, "workloadTemplateName": "vllm"})
    assert isinstance(draft, RequestDraft)
    asked = admit(draft, wanted)
    assert isinstance(asked, Request), asked
    own = wanted.templates[VLLM].own_spec
    assert own is not None
    assert asked.spec.manifests == own.manifests
    assert at(asked.spec.manifests[0].manifest, tuple(WORKER.split("."))) == 4


# What cannot be divided


WRITE_OUT = "write out there what is deployed without a burst"
OWN_WORD = "RoleJob vllm says itself what becomes of a share, by an expression that reads replicas"
SOME = "{" + ", ".join(f"r{number}: {{replicas: 1}}" for number in range(65)) + "}"


@pytest.mark.parametrize(
    ("paths", "template", "what", "hint"),
    [
        (
            (WORKER, PS),
            job(worker='"{{ replicas }}"'),
            OWN_WORD,
            "write there what is deployed without a burst, or leave the paths out here",
        ),
        (
            (WORKER, f"{ROLES}.Evaluator.replicas"),
            job(),
            f"nothing stands at {ROLES}.Evaluator.replicas in RoleJob vllm",
            WRITE_OUT,
        ),
        (("spec.jobs.*.replicas",), job(), "nothing stands at spec.jobs.*.replicas in RoleJob vllm", WRITE_OUT),
        ((WORKER, PS), job(ps='"{{ 1 + 1 }}"'), f"no number of replicas stands at {PS} in RoleJob vllm", WRITE_OUT),
        (
            ("spec.jobs.*.replicas",),
            job(more=f"          jobs: {SOME}\n"),
            "they lead to 65 places in RoleJob vllm, of at most 64",
            "name fewer",
        ),
    ],
    ids=["the template divides", "nothing there", "no items there", "no number", "too many"],
)
def test_what_keeps_a_share_whole_is_one_warning(paths: tuple[str, ...], template: str, what: str, hint: str) -> None:
    wanted = fleet(*paths, template=template)
    assert errors(wanted) == []
    (told,) = [one for one in warnings(wanted) if one.startswith("s.yaml")]
    said = f"{what}, so that no share of llm/vllm is divided over them ({hint})"
    assert told == f"s.yaml:7: spec.targetFilter.replicasPathList: {said}"
    assert wanted.templates[VLLM].spec == fleet(template=template).templates[VLLM].spec
