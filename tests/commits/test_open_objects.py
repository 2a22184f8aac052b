"""Two templates whose expressions make one object are never on one cluster: only their rendering tells its name."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.core.fleet.object_owners import ObjectOwners
from reconciler.model.plan import Reason
from tests.builders.passes import SOURCE_FILES, Passes
from tests.fakes.memory_repository import MemoryRepository

STEPS = "  steps: [{name: server, type: manifest}]\n"
PLAIN = "{name: common, namespace: demo}"


def template(name: str, metadata: str) -> str:
    """Return a template of this name that makes a ConfigMap with this metadata beside its Deployment."""
    config = f"""\
    - name: common
      manifest: {{apiVersion: v1, kind: ConfigMap, metadata: {metadata}, data: {{a: b}}}}
  steps: [{{name: server, type: manifest}}, {{name: common, type: manifest}}]
"""
    return SOURCE_FILES["template.yaml"].replace(STEPS, config).replace("name: vllm,", f"name: {name},")


def charted(name: str, release: str) -> str:
    """Return a template of this name with a chart that the engine installs as this release, beside its Deployment."""
    chart = f"""\
  helmConfig:
    - {{name: stack, chart: a/stack, repoName: a, repoURL: https://charts.example.com, version: 1.0.0,
       releaseName: {release}, releaseNamespace: demo}}
  steps: [{{name: server, type: manifest}}, {{name: stack, type: helm}}]
"""
    return SOURCE_FILES["template.yaml"].replace(STEPS, chart).replace("name: vllm,", f"name: {name},")


class Shared(Passes):
    """Passes over templates, by their names."""

    def __init__(self, templates: Mapping[str, str], *, engine: str = "manifests") -> None:
        source = {name: text for name, text in SOURCE_FILES.items() if name != "template.yaml"}
        fleet = source["fleet.yaml"].replace("engine: manifests", f"engine: {engine}")
        files = {f"{name}.yaml": text for name, text in templates.items()}
        super().__init__(MemoryRepository({**source, "fleet.yaml": fleet, **files}))
        self.names = tuple(templates)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("{name: \"{{ 'common' }}\", namespace: demo}", PLAIN),
        (PLAIN, "{name: common, namespace: \"{{ 'demo' }}\"}"),
        ('{name: "{{ workspace.name }}", namespace: demo}', '{name: "{{ workspace.name }}", namespace: demo}'),
    ],
    ids=["name", "namespace", "both"],
)
@pytest.mark.parametrize("apart", [False, True], ids=["in one pass", "one after the other"])
def test_the_second_of_two_templates_that_render_one_object_waits_or_goes_elsewhere(
    one: str, two: str, *, apart: bool
) -> None:
    passes = Shared({"one": template("one", one), "two": template("two", two)})
    assert_apart(passes, apart=apart)


@pytest.mark.parametrize("engine", ["flux", "argocd"])
@pytest.mark.parametrize("apart", [False, True], ids=["in one pass", "one after the other"])
def test_the_second_of_two_templates_that_render_one_release_waits_or_goes_elsewhere(
    engine: str, *, apart: bool
) -> None:
    release = '"{{ workspace.name }}-stack"'
    passes = Shared({"one": charted("one", release), "two": charted("two", release)}, engine=engine)
    assert_apart(passes, apart=apart)


def assert_apart(passes: Shared, *, apart: bool) -> None:
    """Check that the second workload does not come to the cluster of the first, in one pass or one after the other."""
    passes.free = {"worker-2": 8}
    refusals = passes.burst("one", "two")
    if apart:
        passes.advance(5)
        refusals = passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2"}
    (refusal,) = (each for each in refusals if each.reason is Reason.TAKEN)
    assert refusal.message.endswith("is there already, and belongs to llm/one")
    passes.free = {"worker-2": 8, "worker-3": 8}
    passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2", "two": "worker-3"}


def test_templates_whose_objects_differ_once_rendered_share_a_cluster() -> None:
    own = '{name: "of-{{ template.name }}", namespace: demo}'
    passes = Shared({"one": template("one", own), "two": template("two", own)})
    passes.free = {"worker-2": 8}
    passes.burst("one", "two")
    assert passes.where() == {"one": "worker-2", "two": "worker-2"}


def test_only_what_an_expression_names_is_left_to_rendering() -> None:
    passes = Shared(
        {
            "plain": template("plain", PLAIN),
            "cluster": template("cluster", '{name: "a-{{ cluster.name }}", namespace: demo}'),
            "open": template("open", '{name: "a-{{ replicas }}", namespace: demo}'),
            "chart": charted("chart", "stack"),
            "release": charted("release", '"a-{{ template.name }}"'),
        }
    )
    desired = passes.look().inputs.desired
    owners = ObjectOwners(desired)
    assert {name.name: owners.has_open_objects(name) for name in desired.templates} == {
        "plain": False,
        "cluster": False,
        "open": True,
        "chart": False,
        "release": True,
    }
