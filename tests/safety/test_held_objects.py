"""What an object holds whole is refused for whatever it would be refused for as an object of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from reconciler.core.safety import rules
from reconciler.model.workload import DeletionPolicy, Json
from reconciler.text.findings import Finding
from tests.builders.deploy_specs import CONFIG, WEB, WORKSPACE, spec
from tests.builders.workload_kinds import SAMPLES, workload

Hold = Callable[[Json], tuple[Json, tuple[str | int, ...]]]

WRAPPER, WORK = "workload.codeflare.dev/AppWrapper", "work.open-cluster-management.io/ManifestWork"
HOLDING = replace(WORKSPACE, allowed_kinds=(WRAPPER, WORK), namespaces=("demo", "tools"))


def wrapped(made: Json) -> tuple[Json, tuple[str | int, ...]]:
    """Wrap an object in an AppWrapper; return that with the place of the object in it."""
    holder = workload("workload.codeflare.dev/v1beta2", "AppWrapper", {"components": [{"template": made}]})
    return holder, ("spec", "components", 0, "template")


def in_work(made: Json) -> tuple[Json, tuple[str | int, ...]]:
    """Put an object into a ManifestWork, as `wrapped`."""
    holder = workload("work.open-cluster-management.io/v1", "ManifestWork", {"workload": {"manifests": [made]}})
    return holder, ("spec", "workload", "manifests", 0)


def named(api_version: str, kind: str, *, metadata: Json = None, **fields: Json) -> Json:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", **(metadata or {})}, **fields}


REFUSED = {
    "a Namespace": named("v1", "Namespace"),
    "rights": named("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", roleRef={}, subjects=[]),
    "a namespace of others": named("v1", "ConfigMap", metadata={"namespace": "kube-system"}),
    "a Secret": named("v1", "Secret", stringData={"a": "b"}),
    "a token of an account": named("v1", "Secret", type="kubernetes.io/service-account-token"),
    "a List": {"apiVersion": "v1", "kind": "List", "metadata": {"name": "a"}, "items": []},
    "an Application": named("argoproj.io/v1alpha1", "Application", metadata={"namespace": "demo"}),
    "an instruction": named("v1", "ConfigMap", metadata={"annotations": {"helm.sh/resource-policy": "keep"}}),
    "a finalizer": named("v1", "ConfigMap", metadata={"finalizers": ["example.com/stay"]}),
    "our label": named("v1", "ConfigMap", metadata={"labels": {"overspill.dev/step": "a"}}),
    "a privileged pod": named(
        "v1", "Pod", spec={"containers": [{"name": "a", "image": "a:1", "securityContext": {"privileged": True}}]}
    ),
    "an unknown field": named("v1", "Service", spec={"prots": []}),
    "a number in data": named("v1", "ConfigMap", data={"a": 1}),
}


def found(made: Json, **fields: object) -> list[Finding]:
    return [*rules.check_safety(replace(spec(("web", made)), **fields), HOLDING)]


@pytest.mark.parametrize("hold", [wrapped, in_work])
@pytest.mark.parametrize("made", REFUSED.values(), ids=REFUSED)
def test_held_object_is_refused_as_it_is_alone(made: Json, hold: Hold) -> None:
    holder, place = hold(made)
    alone = found(made)
    assert alone
    held = {(finding.loc, finding.message) for finding in found(holder)}
    root = ("spec", "manifestResources", 0, "manifest")
    for finding in alone:
        assert ((*root, *place, *finding.loc[len(root) :]), finding.message) in held


@pytest.mark.parametrize("hold", [wrapped, in_work])
def test_held_workloads_and_companions_are_let_in(hold: Hold) -> None:
    for made in (WEB, CONFIG, SAMPLES["Job"][0], SAMPLES["PyTorchJob"][0]):
        inside = {**made, "metadata": {**made["metadata"], "namespace": "demo"}}
        assert found(hold(inside)[0]) == []


def test_namespace_that_is_allowed_may_not_be_wrapped_since_the_end_would_delete_it() -> None:
    space = replace(HOLDING, allowed_kinds=(WRAPPER, "/Namespace"))
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}
    assert rules.check_safety(spec(("web", made)), space) == ()
    (finding,) = rules.check_safety(spec(("web", wrapped(made)[0])), space)
    assert finding.message == (
        "the end of the AppWrapper would delete this Namespace, and with it all that others have in it"
    )
    retained = replace(spec(("web", wrapped(made)[0])), deletion_policy=DeletionPolicy.RETAIN)
    assert rules.check_safety(retained, space) == ()


@pytest.mark.parametrize("inner", [None, "nothing", 7, [CONFIG], {"kind": "ConfigMap"}])
def test_what_is_no_object_may_not_be_wrapped(inner: Json) -> None:
    (finding,) = found(wrapped(inner)[0])
    assert finding.message == "the manifest is no Kubernetes object"


@pytest.mark.parametrize("inner", ["{{ cluster.labels }}", named("{{ cluster.name }}", "A"), named("v1", "{{ 'A' }}")])
def test_what_an_expression_makes_of_a_wrapped_object_is_looked_at_once_it_is_rendered(inner: Json) -> None:
    assert found(wrapped(inner)[0]) == []


def test_chart_is_held_to_the_same_rules() -> None:
    made = wrapped(named("v1", "ConfigMap", metadata={"namespace": "kube-system"}))[0]
    (finding,) = rules.check_chart_objects([made], ("spec", "helmConfig", 0), HOLDING)
    assert finding.message == "the chart makes AppWrapper model: 'kube-system' is no namespace of workspace llm"
