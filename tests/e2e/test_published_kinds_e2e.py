"""What the published kinds of a GPU platform say of what Overspill knows of them: its objects, its paths, its check.

Each project's CustomResourceDefinitions are installed as released, and the API server is asked what it would say of
each object, a dry run with strict fields. Where a module cannot be had, the tests of that project are skipped.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass

import pytest

from reconciler.core.validation.custom_resources import custom_kind
from reconciler.core.validation.immutable_rules import FIELDS
from reconciler.core.validation.objects import check_object
from reconciler.core.workloads.api_kinds import KUBERNETES_GROUPS, cluster_scoped, group_kind
from reconciler.core.workloads.builtin_kinds import BUILT_IN, NO_KINDS, scale_paths
from reconciler.model.kubernetes.object_schema import ObjectSchemas
from reconciler.model.kubernetes.workload_kind import EACH, Count, WorkloadKind, path
from reconciler.model.kubernetes.workload_kind import Path as FieldPath
from tests.e2e.api_server import Json
from tests.e2e.components import Missing
from tests.e2e.control_plane import Cluster
from tests.e2e.judged_objects import every_object, of_kinds
from tests.e2e.published_kinds import PROJECTS, Judge, Project, below, kind_name, released, versions

UNPUBLISHED = {
    "workload.codeflare.dev": "the module of AppWrapper is not among those that are built here",
    "nvidia.com": "the module of Dynamo's operator is on no module proxy that we could ask",
}
"""Groups of built-in kinds whose kinds are in no module that can be had, and why."""

LATER_VERSIONS = {
    "disaggregatedset.x-k8s.io/DisaggregatedSet": {"v1"},  # LeaderWorkerSet 0.9.0
    **{
        f"apps.kruise.io/{kind}": {"v1beta1"}
        for kind in ("CloneSet", "DaemonSet", "UnitedDeployment", "BroadcastJob", "AdvancedCronJob")
    },
}
"""Versions of built-in kinds that a later release than the pinned one has."""

LATER_FIELDS = {("ray.io/RayService", path("spec.suspend"))}
"""Fields of built-in kinds that a later release than the pinned one has: KubeRay 1.7.0."""

OWN = {name: kind for name, kind in BUILT_IN.items() if kind.group in KUBERNETES_GROUPS}
"""Built-in kinds that Kubernetes itself serves."""

Definitions = tuple[Json, ...]


@pytest.fixture(scope="module")
def judge(start_cluster: Callable[[str], Cluster]) -> Judge:
    return Judge(start_cluster("judge"))


@pytest.fixture(params=PROJECTS, ids=[project.name for project in PROJECTS])
def definitions(request: pytest.FixtureRequest) -> Definitions:
    """The kinds of a project."""
    return published(request.param)


def published(project: Project) -> Definitions:
    found = released(project)
    if isinstance(found, Missing):
        pytest.skip(found.reason)
    return found


JUDGED = [project for project in PROJECTS if project.objects]


@pytest.mark.parametrize("project", JUDGED, ids=[project.name for project in JUDGED])
def test_all_that_is_written_and_read_is_taken_and_no_stranger(project: Project, judge: Judge) -> None:
    definitions = published(project)
    objects = list(of_kinds(definitions))
    kinds = {group_kind(made) for _, made in objects}
    assert kinds >= {kind_name(definition) for definition in definitions} & {*BUILT_IN}
    for definition in definitions:
        if kind_name(definition) in kinds:
            judge.serve(definition)
    assert {name: refusal for name, made in objects if (refusal := judge.refusal(made))} == {}
    assert [name for name, made in objects if "unknown field" not in judge.refusal(with_stranger(made))] == []


def test_kubernetes_takes_what_is_written_and_read_of_its_own_kinds(judge: Judge) -> None:
    objects = [(name, made) for name, made in every_object() if group_kind(made) in OWN]
    assert {group_kind(made) for _, made in objects} >= {*OWN}
    assert {name: refusal for name, made in objects if (refusal := judge.refusal(made))} == {}
    assert [name for name, made in objects if "unknown field" not in judge.refusal(with_stranger(made))] == []


@pytest.mark.parametrize("kind", OWN.values(), ids=lambda kind: kind.kind)
def test_kubernetes_has_every_field_that_its_own_kinds_name(kind: WorkloadKind, judge: Judge) -> None:
    for version in kind.versions:
        schema, definitions = judge.schema(kind.group, version, kind.kind)
        assert [field for field in paths_of(kind) if not below(schema, field, definitions)] == []
        assert not below(schema, path("spec.overspillHasMadeThisUp"), definitions)


def test_every_field_that_a_built_in_kind_names_is_published(definitions: Definitions) -> None:
    absent = set()
    for definition in definitions:
        kind = BUILT_IN.get(kind_name(definition))
        for schema in versions_known(definition, kind) if kind else ():
            absent |= {(kind_name(definition), field) for field in paths_of(kind) if not below(schema, field)}
    assert absent == {each for each in LATER_FIELDS if each[0] in map(kind_name, definitions)}


def test_every_version_of_a_built_in_kind_is_published() -> None:
    """By one project or another: the Training Operator has MPIJob in v1, the MPI Operator in v2beta1."""
    served: dict[str, set[str]] = {}
    for project in PROJECTS:
        for definition in published(project):
            served.setdefault(kind_name(definition), set()).update(versions(definition))
    unpublished = {
        name: {*kind.versions} - served.get(name, set())
        for name, kind in BUILT_IN.items()
        if kind.group not in KUBERNETES_GROUPS and kind.group not in UNPUBLISHED
    }
    assert {name: later for name, later in unpublished.items() if later} == LATER_VERSIONS
    assert not {name for name in served if name.partition("/")[0] in UNPUBLISHED}


def test_the_scope_of_each_kind_is_known(definitions: Definitions) -> None:
    wrong = {
        kind_name(each): each["spec"]["scope"]
        for each in definitions
        if cluster_scoped(kind_name(each)) != (each["spec"]["scope"] == "Cluster")
    }
    assert wrong == {}


def test_an_autoscaler_finds_the_replicas_where_the_kind_has_its_scale(definitions: Definitions) -> None:
    for definition in definitions:
        if kind_name(definition) not in BUILT_IN:
            continue
        for version in definition["spec"]["versions"]:
            scale = version.get("subresources", {}).get("scale")
            made = {
                "apiVersion": f"{definition['spec']['group']}/{version['name']}",
                "kind": definition["spec"]["names"]["kind"],
            }
            found = [".".join(("", *each)) for each in scale_paths(made, NO_KINDS)]
            assert found == ([scale["specReplicasPath"]] if scale else []), made


def test_a_number_that_is_left_out_counts_as_its_published_default(definitions: Definitions) -> None:
    for definition in definitions:
        kind = BUILT_IN.get(kind_name(definition))
        if kind is None:
            continue
        for schema in versions_known(definition, kind):
            for count in counts_of(kind):
                default = below(schema, count.path).get("default")
                assert default in (None, count.default), f"{kind_name(definition)}: {'.'.join(count.path)}"


def test_our_own_check_takes_what_the_api_server_takes(definitions: Definitions) -> None:
    """`overspill check` with these kinds in the fleet repository, which does without an API server."""
    kinds = {}
    for definition in definitions:
        kind, findings = custom_kind(definition)
        assert kind is not None
        assert findings == ()
        kinds[kind.name] = kind
    schemas = ObjectSchemas(custom=kinds)
    for name, made in of_kinds(definitions):
        assert check_object(made, (), schemas, NO_KINDS, rendered=True) == (), name
        (finding,) = check_object(with_stranger(made), (), schemas, NO_KINDS, rendered=True)
        assert finding.message == "unknown field", name


def with_stranger(made: Json) -> Json:
    """Copy an object with a field that no kind has."""
    changed = copy.deepcopy(made)
    changed.setdefault("spec", {})["overspillHasMadeThisUp"] = 1
    return changed


def versions_known(definition: Json, kind: WorkloadKind) -> list[Json]:
    """Return the schemas of the versions that the paths of a kind hold for."""
    return [schema for version, schema in versions(definition).items() if version in kind.versions]


def counts_of(kind: WorkloadKind) -> Iterator[Count]:
    """Yield every factor of the numbers of a kind's pods and groups."""
    for template in kind.templates:
        yield from template.counts
    yield from kind.together.counts if kind.together else ()


