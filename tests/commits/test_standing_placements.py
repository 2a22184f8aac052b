"""A resize writes no change that an API server would refuse, with any engine, and says so wherever it is looked at."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from reconciler.core.commits import messages
from reconciler.core.explain.workload import placement_notes
from reconciler.daemon.branch import BranchReader
from reconciler.errors import Severity
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
