"""placement.yaml is the complete memory of a placement, and is read back strictly."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.core.ledger.placement_record import digest, read_placement, read_spec, write_placement
from reconciler.errors import InvalidInput
from reconciler.model.placement import Placement
from reconciler.model.workload import DeploySpec, ManifestResource, Step, StepType
from tests.builders import placement_records
from tests.builders.placement_records import PLACEMENT, SPEC, placements, specs

PATH = f"{PLACEMENT.path}/placement.yaml"
RECORD = write_placement(PLACEMENT, SPEC, charts="engine")


@given(placement=placements, spec=specs())
def test_every_placement_and_spec_is_read_back_as_it_was_written(placement: Placement, spec: DeploySpec):
    spec = replace(spec, deletion_policy=placement.deletion_policy)
    path = f"{placement.path}/placement.yaml"
    data = write_placement(placement, spec, charts="rendered")
    assert read_placement(data, path) == placement
    assert read_spec(data, path) == spec
    assert write_placement(read_placement(data, path), read_spec(data, path), charts="rendered") == data


def test_the_record_has_the_shape_that_argo_cds_generator_reads():
    shape = '{"groupSize":1,"nodeSelector":{"nvidia.com/gpu.product":"H100"},'
    shape += '"requests":{"nvidia.com/gpu":"1"},"tolerations":[]}'
    assert (
        RECORD.decode().replace(shape.replace('"', r"\""), "@SHAPE@")
        == """\
# +argocd:skip-file-rendering
apiVersion: worker.kubeslice.io/v1alpha1
kind: WorkloadPlacement
metadata:
  name: vllm-7f3a90c1
  namespace: kubeslice-avesha
  annotations:
    overspill.dev/workspace: llm
    overspill.dev/workload: vllm
    overspill.dev/template: vllm
    overspill.dev/template-commit: "8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c8d0c"
    overspill.dev/namespace: vllm-demo
    overspill.dev/replicas: "3"
    overspill.dev/origin: burst
    overspill.dev/policy: spill
    overspill.dev/engine: argocd
    overspill.dev/charts: engine
    overspill.dev/autoscaled: "false"
    overspill.dev/created-at: "2026-11-20T10:05:00Z"
    overspill.dev/changed-at: "2026-11-20T10:05:00Z"
    overspill.dev/expires-at: "2026-11-20T10:15:00Z"
    overspill.dev/replica: "@SHAPE@"
    overspill.dev/digest: sha256-3b1c
    overspill.dev/template-version: "5b1e9f2c04aa"
spec:
  clusterName: worker-2
  burstDuration: "10m"
  deletionPolicy: Delete
  serviceAccount: vllm-sa
  helmConfig:
  - name: vllm-app
    chart: vllm/vllm-stack
    repoName: vllm
    repoURL: "https://vllm-project.github.io/production-stack"
    version: "0.1.7"
    releaseName: vllm
    releaseNamespace: vllm-demo
    helmFlags:
      atomic: false
      cleanupOnFail: false
      createNamespace: true
      skipCRDs: false
      timeout: "10m"
      wait: true
    values:
      servingEngineSpec:
        modelSpec:
        - name: llama3
          replicaCount: 3
          requestGPU: 1
  manifestResources: []
  cmdExec:
  - name: get-namespace
    cmd: "kubectl get pods -n vllm-demo"
  steps:
  - name: get-namespace
    type: command
  - name: vllm-app
    type: helm
