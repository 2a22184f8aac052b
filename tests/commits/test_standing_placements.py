"""A resize writes no change that an API server would refuse, with any engine, and says so wherever it is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from reconciler.core.commits import messages
from reconciler.core.explain.placement_notes import placement_notes
from reconciler.daemon.branch import BranchReader
from reconciler.errors import Severity
from reconciler.model.action import Action
from tests.builders.passes import SOURCE_FILES, Passes, seconds
from tests.fakes.memory_repository import MemoryRepository

TEMPLATE = SOURCE_FILES["template.yaml"]
PREP = """\
    - name: prep
      manifest:
        apiVersion: batch/v1
        kind: Job
        metadata: {name: prep, namespace: demo}
        spec:
          template:
            spec:
              restartPolicy: Never
              containers: [{name: prep, image: registry.example.com/prep:1.0, args: ["{{ replicas }} replicas"]}]
  steps: [{name: prep, type: manifest}, {name: server, type: manifest}]
"""
WITH_JOB = TEMPLATE.replace("  steps: [{name: server, type: manifest}]\n", PREP)
RENAMED = TEMPLATE.replace(
    "namespace: kubeslice-demo}",
    "namespace: kubeslice-demo, annotations: {overspill.dev/workload: Deployment/demo/vllm}}",
).replace("{name: vllm, namespace: demo}", "{name: vllm-v2, namespace: demo}")
"""The workload under another name, which is still the same on its primary."""
CHART = """\
  helmConfig:
    - name: server
      chart: vllm
      repoURL: https://charts.example.com
      version: 1.0.0
      releaseName: vllm
      releaseNamespace: demo
      values: {replicaCount: "{{ replicas }}"}
  steps: [{name: server, type: helm}]
