"""What no API server would take is told at its field, with the nearest name, before it is committed."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from reconciler.api.routes import placements
from reconciler.core.commits.templates import RenderedTemplate, render_templates
from reconciler.core.fleet.admission import admit
from reconciler.core.safety.rules import check_chart_objects
from reconciler.core.schema.egs.request import RequestDraft
from reconciler.core.schema.egs.resource import rest_document
from reconciler.core.validation import kubernetes
from reconciler.core.validation.objects import check_object, unchecked_kinds
from reconciler.core.workloads.builtin_kinds import NO_KINDS
from reconciler.errors import Severity
from reconciler.model.action import Action
from reconciler.model.kubernetes.object_schema import NO_SCHEMAS, FieldValidation, ObjectSchemas
from reconciler.model.plan import Change, Choice, Plan
from reconciler.model.policy import Desired
from reconciler.model.workload import DeploySpec, Json, ManifestResource
from reconciler.text.findings import MOST_TOLD, dotted
from tests.builders.deploy_specs import WEB, WORKSPACE
from tests.builders.fleet_files import FLEET, TEMPLATE, errors, lines, load, warnings
from tests.builders.inputs import gpus, placement
from tests.builders.requests import manifests, request, wants
from tests.builders.workload_kinds import SAMPLES

GOLDEN = Path(__file__).parents[1] / "golden"


def object_problems(manifest: Json, *, rendered: bool = True, schemas: ObjectSchemas = NO_SCHEMAS) -> list[str]:
    """Say what is wrong with an object: the field, the problem and the way out."""
    found = check_object(manifest, (), schemas, NO_KINDS, rendered=rendered)
    return [f"{dotted(one.loc)}: {one.message} ({one.hint})" for one in found]


def web(**container: Json) -> Json:
    made = copy.deepcopy(WEB)
    made["spec"]["replicas"] = 3
    made["spec"]["template"]["spec"]["containers"][0].update(container)
    return made


def renamed(manifest: Json, way: tuple[str | int, ...], name: str) -> Json:
    """Call the field at the end of a path otherwise, at its place."""
    made = copy.deepcopy(manifest)
    owner = made
    for part in way[:-1]:
        owner = owner[part]
    fields = {name if field == way[-1] else field: value for field, value in owner.items()}
    owner.clear()
    owner.update(fields)
    return made


NAMED = {
    "a field of a pod": (
        renamed(web(), ("spec", "template", "spec", "containers"), "contaners"),
        "spec.template.spec.contaners: unknown field (try 'containers')",
    ),
    "a field of a container": (
        web(redinessProbe={}),
        "spec.template.spec.containers[0].redinessProbe: unknown field (try 'readinessProbe')",
    ),
    "a field of the metadata": (
        {**web(), "metadata": {"name": "web", "lables": {}}},
        "metadata.lables: unknown field (try 'labels')",
    ),
    "a field in the place of another": (
        {**web(), "replicas": 3},
        "replicas: unknown field (there are apiVersion, kind, metadata, spec, status)",
    ),
    "a kind": (
        {**WEB, "kind": "Deploymnt"},
        "kind: Kubernetes 1.37 has no kind Deploymnt in apps/v1 (try 'Deployment')",
    ),
    "a kind of the core": (
        {"apiVersion": "v1", "kind": "Servce", "metadata": {"name": "a"}},
        "kind: Kubernetes 1.37 has no kind Servce in v1 (try 'Service')",
    ),
    "a kind of another group": (
        {**WEB, "apiVersion": "v1"},
        "apiVersion: Kubernetes 1.37 has no Deployment in v1 (try 'apps/v1')",
    ),
    "a version that is gone": (
        {**WEB, "apiVersion": "extensions/v1beta1"},
        "apiVersion: Kubernetes 1.37 has no Deployment in extensions/v1beta1 (try 'apps/v1')",
    ),
    "a group of Kubernetes": (
        {"apiVersion": "netwroking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"}},
        "apiVersion: Kubernetes 1.37 has no Ingress in netwroking.k8s.io/v1 (try 'networking.k8s.io/v1')",
    ),
    "a required field": (
        {**web(), "spec": {"template": web()["spec"]["template"]}},
        "spec: selector is required ()",
    ),
    "a spec": ({key: value for key, value in web().items() if key != "spec"}, ": spec is required ()"),
    "a type": (
        web(args="--port"),
        (
            "spec.template.spec.containers[0].args: Kubernetes takes a list here, not '--port' "
            "(try a list of one: begin it with a dash)"
        ),
    ),
    "a number in quotes": (
        web(ports=[{"containerPort": "80"}]),
        (
            "spec.template.spec.containers[0].ports[0].containerPort: Kubernetes takes a whole number of 32 bits here, "
            "not '80' (leave the quotes out)"
        ),
    ),
    "a word": (
        web(imagePullPolicy="Allways"),
        (
            "spec.template.spec.containers[0].imagePullPolicy: 'Allways' is not one of Always, IfNotPresent, Never "
            "(try 'Always')"
        ),
    ),
    "a resource": (
        web(resources={"limits": {"nvidia.com/gpus": 1}}),
        (
            'spec.template.spec.containers[0].resources.limits["nvidia.com/gpus"]: nvidia.com/gpus is no resource that '
            "a known device plugin has (try 'nvidia.com/gpu')"
        ),
    ),
    "a resource without a vendor": (
        web(resources={"limits": {"gpu": 1}}),
        (
            "spec.template.spec.containers[0].resources.limits.gpu: gpu is no resource of Kubernetes "
            "(try 'nvidia.com/gpu')"
        ),
    ),
    "a device without a limit": (
        web(resources={"requests": {"nvidia.com/gpu": 1}}),
        (
            'spec.template.spec.containers[0].resources.requests["nvidia.com/gpu"]: devices are requested only up to '
            "their limit (set limits: nvidia.com/gpu to the same number, or leave the request out)"
        ),
    ),
}


@pytest.mark.parametrize(("manifest", "what"), NAMED.values(), ids=NAMED)
def test_what_no_api_server_takes_is_told_once_at_its_field(manifest: Json, what: str) -> None:
    assert object_problems(manifest) == [what]


def test_wrapped_kinds_that_nothing_is_known_of_are_listed() -> None:
    template = {"apiVersion": "tools.example.com/v1", "kind": "Tool", "metadata": {"name": "a"}}
    wrapper = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "a"},
        "spec": {"components": [{"template": template}]},
    }
    assert unchecked_kinds([manifests(wrapper)], NO_SCHEMAS, NO_KINDS) == (
        "tools.example.com/v1 Tool",
        "workload.codeflare.dev/v1beta2 AppWrapper",
    )


def test_kinds_of_others_are_not_held_to_kubernetes_and_their_pods_are() -> None:
    tool = {"apiVersion": "tools.example.com/v1", "kind": "Tool", "metadata": {"name": "a"}, "spec": {"anything": 1}}
    assert object_problems(tool) == []
    made = DeploySpec(manifests=(ManifestResource(name="a", manifest=tool), ManifestResource(name="b", manifest=web())))
    assert unchecked_kinds([made, made], NO_SCHEMAS, NO_KINDS) == ("tools.example.com/v1 Tool",)
    assert object_problems({**tool, "metadata": {"nam": "a"}}) == ["metadata.nam: unknown field (try 'name')"]
    workers = renamed(
        SAMPLES["LeaderWorkerSet"][0],
        ("spec", "leaderWorkerTemplate", "workerTemplate", "spec", "containers", 0, "image"),
        "imgae",
    )
    (problem,) = object_problems(workers)
    assert problem.endswith("workerTemplate.spec.containers[0].imgae: unknown field (try 'image')")


def test_a_resource_that_a_cluster_declares_is_a_resource() -> None:
    shared = web(resources={"limits": {"nvidia.com/gpus": 1}})
    assert object_problems(shared, schemas=ObjectSchemas(resources=frozenset({"nvidia.com/gpus"}))) == []


def test_expressions_pass_until_they_are_rendered() -> None:
    waiting = web(ports=[{"containerPort": "{{ replicas + 8000 }}"}])
    assert object_problems(waiting, rendered=False) == []
    assert len(object_problems(waiting)) == 1


def manifests_of(path: Path) -> list[Json]:
    documents = yaml.load_all(path.read_bytes(), yaml.CSafeLoader)
    return [one for one in documents if isinstance(one, dict) and "apiVersion" in one]


def golden_objects() -> list[Json]:
    """Read the objects that the golden stories hand to engines, one of each content."""
    objects = {
        str(one): one
        for path in sorted(GOLDEN.glob("**/*.yaml"))
        if "/manifests/" in path.as_posix()
        for one in manifests_of(path)
    }
    return [*objects.values()]


OBJECTS = [*golden_objects(), *(made for made, _ in SAMPLES.values())]


@pytest.mark.parametrize("manifest", OBJECTS, ids=lambda one: f"{one['kind']}")
def test_what_the_golden_stories_deploy_is_taken(manifest: Json) -> None:
    assert object_problems(manifest) == []


def fields_of(value: Json, way: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """List the paths of all fields whose names a schema gives; names in mappings of texts are free."""
    if isinstance(value, list):
        return [below for index, item in enumerate(value) for below in fields_of(item, (*way, index))]
    if not isinstance(value, dict) or (way and way[-1] in FREE):
        return []
    return [found for name, item in value.items() for found in ((*way, name), *fields_of(item, (*way, name)))]


FREE = {"labels", "annotations", "data", "matchLabels", "nodeSelector", "limits", "requests", "selector"}
FIELDS = [
    (manifest, way)
    for manifest in OBJECTS
    if kubernetes.kind_schema(manifest["apiVersion"], manifest["kind"])
    for way in fields_of(manifest)
    if way[-1] not in {"apiVersion", "kind"}
]


@given(field=st.sampled_from(FIELDS), letter=st.sampled_from("xqZ"), at=st.integers(0, 40))
def test_every_field_that_is_misspelt_by_one_letter_is_found(
    field: tuple[Json, tuple[str | int, ...]], letter: str, at: int
) -> None:
    manifest, way = field
    name = str(way[-1])
    position = at % len(name)
    misspelt = name[:position] + letter + name[position + 1 :]
    assume(misspelt != name)
    problems = object_problems(renamed(manifest, way, misspelt))
    assert any(problem.startswith(f"{dotted((*way[:-1], misspelt))}: unknown field") for problem in problems)


MISSPELT = TEMPLATE.replace("containers:", "contaners:")
FIELD = "spec.manifestResources[0].manifest.spec.template.spec.contaners"


def test_a_template_with_a_misspelt_field_is_out_of_force_and_told_at_its_line() -> None:
    desired = load({**FLEET, "templates/vllm.yaml": MISSPELT})
    assert errors(desired) == [f"templates/vllm.yaml:17: {FIELD}: unknown field (try 'containers')"]
    assert desired.templates == {}


def test_a_fleet_that_wants_warnings_gets_them_and_places() -> None:
    fleet = "apiVersion: overspill.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\nspec: {fieldValidation: Warn}\n"
    desired = load({**FLEET, "fleet.yaml": fleet, "templates/vllm.yaml": MISSPELT})
    assert errors(desired) == []
    assert [line for line in warnings(desired) if "contaners" in line]
    (template,) = desired.templates.values()
    assert rendered(desired).spec is not None
    assert template.name == "vllm"


def rendered(desired: Desired) -> RenderedTemplate:
    """Fill in the template of the fleet for a placement."""
    (workload,) = desired.templates
    place = Change(
        action=Action.PLACE,
        after=placement("worker-2", 3, workload=workload),
        shortage=None,
        choice=Choice(cluster="worker-2", rank=1, fits=3, free=gpus(3)),
    )
    return render_templates(Plan(changes=(place,)), desired)[0]


def test_what_only_an_expression_breaks_is_refused_before_it_is_committed() -> None:
    template = TEMPLATE.replace("{name: server, image: vllm:1}", '{name: server, image: "{{ replicas }}"}')
    desired = load({**FLEET, "templates/vllm.yaml": template})
    assert errors(desired) == []
    made = rendered(desired)
    assert made.spec is None
    assert "containers[0].image: Kubernetes takes a text here, not 3" in made.problem


def test_a_template_that_is_wrong_in_thousands_of_places_is_told_in_short() -> None:
    ports = ", ".join(f'{{containerPort: {number}, hostPort: "PORT"}}' for number in range(1, 3_001))
    template = TEMPLATE.replace("image: vllm:1}", f"image: vllm:1, ports: [{ports}]}}")
    found = lines(load({**FLEET, "templates/vllm.yaml": template.replace('"PORT"', "80")}).problems)
    assert len(found) <= MOST_TOLD + 2
    assert any(re.fullmatch(r"templates/vllm.yaml: has \d{4} more problems", line) for line in found)
    made = rendered(load({**FLEET, "templates/vllm.yaml": template.replace("PORT", "{{ 80 }}")}))
    assert re.search(r"; templates/vllm\.yaml:1: spec: has \d{4} more problems$", made.problem)
    assert made.problem.count(";") == 10


def test_findings_are_errors_unless_the_fleet_says_otherwise() -> None:
    lenient = ObjectSchemas(field_validation=FieldValidation.WARN)
    (finding,) = check_object({**web(), "replicas": 1}, (), lenient, NO_KINDS, rendered=True)
    assert finding.severity is Severity.WARNING


def test_a_kind_that_no_cluster_has_is_told_with_the_nearest_and_not_as_forbidden() -> None:
    (error,) = errors(load({**FLEET, "templates/vllm.yaml": TEMPLATE.replace("kind: Deployment", "kind: Deploymnt")}))
    assert error.endswith("manifest.kind: Kubernetes 1.37 has no kind Deploymnt in apps/v1 (try 'Deployment')")


def test_a_request_of_the_api_is_refused_at_its_field() -> None:
    spec = manifests(renamed(web(), ("spec", "template", "spec", "containers"), "contaners"))
    draft = placements.read_create({**rest_document(request("worker-2", spec=spec)), "workspaceName": "llm"})
    assert isinstance(draft, RequestDraft)
    found = admit(draft, wants())
    assert isinstance(found, tuple)
    assert "manifestResources[0].manifest.spec.template.spec.contaners" in [dotted(one.loc) for one in found]


def test_the_objects_of_a_chart_are_held_to_schemas_too() -> None:
    web_of_chart = renamed(web(), ("spec", "template", "spec", "containers"), "contaners")
    (finding,) = check_chart_objects([web_of_chart], ("spec", "helmConfig", 0), WORKSPACE)
    assert finding.message == "the chart makes Deployment web: spec.template.spec.contaners: unknown field"