"""
    )


def test_the_first_ordinal_of_a_subset_is_recorded_where_there_is_one():
    assert b"first-ordinal" not in write_placement(PLACEMENT, SPEC, charts="engine")
    for ordinal in (0, 7):
        numbered = replace(PLACEMENT, subset="spot", first_ordinal=ordinal)
        data = write_placement(numbered, SPEC, charts="engine")
        assert f'overspill.dev/first-ordinal: "{ordinal}"\n'.encode() in data
        assert read_placement(data, PATH) == numbered


def test_lists_and_values_are_there_when_they_are_empty():
    data = write_placement(PLACEMENT, DeploySpec(helm=(replace(SPEC.helm[0], values={}),)), charts="engine").decode()
    assert "values: {}\n" in data
    assert "manifestResources: []\n  cmdExec: []\n  steps: []\n" in data
    assert "helmConfig: []\n" in write_placement(PLACEMENT, DeploySpec(), charts="engine").decode()


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
def test_a_spec_that_ships_an_autoscaler_is_marked_autoscaled(kind: str):
    scaler = ManifestResource(name="scaler", manifest={"kind": kind})
    spec = DeploySpec(manifests=(scaler,), steps=(Step(name="scaler", type=StepType.MANIFEST),))
    assert b'overspill.dev/autoscaled: "true"' in write_placement(PLACEMENT, spec, charts="engine")


def test_the_placements_deletion_policy_is_the_one_that_counts():
    spec = replace(SPEC, deletion_policy="Retain")
    data = write_placement(PLACEMENT, spec, charts="engine")
    assert b"deletionPolicy: Delete\n" in data


FAULTS = [
    ("name: vllm-7f3a90c1", "name: vllm-other", "5: metadata.name: is 'vllm-other', and the file lies"),
    ("clusterName: worker-2", "clusterName: worker-3", "26: spec.clusterName: is 'worker-3', and"),
    ("name: vllm-7f3a90c1", "name: flux", "5: metadata.name: 'flux' is a name that engines keep"),
    ("name: vllm-7f3a90c1", "name: " + "a" * 51, "5: metadata.name: 'a"),
    ("name: vllm-7f3a90c1", "name: ../x", "5: metadata.name: '../x' is not a name"),
    ("workspace: llm", "workspace: LLM", "8: metadata.annotations[\"overspill.dev/workspace\"]: 'LLM' is not a name"),
    ('replicas: "3"', 'replicas: "-1"', "13: metadata.annotations[\"overspill.dev/replicas\"]: '-1' is not a number"),
    ('replicas: "3"', "replicas: 3", '/replicas"]: 3 is not a number (try "3")'),
    ("origin: burst", "origin: whim", "/origin\"]: 'whim' is not one of burst, request"),
    ("10:15:00Z", "10:15:00+01:00", 'is not a time (try "2026-11-20T10:15:00Z")'),
    ("2026-11-20T10:15", "9999-12-31T10:15", "'9999-12-31T10:15:00Z' is not between the years 2000 and 2200 (try"),
    ("2026-11-20T10:15", "1999-12-31T10:15", "'1999-12-31T10:15:00Z' is not between the years 2000 and 2200 (try"),
    ("10:15:00Z", "25:15:00Z", "'2026-11-20T25:15:00Z' is not a time"),
    ('template-commit: "8d0c', 'template-commit: "--upload-pack', "/template-commit\"]: '--upload-pack"),
    ("groupSize", "groupsize", '22: metadata.annotations["overspill.dev/replica"]: is no replica\'s shape: groupsize'),
    ('\\"1\\"}', '\\"one\\"}', "'one' is not a quantity"),
    ("    overspill.dev/policy: spill\n", "", '7: metadata.annotations["overspill.dev/policy"]: is required'),
    ("  steps:", "  stages: []\n  steps:", "spec.stages: unknown field (try 'steps')"),
    ("kind: WorkloadPlacement", "kind: Placement", "3: kind: must be WorkloadPlacement"),
    ('timeout: "10m"', "timeout: 10 m", "spec.helmConfig[0].helmFlags.timeout: '10 m' is not a duration (try \"10m\")"),
    ("atomic: false", "atomic: no", "spec.helmConfig[0].helmFlags.atomic: must be true or false"),
    ("type: helm", "type: manifest", "spec.steps[1].name: names no manifest entry 'vllm-app'"),
    ("type: helm", "type: charm", "spec.steps[1].type: 'charm' is not one of helm, manifest, command"),
]


@pytest.mark.parametrize(("good", "bad", "said"), FAULTS, ids=[f"{bad or good}".strip() for good, bad, _ in FAULTS])
def test_a_fault_is_told_with_its_line_and_field(good: str, bad: str, said: str):
    data = RECORD.decode()
    assert good in data
    with pytest.raises(InvalidInput) as error:
        read_placement(data.replace(good, bad, 1).encode(), PATH)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{PATH}:")


def test_all_faults_of_a_record_are_told_at_once():
    data = RECORD.replace(b'"3"', b'"x"').replace(b"origin: burst", b"origin: x").replace(b"wait: true", b"wait: 1")
    with pytest.raises(InvalidInput) as error:
        read_placement(data, PATH)
    assert [problem.line for problem in error.value.problems] == [13, 14, 44]


@pytest.mark.parametrize("data", [b"", b"\n# nothing\n", RECORD + b"---\n" + RECORD, b"- a\n", b"a: [\n", b"\xff"])
def test_what_is_no_single_mapping_is_refused(data: bytes):
    with pytest.raises(InvalidInput) as error:
        read_placement(data, PATH)
    assert error.value.problems


def test_a_record_too_large_to_be_read_is_not_written():
    big = ManifestResource(name="big", manifest={"kind": "ConfigMap", "data": "x" * (1 << 20)})
    with pytest.raises(InvalidInput, match="files over 1 MiB are not read"):
        write_placement(PLACEMENT, DeploySpec(manifests=(big,)), charts="engine")


@given(contents=st.dictionaries(st.text(max_size=5), st.binary(max_size=5), max_size=4), seed=st.integers(0, 9))
def test_the_digest_does_not_depend_on_the_order_of_files(contents: dict[str, bytes], seed: int):
    paths = list(contents)
    random.Random(seed).shuffle(paths)
    assert digest(contents, PLACEMENT, SPEC) == digest({path: contents[path] for path in paths}, PLACEMENT, SPEC)


@given(
    one=st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=3),
    other=st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=3),
)
def test_other_files_have_another_digest(one: dict[str, bytes], other: dict[str, bytes]):
    assert (digest(one, PLACEMENT, SPEC) == digest(other, PLACEMENT, SPEC)) is (one == other)


def test_the_digest_covers_the_record_but_not_itself_nor_the_end():
    known = digest({}, PLACEMENT, SPEC)
    assert known.startswith("sha256-")
    assert len(known) == len("sha256-") + 2 * hashlib.sha256().digest_size
    assert digest({}, replace(PLACEMENT, digest=known), SPEC) == known
    assert digest({}, replace(PLACEMENT, expires_at=PLACEMENT.expires_at + timedelta(hours=1)), SPEC) == known
    assert digest({}, replace(PLACEMENT, replicas=4), SPEC) != known
    assert digest({}, PLACEMENT, replace(SPEC, service_account="other")) != known


def test_placements_of_one_workload_share_what_is_equal():
    first = read_placement(RECORD, PATH)
    _, written = placement_records.files(placement_records.placement("vllm-2", replicas=5))
    second = read_placement(
        written["clusters/worker-2/vllm-2/placement.yaml"], "clusters/worker-2/vllm-2/placement.yaml"
    )
    assert second.shape is first.shape
    assert second.workload.name is first.workload.name
    assert second.source_commit is first.source_commit