def paths_of(value: object) -> Iterator[FieldPath]:
    """Yield all paths into a spec that stand in the register's entry of a kind."""
    if is_dataclass(value):
        for each in fields(value):
            yield from paths_of(getattr(value, each.name))
    elif isinstance(value, tuple) and value and value[0] == "spec":
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from paths_of(each)


OWN_OBJECTS = {"kueue.x-k8s.io/Workload": "Kueue's controllers make it, and its rules read its status"}
"""Kinds with rules that no template meets, and why."""


@pytest.mark.parametrize("project", PROJECTS, ids=[project.name for project in PROJECTS])
def test_every_published_rule_about_an_old_value_is_in_the_table(project: Project) -> None:
    ruled = {(field.kind, field.path) for field in FIELDS}
    for definition in published(project):
        kind = kind_name(definition)
        if kind in OWN_OBJECTS:
            continue
        for version, schema in versions(definition).items():
            for kept in _kept(schema, ()):
                inside = {kept[:size] for size in range(1, len(kept) + 1)}
                told = {path for name, path in ruled if name == kind}
                assert inside & told or any(path[: len(kept)] == kept for path in told), (kind, version, kept)


def _kept(schema: Json, field: FieldPath) -> Iterator[FieldPath]:
    """Yield the paths in a schema whose rules compare them with what they were."""
    if any("oldSelf" in rule["rule"] for rule in schema.get("x-kubernetes-validations", ())):
        yield field
    for name, inner in schema.get("properties", {}).items():
        yield from _kept(inner, (*field, name))
    for inner in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(inner, dict):
            yield from _kept(inner, (*field, EACH))
