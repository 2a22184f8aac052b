"""What no engine takes, on any cluster where it may go, is told when files are read."""

from __future__ import annotations

import pytest

from tests.builders.egs_samples import fleet, placement
from tests.builders.fleet_files import FLEET, TEMPLATE, cluster, errors, load, warnings, workspace

WHOLE = """
  helmConfig:
  - name: app
    chart: charts/app
    repoName: charts
    repoURL: https://charts.example.com
    version: 1.2.3
    releaseName: app
    releaseNamespace: llm-demo
    values: {replicaCount: "{{ replicas }}"}
MORE  steps:
  - {name: app, type: helm}
"""
PLACE = "templates/vllm.yaml:17: spec.helmConfig[0]"
REASON = "chart 'app' is called 'other/app', and no repository has a chart of that name"


def with_chart(fields: str, *, engine: str = "argocd", primary: str = "argocd", change=("", ""), more=None):
    """Load a template of one chart for worker-2, whose engine is this one; `fields` are lines of the chart."""
    head = TEMPLATE[: TEMPLATE.index("  manifestResources:")]
    lines = "".join(f"    {line}\n" for line in fields.splitlines())
    return load(
        {
            **FLEET,
            "clusters/worker-1.yaml": cluster("worker-1", f"{{engine: {primary}}}"),
            "clusters/worker-2.yaml": cluster("worker-2", f"{{engine: {engine}}}"),
            "templates/vllm.yaml": head + WHOLE.lstrip("\n").replace("MORE", lines).replace(*change),
            **(more or {}),
        }
    )


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("helmFlags: {atomic: true}", "helmFlags: atomic has"),
        ("helmFlags: {cleanupOnFail: true}", "helmFlags: cleanupOnFail has"),
        ("helmFlags: {timeout: 5m}", "helmFlags: timeout has"),
        ("helmFlags: --timeout 5m", "helmFlags: timeout has"),
        ("secretRef: login", "secretRef: has"),
    ],
)
def test_what_no_engine_acts_on_of_a_chart_is_told_with_what_to_do_instead(field, told):
    desired = with_chart(field)
    (warning,) = warnings(desired)
    assert errors(desired) == []
    place, _, hint = warning.partition(" no effect with argocd, the engine of each cluster it may go to (")
    assert place.endswith(f" spec.helmConfig[0].{told}")
    assert hint
    assert warnings(with_chart(field, engine="flux")) == []


@pytest.mark.parametrize("flags", ["wait: true", "createNamespace: true", "skipCRDs: true", "atomic: false"])
def test_what_argo_cd_does_in_any_case_is_not_told(flags):
    assert warnings(with_chart(f"helmFlags: {{{flags}}}")) == []


def test_nobody_waits_where_files_go_to_a_directory():
    (warning,) = warnings(with_chart("helmFlags: {wait: true}", engine="manifests"))
    assert "wait has no effect with manifests" in warning


def test_the_engine_of_a_cluster_where_it_cannot_go_acts_on_nothing():
    assert len(warnings(with_chart("secretRef: login", primary="flux"))) == 1


@pytest.mark.parametrize("engine", ["argocd", "flux"])
def test_a_template_that_no_engine_takes_is_told_and_stays_in_force(engine):
    desired = with_chart("", engine=engine, change=("charts/app", "other/app"))
    (warning,) = warnings(desired)
    assert errors(desired) == []
    assert f" spec: {engine} cannot take it on any cluster it may go to: {REASON} (set repoName: other" in warning
    assert len(desired.templates) == 1


def test_what_needs_helm_is_not_told_before_anybody_knows_whether_it_is_there():
    assert warnings(with_chart("", engine="manifests")) == []


def test_a_request_is_told_by_the_clusters_that_it_names():
    spec = "\n".join(WHOLE.strip("\n").replace("MORE", "").replace("charts/app", "other/app").splitlines())
    asked = placement().partition("  manifestResources:")[0] + spec + "\n"
    (told,) = [line for line in warnings(fleet(asked)) if "cannot take it" in line]
    assert f" spec: argocd cannot take it on any cluster it may go to: {REASON} (set repoName: other, or" in told
    by_directory = {"clusters/worker-2.yaml": cluster("worker-2", "{engine: manifests}")}
    assert [line for line in warnings(fleet(asked, more=by_directory)) if "cannot take it" in line] == []


def test_of_a_cluster_that_no_file_describes_nobody_knows_the_engine():
    files = {path: text for path, text in FLEET.items() if path != "clusters/worker-2.yaml"}
    asked = placement().partition("  manifestResources:")[0] + WHOLE.strip("\n").replace(
        "MORE", "    secretRef: login\n"
    )
    assert not [line for line in warnings(load({**files, "0.yaml": asked + "\n"})) if "no effect" in line]


TENANT = "{apiVersion: capsule.clastix.io/v1beta2, kind: Tenant, metadata: {name: shared%s}}"
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tenants.capsule.clastix.io}
spec: {group: capsule.clastix.io, scope: Cluster, names: {plural: tenants, kind: Tenant}, versions: [{name: v1beta2}]}
"""


def with_tenant(more: str = "", **files: str) -> list[str]:
    """Load a template with a custom object that its workspace allows by name; say what is told of its scope."""
    steps = "  steps:\n"
    head, end = TEMPLATE.split(steps)
    part = f"  - name: tenant\n    manifest: {TENANT % more}\n"
    template = head + part + steps + end + "  - name: tenant\n    type: manifest\n"
    allowing = workspace(more="allowedKinds: [capsule.clastix.io/Tenant]")
    desired = load({**FLEET, "workspaces/llm.yaml": allowing, "templates/vllm.yaml": template, **files})
    assert errors(desired) == []
    return [line for line in warnings(desired) if "names no namespace" in line]


def test_object_that_may_have_no_namespace_is_told_to_stay():
    (warning,) = with_tenant()
    assert "the Tenant names no namespace, and may have none: it stays when the placement goes" in warning
    assert "put the kind's CustomResourceDefinition into the fleet repository" in warning
    assert with_tenant(", namespace: llm-demo") == []
    assert with_tenant(**{"kinds/tenant.yaml": DEFINITION}) == []


@pytest.mark.parametrize(("engine", "told"), [("manifests", 1), ("argocd", 0), ("flux", 0)])
def test_chart_that_is_rendered_here_is_told_of_kinds_that_may_have_no_namespace(engine, told):
    allowing = {"workspaces/llm.yaml": workspace(more="allowedKinds: [capsule.clastix.io/Tenant]")}
    found = [line for line in warnings(with_chart("", engine=engine, more=allowing)) if "a Tenant in a chart" in line]
    assert len(found) == told
