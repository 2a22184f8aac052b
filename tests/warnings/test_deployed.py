"""Shares that a webhook refuses, builds that move, and pods that nothing counts are told when a fleet is checked."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import Any

import pytest

from reconciler.core.expressions import render
from reconciler.core.fleet.burst_replicas import with_replicas
from reconciler.core.fleet.warnings.deployed import warn_moving_images, warn_refused_shares, warn_uncounted_pods
from reconciler.core.safety.rules import check_safety
from reconciler.core.validation.admission.table import PROJECTS, check_admission
from reconciler.core.workloads.api_kinds import group_kind
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.errors import Severity
from reconciler.model.workload import Json, WorkloadRef, WorkloadTemplate
from tests.builders.deploy_specs import WORKSPACE, context, spec
from tests.builders.fleet_files import FLEET, load
from tests.builders.inputs import template
from tests.builders.workload_kinds import SAMPLES, lws
from tests.validation.test_admission import JOB, QUEUED, REFUSED, UNITED, edited

ROLLING = {"rollingUpdateConfiguration": {"maxUnavailable": "25%", "maxSurge": 0}}
SUBSETS = {"subsets": [{"name": "a", "replicas": 2}, {"name": "b"}]}
POOL = edited(JOB, **{"spec/parallelism": 8, "metadata/annotations/kueue.x-k8s.io~job-min-parallelism": "2"})
del POOL["spec"]["completions"]

SHARES: tuple[tuple[Json, str], ...] = (
    (lws(8, rolloutStrategy=ROLLING), "a placement of 1 to 3 replicas is not committed: may not come to 0 replicas"),
    (edited(UNITED, **{"spec/topology": SUBSETS}), "a placement of 1 replicas is not committed: its subsets have 2"),
    (POOL, "a placement of 1 to 2 replicas may be refused: a minimal parallelism of 2 is not between 0 and the 1 pod"),
    (edited(POOL, **QUEUED), "a placement of 1 to 2 replicas is not committed: a minimal parallelism of 2"),
    (lws(8, rolloutStrategy={"rollingUpdateConfiguration": {"maxUnavailable": 1}}), ""),
    (SAMPLES["Deployment"][0], ""),
)


def burst(made: Json) -> WorkloadTemplate:
    """Make the template of a workload whose replicas are written by Overspill."""
    ref = WorkloadRef(namespace="demo", name="model", kind=made["kind"], group=made["apiVersion"].partition("/")[0])
    return with_replicas(replace(template(), spec=spec(("web", made)), ref=ref), None, NO_KINDS)[0]


@pytest.mark.parametrize(("made", "says"), SHARES)
def test_shares_that_a_webhook_refuses_are_told(made: Json, says: str) -> None:
    told = [finding.message for finding in warn_refused_shares(burst(made), NO_KINDS)]
    assert all(message.startswith(says) for message in told), told
    assert len(told) == bool(says)


@pytest.mark.parametrize(("made", "says"), SHARES)
@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 5, 8])
def test_what_is_told_of_a_share_is_what_keeps_it_from_being_committed(made: Json, says: str, replicas: int) -> None:
    counted = burst(made)
    rendered = render.render(counted.spec, context(counted.spec, replicas=replicas))
    findings = check_safety(rendered, replace(WORKSPACE, namespaces=()), rendered=True)
    refused = any(finding.severity is Severity.ERROR for finding in findings)
    told = [finding.message for finding in warn_refused_shares(counted, NO_KINDS) if "not committed" in finding.message]
    last = 0 if not told else int(told[0].removeprefix("a placement of ").split(" replicas")[0].split(" to ")[-1])
    assert refused is (replicas <= last), says


def taken() -> list[tuple[str, Json]]:
    """List objects that their webhooks take: a sample of each kind, and each refused object once it is mended."""
    samples = [(name, made) for name, (made, _) in SAMPLES.items()]
    return [*samples, *((case.where, edited(case.made, **case.mended)) for case in REFUSED)]


def told_shares(counted: WorkloadTemplate) -> set[int]:
    """Return the numbers of replicas up to 40 that `check` warns of."""
    numbers = set[int]()
    for finding in warn_refused_shares(counted, NO_KINDS):
        ranges = finding.message.removeprefix("a placement of ").partition(" replicas ")[0]
        for first, last, more in re.findall(r"(\d+)(?: to (\d+)| (or more))?", ranges):
            numbers.update(range(int(first), 41 if more else int(last or first) + 1))
    return numbers


@pytest.mark.parametrize(("name", "made"), taken())
def test_a_share_or_copy_of_what_a_webhook_takes_is_taken_or_told(name: str, made: Json) -> None:
    counted = burst(made)
    told = told_shares(counted)
    for replicas in (*range(1, 13), 24, 40) if counted.copy is None else (counted.copy,):
        rendered = render.render(counted.spec, context(counted.spec, replicas=replicas))
        found = [*check_admission(rendered.manifests[0].manifest, (), NO_KINDS, rendered=True)]
        assert bool(found) is (replicas in told), (name, replicas, told, found)


def test_every_kind_with_a_rule_has_its_shares_tried() -> None:
    tried = {group_kind(made) for _, made in taken()}
    assert {kind for project in PROJECTS for rule in project.rules for kind in rule.kinds} <= tried


@pytest.mark.parametrize(
    ("image", "moves"),
    [
        ("vllm/vllm-openai", True),
        ("vllm/vllm-openai:latest", True),
        ("registry.example.com:5000/vllm", True),
        ("registry.example.com:5000/vllm:v1", False),
        ("vllm/vllm-openai:v0.10.1", False),
        (f"vllm/vllm-openai@sha256:{'0' * 64}", False),
        (f"vllm/vllm-openai:latest@sha256:{'0' * 64}", False),
        ("vllm/vllm-openai:{{ cluster.labels.version }}", False),
    ],
)
@pytest.mark.parametrize("name", ["Deployment", "LeaderWorkerSet", "RayCluster", "CronJob"])
def test_images_that_are_another_build_later_are_told(name: str, image: str, moves: bool) -> None:
    made = json.loads(json.dumps(SAMPLES[name][0]).replace("registry.example.com/model:1", image))
    found = [*warn_moving_images(spec(("web", made)), NO_KINDS)]
    assert [finding.severity for finding in found] == [Severity.WARNING] * moves
    assert all(image in finding.message and finding.hint for finding in found)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("DaemonSet",), 1),
        (("CronJob",), 1),
        (("DaemonSet", "Deployment"), 1),
        (("Deployment",), 0),
        (("Deployment", "CronJob"), 0),
    ],
)
def test_pods_that_nothing_counts_are_told(names: tuple[str, ...], told: int) -> None:
    made = [(name, copy.deepcopy(SAMPLES[name][0])) for name in names]
    if "DaemonSet" in names:
        made[0] = (
            "DaemonSet",
            edited(made[0][1], **{"spec/template/spec/containers/0/resources": {"limits": {"nvidia.com/gpu": 1}}}),
        )
    if "CronJob" in names and len(names) > 1:
        made[1][1]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0].pop("resources", None)
    assert len([*warn_uncounted_pods(spec(*made), NO_KINDS)]) == told


def counting(kind: str, *, source: bool = False) -> list[str]:
    """Check a template that counts an object of a kind, by its annotation or as its source."""
    made = edited(SAMPLES["Deployment"][0], **{"metadata/namespace": "llm-demo"})
    if source:
        body: Json = {"from": {"workload": {"kind": kind, "namespace": "llm-demo", "name": "model"}}}
        annotations = {}
    else:
        body = {
            "manifestResources": [{"name": "web", "manifest": made}],
            "steps": [{"name": "web", "type": "manifest"}],
        }
        annotations = {"overspill.dev/workload": f"{kind}/llm-demo/model"}
    written = {
        "apiVersion": "gpr.kubeslice.io/v1alpha1",
        "kind": "WorkloadTemplate",
        "metadata": {"name": "model", "annotations": annotations},
        "spec": body,
    }
    desired = load({**FLEET, "templates/vllm.yaml": json.dumps(written)})
    errors = [str(problem) for problem in desired.problems if problem.severity is Severity.ERROR]
    deployed = [template for template in desired.templates.values() if not (errors and template.unread)]
    assert bool(errors) is not bool(deployed)
    return errors


@pytest.mark.parametrize(
    ("kind", "makes", "source"),
    [
        ("DaemonSet", "a pod on each node that it selects", False),
        ("DaemonSet.apps.kruise.io", "a pod on each node that it selects", False),
        ("BroadcastJob", "a pod on each node that it selects", False),
        ("CronJob", "pods at times of its own", False),
        ("Deployment", "", False),
        ("Unheard", "", False),
        ("DaemonSet", "a pod on each node that it selects", True),
        ("StatefulSet", "", True),
    ],
)
def test_an_object_without_replicas_is_none_to_count(kind: str, makes: str, source: bool) -> None:
    errors = counting(kind, source=source)
    if not makes:
        assert not errors
        return
    (error,) = errors
    plain = kind.partition(".")[0]
    assert f"a {plain} makes {makes}, and has no replicas that a burst could bring" in error
    assert "'Deployment/llm-demo/model'" in error


@pytest.mark.parametrize("name", ["DaemonSet", "BroadcastJob", "CronJob"])
@pytest.mark.parametrize(
    ("part", "taken"),
    [
        ({}, False),
        ({"resources": {"limits": {"nvidia.com/gpu": 0}}}, False),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, True),
        ({"resources": {"limits": {"nvidia.com/gpu": "{{ values.gpus }}"}}}, True),
        ({"resources": {"limits": {"nvidia.com/gpumem": 3000}}}, True),
        ({"annotations": {"gpu-fraction": "0.5"}}, True),
        ({"claim": "gpu.nvidia.com"}, True),
    ],
)
def test_gpus_of_pods_that_nothing_counts_are_told_however_they_are_asked_for(
    name: str, part: dict[str, Any], taken: bool
) -> None:
    daemon, pod = copy.deepcopy(SAMPLES[name][0]), {"name": "model", "image": "registry.example.com/model:1"}
    template = daemon["spec"]["jobTemplate"]["spec"]["template"] if name == "CronJob" else daemon["spec"]["template"]
    template["metadata"] = {"annotations": part.get("annotations", {})}
    template["spec"] = {"containers": [{**pod, "resources": part.get("resources", {})}]}
    if "claim" in part:
        template["spec"]["resourceClaims"] = [{"name": "claim", "resourceClaimTemplateName": "claim"}]
    request = {"name": "request", "exactly": {"deviceClassName": part.get("claim")}}
    claims = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "claim"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    found = [*warn_uncounted_pods(spec(("daemon", daemon), ("claims", claims)), NO_KINDS)]
    assert ["nor are the GPUs that they take" in finding.message for finding in found] == [taken]
