"""Which Job is meant, Kubernetes' own or Volcano's: by the group that is named, or by what the template deploys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.core.capacity.gangs import gang_workloads
from reconciler.core.fleet.object_owners import ObjectOwners
from reconciler.model.ids import TemplateName, WorkloadId, WorkspaceName
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, WorkloadRef
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, load, warnings
from tests.builders.gangs import volcano
from tests.builders.group_bursts import fleet
from tests.builders.inputs import VLLM
from tests.builders.spread_files import HEAD, governing, spread
from tests.builders.workload_kinds import template, workload
from tests.capacity.test_chart_gangs import TEMPLATE as CHART

VOLCANO = "batch.volcano.sh"
ANY = WorkloadRef(namespace="llm-demo", name="vllm", kind="Job")


def of(workload: str, made: str = "apps/v1, kind: Deployment", *, name: str = "vllm") -> dict[str, str]:
    """Write the sample fleet with a template that counts this object, and deploys one of a kind and name."""
    version, _, kind = made.partition(", kind: ")
    head = TEMPLATE.replace(
        "kubeslice-acme\n", f"kubeslice-acme\n  annotations: {{overspill.dev/workload: {workload}}}\n"
    )
    head = head.replace("apps/v1", version).replace("kind: Deployment", f"kind: {kind}")
    if version == "batch/v1":
        head = (
            head.replace("        selector: {matchLabels: {app: vllm}}\n", "")
            .replace("replicas:", "parallelism:")
            .replace("{containers:", "{restartPolicy: Never, containers:")
        )
    return {**FLEET, "templates/vllm.yaml": head.replace("{name: vllm,", f"{{name: {name},")}


def ref(files: dict[str, str]) -> WorkloadRef | None:
    desired = load(files)
    assert errors(desired) == []
    return desired.templates[VLLM].ref


@pytest.mark.parametrize("group", ["batch", VOLCANO])
def test_a_kind_may_be_named_with_its_group(group: str) -> None:
    assert ref(of(f"Job.{group}/llm-demo/vllm")) == replace(ANY, group=group)
    assert warnings(load(of(f"Job.{group}/llm-demo/vllm"))) == []


@pytest.mark.parametrize(("version", "group"), [("batch/v1", "batch"), (f"{VOLCANO}/v1alpha1", VOLCANO)])
def test_what_the_template_deploys_tells_which_job_is_meant(version: str, group: str) -> None:
    for name in ("vllm", "other"):
        assert ref(of("Job/llm-demo/vllm", f"{version}, kind: Job", name=name)) == replace(ANY, group=group)


def test_the_group_that_is_named_goes_before_what_the_template_deploys() -> None:
    assert ref(of(f"Job.{VOLCANO}/llm-demo/vllm", "batch/v1, kind: Job")) == replace(ANY, group=VOLCANO)


def test_what_is_of_one_group_alone_needs_none() -> None:
    wanted = replace(ANY, kind="Deployment")
    assert ref(of("Deployment/llm-demo/vllm")) == wanted
    assert ref(of("Job/llm-demo/vllm")) == ANY


def test_a_chart_may_make_a_job_of_any_group() -> None:
    chart = CHART.format(workload="Job/llm-demo/vllm", size="4")
    beside = (
        "  manifestResources:\n"
        "    - name: own\n"
        "      manifest: {apiVersion: batch/v1, kind: Job, metadata: {name: NAME, namespace: llm-demo},\n"
        "        spec: {template: {spec: {restartPolicy: Never, containers: [{name: own, image: own}]}}}}\n  steps:\n"
        "    - {name: own, type: manifest}\n"
    )
    for name, group in (("other", ""), ("vllm", "batch")):
        files = {**FLEET, "templates/vllm.yaml": chart.replace("  steps:\n", beside.replace("NAME", name))}
        assert ref(files) == replace(ANY, group=group)


@pytest.mark.parametrize(
    ("kind", "meant"), [("Job.batch.volcano", "Job.batch.volcano.sh"), ("Deployment.app", "Deployment.apps")]
)
def test_a_group_that_nobody_knows_is_told_with_the_nearest(kind: str, meant: str) -> None:
    (told,) = warnings(load(of(f"{kind}/llm-demo/vllm")))
    assert f"unknown kind '{kind}' (try '{meant}/llm-demo/vllm'; known are AdvancedCronJob, " in told


def test_a_group_without_a_kind_names_no_object() -> None:
    (told,) = errors(load(of(".batch/llm-demo/vllm")))
    assert told.endswith("'.batch/llm-demo/vllm' names no object (try 'Deployment/namespace/name')")


def twice(first: str, second: str) -> Desired:
    """Load a fleet of two templates that count these objects."""
    files = of(f"{first}/llm-demo/vllm")
    other = of(f"{second}/llm-demo/vllm")["templates/vllm.yaml"].replace(
        "  name: vllm\n  namespace: kube", "  name: b\n  namespace: kube"
    )
    return load({**files, "templates/z.yaml": other})


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        ("Job.batch", f"Job.{VOLCANO}", True),
        ("Job", f"Job.{VOLCANO}", False),
        (f"Job.{VOLCANO}", f"Job.{VOLCANO}", False),
    ],
)
def test_two_templates_may_count_jobs_of_one_name_in_two_groups(first: str, second: str, *, both: bool) -> None:
    later = WorkloadId(WorkspaceName("llm"), TemplateName("b"))
    assert (later in twice(first, second).policies) is both


def test_a_spread_governs_the_job_of_its_own_group() -> None:
    files = of("Job.batch/llm-demo/vllm", "batch/v1, kind: Job")
    own = HEAD.replace("apps/v1, kind: Deployment", "batch/v1, kind: Job")
    assert governing(load({**files, "s.yaml": spread(head=own)})).group == "batch"
    chart = {**FLEET, "templates/vllm.yaml": CHART.format(workload=f"Job.{VOLCANO}/llm-demo/vllm", size="4")}
    told = [one for one in warnings(load({**chart, "s.yaml": spread(head=own)})) if one.startswith("s.yaml")]
    assert ["is not governed by it" in one for one in told] == [True]


def jobs() -> tuple[Json, Json]:
    """Make a Job of Kubernetes' own with two pods, and a gang of five of Volcano's with the same name."""
    return workload("batch/v1", "Job", {"parallelism": 2, "template": template(8)}), volcano((5, 8, None), least=3)


@pytest.mark.parametrize(("group", "pods"), [("batch", 2), (VOLCANO, 5), ("", 7)])
def test_of_two_jobs_of_one_name_in_a_template_the_pods_of_the_one_that_is_meant_are_counted(
    group: str, pods: int
) -> None:
    made = fleet(*jobs(), reads_replicas=False)
    meant = WorkloadRef(namespace="demo", name="model", kind="Job", group=group)
    (whole,) = gang_workloads(replace(made, templates={VLLM: replace(made.templates[VLLM], ref=meant)})).values()
    assert whole is not None
    assert whole.pods(1) == pods


def test_a_job_of_another_group_is_not_what_a_template_counts() -> None:
    made = fleet(*jobs())
    meant = WorkloadRef(namespace="demo", name="model", kind="Job", group=VOLCANO)
    counting = replace(made.templates[VLLM], ref=meant, spec=DeploySpec())
    makers = ObjectOwners(replace(made, templates={VLLM: counting}))
    things = [(f"{group}/Job", "demo", "model") for group in (VOLCANO, "batch")]
    owners = [("worker-1", (VLLM,))]
    assert [list(makers.standing(thing).items()) for thing in things] == [owners, []]