"""
WITH_CHART = RENAMED[: RENAMED.index("  manifestResources:")] + CHART
NARROWER = TEMPLATE.replace("{app: vllm}", "{app: vllm, tier: gpu}")


def passes_of(engine: str, template: str) -> Passes:
    fleet = SOURCE_FILES["fleet.yaml"].replace("engine: manifests", f"engine: {engine}")
    return Passes(MemoryRepository({**SOURCE_FILES, "fleet.yaml": fleet, "template.yaml": template}))


def miss(passes: Passes, replicas: int) -> str:
    """Run a pass in which so many replicas are missing, and return its last message."""
    passes.missing, passes.steady_since = replicas, passes.moment - seconds(61)
    outcome = passes.run_once()
    passes.advance(65)
    return outcome.rendered.commits[-1].message if outcome.rendered.commits else ""


def objects(passes: Passes) -> dict[str, dict[str, object]]:
    """Return the objects of the only placement by kind."""
    repository = passes.repository
    tip = repository.tips().output
    assert tip is not None
    entries = [entry for entry in repository.entries(tip) if "manifests/" in entry.path or "stages/" in entry.path]
    contents = repository.read([entry.blob for entry in entries])
    values = [yaml.safe_load(contents[entry.blob]) for entry in entries]
    return {value["kind"]: value for value in values}


ENGINES = pytest.mark.parametrize("engine", ["argocd", "flux", "manifests"])


@ENGINES
def test_job_that_reads_the_replicas_stays_while_the_workload_grows(engine: str) -> None:
    passes = passes_of(engine, WITH_JOB)
    miss(passes, 2)
    before = objects(passes)
    message = miss(passes, 4)
    after = objects(passes)
    assert after["Job"] == before["Job"]
    assert after["Deployment"]["spec"]["replicas"] == 4
    assert "spec.template of Job demo/prep" in message.replace("\n", " ")
    (placement,) = passes.placements()
    assert (placement.replicas, "Job demo/prep" in placement.kept) == (4, True)


@ENGINES
def test_selector_of_a_template_is_for_the_next_placement(engine: str) -> None:
    passes = passes_of(engine, TEMPLATE)
    miss(passes, 2)
    assert isinstance(passes.repository, MemoryRepository)
    passes.repository.person("source", {"template.yaml": NARROWER})
    message = miss(passes, 4).replace("\n", " ")
    after = objects(passes)["Deployment"]["spec"]
    assert after["selector"] == {"matchLabels": {"app": "vllm"}}
    assert "tier" not in str(after)
    assert after["replicas"] == 4
    assert "nobody can change spec.selector of Deployment demo/vllm" in message
    assert "that is taken up now, as far as it can be." in message
    (placement,) = passes.placements()
    tip = passes.repository.tips().output
    assert tip is not None
    marker = "flux/" if engine == "flux" else "00-overspill-marker.yaml"
    (entry,) = (
        entry for entry in passes.repository.entries(tip) if marker in entry.path and "_anchor" not in entry.path
    )
    assert placement.digest in passes.repository.read([entry.blob])[entry.blob].decode(), "the engine reports this one"
    assert not BranchReader(passes.repository).ledger(tip).drifted


@ENGINES
def test_workload_that_is_renamed_in_its_template_goes_on_with_the_replicas_that_it_needs(engine: str) -> None:
    passes = passes_of(engine, TEMPLATE)
    miss(passes, 2)
    assert isinstance(passes.repository, MemoryRepository)
    passes.repository.person("source", {"template.yaml": RENAMED})
    message = miss(passes, 4).replace("\n", " ")
    after = objects(passes)["Deployment"]
    assert (after["metadata"]["name"], after["spec"]["replicas"]) == ("vllm", 4)
    assert "nobody can change the kind, namespace and name of Deployment demo/vllm" in message
    tip = passes.repository.tips().output
    assert tip is not None
    assert not BranchReader(passes.repository).ledger(tip).drifted


def test_placement_that_is_held_stays_in_the_namespace_that_it_is_recorded_with() -> None:
    passes = passes_of("argocd", TEMPLATE)
    miss(passes, 2)
    assert isinstance(passes.repository, MemoryRepository)
    moved = RENAMED.replace("name: vllm-v2, namespace: demo", "name: vllm, namespace: elsewhere")
    passes.repository.person("source", {"template.yaml": moved})
    miss(passes, 4)
    (placement,) = passes.placements()
    assert (placement.replicas, placement.target_namespace) == (4, "demo")
    assert objects(passes)["Deployment"]["metadata"]["namespace"] == "demo"


@pytest.mark.parametrize(("engine", "renamed"), [("argocd", "vllm-v2"), ("flux", "vllm-v2"), ("argocd", "vllm")])
def test_release_that_an_engine_installs_is_not_resized_under_another_name(engine: str, renamed: str) -> None:
    passes = passes_of(engine, WITH_CHART)
    miss(passes, 2)
    assert isinstance(passes.repository, MemoryRepository)
    changed = WITH_CHART.replace("releaseName: vllm", f"releaseName: {renamed}")
    passes.repository.person("source", {"template.yaml": changed})
    passes.missing, passes.steady_since = 4, passes.moment - seconds(61)
    outcome = passes.run_once()
    (placement,) = (each for each in passes.placements() if each.cluster == "worker-2")
    if renamed == "vllm":
        assert placement.replicas == 4
        return
    assert placement.replicas == 2
    (elsewhere,) = (change for change in outcome.plan.changes if change.action is Action.PLACE)
    (refusal,) = elsewhere.refused
    assert "release demo/vllm would be uninstalled with all of its pods" in refusal.message


def test_what_was_kept_is_told_until_the_template_is_as_it_was() -> None:
    passes = passes_of("manifests", TEMPLATE)
    miss(passes, 2)
    assert isinstance(passes.repository, MemoryRepository)
    passes.repository.person("source", {"template.yaml": NARROWER})
    miss(passes, 3)
    outcome = passes.run_once()
    (problem,) = (each for each in outcome.problems if "nobody can change" in each.message)
    assert problem.severity is Severity.WARNING
    assert problem.path == f"{passes.placements()[0].path}/placement.yaml"
    (note,) = placement_notes(outcome.decision.inputs, passes.placements()[0])
    assert note == (
        "all but its replicas stays as it was placed, since nobody can change spec.selector of Deployment demo/vllm; "
        "the next placement takes it up"
    )
    passes.repository.person("source", {"template.yaml": TEMPLATE})
    assert "nobody can change" not in miss(passes, 4)
    assert passes.placements()[0].kept == ""
    assert not [each for each in passes.run_once().problems if "nobody can change" in each.message]


def test_line_of_a_resize_says_what_stays() -> None:
    passes = passes_of("manifests", WITH_JOB)
    miss(passes, 2)
    passes.missing, passes.steady_since = 4, passes.moment - seconds(61)
    (change,) = passes.run_once().rendered.changes
    assert "; what nobody can change stays as it was placed: spec.template of Job demo/prep)" in messages.line(change)
    assert "nobody can change" not in messages.line(
        replace(change, after=change.after.rendered(target_namespace="demo", digest=""))
    )
