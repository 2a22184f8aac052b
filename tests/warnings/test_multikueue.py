"""A template with a job that MultiKueue manages is told so: elsewhere nobody would make its pods."""

from __future__ import annotations

import pytest

from tests.builders.fleet_files import text, warnings, with_template

KUBEFLOW = "runPolicy: {managedBy: kueue.x-k8s.io/multikueue}"
POD = """
                  template: {spec: {restartPolicy: Never, containers: [{name: main, image: "main:1"}]}}"""
"""The pods of a Job, on a line of their own in its spec."""


def told(version: str, kind: str, spec: str) -> list[str]:
    """Read a template with one object, and return what is said of its manager."""
    made = text(f"""
        apiVersion: gpr.kubeslice.io/v1alpha1
        kind: WorkloadTemplate
        metadata:
          name: vllm
        spec:
          workspaceName: llm
          manifestResources:
            - name: job
              manifest:
                apiVersion: {version}
                kind: {kind}
                metadata: {{name: train, namespace: llm-demo}}
                spec:
                  {spec}
          steps:
            - {{name: job, type: manifest}}
        """)
    return [line for line in warnings(with_template(made)) if "MultiKueue" in line]


@pytest.mark.parametrize(
    ("version", "kind", "spec", "field"),
    [
        ("batch/v1", "Job", f"managedBy: kueue.x-k8s.io/multikueue{POD}", "spec.managedBy"),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", "managedBy: kueue.x-k8s.io/multikueue", "spec.managedBy"),
        ("kubeflow.org/v1", "PyTorchJob", KUBEFLOW, "spec.runPolicy.managedBy"),
    ],
)
def test_a_job_that_multikueue_manages_is_told_with_its_line_and_the_way_out(
    version: str, kind: str, spec: str, field: str
) -> None:
    (line,) = told(version, kind, spec)
    assert line.startswith(
        f"templates/vllm.yaml:14: spec.manifestResources[0].manifest.{field}: {kind} train is managed"
    )
    assert "nobody makes its pods (leave the field out: Kueue sets it where it has to be)" in line


def test_any_other_manager_is_a_persons_business() -> None:
    assert told("batch/v1", "Job", f"managedBy: example.com/own{POD}") == []
    assert told("batch/v1", "Job", f"suspend: true{POD}") == []
